"""Several workers: processes and executors, killed, raising, late and interrupted ones; nothing is lost."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import pytest

from surefoot import (
    BOBOS,
    GPUCB,
    Advice,
    Box,
    Candidates,
    ExpectedImprovement,
    Float,
    Interrupted,
    MacroGPO,
    MoveTable,
    Paths,
    RandomSearch,
    Space,
    StableOpt,
    load,
    optimize,
)
from surefoot.domain.perturbation import Ball
from surefoot.loop.events import timeless

LINE = Box([(0.0, 1.0)])


def parabola(x):
    return -((x[0] - 0.3) ** 2)


def without_names(policy):
    return [{key: value for key, value in event.items() if key != "by"} for event in timeless(policy.events)]


@pytest.mark.parametrize("threads", [False, True])
def test_one_worker_does_as_none(threads):
    alone = optimize(parabola, LINE, 8, seed=0)
    with ThreadPoolExecutor(1) as executor:
        other = optimize(parabola, LINE, 8, seed=0, workers=1, executor=executor if threads else None)
    assert without_names(other.policy) == without_names(alone.policy)
    assert other.recommendation == alone.recommendation
    assert other.ended == "the budget is spent"


def test_workers_are_other_processes_and_the_journal_names_them(tmp_path):
    result = optimize(lambda x: parabola(x), LINE, 9, seed=0, workers=3, journal=tmp_path / "a.jsonl")  # a lambda too
    events = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()[1:]]
    told = [event for event in events if event["event"] == "told"]
    assert len({event["by"] for event in told}) == 9
    assert not any(event["by"].endswith(f":{os.getpid()}") for event in told)
    assert abs(result.x[0] - 0.3) < 0.1
    again = load(tmp_path / "a.jsonl")
    assert timeless(again.events) == timeless(result.policy.events)
    again.close()


def test_a_killed_worker_is_replaced_once_and_its_trial_fails_the_second_time(tmp_path):
    def deadly(x):
        mark = tmp_path / f"{x[0]}"
        if x[0] < 0.4 and (x[0] < 0.2 or not mark.exists()):
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return x[0]

    points = Candidates([[0.1], [0.3], [0.5], [0.7]])
    policy = optimize(deadly, points, 4, policy=RandomSearch, repeats=False, seed=0, workers=2).policy
    assert {o.x[0]: o.value for o in policy.history} == {0.1: None, 0.3: 0.3, 0.5: 0.5, 0.7: 0.7}
    assert not policy.pending


@pytest.mark.parametrize("threads", [False, True])
def test_an_error_waits_for_the_others_and_leaves_its_trial_pending(threads, tmp_path):
    def raising(x):
        if x[0] == 0.5:
            raise LookupError("no such thing")
        time.sleep(0.05)
        return x[0]

    points = Candidates([[0.1], [0.3], [0.5], [0.7]])
    options = {"policy": RandomSearch, "repeats": False, "seed": 0, "workers": 4}
    with ThreadPoolExecutor(4) as pool:
        options["executor"] = pool if threads else None
        with pytest.raises(LookupError, match="no such thing") as caught:
            optimize(raising, points, 4, journal=tmp_path / "a.jsonl", **options)
        assert "in raising" in caught.value.__notes__[0]
        policy = load(tmp_path / "a.jsonl")
        assert sorted(o.value for o in policy.history) == [0.1, 0.3, 0.7]
        assert [query.x[0] for query in policy.pending] == [0.5]
        policy.close()
        whole = optimize(lambda x: x[0], points, 4, journal=tmp_path / "a.jsonl", **options).policy
    assert sorted(o.value for o in whole.history) == [0.1, 0.3, 0.5, 0.7]
    caught = optimize(raising, points, 4, catch=LookupError, **{**options, "executor": None}).policy
    assert sum(o.failed for o in caught.history) == 1


def test_errors_that_cannot_be_sent_say_what_they_were():
    class Odd(Exception):
        def __init__(self, one, two):
            super().__init__(f"{one} and {two}")

    def raising(x):
        raise Odd(1, 2)

    with pytest.raises(Exception, match="Odd: 1 and 2"):
        optimize(raising, LINE, 2, seed=0, workers=2)


@pytest.mark.parametrize("threads", [False, True])
def test_a_late_trial_is_a_failed_run(threads):
    stuck = threading.Event()

    def slow(x):
        if x[0] == 0.5:
            stuck.wait(20.0)
        return x[0]

    with ThreadPoolExecutor(3) as pool:
        result = optimize(
            slow,
            Candidates([[0.1], [0.5], [0.7]]),
            3,
            policy=RandomSearch,
            repeats=False,
            seed=0,
            workers=3,
            executor=pool if threads else None,
            trial_timeout=1.0,
        )
        stuck.set()
    assert {o.x[0]: o.value for o in result.policy.history} == {0.1: 0.1, 0.5: None, 0.7: 0.7}


class Inside(Executor):
    """Measures at once, where it is asked; can break, or give its work back."""

    def __init__(self, ending=None, after=0):
        self.ending, self.left = ending, after

    def submit(self, function, /, *args, **kwargs):
        future = Future()
        if self.ending is not None and not self.left:
            ending, self.ending = self.ending, None
            if isinstance(ending, BaseException):
                future.set_exception(ending)
            else:
                future.cancel()
                future.set_running_or_notify_cancel()
            return future
        self.left -= 1
        future.set_result(function(*args, **kwargs))
        return future


def test_an_executor_that_breaks_leaves_the_trial_to_the_next_run(tmp_path):
    with pytest.raises(BrokenProcessPool):
        optimize(parabola, LINE, 6, seed=0, workers=1, journal=tmp_path / "a", executor=Inside(BrokenProcessPool(), 3))
    policy = load(tmp_path / "a")
    assert (len(policy.history), len(policy.pending)) == (3, 1)
    policy.close()
    whole = optimize(parabola, LINE, 6, seed=0, workers=1, journal=tmp_path / "a", executor=Inside())
    assert without_names(whole.policy) == without_names(optimize(parabola, LINE, 6, seed=0).policy)


def test_work_that_an_executor_gives_back_is_given_again():
    policy = optimize(parabola, LINE, 5, seed=0, workers=1, executor=Inside("back", 2)).policy
    assert [o.value is None for o in policy.history] == [False] * 5


def train(x):
    for epoch in range(1, 9):
        yield 1.0 - (x[0] - 0.3) ** 2 - 0.5**epoch


class Half(RandomSearch):
    """Stops every run after four steps."""

    steps = True

    def _advise(self, query, step, value):
        return Advice(stop=step >= 4)


@pytest.mark.parametrize("kind", [Half, RandomSearch, "BOBOS"])
@pytest.mark.parametrize("inside", [False, True])
def test_epochs_are_reported_and_runs_stopped(kind, inside):
    options = {"epochs": 8} if kind == "BOBOS" else {}
    alone = optimize(train, LINE, 6, policy=kind, seed=0, **options).policy
    other = optimize(train, LINE, 6, policy=kind, seed=0, workers=1, executor=Inside() if inside else None, **options)
    assert without_names(other.policy) == without_names(alone)
    assert (BOBOS if kind == "BOBOS" else kind) is type(alone)


def test_a_policy_that_chooses_one_at_a_time_keeps_one_worker_busy():
    paths = Paths([[0.0], [1.0], [2.0]], MoveTable({0: [[1]], 1: [[2]], 2: [[0]]}), start=0)
    policy = optimize(lambda stops: stops[:, 0], paths, 3, policy=MacroGPO, seed=0, workers=2).policy
    assert len(policy.history) == 3


def test_ctrl_c_keeps_and_hands_out_what_was_found(tmp_path):
    for workers in (None, 2):
        calls = []

        def seen(policy, query, calls=calls):
            calls.append(query)
            if len(calls) == 5:
                raise KeyboardInterrupt

        with pytest.raises(Interrupted, match="interrupted after 5 trials") as caught:
            optimize(parabola, LINE, 9, seed=0, workers=workers, callback=seen)
        assert len(caught.value.result.policy.history) == 5
        assert caught.value.result.ended == "interrupted"
        assert caught.value.result.value <= 0.1


def test_no_trial_begins_after_the_time_is_over():
    clock = []

    def slow(policy, query):
        clock.append(query)
        time.sleep(0.3)

    result = optimize(parabola, LINE, 50, seed=0, timeout=0.5, callback=slow)
    assert result.ended == "the time is over"
    assert 1 <= len(result.policy.history) < 50
    assert optimize(parabola, LINE, 50, seed=0, workers=2, timeout=0.5, callback=slow).ended == "the time is over"


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_a_small_expected_improvement_ends_the_run(direction):
    sign = 1.0 if direction == "maximize" else -1.0
    result = optimize(lambda x: sign * parabola(x), LINE, 40, direction=direction, seed=0, stop=1e-3)
    assert result.ended == "the expected improvement is below 0.001"
    assert len(result.policy.history) < 40
    assert abs(result.x[0] - 0.3) < 0.05
    assert not result.policy.pending


def test_a_rule_of_ones_own_ends_the_run():
    result = optimize(
        parabola,
        LINE,
        40,
        policy="stable-opt",
        perturbation=Ball(0.1),
        seed=0,
        stop=lambda policy: len(policy.history) > 3,
    )
    assert isinstance(result.policy, StableOpt)
    assert result.ended == "the rule to stop holds"
    assert len(result.policy.history) == 4


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"n_jobs": 4}, r"optimize\(\) with ExpectedImprovement takes no 'n_jobs'; did you mean 'workers'\?"),
        ({"n_trials": 4}, "did you mean 'budget'"),
        ({"sede": 4}, "did you mean 'seed'"),
        ({"policy": GPUCB, "widht": 4}, "with GPUCB takes no 'widht'; did you mean 'width'"),
    ],
)
def test_a_wrong_keyword_names_the_near_one(options, said):
    with pytest.raises(TypeError, match=said):
        optimize(parabola, LINE, 4, **options)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"policy": "stable-op"}, "there is no policy 'stable-op'; did you mean 'StableOpt'"),
        ({"executor": Inside()}, "executor= needs workers="),
        ({"trial_timeout": 3.0}, "trial_timeout= needs workers="),
        ({"workers": 0}, "workers must be a whole number from 1 on"),
        ({"stop": -1.0}, "stop must be positive"),
        ({"timeout": "1h"}, "timeout must be positive"),
    ],
)
def test_arguments_are_checked(options, said):
    with pytest.raises(ValueError, match=said):
        optimize(parabola, LINE, 4, **options)


def test_a_policys_own_keywords_have_near_matches_too():
    with pytest.raises(
        TypeError, match=r"ExpectedImprovement\(\) got an unexpected keyword argument 'random_state'; did"
    ):
        ExpectedImprovement(LINE, random_state=0)


def heat(params):
    if params["heat"] < 30.0:
        raise ValueError("too cold")
    return -((params["heat"] - 60.0) ** 2)


def deadly_heat(params):
    if params["heat"] > 80.0:
        os.kill(os.getpid(), signal.SIGKILL)
    return heat(params)


def test_a_dask_cluster_measures(tmp_path):
    distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install distributed")
    space = Space(heat=Float(20.0, 90.0))
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, protocol="tcp") as cluster,
        distributed.Client(cluster) as client,
    ):
        result = optimize(
            heat,
            space,
            8,
            seed=0,
            workers=2,
            executor=client.get_executor(pure=False),
            catch=ValueError,
            journal=tmp_path / "a.jsonl",
        )
        told = [event for event in result.policy.events if event["event"] == "told"]
        assert len(told) == 8
        assert not any(event["by"].endswith(f":{os.getpid()}") for event in told)
        assert abs(result.params["heat"] - 60.0) < 15.0
        killed = optimize(
            deadly_heat,
            space,
            6,
            policy=RandomSearch,
            seed=1,
            workers=2,
            executor=client.get_executor(),
            catch=Exception,
        )
        assert [o.failed for o in killed.policy.history] == [not 30.0 <= o.x[0] <= 80.0 for o in killed.policy.history]
    again = load(tmp_path / "a.jsonl")
    assert timeless(again.events) == timeless(result.policy.events)
    again.close()
