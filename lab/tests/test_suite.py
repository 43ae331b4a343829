"""The comparison on problems of others: names, shared points, runs in real processes, what is kept, the judge."""

from __future__ import annotations

import importlib
import itertools
import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest

from surefoot_lab.suite import environments, judge, methods, page, play, problems, record
from surefoot_lab.suite.record import Run

FAKE = """
import pathlib
class Function:
    class bounds: lb, ub = [-5.0, -5.0], [5.0, 5.0]
    class optimum: y = 1.0
    def __call__(self, x):
        if x[0] > {wall}: raise ValueError("too far")
        return 1.0 + sum(v * v for v in x)
class ProblemClass: BBOB = None
def get_problem(*arguments): return Function()
"""


@pytest.fixture
def sphere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package ``ioh`` whose every function is a sphere, importable by the processes started here."""
    folder = tmp_path / "packages"
    folder.mkdir()
    (folder / "ioh.py").write_text(FAKE.format(wall="1e9"))
    paths = [str(folder), *(str(Path(p).resolve()) for p in sys.path if p)]
    monkeypatch.setenv("PYTHONPATH", ":".join(paths))
    monkeypatch.setattr(play, "Helper", _visible(play.Helper))
    return folder / "ioh.py"


def _visible(kind: type[play.Helper]):
    def make(python: str, role: str, *, alone: bool = True, patience: float = 60.0) -> play.Helper:
        return kind(python, role, alone=False, patience=patience)

    return make


def run(name: str, method: str, regrets: list[float], given: int = 1) -> Run:
    return Run(name, method, "1", given, np.array(regrets), 0.1)


# --- problems ---------------------------------------------------------------------------------------------------


def test_the_even_functions_are_run_nowhere():
    every = problems.names(problems.SUITES, dimensions=[2, 5, 10, 20], instances=[1, 2])
    numbers = {int(name.split("/")[1][1:]) for name in every if name.startswith(("bbob", "mixint"))}
    assert numbers == set(range(1, 24, 2))
    with pytest.raises(ValueError, match="even"):
        problems.landscape("bbob/f2/d2/i1")


def test_names_come_instance_by_instance_and_say_what_they_are():
    names = problems.names(["bbob", "labs"], dimensions=[2, 5], instances=[1, 2])
    assert len(names) == len(set(names)) == 2 * (12 * 2 + 1)
    assert {problems.problem(name) for name in names if problems.instance(name) == 1} == {
        problems.problem(name) for name in names
    }
    with pytest.raises(ValueError, match="unknown suite 'smooth'"):
        problems.names(["smooth"])


def test_wide_problems_have_their_minimum_where_the_formula_has_it():
    for which, at in (("hartmann6_in_50", None), ("levy_in_100", [1.0] * 100)):
        made = problems.landscape(f"wide/{which}/i1")
        assert len(made.axes) == int(which[-3:].strip("_in"))
        if at:
            assert made.value(at) == pytest.approx(made.best, abs=1e-12)
        assert made.value([0.3] * len(made.axes)) > made.best


# --- the shared points ------------------------------------------------------------------------------------------


def test_all_methods_share_points_and_instances_do_not():
    axes = [
        {"name": "a", "kind": "float", "low": -5.0, "high": 5.0},
        {"name": "b", "kind": "int", "low": 1, "high": 1000, "log": True},
        {"name": "c", "kind": "choice", "size": 3},
    ]
    first = play.design(axes, "bbob/f1/d2/i1")
    assert first == play.design(axes, "bbob/f1/d2/i1") != play.design(axes, "bbob/f1/d2/i2")
    assert len(first) == 4
    many = [point for i in range(200) for point in play.design(axes, f"bbob/f1/d2/i{i}")]
    assert {point[2] for point in many} == {0, 1, 2}
    assert all(-5 <= a <= 5 and 1 <= b <= 1000 and b == int(b) for a, b, _ in many)
    assert 0.3 < np.mean([b < 32 for _, b, _ in many]) < 0.7  # half of a logarithmic axis
    assert len(play.design(axes[:1] * 60, "bbob/f1/d2/i1")) == play.MOST_GIVEN


# --- methods ----------------------------------------------------------------------------------------------------

AXES = [{"name": "a", "kind": "float", "low": -1.0, "high": 2.0}, {"name": "c", "kind": "choice", "size": 3}]


@pytest.mark.parametrize("name", ["random", "surefoot", "surefoot-0.1"])
def test_a_method_asks_inside_its_axes_and_the_same_for_the_same_seed(name: str):
    def points(seed: int) -> list[list[float]]:
        method = methods.METHODS[name](AXES, seed, [[0.0, 1], [1.0, 2], [0.5, 0]], [0.0, 1.0, 0.25])
        asked = []
        for _ in range(4):
            asked.append(method.ask())
            method.tell(asked[-1], float(asked[-1][0] ** 2 + asked[-1][1]))
        return asked

    assert points(1) == points(1) != points(2)
    assert all(-1.0 <= a <= 2.0 and c in (0, 1, 2) for a, c in points(1))


def test_surefoot_minimizes():
    method = methods.METHODS["surefoot"](AXES[:1], 0, [[-1.0], [0.0], [2.0]], [1.69, 0.09, 2.89])
    for _ in range(8):
        x = method.ask()
        method.tell(x, (x[0] - 0.3) ** 2)
    assert min(method.y) < 1e-3


# --- runs in processes ------------------------------------------------------------------------------------------

NAMES = ["bbob/f1/d2/i1", "bbob/f3/d2/i2"]


def test_runs_are_made_by_processes_kept_line_by_line_and_not_repeated(sphere: Path, tmp_path: Path):
    folder = tmp_path / "runs"
    assert play.play_all(NAMES, ["random"], folder, budget=6) == 2
    lines = [json.loads(line) for line in (folder / "random" / "bbob-f1-d2-i1.jsonl").read_text().splitlines()]
    assert lines[0] | {"version": ""} == {
        "problem": NAMES[0], "method": "random", "version": "", "seed": 1, "budget": 6, "given": 3, "best": 1.0,
    }  # fmt: skip
    assert [line["seconds"] is None for line in lines[1:]] == [True] * 3 + [False] * 3
    assert all(line["value"] == pytest.approx(1.0 + sum(v * v for v in line["x"])) for line in lines[1:])
    assert play.play_all(NAMES, ["random"], folder, budget=6) == 0
    assert play.play_all(NAMES[:1], ["random"], folder, budget=7) == 1  # another budget is another run


def test_a_run_that_was_killed_begins_anew_and_gives_the_same_lines(sphere: Path, tmp_path: Path):
    folder = tmp_path / "runs"
    play.play_all(NAMES[:1], ["random"], folder, budget=6)
    path = folder / "random" / "bbob-f1-d2-i1.jsonl"

    def points() -> list[list[float]]:
        return [json.loads(line)["x"] for line in path.read_text().splitlines()[1:]]

    whole = points()
    path.rename(path.with_suffix(".part"))
    path.with_suffix(".part").write_text(path.with_suffix(".part").read_text()[:150])  # torn in the middle of a line
    assert not record.is_done(folder, NAMES[0], "random", 6)
    assert record.stored(folder) == []
    assert play.play_all(NAMES[:1], ["random"], folder, budget=6) == 1
    assert points() == whole
    assert not path.with_suffix(".part").exists()


def test_a_run_that_fails_is_told_and_the_others_go_on(sphere: Path, tmp_path: Path):
    folder, said = tmp_path / "runs", []
    sphere.write_text(FAKE.format(wall="-100"))
    assert play.play_all(NAMES[:1], ["random"], folder, budget=6, say=said.append) == 0
    assert "too far" in said[0]
    sphere.write_text(FAKE.format(wall="1e9"))
    assert play.play_all(NAMES, ["nobody", "random"], folder, budget=6, say=said.append) == 2
    assert sum("failed: KeyError" in text for text in said) == 2


def test_a_failure_in_the_middle_leaves_its_reason_until_the_run_is_whole(tmp_path: Path):
    def fail() -> None:
        with record.writing(tmp_path, NAMES[0], "cma") as file:
            file.write("{}\n")
            raise RuntimeError("no answer within 600 seconds")

    with pytest.raises(RuntimeError):
        fail()
    assert record.failures(tmp_path) == {"cma/bbob-f1-d2-i1": "RuntimeError: no answer within 600 seconds"}
    with record.writing(tmp_path, NAMES[0], "cma") as file:
        file.write("{}\n")
    assert record.failures(tmp_path) == {}


def test_a_process_that_does_not_answer_or_ends_is_an_error(tmp_path: Path):
    silent = tmp_path / "python"
    silent.write_text("#!/bin/sh\nexec sleep 30\n")
    silent.chmod(0o755)
    helper = play.Helper(str(silent), "methods", patience=0.2)
    with pytest.raises(RuntimeError, match=r"no answer within 0\.2 seconds"):
        helper.say(ask=True)
    helper.close()
    with pytest.raises(RuntimeError, match="process"):
        helper.say(ask=True)


def test_a_method_without_its_environment_says_how_to_make_it(tmp_path: Path):
    with pytest.raises(FileNotFoundError, match=r"suite\.py install"):
        play.interpreter(tmp_path, "botorch")
    assert play.interpreter(tmp_path, "surefoot") == sys.executable


# --- what is kept -----------------------------------------------------------------------------------------------


def test_kept_curves_are_the_runs(tmp_path: Path):
    rng = np.random.default_rng(0)
    curves = [np.minimum.accumulate(10.0 ** rng.normal(size=20).round(2)).round(3) for _ in range(3)]
    runs = [run(f"bbob/f{2 * i + 1}/d2/i1", "cma", curve.tolist(), 3) for i, curve in enumerate(curves)]
    record.save(runs, tmp_path / "kept.jsonl")
    again = record.load(tmp_path / "kept.jsonl")
    for one, other in zip(runs, again, strict=True):
        assert (one.name, one.method, one.version, one.given) == (other.name, other.method, other.version, other.given)
        np.testing.assert_array_equal(one.regrets, other.regrets)


# --- the judge, against a brute-force oracle --------------------------------------------------------------------


def planted() -> list[Run]:
    rng = np.random.default_rng(3)
    runs = []
    for f, method, i in itertools.product(range(1, 24, 2), ("surefoot", "cma", "botorch"), (1, 2, 3)):
        if not (method == "botorch" and f == 23):  # one problem is not done
            curve = np.minimum.accumulate(10.0 ** rng.normal(-1.0, 2.0, 30))
            runs.append(run(f"bbob/f{f}/d2/i{i}", method, curve.tolist(), 3))
    return runs


def test_differences_and_shares_are_those_of_a_plain_loop():
    runs = planted()
    found = judge.table(runs)
    last = {(r.name, r.method): math.log10(max(r.regrets[-1], 1e-8)) for r in runs}
    significantly = clearly = 0
    for f in range(1, 22, 2):
        names = [f"bbob/f{f}/d2/i{i}" for i in (1, 2, 3)]
        mean = {m: sum(last[n, m] for n in names) / 3 for m in ("surefoot", "cma", "botorch")}
        best = "cma" if mean["cma"] < mean["botorch"] else "botorch"
        pairs = [last[n, "surefoot"] - last[n, best] for n in names]
        middle = sum(pairs) / 3
        half = 4.302652729911275 * math.sqrt(sum((p - middle) ** 2 for p in pairs) / 2 / 3)
        significantly += middle - half > 0
        clearly += middle > 0.5
        made = judge.difference(found, f"bbob/f{f}/d2", "surefoot", best)
        assert (made.mean, made.low, made.high) == pytest.approx((middle, middle - half, middle + half))
    assert judge.behind(found, "surefoot", ["cma", "botorch"])[:2] == (significantly, clearly)
    assert len(judge.behind(found, "surefoot", ["cma", "botorch"])[2]) == 11
    each = [sum(last[f"bbob/f{f}/d2/i{i}", "surefoot"] - last[f"bbob/f{f}/d2/i{i}", "cma"] for i in (1, 2, 3)) / 3
            for f in range(1, 24, 2)]  # fmt: skip
    assert judge.overall(found, "surefoot", "cma").mean == pytest.approx(sum(each) / 12)
    assert judge.difference(found, "bbob/f23/d2", "surefoot", "botorch") is None


def test_one_instance_has_no_interval():
    runs = [run("bbob/f1/d2/i1", method, [1.0, value]) for method, value in (("surefoot", 1.0), ("cma", 0.001))]
    made = judge.difference(judge.table(runs), "bbob/f1/d2", "surefoot", "cma")
    assert (made.mean, made.low, made.count) == (3.0, -math.inf, 1)
    assert judge.behind(judge.table(runs), "surefoot", ["cma"])[:2] == (0, 1)  # clearly, and not significantly


def test_ranks_are_those_of_counting():
    means = judge.common(judge.table(planted()), ["surefoot", "cma", "botorch"])
    assert len(means) == 11
    places = judge.ranks(means)
    for method, made in places.items():
        counted = [
            sum(row[other] < row[method] for other in row) + (1 + sum(row[other] == row[method] for other in row)) / 2
            for row in means.values()
        ]
        assert made.mean == pytest.approx(sum(counted) / 11)
        assert made.low <= made.mean <= made.high
    assert sum(made.mean for made in places.values()) == pytest.approx(6.0)


def test_profiles_are_those_of_counting():
    runs = [r for r in planted() if r.method == "cma"]
    curve = judge.profile(runs)
    for k in (0, 5, 29):
        hits = [
            r.regrets[k] <= max(r.regrets[2] * 10 ** (-j / 5), 1e-8)
            for r in runs
            for j in range(1, 31)
            if r.regrets[2] > 1e-8
        ]
        assert curve[k] == pytest.approx(sum(hits) / len(hits))
    assert np.all(np.diff(curve) >= 0)


def test_nothing_below_the_bound_counts():
    runs = [run("bbob/f1/d2/i1", method, [1.0, value]) for method, value in (("surefoot", 0.0), ("cma", 1e-12))]
    found = judge.table(runs)["bbob/f1/d2"]
    assert found["surefoot"] == found["cma"] == {1: -8.0}


# --- the page and the command -----------------------------------------------------------------------------------


def test_the_page_says_what_is_done_and_keeps_what_stands_around_it(tmp_path: Path):
    path = tmp_path / "comparison.md"
    path.write_text(f"rule\n{page.BEGIN}\nold\n{page.END}\nafter\n")
    page.write(path, planted(), tmp_path)
    text = path.read_text()
    assert text.startswith("rule\n")
    assert text.endswith("\nafter\n")
    assert "old" not in text
    assert "| `cma` | 1 | 36 | 12 | 0.1 |" in text
    assert "| `botorch` | 1 | 33 | 11 | 0.1 |" in text
    assert "over the 11 problems" in text
    for picture in ("profiles", "ranks"):
        assert "var(--accent)" in (tmp_path / f"comparison-{picture}.svg").read_text()
    path.write_text("no place")
    with pytest.raises(ValueError, match="lacks the markers"):
        page.write(path, planted(), tmp_path)


def test_the_page_of_unfinished_runs_says_so():
    text = page.tables([r for r in planted() if r.method != "surefoot"])
    assert "too few" not in text
    assert "significantly" not in text


def test_the_command_finds_its_parts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    suite = importlib.import_module("suite")
    monkeypatch.setattr(sys, "argv", ["suite.py", "run", "--runs", str(tmp_path), "--methods", "random", "--instances"])
    with pytest.raises(SystemExit):
        suite.main()
    assert "--instances" in capsys.readouterr().err


def test_environments_are_pinned_and_torch_is_the_processors():
    for name, packages in environments.PACKAGES.items():
        assert any("==" in package for package in packages + environments.ALONE.get(name, [])), name
        assert all(package == environments.TORCH for package in packages if package.startswith("torch"))
    constraints = (Path(__file__).parents[2] / "constraints.txt").read_text()
    assert environments.TORCH in constraints
    with pytest.raises(ValueError, match="needs no environment"):
        environments.install(Path("nowhere"), ["random"], Path("constraints.txt"))
