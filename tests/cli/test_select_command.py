"""``surefoot select``: what it writes, what it prints, and how it fails."""

from __future__ import annotations

import csv
import io
import json
import sys
from itertools import combinations

import numpy as np
import pytest
from rich.console import Console

from surefoot import cli
from surefoot.cli.select import Sheet, objective_of, read, select, watched
from surefoot.report.selection import plane
from surefoot.select import Coverage, FacilityLocation, branch_and_bound, greedy, pro


@pytest.fixture
def points(tmp_path):
    """Three clouds of 40 points in three dimensions, with a name for each."""
    rng = np.random.default_rng(0)
    X = np.repeat(6.0 * np.eye(3), 40, axis=0) + rng.normal(size=(120, 3))
    path = tmp_path / "points.csv"
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["name", "x", "y", "z"])
        writer.writerows([f"p{i}", *row] for i, row in enumerate(X.tolist()))
    return path


def quietly(path, **options):
    screen = Console(file=io.StringIO(), width=100)
    found = select(path, out=path.parent / "out", console=screen, **options)
    return found, screen.file.getvalue()


def test_chosen_rows_are_written_as_they_stood(points):
    found, said = quietly(points, k=6, tau=2, ignore=["name"])
    rows = points.read_text().splitlines()
    written = (points.parent / "out" / "selected.csv").read_text().splitlines()
    assert written == [rows[0], *(rows[i + 1] for i in found.selection.order)]
    facts = json.loads((points.parent / "out" / "selection.json").read_text())
    assert facts["chosen"] == [i + 2 for i in found.selection.order]  # numbers of lines
    assert facts["worst_case"]["value"] == found.worst.value
    assert (points.parent / "out" / "selection.png").stat().st_size > 10_000
    assert "6 of 120 rows" in said
    assert "after the worst loss of 2" in said


def test_the_choice_keeps_more_than_greedy(points):
    """The value said to be left is the least over all deletions, and no less than greedy selection's."""
    found, _ = quietly(points, k=7, tau=2, ignore=["name"], picture=False)
    f = objective_of(read(points, ignore=["name"]), "facility")
    assert found.worst.value == pytest.approx(min(f.value(kept) for kept in combinations(found.selection.order, 5)))
    plain, _ = quietly(points, k=7, tau=2, ignore=["name"], method="greedy", picture=False)
    assert found.worst.value >= plain.worst.value
    assert found.tried["greedy"] >= plain.worst.value  # the heuristic adversary is no stronger than the exact one


def test_values_are_shares_of_what_all_rows_have(points):
    sheet = read(points, ignore=["name"])
    for name in ("facility", "cosine", "variance"):
        everything = objective_of(sheet, name).value(range(120))
        assert everything <= 1.0 + 1e-9
        assert everything > 0.5
    assert objective_of(sheet, "facility").value(range(120)) == pytest.approx(1.0)


def test_variance_is_the_mean_over_the_rows(points):
    sheet = read(points, ignore=["name"])
    f = objective_of(sheet, "variance")
    S = [3, 50]
    K = f._K[:, S]
    direct = np.mean(np.sum((K @ np.linalg.inv(K[S] + 0.1 * np.eye(2))) * K, axis=1))
    assert f.value([3, 50]) == pytest.approx(direct)


def test_columns_by_regression(tmp_path):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 5))
    table = np.column_stack([X, X[:, 1] + 2.0 * X[:, 3]])
    np.savetxt(tmp_path / "t.csv", table, delimiter=",", header="a,b,c,d,e,price", comments="")
    found, said = quietly(tmp_path / "t.csv", k=3, tau=1, objective="regression", target="price")
    assert {1, 3} <= set(found.selection.order)
    header = (tmp_path / "out" / "selected.csv").read_text().splitlines()[0].split(",")
    assert {"b", "d", "price"} <= set(header)
    assert len(header) == 4
    assert "3 of 5 columns" in said


def test_quiet_prints_line_numbers_alone(points):
    found, said = quietly(points, k=3, tau=1, ignore=["name"], quiet=True, picture=False)
    assert json.loads(said) == [i + 2 for i in found.selection.order]


