"""From a table to the next points in a terminal: suggest, space, ask, tell."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path

import pytest
from rich.console import Console

from surefoot import Choice, Float, Int, Space, cli
from surefoot.cli.ask import ask
from surefoot.cli.space import space
from surefoot.cli.suggest import suggest
from surefoot.cli.target import space_from
from surefoot.cli.tell import tell

PAST = """run,date,heat,time,solvent,yield,purity,remark
1,2026-01-02,28.6,3,water,0.61,99,
2,2026-01-03,55,4,acetone,0.70,98,stirred
3,2026-01-04,80,6,water,failed,,leak
4,2026-01-05,62.5,5,acetone,,,
5,2026-01-06,55,4,acetone,0.72,97,again
6,2026-01-07,40,8,water,0.66,97,
"""
SPACE = Space(heat=Float(20.0, 100.0), time=Int(1, 12), solvent=Choice(["water", "acetone", "ethanol"]))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("past.csv").write_text(PAST)
    Path("space.toml").write_text(
        'heat = {type = "float", low = 20.0, high = 100.0}\n'
        'time = {type = "int", low = 1, high = 12}\n'
        'solvent = {type = "choice", values = ["water", "acetone", "ethanol"]}\n'
    )
    return tmp_path


def quiet() -> Console:
    return Console(file=io.StringIO(), width=100)


def test_the_next_batch_lies_in_the_space_with_bounds_and_can_be_filled_in(folder):
    screen = quiet()
    rows = suggest(["past.csv"], space="space.toml", target="yield", number=3, out="next.csv", console=screen)
    said = screen.file.getvalue()
    assert "4 measured, 1 failed, 1 not measured yet; maximize yield" in said
    assert "Next 3 points" in said
    assert "points: next.csv" in said
    for row in rows:
        SPACE.validate({name: row[name] for name in SPACE.names})
        assert row["lower"] < row["predicted"] < row["upper"]
    assert len({tuple(row[name] for name in SPACE.names) for row in rows}) == 3
    assert rows == suggest(["past.csv"], space="space.toml", target="yield", number=3, console=quiet())
    with open("next.csv", newline="") as file:
        filled = list(csv.DictReader(file))
    assert list(filled[0]) == ["heat", "time", "solvent", "yield", "predicted", "lower", "upper"]
    for i, row in enumerate(filled):
        row["yield"] = ["0.7", "failed", ""][i]
    with open("next.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, list(filled[0]))
        writer.writeheader()
        writer.writerows(filled)
    again = quiet()
    suggest(["past.csv", "next.csv"], space="space.toml", target="yield", console=again)
    assert "5 measured, 2 failed, 2 not measured yet" in again.file.getvalue()


def test_minimize_fix_and_json(folder):
    screen = quiet()
    rows = suggest(
        ["past.csv"],
        space="space.toml",
        target="purity",
        number=2,
        minimize=True,
        fixed=["solvent=ethanol"],
        quiet=True,
        console=screen,
    )
    assert json.loads(screen.file.getvalue()) == rows
    assert {row["solvent"] for row in rows} == {"ethanol"}
    assert all(90 < row["predicted"] < 105 for row in rows)


def test_a_table_without_results_gives_a_design(folder):
    Path("empty.csv").write_text("heat,time,solvent,yield\n")
    rows = suggest(["empty.csv"], space="space.toml", target="yield", number=3, console=quiet())
    assert [row["predicted"] for row in rows] == [None] * 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["suggest", "past.csv", "--space", "space.toml"], "say which column holds the results: --target run|date|"),
        (["suggest", "past.csv", "--space", "space.toml", "--target", "gain"], "there is no column 'gain'"),
        (["suggest", "bad.csv", "--space", "space.toml"], "bad.csv, line 3, column 'heat': 'warm' is not a number"),
        (["suggest", "far.csv", "--space", "space.toml"], "far.csv, line 2: heat = 200.0 is outside [20.0, 100.0]"),
        (["suggest", "far.csv", "--space", "space.toml"], "widen the space, or add --skip-outside"),
        (["suggest", "short.csv", "--space", "space.toml"], "row 1: column 'solvent' is not there"),
        (["suggest", "past.csv", "--target", "yield", "--fix", "heat"], "written NAME=VALUE, got 'heat'"),
        (["suggest", "absent.csv", "--space", "space.toml"], "there is no file absent.csv"),
        (["ask", "absent.jsonl"], "there is no journal absent.jsonl; to begin one, say --space FILE.toml"),
        (["tell", "absent.jsonl"], "say what was measured: a table, or --trial ID"),
        (["tell", "absent.jsonl", "--trial", "1"], "a trial needs either --value NUMBER or --failed"),
        (["tell", "absent.jsonl", "past.csv", "--failed"], "--value and --failed go with --trial ID"),
    ],
)
def test_errors_name_what_is_wrong(words, said, folder, monkeypatch, capsys):
    Path("bad.csv").write_text("heat,time,solvent,yield\n30,2,water,1\nwarm,2,water,1\n")
    Path("far.csv").write_text("heat,time,solvent,yield\n200,2,water,1\n")
    Path("short.csv").write_text("heat,time,yield\n30,2,1\n")
    monkeypatch.setattr(sys, "argv", ["surefoot", *words])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 2
    error = capsys.readouterr().err
    assert said.removeprefix("row 1: ") in error
    assert error.count("\n") == 1


def test_rows_outside_are_passed_over_when_asked(folder):
    Path("far.csv").write_text("heat,time,solvent,yield\n200,2,water,1\n30,2,beer,1\n30,2,water,0.5\n50,3,water,0.6\n")
    screen = quiet()
    suggest(["far.csv"], space="space.toml", skip_outside=True, console=screen)
    assert "passed over: far.csv, line 2; far.csv, line 3" in screen.file.getvalue()
    assert "2 measured; maximize yield" in screen.file.getvalue()


def test_a_space_is_written_and_read(folder):
    screen = quiet()
    found = space("past.csv", target="yield", out="first.toml", console=screen)
    assert space_from("first.toml") == found
    assert found.parameters["solvent"] == Choice(["water", "acetone"])
    assert "run: left out, it counts the rows" in screen.file.getvalue()
    assert Path("first.toml").read_text().startswith("# The ranges are those of past.csv.")
    Path("odd.csv").write_text('"reaction heat [°C]",base,yield\n20,"a ""b""",1\n30,c,2\n')
    assert space("odd.csv", out="odd.toml", console=quiet()).names == ["reaction heat [°C]", "base"]
    assert space_from("odd.toml") == space("odd.csv", console=quiet())


