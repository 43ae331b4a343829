"""The demo: earlier studies, abandoned networks, the page, and a process that is killed in the middle."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from rich.console import Console

import surefoot
from surefoot import RandomSearch, Task
from surefoot.cli import demo as module
from surefoot.cli.demo import DEFAULTS, SPACE, Network, demo
from surefoot.errors import MissingExtra

SMALL = {"EPOCHS": 6, "EARLIER": 3}


@pytest.fixture
def small(monkeypatch):
    for name, value in SMALL.items():
        monkeypatch.setattr(module, name, value)


@pytest.fixture(scope="module")
def storage(tmp_path_factory):
    """A folder with the earlier studies, made once."""
    folder = tmp_path_factory.mktemp("storage")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SMALL.items():
            patch.setattr(module, name, value)
        run(folder, trials=1)
    return folder / "earlier"


@pytest.fixture
def folder(tmp_path, storage, small):
    (tmp_path / "earlier").mkdir()
    for file in storage.glob("*.jsonl"):
        (tmp_path / "earlier" / file.name).write_bytes(file.read_bytes())
    return tmp_path


def run(folder, width=100, terminal=False, **options):
    text = io.StringIO()
    demo(out=folder, console=Console(file=text, width=width, force_terminal=terminal), **{"seed": 1, **options})
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text.getvalue()).replace("\r", "\n")


def untimed(path):
    """The lines of a journal, without the times at which they were written."""
    return re.sub(r',"at":[\d.]+', "", path.read_text())


def journal(folder):
    return untimed(folder / "journal.jsonl")


def told(path):
    return sum('"told"' in line for line in path.read_text().splitlines()) if path.exists() else 0


def test_the_first_run_makes_earlier_studies_and_the_next_ones_keep_them(folder, tmp_path_factory):
    text = run(new := tmp_path_factory.mktemp("new"), trials=2)
    assert "First, earlier studies to learn from: 3 networks each." in text
    files = sorted((new / "earlier").glob("*.jsonl"))
    assert [file.stem for file in files] == ["coarse-digits", "odd-or-even", "wines"]
    for file in files:
        assert len(Task.from_journal(file)) == 3
        assert untimed(file) == untimed(folder / "earlier" / file.name)  # the same anywhere
    assert "earlier studies to learn from" not in run(new, trials=2)


@pytest.mark.slow
def test_in_a_pipe_and_again_on_a_terminal(folder):
    """It prints what fits, writes a page and a journal, and does the same when it is run again in the same folder."""
    printed, journals = [], []
    for terminal in (False, True):
        printed.append(run(folder, terminal=terminal, trials=4))
        journals.append(journal(folder))
    assert journals[0] == journals[1]
    policy = surefoot.load(folder / "journal.jsonl")
    policy.close()
    assert type(policy).__name__ == "RMBOBOS"
    assert len(policy.history) == 4
    assert policy.epochs_used + policy.epochs_saved == 4 * 6
    html = (folder / "index.html").read_text(encoding="utf-8")
    # trace and map; curves and lengths; a slice each; all at once; weights
    assert html.count("<svg") == html.count("</svg>") == 2 + 2 + SPACE.dimension + 1 + 1
    for words in ("Learning curves", "Previous tasks", "epochs saved", "why stopped", "odd-or-even"):
        assert words in html
    assert "trial 3 (4/4): value" in printed[0]
    assert "█" in printed[1].split("Best trials")[0]  # curves in the live table
    for text in printed:
        assert f"{policy.epochs_used} epochs of training, {policy.epochs_saved} saved" in text
        assert "Weights of earlier studies: " in text
        for words in ("best", "unseen images", "coarse-digits", "wines", "index.html"):
            assert words in text


@pytest.mark.slow
def test_another_seed_begins_again_and_more_trials_go_on(folder, tmp_path_factory):
    run(folder, trials=2)
    first = journal(folder)
    assert "2 done before" in run(folder, trials=3)
    assert journal(folder).startswith(first)
    assert "done before" not in run(folder, trials=2, seed=5)
    assert json.loads(journal(folder).splitlines()[0])["seed"] == 5


def test_journals_of_ones_own_are_used_and_others_are_left_alone(folder):
    for file in (folder / "earlier").glob("*.jsonl"):
        file.unlink()
    with RandomSearch(SPACE, seed=0, journal=folder / "earlier" / "mine.jsonl") as policy:
        policy.tell(DEFAULTS, 0.9)
    with RandomSearch(surefoot.Box.unit(2), seed=0, journal=folder / "earlier" / "other.jsonl") as policy:
        policy.tell([0.5, 0.5], 0.9)
    text = run(folder, trials=1)
    assert "what is known from mine." in " ".join(text.split())
    assert "not learning from" in text
    assert sorted(file.name for file in (folder / "earlier").glob("*.jsonl")) == ["mine.jsonl", "other.jsonl"]
    (folder / "earlier" / "mine.jsonl").unlink()
    with pytest.raises(ValueError, match="serves as an earlier study"):
        run(folder, trials=1)


PROGRAM = """
import io, sys
class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ImportError("torch must not be needed")
sys.meta_path.insert(0, NoTorch())
from rich.console import Console
from surefoot.cli import demo as module
module.EPOCHS, module.EARLIER = 6, 3
module.demo(trials=6, seed=1, out=sys.argv[1], console=Console(file=io.StringIO()))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("name", "runs"), [("journal.jsonl", 2), ("earlier/odd-or-even.jsonl", 1)])
def test_a_killed_demo_goes_on_where_it_was(name, runs, tmp_path, storage, folder):
    """In the middle of the search, and in the middle of an earlier study: the end is the same as without."""
    killed = tmp_path / "killed"
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, str(killed)], env={**os.environ, "OMP_NUM_THREADS": "1"})
    deadline = time.monotonic() + 240.0
    while told(killed / name) < runs and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, "it was to be killed in mid-run"
    assert told(killed / "journal.jsonl") < 6
    run(killed, trials=6)
    run(folder, trials=6)
    assert journal(killed) == journal(folder)
    for file in storage.glob("*.jsonl"):
        assert untimed(killed / "earlier" / file.name) == untimed(file)


