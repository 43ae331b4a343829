from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

import planted
from surefoot.errors import MissingData, MissingExtra
from surefoot_lab import command, find, names
from surefoot_lab.command import reproduce, select


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
    monkeypatch.setattr("surefoot_lab.command.names", lambda: ["planted/substitute", "planted/lost"])
    screen = Console(file=io.StringIO(), width=200)
    reproduce(list=True, console=screen)
    assert printed(screen).count("(not on this machine)") == 1


def test_families_and_unknown_ids():
    assert [e.id for e in select(["gp-ucb"])] == [id for id in names() if id.startswith("gp-ucb/")]
    with pytest.raises(ValueError, match="no experiment"):
        select(["nonsense"])


def test_all_and_some_contradict_each_other(tmp_path, console):
    with pytest.raises(ValueError, match="--all is every experiment: leave it out, or gp-ucb"):
        reproduce(["gp-ucb"], all=True, out=tmp_path, console=console)
    assert not list(tmp_path.iterdir())


def test_missing_data_are_an_error_by_name_and_a_note_in_all(tmp_path, console, monkeypatch):
    monkeypatch.setenv("SUREFOOT_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(MissingData):
        reproduce(["planted/substitute"], out=tmp_path, console=console)
    monkeypatch.setattr("surefoot_lab.command.names", lambda: ["planted/substitute", "planted/lost"])
    (data,) = reproduce(all=True, workers=0, out=tmp_path, console=console)
    assert data["id"] == planted.run_lost.id
    assert "planted/substitute left out" in printed(console)


def test_a_missing_extra_is_an_error_by_name_and_a_note_among_others(tmp_path, console):
    with pytest.raises(MissingExtra, match="pip install"):
        reproduce(["planted/extra"], workers=0, out=tmp_path, console=console)
    (data,) = reproduce(["planted/extra", "planted/truths"], workers=1, out=tmp_path, console=console)
    assert data["id"] == planted.run_truths.id
    lines = printed(console).splitlines()
    assert [line for line in lines if "planted/extra" in line] == [
        "planted/extra left out: this needs nothing.at.all: pip install 'surefoot[nothing]'"
    ]
    stored = json.loads((tmp_path / "planted/extra/results.json").read_text())
    assert (stored["repetitions"], stored["failures"]) == (0, [])
    assert "pip install" in stored["settings"]["stopped"]


def test_what_had_no_time_is_named_at_the_end(tmp_path, console, monkeypatch):
    monkeypatch.setattr("surefoot_lab.command.names", lambda: ["planted/endless", "planted/lost", "planted/slow"])
    reproduce(all=True, workers=1, minutes=0.0005, out=tmp_path, console=console)
    text = printed(console)
    assert "no repetition finished in time: planted/endless, planted/slow" in text


def test_all_with_resume_goes_on_past_results_of_another_budget(tmp_path, console, monkeypatch):
    reproduce(["planted/slow"], minutes=0.02, workers=0, out=tmp_path, console=console)
    monkeypatch.setattr("surefoot_lab.command.names", lambda: ["planted/slow", "planted/lost"])
    stored = tmp_path / "planted/slow/results.json"
    data = json.loads(stored.read_text())
    data["settings"]["parameters"]["pause"] = 7
    stored.write_text(json.dumps(data))
    (other,) = reproduce(all=True, resume=True, workers=0, out=tmp_path, console=console)
    assert other["id"] == "planted/lost"
    assert "planted/slow left out: the stored results of planted/slow differ in pause" in printed(console)
    with pytest.raises(ValueError, match="differ in pause"):
        reproduce(["planted/slow"], resume=True, workers=0, out=tmp_path, console=console)


def test_an_interruption_leaves_the_summary(tmp_path, console, monkeypatch):
    def interrupted(experiment, screen, **options):
        if experiment.id == "planted/slow":
            raise KeyboardInterrupt
        return original(experiment, screen, **options)

    original = command._run
    monkeypatch.setattr(command, "_run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        reproduce(["planted/truths", "planted/lost", "planted/slow"], workers=0, out=tmp_path, console=console)
    assert "repetitions" in printed(console).rpartition("planted/lost")[0]
    assert printed(console).count("planted/truths") > 2


def test_many_equal_failures_are_one_line(tmp_path, console):
    reproduce(["planted/always"], workers=0, out=tmp_path, console=console)
    assert "9 repetitions (0, 1, 2, 3, 4, …) failed: ValueError: no" in printed(console)