def test_a_study_in_a_journal(folder):
    rows = ask("a.jsonl", number=2, space="space.toml", out="next.csv", seed=0, console=quiet())
    assert [row["trial"] for row in rows] == [0, 1]
    text = Path("next.csv").read_text().splitlines()
    columns = text[0].split(",")
    at = columns.index("value")
    filled = [line.split(",") for line in text[1:]]
    for cells, value in zip(filled, ("0.5", ""), strict=True):
        cells[at] = value
    Path("next.csv").write_text("\n".join([text[0], *(",".join(cells) for cells in filled)]))
    assert tell("a.jsonl", "next.csv", console=quiet()) == 1
    assert tell("a.jsonl", "next.csv", console=quiet()) == 0
    assert tell("a.jsonl", trial=1, failed=True, console=quiet()) == 1
    screen = quiet()
    assert tell("a.jsonl", "past.csv", target="yield", console=screen) == 5
    assert screen.file.getvalue() == "5 new, 7 in all, 1 pending\n"
    assert tell("a.jsonl", "past.csv", target="yield", console=quiet()) == 0
    row = ask("a.jsonl", fixed=["solvent=water"], space="space.toml", console=quiet())[0]
    assert (row["trial"], row["solvent"]) == (3, "water")
    assert row["predicted"] is not None
    with pytest.raises(ValueError, match="was begun already, and --seed cannot change it"):
        ask("a.jsonl", seed=3, console=quiet())
    Path("other.toml").write_text('heat = {type = "float", low = 0.0, high = 1.0}')
    with pytest.raises(ValueError, match=r"has another space than other.toml"):
        ask("a.jsonl", space="other.toml", console=quiet())
