from __future__ import annotations

import io
import json

import planted
import pytest
from rich.console import Console

from surefoot.lab import find, names
from surefoot.lab.command import reproduce, select
from surefoot.loop.errors import MissingData


@pytest.fixture
def console():
    return Console(file=io.StringIO(), width=160)


def printed(console):
    return console.file.getvalue()


def test_runs_judges_prints_and_writes(tmp_path, console):
    (data,) = reproduce(["planted/truths"], workers=0, out=tmp_path, console=console)
    stored = json.loads((tmp_path / "planted/truths/results.json").read_text())
    assert stored == data
    text = printed(console)
    for word in ("40 of 40", "holds", "fails", "undecided", "not judged", "C3"):
        assert word in text


def test_several_full_and_resume(tmp_path, console):
    first = reproduce(["planted/truths", "planted/lost"], full=True, workers=0, out=tmp_path, console=console)
    assert [data["repetitions"] for data in first] == [80, 0]
    (second,) = reproduce(["planted/truths"], full=True, workers=0, resume=True, out=tmp_path, console=console)
    assert second["repetitions"] == 160


def test_failures_are_shown(tmp_path, console):
    reproduce(["planted/broken"], workers=1, out=tmp_path, console=console)
    assert "repetition 1 failed: ArithmeticError: one is not well" in printed(console)


def test_listing(console):
    assert reproduce(list=True, console=console) == []
    assert reproduce(console=console) == []
    lines = printed(console).splitlines()
    assert [line for line in lines if line and not line.startswith(" ")] == names() * 2


@pytest.mark.parametrize("width", [40, 80])
def test_the_listing_is_whole_at_any_width(width):
    screen = Console(file=io.StringIO(), width=width)
    reproduce(list=True, console=screen)
    text = printed(screen)
    assert "…" not in text
    assert max(len(line) for line in text.splitlines() if line.startswith(" ")) <= width
    for name in names():
        assert " ".join(find(name).title.split()) in " ".join(text.split())


def test_the_listing_says_which_data_are_missing(tmp_path, monkeypatch):
    monkeypatch.setenv("SUREFOOT_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("surefoot.lab.command.names", lambda: ["planted/substitute", "planted/lost"])
    screen = Console(file=io.StringIO(), width=200)
    reproduce(list=True, console=screen)
    assert printed(screen).count("(not on this machine)") == 1


def test_families_and_unknown_ids():
    assert [e.id for e in select(["gp-ucb"])] == [id for id in names() if id.startswith("gp-ucb/")]
    with pytest.raises(ValueError, match="no experiment"):
        select(["nonsense"])


def test_missing_data_are_an_error_by_name_and_a_note_in_all(tmp_path, console, monkeypatch):
    monkeypatch.setenv("SUREFOOT_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(MissingData):
        reproduce(["planted/substitute"], out=tmp_path, console=console)
    monkeypatch.setattr("surefoot.lab.command.names", lambda: ["planted/substitute", "planted/lost"])
    (data,) = reproduce(all=True, workers=0, out=tmp_path, console=console)
    assert data["id"] == planted.run_lost.id
    assert "planted/substitute left out" in printed(console)
