"""The curator: what it releases, what it answers, what it keeps to itself, and how it survives being killed."""

from __future__ import annotations

import copy
import json
import math
import os
import pickle
import signal
import stat
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from surefoot import BudgetSpent
from surefoot.errors import SurefootError
from surefoot.private import (
    Ask,
    Close,
    Curator,
    GaussianRelease,
    LaplaceRelease,
    Ledger,
    OutputRelease,
    PublishedProjection,
    Release,
)

SECRET = 0.123456789


def table(n=30):
    X = np.random.default_rng(0).random((n, 2))
    X[3] = SECRET
    return X


def curator(objective=lambda row: float(row.sum()), mechanism=None, **options):
    gaussian = GaussianRelease(epsilon=2.0, delta=1e-5, bounds=[(0.0, 1.0)] * 2)
    return Curator(table(), objective, mechanism or gaussian, **{"asks": 5, **options})


def original(made, index):
    """The record behind a released row, found by asking for its value: sums are all different."""
    value = made.answer(Ask(made.run, 0, index)).value
    return int(np.argmin(np.abs(table().sum(axis=1) - value)))


def test_a_run_goes_through_its_states():
    made = curator()
    assert made.state == "new"
    release = made.release()
    assert made.state == "released"
    made.answer(Ask(release.run, 0, 4))
    assert made.state == "serving"
    made.close(Close(release.run, 4))
    assert made.state == "closed"
    assert made.chosen == original(made, 4)
    made.close(Close(release.run, 4))  # the same again changes nothing
    with pytest.raises(ValueError, match="another message"):
        made.close(Close(release.run, 5))


def test_rows_are_released_in_a_secret_order_with_noise():
    mechanism = GaussianRelease(epsilon=200.0, delta=1e-5, bounds=[(0.0, 1.0)] * 2).research(seed=1)  # nearly no noise
    made = curator(mechanism=mechanism)
    rows = made.release().rows
    scaled = mechanism.preprocessing.apply(table())
    assert not np.allclose(rows, scaled, atol=1.0)
    assert np.allclose(np.sort(rows[:, 0]), np.sort(scaled[:, 0]), atol=1.0)
    record = original(made, 7)
    np.testing.assert_allclose(rows[7], scaled[record], atol=1.0)
    assert made.release() is made.release()  # one release per curator


def test_a_repeated_ask_is_not_measured_again():
    calls = []

    def objective(row):
        calls.append(1)
        return float(len(calls))

    made = curator(objective, repeats=True)
    run = made.release().run
    first = made.answer(Ask(run, 0, 4))
    assert made.answer(Ask(run, 0, 4)) == first
    assert made.answer(Ask(run, 1, 4)).value == 2.0  # another step is another measurement
    assert len(calls) == 2
    with pytest.raises(ValueError, match="another row"):
        made.answer(Ask(run, 0, 5))


def test_the_same_ask_from_many_threads_is_measured_once():
    calls = []

    def objective(row):
        calls.append(1)
        time.sleep(0.05)
        return float(len(calls))

    made = curator(objective)
    ask = Ask(made.release().run, 0, 4)
    with ThreadPoolExecutor(8) as pool:
        answers = set(pool.map(lambda _: made.answer(ask).value, range(8)))
    assert answers == {1.0}
    assert len(calls) == 1


def test_the_number_of_asks_is_enforced():
    made = curator(asks=2)
    run = made.release().run
    for step in range(2):
        made.answer(Ask(run, step, step))
    for step in (2, 99):
        with pytest.raises(BudgetSpent, match="2 asks"):
            made.answer(Ask(run, step, 3))
    assert made.answered == 2
    assert made.answer(Ask(run, 1, 1)).value is not None  # old ones are still answered


def test_bad_asks_are_refused_and_change_nothing():
    made = curator()
    with pytest.raises(SurefootError, match="released"):
        made.answer(Ask(made.run, 0, 0))
    run = made.release().run
    for ask in (Ask(run, 0, 30), Ask("other", 0, 0)):
        with pytest.raises(ValueError):
            made.answer(ask)
    made.answer(Ask(run, 0, 4))
    with pytest.raises(ValueError, match="each row once"):
        made.answer(Ask(run, 1, 4))
    made.close(Close(run, None))
    with pytest.raises(SurefootError, match="closed"):
        made.answer(Ask(run, 1, 5))
    assert made.chosen is None
    assert made.answered == 1
    with pytest.raises(ValueError, match="got a message 'answer'"):
        made.handle({"schema": 1, "message": "answer", "run": run, "step": 0, "value": 1.0})


