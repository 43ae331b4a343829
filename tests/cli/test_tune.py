"""The tuning of a function: what is printed, kept, refused, and survives a killed process."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

import surefoot
from surefoot.cli.tune import tune
from surefoot.cli.watch import Watched
from surefoot.errors import NoData, SurefootError
from surefoot.loop.events import timeless
from surefoot.loop.journal import Journal

SPACE = """
rate = {type = "float", low = 1e-4, high = 1.0, log = true}
depth = {type = "int", low = 1, high = 6}
kind = {type = "choice", values = ["a", "b"]}
"""

OBJECTIVE = """
import math, os, sys, time

PAUSE = float(os.environ.get("PAUSE", "0"))

def _loss(params):
    return (math.log10(params["rate"]) + 2) ** 2 + 0.1 * abs(params["depth"] - 3) + (params["kind"] == "a")

def loss(params):
    time.sleep(PAUSE)
    return _loss(params)

def train(params):
    for epoch in range(1, 13):
        time.sleep(PAUSE / 3)
        yield 1 / (1 + _loss(params)) * (1 - 0.6**epoch)

def picky(params):
    if params["kind"] == "a":
        raise ArithmeticError("no a\\nplease")
    return params["rate"]

def hopeless(params):
    raise RuntimeError("never works")

def infinite(params):
    return float("inf")

def wordy(params):
    return "good"

def silent(params):
    yield from ()

def quits(params):
    sys.exit(3)

def fails(params):
    return None

def none():
    return 1.0

constant = 3.0
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "space.toml").write_text(SPACE)
    (tmp_path / "objective.py").write_text(OBJECTIVE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop("objective", None)


def run(function="loss", width=80, terminal=False, **options):
    screen = Console(file=io.StringIO(), width=width, force_terminal=terminal, color_system=None)
    settings = {"space": "space.toml", "trials": 6, "seed": 1, "out": None, **options}
    result = tune(f"objective.py:{function}", console=screen, **settings)
    return result, screen.file.getvalue()


# -- what is printed -------------------------------------------------------------------------------------------------


def test_a_line_per_run_and_the_answer_in_a_pipe(folder):
    result, text = run(direction="minimize")
    lines = text.splitlines()
    assert lines[0] == "objective.py:loss: 6 trials, minimize, ExpectedImprovement"
    best = []
    for i, (line, o) in enumerate(zip(lines[1:7], result.policy.history, strict=True)):
        best.append(o.value)
        words = f"trial {i} ({i + 1}/6): value {o.value:.4g}, best {min(best):.4g}, rate="
        assert line.startswith(words)
    assert "\x1b" not in text
    pasted = next(line for line in lines if line.startswith("{"))
    assert json.loads(pasted) == result.params
    assert lines[-1].startswith("6 trials: 6 measured, ")
    assert lines[-1].endswith("seed 1")
    assert list(folder.glob("*.jsonl")) == []


@pytest.mark.parametrize("width", [40, 100])
def test_rows_and_a_bar_on_a_terminal(folder, width):
    _, text = run("train", width=width, terminal=True, trials=4, epochs=12)
    before, table = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r", "\n").split("Best trials")
    rows = [line for line in before.splitlines() if line.startswith("    2  ")]
    assert len(rows) == 1
    assert "12/12" in rows[0]
    assert ("kind=" in rows[0]) == (width == 100)
    assert len(rows[0].rstrip()) <= width
    assert ("█" in table) == (width == 100)


def test_quiet_prints_one_line_of_json(folder):
    for terminal in (False, True):
        result, text = run(quiet=True, terminal=terminal, out=folder / "page")
        assert json.loads(text) == result.params
        assert text.count("\n") == 1


def test_epochs_stop_runs_and_are_counted(folder):
    result, text = run("train", epochs=12, trials=14)
    assert type(result.policy).__name__ == "BOBOS"
    assert result.saved > 0
    assert "(stopped)" in text
    assert f"{result.epochs} epochs ({result.saved} saved)" in text
    assert "/12 epochs" in text


def test_generators_serve_every_policy_and_are_cut(folder):
    result, text = run("train", policy="sobol-search", epochs=5)
    assert "5/5 epochs" in text
    whole, text = run("train", policy="sobol-search")
    assert "12 epochs" in text
    assert result.policy.history[0].value < whole.policy.history[0].value


# -- failed runs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("terminal", [False, True])
def test_exceptions_are_failed_runs_with_a_message(folder, terminal):
    result, text = run("picky", terminal=terminal)
    failed = [o for o in result.policy.history if o.failed]
    assert 0 < len(failed) < 6
    assert text.count("ArithmeticError: no a please (line ") == len(failed)
    assert f"{len(failed)} failed" in text
    assert "objective.py)" in text.replace("\n", "")


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("hopeless", "RuntimeError: never works"),
        ("infinite", "ValueError: a measured value must be finite, got inf"),
        ("wordy", "TypeError: a value must be a number.*'good'"),
        ("silent", "ValueError: objective.py:silent is a generator and yielded nothing"),
        ("quits", r"RuntimeError: objective.py:quits called sys.exit\(3\)"),
        ("fails", "it gave no value"),
    ],
)
def test_when_all_runs_fail_the_last_reason_is_said(folder, function, said):
    with pytest.raises(NoData, match=rf"all 2 trials failed; the last one: .*{said}"):
        run(function, trials=2, journal="run.jsonl")
    policy = surefoot.load("run.jsonl")
    policy.close()
    assert [o.failed for o in policy.history] == [True, True]


