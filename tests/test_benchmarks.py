"""The benchmarks' own bookkeeping: pairing, the better peer, runs that are not repeated."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture(scope="module")
def regret() -> ModuleType:
    sys.path.insert(0, str(FOLDER))
    try:
        return importlib.import_module("regret")
    finally:
        sys.path.remove(str(FOLDER))


def planted(path: Path, regrets: dict[str, list[float]]) -> Path:
    runs = [
        {"problem": "branin", "method": method, "seed": seed, "regret": value}
        for method, values in regrets.items()
        for seed, value in enumerate(values)
    ]
    path.write_text("".join(json.dumps(run) + "\n" for run in runs))
    return path


@pytest.mark.parametrize(("factor", "verdict"), [(0.01, "**ours**"), (100.0, "theirs")])
def test_the_table_takes_the_better_peer(regret: ModuleType, tmp_path: Path, factor: float, verdict: str) -> None:
    peer = 10.0 ** np.random.default_rng(0).normal(-2.0, 0.1, 12)
    runs = {"surefoot": list(factor * peer), "botorch": list(peer), "optuna": list(10.0 * peer)}
    row = regret.table([planted(tmp_path / "runs.jsonl", runs)]).splitlines()[-1]
    assert "| 12 |" in row
    assert "| botorch |" in row
    assert f"{np.log10(factor):+.2f} [" in row
    assert verdict in row


def test_a_difference_within_the_noise_is_nobodys(regret: ModuleType, tmp_path: Path) -> None:
    values = 10.0 ** np.random.default_rng(1).normal(-2.0, 1.0, (2, 12))
    row = regret.table([planted(tmp_path / "runs.jsonl", {"surefoot": [*values[0]], "optuna": [*values[1]]})])
    assert "ours" not in row.splitlines()[-1]
    assert "theirs" not in row.splitlines()[-1]


def test_stored_runs_are_not_repeated_and_designs_are_shared(
    regret: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(regret.CASES, "branin", regret.Case(regret.problems.branin, 2))
    path = tmp_path / "runs.jsonl"
    regret.run(path, ["surefoot"], ["branin"], 2, 0)
    first = path.read_text()
    regret.run(path, ["surefoot"], ["branin"], 3, 0)
    lines = path.read_text().splitlines()
    assert len(lines) == 3
    assert "\n".join(lines[:2]) + "\n" == first
    runs = [json.loads(line) for line in lines]
    assert len({run["trace"][0] for run in runs}) == 3  # every seed has its own design
    again = regret.play(regret.CASES["branin"], "surefoot", 0)
    assert again["trace"] == runs[0]["trace"]