def test_weights_move_the_choice(points, tmp_path):
    rows = points.read_text().splitlines()
    weighted = [rows[0] + ",w", *(f"{row},{1.0 if i < 40 else 0.0}" for i, row in enumerate(rows[1:]))]
    (tmp_path / "w.csv").write_text("\n".join(weighted) + "\n")
    found, _ = quietly(tmp_path / "w.csv", k=3, ignore=["name"], weights="w", picture=False)
    assert all(i < 40 for i in found.selection.order)


BAD = {
    "nan": ("x,y\n1,2\nnan,4\n5,6\n", {}, "line 3: column 'x' has no finite number"),
    "empty": ("x,y\n1,2\n3,\n5,\n", {}, "line 3: column 'y' has no finite number (2 such lines)"),
    "text": ("x,y\n1,2\n3,blue\n", {}, "line 3: column 'y' holds 'blue', which is no number"),
    "constant": ("x,y\n1,2\n3,2\n5,2\n", {}, "column 'y' has the same value in every row"),
    "k": ("x,y\n1,2\n3,4\n", {"k": 3}, "k = 3 rows cannot be chosen out of 2"),
    "tau": ("x,y\n1,2\n3,4\n5,9\n", {"k": 2, "tau": 2}, "tau = 2 deletions leave nothing of k = 2"),
    "none": ("x,y\n1,2\n3,4\n", {"k": 0}, "k must be at least 1, got 0"),
    "negative tau": ("x,y\n1,2\n3,4\n", {"tau": -1}, "tau must be at least 0, got -1"),
    "weights": ("x,w\n1,1\n3,-2\n5,1\n", {"weights": "w"}, "line 3: the weight -2 is negative"),
    "entries": ("x,y\n1,1\n3,-2\n", {"objective": "coverage"}, "column 'y' is -2; coverage counts"),
    "no target": ("x,y\n1,1\n3,2\n", {"objective": "regression"}, "regression needs --target"),
    "a target": ("x,y\n1,1\n3,2\n", {"target": "y"}, "facility takes no --target"),
    "column": ("x,y\n1,1\n3,2\n", {"ignore": ["z"]}, "there is no column 'z'; the columns are x, y"),
    "objective": ("x,y\n1,1\n3,2\n", {"objective": "beauty"}, "the objective is one of facility"),
    "method": ("x,y\n1,1\n3,2\n", {"method": "luck"}, "method must be 'auto' or one of"),
    "ragged": ("x,y\n1,1\n3\n", {}, "line 3 has 1 fields, the header has 2"),
    "nothing": ("x,y\n", {}, "no rows below its header"),
    "same name": ("x,x\n1,2\n", {}, "two columns have the same name"),
    "no columns": ("x\n1\n2\n", {"ignore": ["x"]}, "no column is left"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case, tmp_path):
    text, options, said = BAD[case]
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(ValueError) as error:
        quietly(tmp_path / "t.csv", **{"k": 1, **options})
    assert said in str(error.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "status"), [(["--k", "4", "--tau", "1"], 0), (["--k", "200"], 2), (["--k", "3", "--tau", "3"], 2)]
)
def test_exit_status(words, status, points, monkeypatch, capsys):
    monkeypatch.chdir(points.parent)
    monkeypatch.setattr(sys, "argv", ["surefoot", "select", "points.csv", "--ignore", "name", "--no-picture", *words])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert int(end.value.code or 0) == status
    captured = capsys.readouterr()
    if status:
        assert captured.err.startswith("surefoot: ")
        assert captured.err.count("\n") == 1
    else:
        assert "4 of 120 rows" in captured.out


def test_ten_thousand_rows_serve_a_sample(tmp_path):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(10_000, 3))
    np.savetxt(tmp_path / "t.csv", X, delimiter=",", header="a,b,c", comments="", fmt="%.3f")
    sheet = read(tmp_path / "t.csv")
    f = objective_of(sheet, "facility")
    assert isinstance(f, FacilityLocation)
    assert (f.n, f.m) == (10_000, 2000)
    found, _ = quietly(tmp_path / "t.csv", k=8, tau=1, method="pro", picture=False)
    assert len(found.selection.order) == 8


