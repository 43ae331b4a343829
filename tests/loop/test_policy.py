import json
import pickle

import numpy as np
import pytest

from surefoot import Advice, Box, Candidates, Outcome, Policy, RandomSearch, load
from surefoot.loop.policy import Proposal
from surefoot.testing import PolicyContract


class Watcher(Policy):
    """A policy with steps, one query at a time, a context and code in its configuration: what the shipped ones lack."""

    steps = True
    parallel = False
    context = ("time",)

    def __init__(self, domain, *, cost=None, scale=1.0, **options):
        super().__init__(domain, **options)
        self.cost, self.scale = cost, scale

    def _choose(self, step, context):
        return Proposal(self.domain.sample(1, self.stream("sample", step))[0], note={"scale": self.scale})

    def _advise(self, query, step, value):
        return Advice(stop=value is None or value < 0.0, reason="negative", probability=0.5)

    def _recommend(self):
        return self._best_measured()


class TestWatcher(PolicyContract):
    policy = Watcher

    def context(self, step):
        return {"time": float(step)}

    test_more_asks_than_candidates = None
    test_repeats_can_be_forbidden = None  # it draws blindly
    test_failed_runs_are_remembered_and_not_repeated_at_once = None


def box():
    return Box([(0.0, 1.0)])


def test_reports_are_events_and_give_advice():
    policy = Watcher(box(), seed=0)
    query = policy.ask(time=3.0)
    assert query.time == 3.0
    assert not policy.report(query, 1, 0.5).stop
    assert policy.report(query, 5, -0.5).stop
    policy.tell(query)
    assert policy.history[0].value == -0.5
    assert [e["event"] for e in policy.events] == ["asked", "reported", "reported", "told"]


def test_code_is_stored_by_name_and_passed_again(tmp_path):
    def price(x):
        return 1.0

    policy = Watcher(box(), cost=price, seed=0)
    policy.ask()
    policy.save(tmp_path / "run.json")
    assert "price" in json.dumps(policy.config()["cost"])
    with pytest.raises(ValueError, match="code and was stored by name"):
        load(tmp_path / "run.json")
    assert load(tmp_path / "run.json", cost=price).cost is price
    with pytest.raises(ValueError, match="no option 'prize'"):
        load(tmp_path / "run.json", prize=price)


def test_large_candidate_arrays_are_passed_again(tmp_path):
    domain = Candidates(np.random.default_rng(0).random((6000, 2)))
    policy = RandomSearch(domain, seed=0)
    policy.tell(policy.ask(), 1.0)
    policy.save(tmp_path / "run.json")
    assert (tmp_path / "run.json").stat().st_size < 2000
    with pytest.raises(ValueError, match="again"):
        load(tmp_path / "run.json")
    with pytest.raises(ValueError, match="differs"):
        load(tmp_path / "run.json", domain=Candidates(domain.points + 1.0))
    assert load(tmp_path / "run.json", domain=Candidates(domain.points)).ask() == policy.ask()


def test_unknown_policies_are_not_imported():
    state = RandomSearch(box(), seed=0).state()
    with pytest.raises(ValueError, match="not a registered"):
        Policy.from_state({**state, "policy": "os.system"})


def test_default_arguments_are_part_of_the_configuration():
    assert Watcher(box(), seed=0).config()["scale"] == 1.0


def test_a_seed_is_drawn_once_and_stored():
    policy = RandomSearch(box())
    assert Policy.from_state(policy.state()).ask() == policy.ask()
    for seed in (-1, 1.5, True, "7"):
        with pytest.raises(ValueError, match="seed"):
            RandomSearch(box(), seed=seed)


def test_late_tells_of_cancelled_queries_are_accepted():
    policy = RandomSearch(box(), seed=0)
    query = policy.ask()
    policy.cancel(query)
    policy.tell(query, 0.3)
    assert policy.history[0].value == 0.3


def test_best_measured_averages_repetitions():
    policy = RandomSearch(box(), seed=0)
    for x, value in [(0.1, 5.0), (0.1, 0.0), (0.7, 3.0)]:
        policy.tell([x], value)
    best = policy.recommend()
    assert best.x == [0.7]
    assert best.mean == 3.0


def test_outcome_refuses_nonsense():
    for bad in ({"noise": -1.0}, {"cost": -1.0}, {"cost": float("nan")}, {"time": float("inf")}):
        with pytest.raises(ValueError):
            Outcome(1.0, **bad)


def test_foreign_queries_are_refused():
    first, second = RandomSearch(box(), seed=0), RandomSearch(box(), seed=1)
    first.ask()
    with pytest.raises(ValueError, match="is at"):
        first.tell(second.ask(), 1.0)


def test_a_query_can_be_sent_to_another_process():
    query = Watcher(box(), seed=0).ask(time=1.0)
    again = pickle.loads(pickle.dumps(query))
    assert again == query
    assert again.note == {"scale": 1.0}
    with pytest.raises(ValueError, match="read-only"):
        again.x[0] = 0.0


def test_asked_points_cannot_be_changed():
    query = RandomSearch(box(), seed=0).ask()
    with pytest.raises(ValueError, match="read-only"):
        query.x[0] = 0.0
    with pytest.raises(TypeError):
        query.note["a"] = 1
