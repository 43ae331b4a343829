"""The bench of array-heavy parts: same numbers everywhere, floors that are floors, a table, a file, a page, errors."""

from __future__ import annotations

import json
import runpy
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from surefoot.errors import MissingExtra
from surefoot_lab import bench_device as module
from surefoot_lab import bench_table
from surefoot_lab.bench_device import bench_device, main
from surefoot_lab.bench_parts import PARTS, FacilityCase, LookaheadCase, PlanningCase, on_its_way
from surefoot_lab.bench_rates import Place, Rates, Work, machine_rates, repeated

pytest.importorskip("torch")

TINY = {
    "grid": [{"candidates": 500, "measurements": 30}],
    "truvar": [{"side": 12, "rows": 40, "measurements": 10}],
    "facility": [{"points": 400, "chosen": 6}],
    "macro": [{"horizon": 3, "samples": 6, "side": 20}],
    "draws": [{"agents": 30, "measurements": 5}, {"agents": 20, "measurements": 60}],
    "federated": [{"agents": 12, "rounds": 3}],
}
UNIT = Rates(copy=1.0, product=1.0, product32=2.0, pairs=1.0, pairs32=2.0)
PAGE = Path(__file__).parents[2] / "docs" / "gpu.md"


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(module, "machine_rates", lambda place, scale: machine_rates(place, scale=1e-3))


def cuda(monkeypatch):
    """Let the processor stand for the device, so that everything but the speed is what a device does."""
    monkeypatch.setattr(module, "machine_rates", lambda place, scale: UNIT)
    monkeypatch.setattr(Place, "__post_init__", lambda self: None)
    monkeypatch.setattr(Place, "cuda", property(lambda self: None))
    put = Place.put.func
    monkeypatch.setattr(Place, "put", property(lambda self: put(Place("cpu") if self.device == "cuda" else self)))


# -- parts -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "size"), [(name, size) for name, sizes in TINY.items() for size in sizes])
def test_torch_gives_numpys_answer(name, size):
    answers = []
    for place in (Place(), Place("cpu")):
        case = PARTS[name].make(place, **size)
        case.work()
        answers.append(case.answer())
    assert answers[0].dtype == np.float64
    assert np.isfinite(answers[0]).all()
    assert np.ptp(answers[0]) > 0  # something was computed
    np.testing.assert_allclose(answers[1], answers[0], rtol=1e-9, atol=1e-9)


def test_an_answer_without_the_work_is_the_same():
    for make, size in ((LookaheadCase, TINY["truvar"][0]), (PlanningCase, TINY["macro"][0])):
        worked, lazy = make(Place(), **size), make(Place(), **size)
        worked.work()
        np.testing.assert_allclose(lazy.answer(), worked.answer(), rtol=1e-12)


def test_the_grid_is_the_posterior_of_its_measurements():
    case = PARTS["grid"].make(Place(), candidates=60, measurements=4)
    for count in (5, 6):
        case.work()
        assert case.grid.n == count
        gp, grid = case.grid.gp, case.grid
        rng = np.random.default_rng(1)
        indices, y = rng.integers(60, size=4), rng.standard_normal(4)
        assert grid.indices == [*indices, *[30] * (count - 4)]
        posterior = gp.condition(grid.points[grid.indices], [*y, *[1.0] * (count - 4)])
        np.testing.assert_allclose(case.answer()[:60], posterior.mean(grid.points), atol=1e-9)


def test_similarities_are_counted():
    case = FacilityCase(Place(), points=300, chosen=4)
    assert case.least() == Work()
    case.work()
    least = case.least()
    assert least.pairs32 + least.pairs >= 300  # at least one gain
    assert least.pairs32 + least.pairs < 4 * 300 * 300  # lazily: fewer than four passes over everything
    assert least.flops32 == 24 * least.pairs32


def test_leaves_are_counted():
    case = PlanningCase(Place(), horizon=3, samples=6)
    case.work()
    assert case.least().pairs == 1 + 4 * 6 + 16 * 36 + 64 * 36


def test_a_planner_on_its_way_has_measured_and_not_moved():
    policy = on_its_way(side=20, moves=2, horizon=1)
    assert (len(policy.history), len(policy.queries)) == (9, 0)


# -- rates and the clock -----------------------------------------------------------------------------------------------