def test_a_watched_objective_is_the_same(points):
    """Ticks come with every element added, copies of states are their own, and nothing else changes."""
    f = objective_of(read(points, ignore=["name"]), "facility")
    ticks = []
    seen = watched(f, lambda: ticks.append(1))
    assert greedy(seen, 5) == greedy(f, 5)
    assert len(ticks) == 5
    assert pro(seen, 8, 2).order == pro(f, 8, 2).order
    order = greedy(f, 8).order
    one, two = (branch_and_bound(objective, order, 3) for objective in (seen, f))
    assert (one.removed, one.value, one.status) == (two.removed, two.value, two.status)
    other = (state := watched(Coverage([[1, 0], [0, 1]]), lambda: None).state()).copy()
    other.add(0)
    assert (state.value, other.value) == (0.0, 1.0)


def test_the_plane_of_the_picture():
    X = np.random.default_rng(0).normal(size=(50, 4)) * [10.0, 1.0, 1.0, 1.0]
    X[:, 1] = X[:, 0] / 10.0
    points, names = plane(X, list("abcd"))
    assert names[0] == "first principal direction"
    assert abs(np.corrcoef(points[:, 0], X[:, 0])[0, 1]) > 0.9  # two columns that agree are the main direction
    points, names = plane(X[:, :2], ["a", "b"])
    assert names == ("a", "b")
    assert plane(X[:, :1], ["a"])[0].shape == (50, 2)


def test_a_missing_file():
    with pytest.raises(ValueError, match=r"there is no file nowhere\.csv"):
        select("nowhere.csv", k=2)


def test_a_sheet_without_weights_counts_every_row_once():
    sheet = Sheet(["a"], [["0"], ["1"], ["5"]], ["a"], np.array([[0.0], [1.0], [5.0]]))
    weighted = Sheet(sheet.header, sheet.rows, sheet.columns, sheet.values, weights=np.full(3, 7.0))
    np.testing.assert_allclose(
        objective_of(sheet, "facility").singletons(), objective_of(weighted, "facility").singletons()
    )


def test_a_terminal_shows_how_far_it_is(points):
    screen = Console(file=io.StringIO(), width=100, force_terminal=True, color_system=None)
    select(points, k=6, tau=1, ignore=["name"], out=points.parent / "out", picture=False, console=screen)
    said = screen.file.getvalue()
    assert "oblivious-greedy" in said  # what is tried, beside the bar
    assert "/6" in said


def test_covariances_have_their_limit(points, monkeypatch):
    monkeypatch.setattr("surefoot.cli.select.DENSE", 100)
    with pytest.raises(ValueError, match="variance takes up to 100 rows, got 120"):
        quietly(points, k=3, objective="variance", ignore=["name"])


def test_without_matplotlib_the_rest_is_written(points, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    _, said = quietly(points, k=3, ignore=["name"])
    assert "no picture: pictures need matplotlib" in said
    assert sorted(path.name for path in (points.parent / "out").iterdir()) == ["selected.csv", "selection.json"]


def test_lines_are_those_of_the_file(tmp_path):
    """Empty lines, and fields of several lines, do not shift the numbers."""
    file = tmp_path / "gaps.csv"
    file.write_text('a,b,note\n1,2,x\n\n3,4,"two\nlines"\n\n5,99,z\n')
    assert list(read(file, ignore=["note"]).lines) == [2, 4, 7]
    select(file, k=1, ignore=["note"], out=tmp_path / "out", picture=False, console=Console(file=io.StringIO()))
    assert json.loads((tmp_path / "out" / "selection.json").read_text())["chosen"] == [7]
    file.write_text("a,b\n1,2\n\n3,x\n")
    with pytest.raises(ValueError, match="line 4: column 'b' holds 'x'"):
        read(file)


def test_a_column_may_weigh_without_counting(tmp_path):
    file = tmp_path / "weighed.csv"
    file.write_text("a,b\n1,2\n3,4\n5,7\n")
    sheet = read(file, ignore=["b"], weights="b")
    assert sheet.columns == ["a"]
    assert sheet.weights.tolist() == [2.0, 4.0, 7.0]


def test_a_file_that_is_no_text_is_named(tmp_path):
    file = tmp_path / "picture.csv"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match=r"picture\.csv is not a CSV file in UTF-8"):
        read(file)