def test_a_close_that_does_not_fit_is_refused_and_ends_nothing():
    made = curator()
    with pytest.raises(SurefootError, match="nothing was released yet"):
        made.close(Close(made.run, None))
    assert made.state == "new"
    made.release()
    with pytest.raises(ValueError, match="the message is for another"):
        made.close(Close("other", None))
    with pytest.raises(ValueError, match="index must be below 30, got 30"):
        made.close(Close(made.run, 30))
    assert made.state == "released"
    made.close(Close(made.run, 29))
    assert made.state == "closed"


def test_failed_measurements_may_be_asked_for_again():
    values = iter([math.nan, None, 3.0])
    made = curator(lambda row: next(values))
    run = made.release().run
    assert [made.answer(Ask(run, step, 4)).value for step in range(3)] == [None, None, 3.0]


def test_an_error_of_the_objective_leaves_the_ask_open():
    broken = [True]

    def objective(row):
        if broken[0]:
            raise RuntimeError("the laboratory burnt down")
        return 1.0

    made = curator(objective)
    ask = Ask(made.release().run, 0, 4)
    with pytest.raises(RuntimeError):
        made.answer(ask)
    assert made.answered == 0
    assert made.pending == [(ask, made.pending[0][1])]
    broken[0] = False
    assert made.answer(ask).value == 1.0
    assert made.pending == []


def test_measurements_may_take_their_time():
    made = curator(None)
    run = made.release().run
    first, second = Ask(run, 0, 4), Ask(run, 1, 9)
    records = [made.accept(first), made.accept(second)]
    assert [record for _, record in made.pending] == records
    assert made.settle(second, 5.0).value == 5.0
    assert made.settle(second, 6.0).value == 5.0  # what was answered stays
    with pytest.raises(SurefootError, match="settle"):
        made.answer(first)
    with pytest.raises(ValueError, match="finite"):
        made.settle(first, math.inf)
    assert made.settle(first, math.nan).value is None


def test_known_values_and_the_sign():
    values = np.arange(30.0)
    made = curator(values, direction="minimize")
    ask = Ask(made.release().run, 0, 4)
    record = made.accept(ask)
    assert made.answer(ask).value == -float(record)
    with pytest.raises(ValueError, match="30 rows"):
        curator(values[:5])


def test_the_ledger_is_charged_before_and_shared():
    ledger = Ledger(epsilon=3.0, delta=1e-5)
    curator(ledger=ledger).release()
    first = ledger.spent()
    assert 1.5 < first <= 2.0
    curator(ledger=ledger).release()  # another modeler
    third = curator(ledger=ledger)
    with pytest.raises(BudgetSpent):
        third.release()
    assert third.state == "new"
    assert len(ledger.entries) == 2
    assert set(ledger.entries[0].note) == {"run", "mechanism", "what"}


def test_a_crash_in_the_release_stays_charged(monkeypatch):
    ledger = Ledger(epsilon=3.0, delta=1e-5)
    made = curator(ledger=ledger)
    monkeypatch.setattr(GaussianRelease, "_randomize", lambda self, rows: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        made.release()
    assert len(ledger.entries) == 1


def test_a_ledger_refuses_what_it_cannot_account_for():
    ledger = Ledger(epsilon=30.0, delta=1e-5)
    published = PublishedProjection(epsilon=1.0, delta=1e-5, dimension=3, accept_no_guarantee=True)
    with pytest.raises(SurefootError, match="no guarantee"):
        curator(mechanism=published, ledger=ledger).release()
    assert curator(mechanism=published).release().guarantee.epsilon is None
    simulated = GaussianRelease(epsilon=1.0, delta=1e-5).research(seed=0)
    with pytest.raises(SurefootError, match="simulated"):
        curator(mechanism=simulated, ledger=ledger).release()
    made = curator(mechanism=simulated)
    ask = Ask(made.release().run, 0, 0).to_wire()
    with pytest.raises(SurefootError, match="do not cross"):
        made.handle(ask)
    assert len(ledger.entries) == 0
    curator(mechanism=LaplaceRelease(epsilon=1.0), ledger=ledger).release()
    assert ledger.spent() == pytest.approx(1.0, abs=0.01)


def test_nothing_public_shows_the_data():
    made = curator(mechanism=GaussianRelease(epsilon=1.0, delta=1e-5))
    release = made.release()
    made.answer(Ask(release.run, 0, 4))
    shown = [repr(made), str(made), repr(release)]
    for name in (name for name in dir(made) if not name.startswith("_")):
        value = getattr(made, name)
        assert not (isinstance(value, np.ndarray)), name
        if not callable(value):
            shown.append(repr(value))
    assert "0.1234" not in " ".join(shown)
    for bad in (Ask(made.run, 0, 5), Ask(made.run, 1, 4), Ask(made.run, 9, 1), Ask(made.run, 1, 99)):
        with pytest.raises((ValueError, BudgetSpent)) as caught:
            made.answer(bad)
        assert "0.1234" not in str(caught.value)
    for copier in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="private data"):
            copier(made)