def test_the_floor_is_the_longest_of_what_must_be_done():
    assert Work(bytes=3.0, flops=2.0, pairs=1.0).floor(UNIT) == (3.0, "memory")
    assert Work(bytes=3.0, flops=2.0, flops32=4.0).floor(UNIT) == (4.0, "matrix product")
    assert Work(pairs=3.0, pairs32=4.0).floor(UNIT) == (5.0, "element-wise")


@pytest.mark.parametrize("place", [Place(), Place("cpu")], ids=["numpy", "torch"])
def test_rates_are_those_of_a_real_machine(place):
    rates = machine_rates(place, scale=0.05)
    assert 1e8 < rates.copy < 1e13
    assert 1e8 < rates.product < 1e14
    assert rates.product32 > 0.7 * rates.product
    assert 1e6 < rates.pairs < 1e13


def test_repeats_end_when_enough_time_was_spent(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])

    def lasting(seconds):
        def work():
            now[0] += seconds

        return work

    assert len(repeated(lasting(0.1))) == 7
    assert len(repeated(lasting(4.0))) == 3
    assert len(repeated(lasting(40.0))) == 1
    assert repeated(lasting(0.1), deadline=now[0] + 0.25).tolist() == pytest.approx([0.1] * 3)


def test_the_clock_waits_for_the_device(monkeypatch):
    calls = []
    monkeypatch.setattr(Place, "wait", lambda self: calls.append("wait"))
    repeated(lambda: calls.append("work"), Place("cpu"), repeats=2)
    assert calls == ["wait", "work", "wait"] * 2


# -- the whole run -----------------------------------------------------------------------------------------------------


def test_all_parts_in_one_table_and_a_file(quick, tmp_path, capsys):
    file = tmp_path / "bench.json"
    found = bench_device(sizes=TINY, json_file=file)
    out, err = capsys.readouterr()
    assert json.loads(file.read_text()) == found
    assert [row["part"] for row in found["rows"]] == [
        "grid",
        "truvar",
        "facility",
        "macro",
        "draws",
        "draws",
        "federated",
    ]
    for row in found["rows"]:
        assert set(row["seconds"]) == {"NumPy", "torch on cpu"}
        assert all(1 <= len(seconds) <= 7 and min(seconds) > 0 for seconds in row["seconds"].values())
        assert row["difference"] < 1e-9
        assert row["floor"] > 0
        assert row["title"] in out
        assert f"{row['problem']}: NumPy" in err
    assert list(found["places"]) == ["NumPy", "torch on cpu"]
    assert found["environment"]["torch"]
    assert "GB/s copied" in out
    assert f"written to {file}" in out


def test_a_difference_is_reported(quick, monkeypatch):
    """The check beside the times can fail."""
    honest = PARTS["draws"].make

    def wrong(place, **size):
        case = honest(place, **size)
        if place.device is not None:
            case.normals = case.normals + 1.0
        return case

    monkeypatch.setitem(PARTS, "draws", module.Part("draws", wrong, (), (), "{agents} {measurements}"))
    found = bench_device(parts=["draws"], sizes=TINY, show=lambda text: None)
    assert found["rows"][0]["difference"] > 1e-3


def test_a_device_has_columns_of_its_own(monkeypatch, capsys):
    cuda(monkeypatch)
    monkeypatch.setattr(Place, "describe", lambda self: {"name": str(self.device), "cores": 2, "threads": 1})
    sizes = {"draws": TINY["draws"][:1], "truvar": [{**TINY["truvar"][0], "only": "device"}]}
    found = bench_device(device="cuda", parts=["draws", "truvar"], sizes=sizes)
    out = capsys.readouterr().out
    assert list(found["places"]) == ["NumPy", "torch on cpu", "torch on cuda"]
    whole, alone = found["rows"]
    assert set(whole["seconds"]) == set(found["places"])
    assert set(alone["seconds"]) == {"torch on cuda"}
    assert alone["missing"] == {"NumPy": "too long"}
    assert alone["difference"] < 1e-12  # compared all the same
    assert "too long" in out


def test_what_is_for_a_device_only_is_left_out_without_one(quick):
    sizes = {"truvar": [{**TINY["truvar"][0], "only": "device"}]}
    assert bench_device(parts=["truvar"], sizes=sizes, show=lambda text: None)["rows"] == []


