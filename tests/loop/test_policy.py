import json
import pickle

import numpy as np
import pytest

from surefoot import (
    GP,
    GPUCB,
    SE,
    Advice,
    Box,
    Candidates,
    Exhausted,
    ExpectedImprovement,
    Outcome,
    Policy,
    RandomSearch,
    SobolSearch,
    ThompsonSampling,
    TruVaR,
    load,
)
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


def test_values_whose_squares_are_infinite_are_refused_and_change_nothing():
    policy = ExpectedImprovement(box(), seed=0)
    for query in policy.ask(4):
        policy.tell(query, float(query.x[0]))
    query, before = policy.ask(), policy.state()
    for bad in (1e155, -1e300, 1.7e308):
        with pytest.raises(ValueError, match=r"within ±1e\+150"):
            policy.tell(query, bad)
    assert policy.state() == before
    policy.tell(query, -1e150)
    assert policy.ask().x.shape == (1,)


@pytest.mark.parametrize("kind", [RandomSearch, SobolSearch, GPUCB, ThompsonSampling])
def test_copies_of_a_candidate_are_one_point(kind):
    once = kind(Candidates([[1.0], [2.0], [1.0], [1.0]]), seed=0, repeats=False)
    for _ in range(2):
        once.tell(once.ask(), 0.5)
    assert sorted(o.x[0] for o in once.history) == [1.0, 2.0]
    with pytest.raises(Exhausted):
        once.ask()
    waiting = kind(Candidates([[1.0], [2.0], [1.0], [1.0]]), seed=0)
    assert {query.x[0] for query in waiting.ask(2)} == {1.0, 2.0}
    with pytest.raises(Exhausted):
        waiting.ask()


def test_options_of_the_wrong_kind_are_refused_at_once():
    for bad in ("se", SE(0.2)):
        with pytest.raises(TypeError, match="gp must be a GP"):
            GPUCB(box(), gp=bad)
    with pytest.raises(TypeError, match="repeats must be True or False, got 'no'"):
        GPUCB(box(), repeats="no")
    for width in (float("nan"), float("inf"), -1.0):
        policy = GPUCB(box(), gp=GP(SE(0.2)), width=lambda step, value=width, **_: value, seed=0)
        with pytest.raises(ValueError, match="the width in round 1 must be finite"):
            policy.ask()
        assert not policy.events


def test_a_state_is_the_callers_own():
    policy = RandomSearch(box(), seed=0)
    policy.ask()
    state = policy.state()
    twin = Policy.from_state(state)
    state["events"][0]["x"][0] = 99.0
    assert policy.state()["events"] == twin.state()["events"] != state["events"]


def test_states_that_are_not_whole_are_refused_with_a_sentence(tmp_path):
    policy = RandomSearch(box(), seed=0)
    policy.tell(policy.ask(), 1.0)
    state = policy.state()
    for key in ("policy", "config", "seed", "events"):
        with pytest.raises(ValueError, match=f"{key!r} is missing"):
            Policy.from_state({name: value for name, value in state.items() if name != key})
    for event in (7, {"event": "told", "id": 5, "value": 1.0}, {"event": "asked", "id": 3, "x": [0.5]}):
        with pytest.raises(ValueError, match="event 0 does not fit"):
            Policy.from_state({**state, "events": [event]})
    with pytest.raises(ValueError, match="no option 'magic'"):
        Policy.from_state({**state, "config": {**state["config"], "magic": 1}})
    with pytest.raises(ValueError, match="'repeats': it is stored as True and cannot become False"):
        Policy.from_state(state, repeats=False)
    path = tmp_path / "state.json"
    path.write_text(json.dumps(state, indent=2))  # as an editor may leave it
    assert load(path).ask() == policy.ask()


def test_a_run_goes_on_without_the_device_it_was_stored_with(tmp_path):
    domain = Candidates(np.linspace(0.0, 1.0, 21))
    path = tmp_path / "run.jsonl"

    def made(device, journal):
        gp = GP(SE(0.2), noise=1e-4)
        return TruVaR(domain, goal="level", threshold=0.4, gp=gp, seed=0, device=device, journal=journal)

    with made(None, path) as policy:
        for _ in range(3):
            query = policy.ask()
            policy.tell(query, float(query.x[0]))
    wanted = policy.queries[-1]
    state = {**policy.state(), "config": {**policy.config(), "device": "cuda:99"}}  # as on another machine
    path.write_text(path.read_text().replace('"device":null', '"device":"cuda:99"'))
    stored = path.read_text()
    assert Policy.from_state(state).device == "cuda:99"
    for rebuild in (
        lambda: Policy.from_state(state, device=None),
        lambda: load(path, device=None),
        lambda: made(None, path),
    ):
        with rebuild() as rebuilt:
            assert rebuilt.device is None
            assert rebuilt.queries[-1] == wanted
    assert path.read_text() == stored
    pytest.importorskip("torch")
    assert Policy.from_state(state, device="cpu").ask().x == Policy.from_state(policy.state()).ask().x
    with pytest.raises(ValueError, match=r"no device 'cuda:99' on this machine.*device=None"):
        Policy.from_state(state).ask()
    with pytest.raises(ValueError, match="RandomSearch has no option 'device'"):
        Policy.from_state(RandomSearch(domain).state(), device=None)


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


def test_a_design_is_made_as_far_as_it_is_needed():
    long, short = (GPUCB(Box.unit(2), initial=count, seed=3) for count in (10**12, 20))
    assert long.ask() == short.ask()  # and no design of 10¹² points
    whole = long.domain.design(2048, long.stream("initial"))
    assert np.array_equal([query.x for query in long.ask(1032)], whole[1:1033])


def test_options_do_not_change_with_the_callers_array():
    cost = np.ones(5)
    policy = TruVaR(Candidates(np.linspace(0.0, 1.0, 5)[:, None]), cost=cost, gp=GP(SE(0.2), noise=1e-4), seed=0)
    before = policy.state()
    cost[:] = 7.0
    assert policy.state() == before
