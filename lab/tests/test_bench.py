from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from surefoot import ExpectedImprovement, RandomSearch
from surefoot_lab import bench as module
from surefoot_lab.bench import ask_bytes, ask_seconds, bench


def test_the_ask_that_is_timed_is_made_by_the_rule_and_knows_the_data():
    made = []

    def make(domain, seed):
        made.append(module.default(domain, seed))
        return made[-1]

    assert ask_seconds(make, n=20, d=20, repeats=2).shape == (2,)
    assert len(made) == 3
    for policy in made:
        assert isinstance(policy, ExpectedImprovement)
        assert (len(policy.history), len(policy.queries), policy.domain.dimension) == (20, 1, 20)
        assert "initial" not in policy.queries[0].note
    assert made[0].history != made[1].history


def test_memory_grows_with_the_data():
    small, large = ask_bytes(module.default, 20, 2), ask_bytes(module.default, 300, 2)
    assert large > 300 * 300 * 8  # at least the covariance matrix
    assert large > small
    assert ask_bytes(lambda domain, seed: RandomSearch(domain, seed=seed), 300, 2) < large


@pytest.mark.parametrize("width", [40, 80])
def test_two_tables_and_a_file(tmp_path, monkeypatch, width):
    monkeypatch.setattr(module, "QUICK", ((5, 10), (2, 3, 4, 5), 2))
    screen = Console(file=io.StringIO(), width=width)
    cells = bench(quick=True, json_file=tmp_path / "bench.json", console=screen)
    text = screen.file.getvalue()
    assert [(cell["n"], cell["d"]) for cell in cells] == [(n, d) for n in (5, 10) for d in (2, 3, 4, 5)]
    assert "seconds" in text
    assert "peak memory, MiB" in text
    assert all(name in text for name in ("d = 2", "d = 5"))
    stored = json.loads((tmp_path / "bench.json").read_text())
    assert stored["cells"] == cells
    assert stored["environment"]["numpy"]
    assert all(len(cell["seconds"]) == 2 and cell["bytes"] > 0 for cell in cells)
    assert max(len(line) for line in text.splitlines() if "bench.json" not in line) <= width


def test_a_file_that_cannot_be_written_is_refused_before_the_work(tmp_path):
    with pytest.raises(ValueError, match="there is no folder"):
        bench(quick=True, json_file=tmp_path / "absent" / "bench.json")