def test_a_network_learns_and_epochs_add_up(small):
    """The same curve every time, upwards; the images that judge are not those that train."""
    images, digits = module._data()["digits"]
    network = Network(images[:600], digits[:600], unseen=0.3)
    params = {**DEFAULTS, "batch": 16, "learning_rate": 3e-3}
    curve = list(network(params))
    assert len(curve) == 6
    assert curve == list(network(params))
    assert curve[-1] == network.last(params)
    assert curve[-1] > max(0.5, curve[0])
    assert sum(len(truth) for *_, truth in network.folds) == 420
    assert len(network.unseen[1]) == 180
    assert network.judge(params) > 0.5


def test_a_diverging_network_is_a_failed_run(small):
    X = np.random.default_rng(0).random((60, 3))
    network = Network(X, (X[:, 0] > 0.5).astype(int))
    assert list(network({**DEFAULTS, "learning_rate": 1e300, "weight_decay": 1e300}))[-1] is None
    assert np.isnan(network.last({**DEFAULTS, "learning_rate": 1e300, "weight_decay": 1e300}))


def test_other_errors_of_a_network_are_raised(small):
    X = np.random.default_rng(0).random((60, 3))
    network = Network(X, (X[:, 0] > 0.5).astype(int))
    with pytest.raises(ValueError, match="nonsense"):
        list(network({**DEFAULTS, "activation": "nonsense"}))


@pytest.mark.parametrize("missing", ["sklearn", "matplotlib"])
def test_it_says_what_to_install(missing, tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == missing]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingExtra, match=r"pip install 'surefoot\[demo\]'"):
        demo(trials=2, out=tmp_path / "never")
    assert not (tmp_path / "never").exists()


@pytest.mark.slow
def test_the_whole_demo_keeps_its_promises(tmp_path):
    """The tuned network errs less than two thirds as often as the default one, with less than 80 % of the epochs."""
    run(tmp_path, seed=0)
    policy = surefoot.load(tmp_path / "journal.jsonl")
    policy.close()
    network = Network(*module._data()["digits"], unseen=0.3)
    tuned = policy.recommend().params
    assert 1.0 - network.judge(tuned) < 0.67 * (1.0 - network.judge(DEFAULTS))
    assert policy.epochs_saved >= 0.2 * (policy.epochs_used + policy.epochs_saved)
    # The first choice is already good: earlier studies paid for it.
    assert policy.history[0].value > network.last(DEFAULTS) + 0.02