def test_time_and_memory_are_limits(quick, monkeypatch):
    late = bench_device(parts=["draws"], sizes=TINY, minutes=1e-9, show=lambda text: None)["rows"][0]
    assert late["missing"] == {"NumPy": "no time left", "torch on cpu": "no time left"}
    assert (late["seconds"], late["floor"], late["difference"]) == ({}, None, None)
    monkeypatch.setattr(Place, "free", lambda self: 2.0**20 if self.device is None else np.inf)
    sizes = {"grid": [{"candidates": 20_000, "measurements": 10}]}
    tight = bench_device(parts=["grid"], sizes=sizes, show=lambda text: None)["rows"][0]
    assert tight["missing"] == {"NumPy": "needs 0 GiB"}
    assert tight["difference"] is None


def test_what_was_measured_survives_a_failure(quick, monkeypatch, tmp_path):
    def fails(place, **size):
        raise RuntimeError("out of memory")

    monkeypatch.setitem(PARTS, "grid", module.Part("grid", fails, (), (), "", lambda **size: 0.0))
    with pytest.raises(RuntimeError, match="out of memory"):
        bench_device(parts=["draws", "grid"], sizes=TINY, json_file=tmp_path / "b.json", show=lambda text: None)
    rows = json.loads((tmp_path / "b.json").read_text())["rows"]
    assert rows[-1]["missing"] == {"NumPy": "failed", "torch on cpu": "failed"}
    assert rows[0]["seconds"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--part", "nonsense"], "no part 'nonsense'; the parts are grid, truvar"),
        (["--minutes", "0"], "minutes must be positive, got 0.0"),
        (["--json", "absent/b.json"], "there is no folder absent"),
    ],
)
def test_mistakes_are_one_line_and_status_2(words, said, capsys):
    assert main(words) == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1


def test_no_cuda_is_one_line_and_status_2(capsys):
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is one")
    assert main(["--device", "cuda"]) == 2
    assert capsys.readouterr().err.startswith("error: no device 'cuda' on this machine: ")


def test_no_torch_names_the_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    with pytest.raises(MissingExtra, match=r"surefoot\[torch\]"):
        bench_device()


def test_sizes_are_spelled_and_estimated():
    for part in PARTS.values():
        for size in (*part.small, *part.large):
            own = {key: value for key, value in size.items() if key != "only"}
            assert part.named(own)
            assert 0 <= part.memory(**own) < 2**36


# -- the table and the page --------------------------------------------------------------------------------------------


@pytest.fixture
def stored(quick, tmp_path):
    file = tmp_path / "gpu.json"
    bench_device(parts=["draws", "grid"], sizes=TINY, json_file=file, show=lambda text: None)
    return file


def test_a_narrow_terminal_gets_paragraphs(stored):
    found = json.loads(stored.read_text())
    wide, narrow = bench_table.lines(found, width=300), bench_table.lines(found, width=80)
    assert len(wide) == 4
    assert wide[0].split("  ")[0] == "part"
    assert max(map(len, narrow)) <= 80
    assert sum(line.strip().startswith("over floor: ") for line in narrow) == 3


def test_the_page_is_filled_between_its_markers(stored, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{bench_table.BEGIN}\nold\n{bench_table.END}\nafter\n")
    bench_table.write_page(stored, page)
    once = page.read_text()
    assert once.startswith("before\n")
    assert once.endswith("\nafter\n")
    assert "old" not in once
    assert once.count("| federation, one round of draws |") == 2
    bench_table.write_page(stored, page)
    assert page.read_text() == once
    page.write_text("no markers")
    with pytest.raises(ValueError, match="must hold the lines"):
        bench_table.write_page(stored, page)


def test_the_command_for_the_page(stored, tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    page.write_text(f"{bench_table.BEGIN}\n{bench_table.END}\n")
    monkeypatch.setattr(sys, "argv", ["bench_table", str(stored), str(page)])
    runpy.run_path(bench_table.__file__, run_name="__main__")
    filled = page.read_text()
    assert "| federation, one round of draws |" in filled
    monkeypatch.setattr(sys, "argv", ["bench_table", str(tmp_path / "absent.json"), str(page)])
    with pytest.raises(SystemExit, match=r"error: there is no file .*absent\.json"):
        runpy.run_path(bench_table.__file__, run_name="__main__")
    assert page.read_text() == filled


def test_the_page_shows_what_is_stored(tmp_path):
    results = PAGE.with_suffix(".json")
    if not results.is_file():
        pytest.skip("no results are stored")
    copy = tmp_path / "gpu.md"
    copy.write_text(PAGE.read_text(encoding="utf-8"), encoding="utf-8")
    bench_table.write_page(results, copy)
    assert copy.read_text(encoding="utf-8") == PAGE.read_text(encoding="utf-8")