def test_stop_on_error_leaves_the_run_unfinished(folder):
    with pytest.raises(SurefootError, match=r"the function raised RuntimeError: never works \(line \d+ of .*objective"):
        run("hopeless", journal="run.jsonl", stop_on_error=True)
    (folder / "objective.py").write_text(OBJECTIVE.replace('raise RuntimeError("never works")', "return 2.0"))
    sys.modules.pop("objective", None)
    result, _ = run("hopeless", journal="run.jsonl", resume=True, trials=2)
    assert [o.value for o in result.policy.history] == [2.0, 2.0]
    assert [query.id for query in result.policy.queries] == [0, 1]


# -- journals and pages ----------------------------------------------------------------------------------------------


def test_journals_are_not_overwritten_and_resume_only_what_is_the_same(folder):
    options = {"journal": "run.jsonl", "direction": "minimize"}
    first, _ = run(trials=3, **options)
    with pytest.raises(ValueError, match=r"run.jsonl exists; add --resume"):
        run(**options)
    before = (folder / "run.jsonl").read_text()
    others = [
        {"direction": "maximize"},
        {"seed": 2},
        {"policy": "gpucb"},
        {"options": ["initial=5"]},
        {"space": "other.toml"},
    ]
    (folder / "other.toml").write_text(SPACE.replace("1e-4", "1e-3"))
    for other in others:
        with pytest.raises(ValueError, match="belongs to another run"):
            run(**{**options, "resume": True, **other})
    assert (folder / "run.jsonl").read_text() == before
    again, text = run(resume=True, **options)
    assert again.policy.history[:3] == first.policy.history
    assert ", 3 done" in text
    assert "trial 3 (4/6)" in text
    assert "journal: run.jsonl" in text
    nothing, text = run(resume=True, seed=None, trials=2, **options)  # done already; the seed is the journal's
    assert nothing.policy.history == again.policy.history
    assert "trial 0" not in text


def test_resume_begins_a_journal_that_is_not_there_and_needs_one(folder):
    result, _ = run(journal="new/run.jsonl", resume=True, trials=2)
    assert len(result.policy.history) == 2
    with pytest.raises(ValueError, match="--resume needs --journal"):
        run(resume=True)
    with pytest.raises(ValueError, match="is a folder"):
        run(journal="new")
    (folder / "text").write_text("not a journal")
    with pytest.raises(ValueError, match="text exists"):
        run(journal="text")


