"""The runner: it runs, stops in time, resumes, survives, and judges."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

import planted
from surefoot.errors import MissingData
from surefoot_lab import Trace
from surefoot_lab.results import Results
from surefoot_lab.runner import run

KEYS = {"id", "source", "settings", "repetitions", "methods", "claims", "failures", "environment"}


def read(folder, experiment):
    return json.loads((Path(folder) / experiment.id / "results.json").read_text())


def same_numbers(a, b):
    return a["methods"] == b["methods"] and a["claims"] == b["claims"]


def test_planted_claims_get_their_verdicts(tmp_path):
    data = run(planted.run_truths, out=tmp_path, workers=0)
    assert set(data) == KEYS
    assert data == read(tmp_path, planted.run_truths)
    verdicts = [claim["verdict"] for claim in data["claims"]]
    assert verdicts == ["holds", "fails", "undecided", None, "fails", "fails", "holds", "undecided"]
    assert {"name", "form", "published", "estimate", "interval", "verdict"} <= set(data["claims"][0])
    assert data["claims"][4]["expected"] == "fails"
    assert [claim["code"] for claim in data["claims"]] == [f"C{k}" for k in range(1, 9)]
    table = (tmp_path / "planted/truths/table.md").read_text()
    assert "not judged" in table
    assert "fails (expected: fails)" in table
    assert (tmp_path / "planted/truths/value.png").exists()


def test_processes_give_the_same_numbers_as_one_and_resume_adds(tmp_path):
    serial = run(planted.run_truths, out=tmp_path / "serial", mode="full", workers=0)
    first = run(planted.run_truths, out=tmp_path / "two", workers=2)
    assert first["repetitions"] == 40
    more = run(planted.run_truths, out=tmp_path / "two", workers=2, resume=True)
    assert more["repetitions"] == 80
    assert same_numbers(more, serial)
    assert more["environment"]["blas_threads_per_worker"] == 1


def test_resume_needs_the_same_settings(tmp_path):
    run(planted.run_truths, out=tmp_path, workers=0)
    with pytest.raises(ValueError, match="differ in seed"):
        run(planted.run_truths, out=tmp_path, workers=0, resume=True, root=1)


def test_a_fresh_run_keeps_the_previous_results(tmp_path):
    run(planted.run_truths, out=tmp_path, workers=0)
    run(planted.run_truths, out=tmp_path, workers=0, root=1)
    previous = json.loads((tmp_path / "planted/truths/results.previous.json").read_text())
    assert (previous["settings"]["seed"], read(tmp_path, planted.run_truths)["settings"]["seed"]) == (0, 1)


def test_minutes_cap_a_run_and_resume_continues_it(tmp_path):
    data = run(planted.run_slow, out=tmp_path, minutes=0.02, workers=0)
    assert 1 <= data["repetitions"] <= 6
    assert data["settings"]["stopped"] == "time limit"
    assert data["environment"]["seconds"] < 10
    more = run(planted.run_slow, out=tmp_path, minutes=0.02, workers=0, resume=True)
    assert more["repetitions"] > data["repetitions"]
    assert more["settings"]["planned"] == 200


def test_running_repetitions_are_abandoned_at_the_limit(tmp_path):
    start = time.monotonic()
    data = run(planted.run_endless, out=tmp_path, minutes=0.06, workers=2)
    assert time.monotonic() - start < 20
    assert data["repetitions"] <= 1  # none where starting a process takes longer than the limit
    assert data["settings"]["stopped"] == "time limit"
    assert data["failures"] == []
    assert data["claims"][0]["verdict"] == "undecided"


def test_failures_are_recorded_and_tried_again(tmp_path):
    data = run(planted.run_broken, out=tmp_path, workers=1)
    assert data["repetitions"] == 1
    errors = {failure["replicate"]: failure for failure in data["failures"]}
    assert errors[1]["error"] == "ArithmeticError: one is not well"
    assert errors[1]["where"][0].startswith("planted.py:")
    assert errors[2]["error"] == "the process ended with status 3: out of memory, say"
    assert "no trace" in errors[3]["error"]
    assert "3 FAILED" in (tmp_path / "planted/broken/table.md").read_text()
    reread = Results.load(tmp_path / "planted/broken", planted.run_broken)
    assert sorted(reread.failures) == [1, 2, 3]


def test_kill_leaves_readable_results_that_resume(tmp_path):
    code = "import planted; from surefoot_lab.runner import run; run(planted.run_slow, out='.', workers=2)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])}
    process = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, env=environment)
    stored = tmp_path / "planted/slow/results.json"
    deadline = time.monotonic() + 60
    while not stored.exists() or json.loads(stored.read_text())["repetitions"] < 3:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    data = read(tmp_path, planted.run_slow)
    assert set(data) == KEYS
    assert data["repetitions"] >= 3
    assert data["settings"]["stopped"] == "killed while running"
    more = run(planted.run_slow, out=tmp_path, minutes=0.01, workers=0, resume=True)
    assert more["repetitions"] > data["repetitions"]
    kept = [data["methods"]["high"]["metrics"]["value"], more["methods"]["high"]["metrics"]["value"]]
    assert set(kept[0]) <= set(kept[1])


def test_data_that_are_missing_or_lost(tmp_path, monkeypatch):
    monkeypatch.setenv("SUREFOOT_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(MissingData, match="svm_on_grid"):
        run(planted.run_substitute, out=tmp_path, workers=0)
    data = run(planted.run_lost, out=tmp_path, workers=2)
    assert data["repetitions"] == 0
    assert data["settings"]["stopped"] == "the data cannot be obtained"
    assert data["claims"][0]["verdict"] is None


def test_a_claim_that_does_not_fit_does_not_cost_the_run(tmp_path):
    from surefoot_lab import Metric, Share

    wrong = replace(planted.run_truths, own_claims=(Share("values are not events", Metric("value")["low"] > 0.5),))
    claim = run(wrong, out=tmp_path, workers=0)["claims"][0]
    assert claim["verdict"] == "undecided"
    assert "cannot be judged" in claim["note"]


def test_bad_arguments(tmp_path):
    for options in ({"minutes": 0}, {"workers": -1}, {"mode": "long"}):
        with pytest.raises(ValueError):
            run(planted.run_truths, out=tmp_path, **options)
    assert not list(tmp_path.iterdir())


def test_an_experiment_of_a_script_has_no_processes(tmp_path):
    def here(replicate):
        return {"low": Trace(value=1.0)}

    here.__module__ = "__main__"
    made = replace(planted.run_truths, run=here, own_claims=())
    with pytest.raises(ValueError, match="planted/truths is defined in a script; run it with workers=0"):
        run(made, out=tmp_path, workers=2)
    assert run(made, out=tmp_path, workers=0)["repetitions"] == 40


def test_stored_results_of_another_experiment_are_refused(tmp_path):
    run(planted.run_lost, out=tmp_path, workers=0)
    with pytest.raises(ValueError, match="planted/lost"):
        Results.load(tmp_path / "planted/lost", planted.run_truths)


@pytest.mark.parametrize("text", ["{}", "[1]", "not JSON", ""])
def test_resume_refuses_a_file_that_holds_no_results_and_leaves_it(tmp_path, text):
    file = tmp_path / "planted/truths/results.json"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    with pytest.raises(ValueError, match=r"results\.json (is not JSON|holds no results)"):
        run(planted.run_truths, out=tmp_path, workers=0, resume=True)
    assert file.read_text() == text


def test_an_experiment_may_read_the_results_of_another(tmp_path):
    with pytest.raises(MissingData, match="surefoot reproduce planted/truths"):
        run(planted.run_overall, out=tmp_path, workers=0)
    run(planted.run_truths, out=tmp_path, workers=0)
    data = run(planted.run_overall, out=tmp_path, workers=1, resume=True)
    assert data["methods"]["all"]["metrics"]["count"] == [40.0] * 2
    assert data["failures"] == []


def test_repetitions_that_do_not_exist_are_not_run(tmp_path):
    run(planted.run_truths, out=tmp_path, workers=0)
    assert run(planted.run_overall, out=tmp_path, mode="full", workers=0)["repetitions"] == 3
    assert run(planted.run_overall, out=tmp_path, mode="full", workers=0, resume=True)["repetitions"] == 3


def test_an_interrupted_run_is_saved(tmp_path):
    def progress(done, goal):
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(planted.run_truths, out=tmp_path, workers=0, progress=progress)
    data = read(tmp_path, planted.run_truths)
    assert (data["repetitions"], data["settings"]["stopped"]) == (5, "interrupted")