@pytest.mark.parametrize(
    "options", [{"asks": 0}, {"asks": 31}, {"asks": 2.5}, {"direction": "up"}, {"mechanism": "gaussian"}]
)
def test_bad_arguments_are_refused(options):
    with pytest.raises((ValueError, TypeError)):
        curator(**options)


def test_a_resumed_curator_releases_and_answers_the_same(tmp_path):
    path = tmp_path / "curator.jsonl"
    with curator(path=path) as made:
        release = made.release()
        answers = [made.answer(Ask(release.run, step, 3 * step)) for step in range(2)]
        made.accept(Ask(release.run, 2, 20))
        with pytest.raises(SurefootError, match="another process"):
            curator(path=path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    calls = []
    with curator(lambda row: calls.append(1) or 1.0, path=path) as again:
        assert again.release() == release
        assert again.state == "serving"
        assert [again.answer(Ask(release.run, step, 3 * step)) for step in range(2)] == answers
        assert calls == []
        assert [ask for ask, _ in again.pending] == [Ask(release.run, 2, 20)]
        again.close(Close(release.run, 3))
    with curator(path=path) as last:
        assert last.state == "closed"
    with pytest.raises(ValueError, match=r"asks was 5 and is 7"):
        curator(path=path, asks=7)
    with pytest.raises(ValueError, match=r"\(data was "):
        Curator(table() + 1, None, GaussianRelease(epsilon=2.0, delta=1e-5, bounds=[(0.0, 1.0)] * 2), asks=5, path=path)


# Finding 10 of the review of 0.1.0
def test_a_run_does_not_go_on_with_a_ledger_that_was_never_charged_for_it(tmp_path):
    """A ledger that was deleted, and made anew, would be a fresh budget for the next release of the same rows."""
    options = {"path": tmp_path / "curator.jsonl"}
    with Ledger(epsilon=4.0, delta=1e-4) as ledger, curator(ledger=ledger, **options) as first:
        first.release()
    for _ in range(2):
        with pytest.raises(SurefootError, match="this ledger has no charge for it") as caught:  # kept, and its curator
            curator(ledger=Ledger(epsilon=4.0, delta=1e-4), **options)
    with curator(ledger=ledger, **options) as again:
        assert again.state == "released"
    del caught


def test_a_file_with_events_that_no_curator_writes_is_refused(tmp_path):
    unknown, early = tmp_path / "unknown.jsonl", tmp_path / "early.jsonl"
    for path, event in ((unknown, {"event": "burnt"}), (early, {"event": "asked", "step": 0, "index": 4})):
        curator(path=path).stop()
        with path.open("a") as file:
            file.write(json.dumps(event) + "\n")
    with pytest.raises(ValueError, match="unknown event 'burnt'"):
        curator(path=unknown)
    with curator(path=early) as made, pytest.raises(SurefootError, match="nothing was released yet"):
        _ = made.pending


SERVER = textwrap.dedent(
    """
    import json, sys
    import numpy as np
    from surefoot.private import Curator, GaussianRelease, Ledger, OutputRelease

    folder = sys.argv[1]
    table = np.random.default_rng(0).random((30, 2))

    def objective(row):
        with open(folder + "/measured", "a") as file:
            file.write("x")
        return float(row.sum())

    curator = Curator(
        table, objective, GaussianRelease(epsilon=2.0, delta=1e-5, bounds=[(0.0, 1.0)] * 2), asks=20,
        outputs=OutputRelease(bounds=(0.0, 2.0), epsilon=2.0, delta=1e-5), path=folder + "/curator.jsonl",
        ledger=Ledger(epsilon=4.0, delta=1e-4, path=folder + "/ledger.jsonl"),
    )
    print(json.dumps(curator.release().to_wire()), flush=True)
    for line in sys.stdin:
        print(json.dumps(curator.handle(json.loads(line))), flush=True)
    """
)


def test_a_killed_curator_goes_on_where_it_was(tmp_path):
    def start():
        return subprocess.Popen(
            [sys.executable, "-c", SERVER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(process, step):
        process.stdin.write(json.dumps(Ask(run, step, 2 * step + 1).to_wire()) + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    process = start()
    release = Release.from_wire(json.loads(process.stdout.readline()))
    run = release.run
    answers = [ask(process, step) for step in range(4)]
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process = start()
    try:
        assert Release.from_wire(json.loads(process.stdout.readline())) == release  # charged once: the budget is spent
        assert [ask(process, step) for step in range(4)] == answers  # the same noise, too
        assert (tmp_path / "measured").read_text() == "xxxx"
        assert ask(process, 4)["value"] is not None
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("wrong", [["HIV+"] * 30, [[SECRET, SECRET]] * 29 + [[SECRET]]])
def test_known_values_that_are_no_numbers_are_refused_without_showing_them(wrong):
    with pytest.raises(TypeError, match="known values must be numbers") as caught:
        curator(wrong)
    assert "HIV" not in str(caught.value)
    assert "0.123" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_a_measurement_that_is_no_number_is_refused_without_showing_it_and_stays_open():
    results = iter(["HIV+", 0.5])
    made = curator(lambda row: next(results))
    ask = Ask(made.release().run, 0, 4)
    with pytest.raises(TypeError, match="must be a number or None, got a str") as caught:
        made.answer(ask)
    assert "HIV" not in str(caught.value)
    assert caught.value.__suppress_context__
    assert made.answer(ask).value == 0.5


@pytest.mark.parametrize("value", ["HIV+", math.inf])
def test_a_value_that_cannot_be_settled_leaves_no_ask_behind(value):
    made = curator(None)
    ask = Ask(made.release().run, 0, 4)
    with pytest.raises((TypeError, ValueError)):
        made.settle(ask, value)
    assert made.pending == []
    assert made.state == "released"


def test_a_run_that_the_budget_refuses_has_charged_neither_rows_nor_answers():
    ledger = Ledger(epsilon=3.0, delta=1e-5)
    laplace = LaplaceRelease(epsilon=2.0, bounds=[(0.0, 1.0)] * 2)  # two entries: it does not compose to one Gaussian
    noisy = OutputRelease(bounds=(0.0, 2.0), epsilon=2.9, delta=1e-6)
    made = curator(mechanism=laplace, outputs=noisy, ledger=ledger)
    for _ in range(2):
        with pytest.raises(BudgetSpent, match="nothing was charged"):
            made.release()
    assert ledger.entries == ()
    assert ledger.spent() == 0.0
    larger = Ledger(epsilon=9.0, delta=1e-5)
    curator(mechanism=laplace, outputs=noisy, ledger=larger).release()
    assert [entry.note["what"] for entry in larger.entries] == ["rows", "answers"]


def test_a_wild_record_is_clipped_and_does_not_burn_the_budget():
    rows = table()
    rows[5] = 1e308
    ledger = Ledger(epsilon=3.0, delta=1e-5)
    mechanism = GaussianRelease(epsilon=2.0, delta=1e-5, scale=1e-10, radius=1.0)
    released = Curator(rows, None, mechanism, asks=1, ledger=ledger).release()
    assert np.isfinite(released.rows).all()
    assert len(ledger.entries) == 1


@pytest.mark.parametrize("wrong", [{"ledger": "ledger.jsonl"}, {"outputs": 0.5}])
def test_a_ledger_and_the_noise_of_answers_are_objects(wrong):
    with pytest.raises(TypeError, match=f"{next(iter(wrong))} must be a"):
        curator(**wrong)