def test_the_page_is_written(folder):
    pytest.importorskip("matplotlib")
    _, text = run(direction="minimize", out=folder / "there", policy="random-search")
    html = (folder / "there" / "index.html").read_text(encoding="utf-8")
    assert "objective.py:loss" in html
    assert "minimize" in html
    assert f"page: {folder / 'there' / 'index.html'}" in text


def test_without_matplotlib_there_is_a_note_instead_of_a_page(folder, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    _, text = run(out=folder / "there", policy="random-search")
    assert "no page: " in text
    assert "pip install 'surefoot[plot]'" in text
    assert "Recommended" in text


def test_a_folder_that_cannot_be_made_is_refused_before_the_first_run(folder, monkeypatch):
    for out in ("space.toml", "space.toml/there"):
        with pytest.raises(ValueError, match=r"space\.toml is a file; choose another --out"):
            run(out=out, journal="run.jsonl")
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(ValueError, match="nothing can be written in"):
        run(out="new/there", journal="run.jsonl")
    assert not (folder / "run.jsonl").exists()
    assert not (folder / "new").exists()


# -- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "options", "said"),
    [
        ("loss", {"trials": 0}, "trials must be at least 1, got 0"),
        ("loss", {"epochs": 0}, "epochs must be at least 1, got 0"),
        ("loss", {"direction": "up"}, "direction must be .* got 'up'"),
        ("loss", {"policy": "nonsense"}, "there is no policy 'nonsense'"),
        ("loss", {"options": ["nonsense=1"]}, "ExpectedImprovement has no option 'nonsense'"),
        ("loss", {"options": ["margin=-1"]}, "margin must be finite and not negative, got -1"),
        ("loss", {"policy": "bobos"}, "BOBOS needs --epochs N"),
        ("loss", {"policy": "stable-opt"}, "StableOpt needs perturbation=, an object that no --option can be"),
        ("loss", {"policy": "stable-opt", "options": ["perturbation=0.1"]}, "no --option can be: use it from Python"),
        ("loss", {"policy": "bobos", "epochs": 5, "options": ["epochs=6"]}, "contradict"),
        ("loss", {"space": "absent.toml"}, "no space file absent.toml"),
        ("none", {}, "objective.py:none must take one argument, the dict of parameters"),
        ("constant", {}, "objective.py:constant is not a function: 3.0"),
        ("absent", {}, "objective.py has no 'absent'"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_kept(folder, function, options, said):
    with pytest.raises(ValueError, match=said):
        run(function, journal="run.jsonl", **options)
    assert not (folder / "run.jsonl").exists()


def test_the_objective_cannot_change_the_parameters_on_record():
    def greedy(params):
        params["x"] = 5.0
        return 1.0

    given = {"x": 1.0}
    assert Watched(greedy, "greedy")(given).value == 1.0
    assert given == {"x": 1.0}


# -- killed processes ------------------------------------------------------------------------------------------------


def start(folder: Path, words: list[str], pause: str = "0") -> subprocess.Popen[str]:
    code = "from surefoot.cli import main; main()"
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return subprocess.Popen(
        [sys.executable, "-c", code, *words],
        cwd=folder,
        env={**os.environ, **threads, "PAUSE": pause},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_hears_interrupts,
    )


def _hears_interrupts() -> None:
    """What runs in the background of a shell has inherited to ignore them."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def wait_for(path: Path, lines: int, process: subprocess.Popen[str]) -> None:
    """Wait until a journal has so many lines."""
    end = time.monotonic() + 120
    while not path.exists() or path.read_bytes().count(b"\n") < lines:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.005)


KINDS = {
    "function": (["objective.py:loss", "--trials", "12", "--direction", "minimize"], (0, 3, 14)),
    "generator": (["objective.py:train", "--trials", "9", "--epochs", "12"], (5, 60)),
    "generator, last value": (["objective.py:train", "--trials", "9", "--policy", "gp-ucb"], (7,)),
}


@pytest.mark.parametrize(
    "kind", ["function", *(pytest.param(kind, marks=pytest.mark.slow) for kind in list(KINDS)[1:])]
)
def test_a_killed_run_that_is_resumed_makes_the_same_trials_as_an_uninterrupted_one(kind, folder):
    words, kills = KINDS[kind]
    words = ["tune", *words, "--space", "space.toml", "--seed", "3", "--no-page"]
    whole = start(folder, [*words, "--journal", "whole.jsonl"])
    for lines in kills:
        process = start(folder, [*words, "--journal", "killed.jsonl", "--resume"], pause="0.1")
        if lines:
            wait_for(folder / "killed.jsonl", lines, process)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL, "it was to be killed in mid-run"
        if lines == kills[-1]:  # and a line cut short
            with (folder / "killed.jsonl").open("a") as file:
                file.write('{"event":"tol')
    process = start(folder, [*words, "--journal", "killed.jsonl", "--resume"])
    text, errors = process.communicate(timeout=300)
    assert (process.returncode, errors) == (0, "")
    expected, errors = whole.communicate(timeout=300)
    assert (whole.returncode, errors) == (0, "")
    killed, uninterrupted = (Journal(folder / f"{name}.jsonl").read() for name in ("killed", "whole"))
    assert killed[0] == uninterrupted[0]
    assert timeless(killed[1]) == timeless(uninterrupted[1])
    answer = [line for line in text.splitlines() if line.startswith("{")]
    assert answer == [line for line in expected.splitlines() if line.startswith("{")]


def test_an_interrupted_run_says_how_to_go_on(folder):
    words = [
        "tune",
        "objective.py:loss",
        "--space",
        "space.toml",
        "--trials",
        "8",
        "--journal",
        "a run.jsonl",
        "--no-page",
    ]
    process = start(folder, words, pause="0.2")
    wait_for(folder / "a run.jsonl", 4, process)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in errors
    said, line = errors.splitlines()
    assert said == "interrupted; go on with"
    again = shlex.split(line)
    assert again == ["surefoot", *words, "--resume"]
    process = start(folder, again[1:])
    text, errors = process.communicate(timeout=120)
    assert (process.returncode, errors) == (0, "")
    assert "8 trials: 8 measured" in text


# -- journals by default, workers, Ctrl-C ----------------------------------------------------------------------------


def test_a_run_that_names_no_journal_has_one_in_its_folder(folder):
    first, text = run(out="here", page=False, trials=3)
    assert "journal: here/run-1.jsonl" in text
    second, _ = run(out="here", page=False, trials=3)
    assert sorted(file.name for file in Path("here").iterdir()) == ["run-1.jsonl", "run-2.jsonl"]
    assert first.policy.history == second.policy.history
    again, text = run(out="here", page=False, trials=5, resume=True)
    assert again.policy.history[:3] == second.policy.history
    assert "journal: here/run-2.jsonl" in text
    with pytest.raises(ValueError, match="there is no run in elsewhere yet"):
        run(out="elsewhere", resume=True)


def test_workers_measure_and_their_errors_are_shown(folder):
    result, text = run("picky", workers=2, trials=8)
    told = [event for event in result.policy.events if event["event"] == "told"]
    assert len({event["by"] for event in told}) == 8
    failed = [o for o in result.policy.history if o.failed]
    assert failed
    assert text.count("failed, ArithmeticError: no a please") == len(failed)
    with pytest.raises(SurefootError, match="the function raised RuntimeError: never works"):
        run("hopeless", workers=2, stop_on_error=True)


def test_a_run_that_ends_early_says_why(folder):
    _, text = run(direction="minimize", trials=60, stop=0.05)
    assert "ended early: the expected improvement is below 0.05" in text


def test_an_interrupted_run_without_a_journal_of_its_own_prints_and_keeps_everything(folder):
    words = ["tune", "objective.py:loss", "--space", "space.toml", "--trials", "60", "--seed", "1", "--no-page"]
    process = start(folder, words, pause="0.2")
    wait_for(folder / "surefoot-tune" / "run-1.jsonl", 8, process)
    process.send_signal(signal.SIGINT)
    text, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Best trials" in text
    assert "Recommended" in text
    assert shlex.split(errors.splitlines()[1]) == ["surefoot", *words, "--resume"]
