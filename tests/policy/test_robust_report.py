"""RobustReport: the policy inside hears everything, whatever its state follows from; clocks work inside."""

import json

import numpy as np
import pytest

from surefoot import (
    BOBOS,
    GP,
    GPUCB,
    RGPUCB,
    SE,
    TVGPUCB,
    Ball,
    Box,
    Candidates,
    NotSupported,
    Policy,
    RobustReport,
    load,
    widths,
)
from surefoot.games import Player, RandomStrategy, Round
from surefoot.loop.events import timeless
from surefoot.loop.policy import Proposal
from surefoot.testing import PolicyContract

LINE = Candidates(np.linspace(0.0, 1.0, 11))


class Stroller(Policy):
    """One candidate to the right for every outcome told and every run given up: a state that follows from events."""

    domains = (Candidates,)

    def __init__(self, domain, **options):
        super().__init__(domain, **options)
        self.place = 0

    def _choose(self, step, context):
        blocked = self.domain.excluding(self._blocked())
        return Proposal(index=next(k % len(blocked) for k in range(self.place, 10**6) if not blocked[k % len(blocked)]))

    def _apply_told(self, id, x, index, outcome):
        super()._apply_told(id, x, index, outcome)
        self.place += 1

    def cancel(self, query):
        super().cancel(query)
        self.place = sum(event["event"] in ("told", "cancelled") for event in self._events)

    def _apply(self, event):
        super()._apply(event)
        self.place += event["event"] == "cancelled"

    def _recommend(self):
        return self._best_measured()


class TestStroller(PolicyContract):
    policy = Stroller


def test_finding_12_a_policy_whose_state_follows_from_what_it_is_told_works_inside():
    for policy in (Stroller(LINE, seed=0), RobustReport(Stroller(LINE, seed=0), Ball(0.1))):
        asked = []
        for _ in range(5):
            query = policy.ask()
            asked.append(query.index)
            policy.tell(query, 1.0)
        assert asked == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("kind", [TVGPUCB, RGPUCB])
@pytest.mark.parametrize("domain", [LINE, Box([(0.0, 1.0)])], ids=["candidates", "box"])
def test_finding_12_a_policy_with_a_clock_works_inside(kind, domain, tmp_path):
    def made():
        options = {"forgetting": 0.1} if kind is TVGPUCB else {"block": 5.0}
        return kind(domain, gp=GP(SE(0.2), noise=0.01), seed=2, **options)

    alone, inside = made(), RobustReport(made(), Ball(0.1), journal=tmp_path / "run.jsonl")
    for time in (1.0, 2.5, 4.0, 4.5, 7.0):
        queries = [policy.ask(time=time) for policy in (alone, inside)]
        assert queries[0] == queries[1]
        for policy, query in zip((alone, inside), queries, strict=True):
            policy.tell(query, float(np.sin(time + 3.0 * query.x[0])))
    assert inside.time == alone.time == 7.0
    with pytest.raises(ValueError, match="time runs backwards"):
        inside.ask(time=3.0)
    assert timeless(inside.events) == timeless(alone.events)
    assert inside.recommend().lower == pytest.approx(worst(alone, inside, 7.0), abs=3e-3)  # of the grid
    inside.close()
    with load(tmp_path / "run.jsonl") as resumed:
        assert resumed.recommend() == inside.recommend()
        assert resumed.ask(time=8.0) == alone.ask(time=8.0)


def worst(alone, inside, time):
    """The best worst case by hand, over a fine grid of what an adversary reaches."""
    belief = alone.posterior()
    if isinstance(alone, TVGPUCB):
        belief.time = time
    rounds = len(alone.history) + 1
    width = inside.width(rounds, size=alone.domain.size, dimension=1, gain=belief.information_gain)
    grid = np.linspace(0.0, 1.0, 11 if isinstance(alone.domain, Candidates) else 2001)[:, None]
    mean, std = belief.predict(grid)
    lower = (mean - width * std)[None]
    X = np.array([run.x for run in alone.history])
    return np.where(np.abs(grid.T - X) <= 0.1 + 1e-9, lower, np.inf).min(axis=1).max()


def test_a_drifting_belief_judges_at_the_time_that_is_asked_for():
    inside = RobustReport(TVGPUCB(LINE, forgetting=0.1, gp=GP(SE(0.2), noise=0.01), seed=0), Ball(0.1))
    for time in (1.0, 2.0, 3.0):
        query = inside.ask(time=time)
        inside.tell(query, 2.0 + query.x[0])
    now, later = inside.recommend(), inside.recommend(time=9.0)
    assert now == inside.recommend(time=3.0)
    assert later.lower < now.lower
    assert later.lower == pytest.approx(worst(inside.policy, inside, 9.0))
    with pytest.raises(ValueError, match="time runs backwards"):
        inside.recommend(time=2.0)
    for still in (RGPUCB(LINE, block=3, seed=0), GPUCB(LINE, seed=0)):
        other = RobustReport(still, Ball(0.1))
        other.tell(other.ask(), 1.0)
        with pytest.raises(NotSupported, match="drifting"):
            other.recommend(time=9.0)


def test_a_belief_of_ones_own_ignores_time():
    gp = GP(SE(0.2), noise=0.01)
    options = {"gp": gp, "width": widths.Constant(2.0)}
    inside = RobustReport(TVGPUCB(LINE, forgetting=0.5, gp=gp, seed=0), Ball(0.1), **options)
    still = RobustReport(GPUCB(LINE, gp=gp, seed=0), Ball(0.1), **options)
    for time in (1.0, 2.0, 3.0):
        query = inside.ask(time=time)
        for policy, point in ((inside, query), (still, query.x)):
            policy.tell(point, float(query.x[0]))
    assert inside.recommend() == still.recommend()


def test_a_player_inside_is_told_rounds():
    rival = Candidates(np.linspace(0.0, 1.0, 4))

    def made():
        return Player(LINE, others=[rival], level=1, strategies=RandomStrategy(), initial=2, seed=3)

    alone, inside = made(), RobustReport(made(), Ball(0.1))
    for number in range(5):
        queries = [policy.ask() for policy in (alone, inside)]
        assert queries[0] == queries[1]
        for policy, query in zip((alone, inside), queries, strict=True):
            other = rival.points[number % 4]
            policy.tell(query, Round([query.x, other], [float(query.x[0] - other[0]), 0.0]))
    assert timeless(inside.events) == timeless(alone.events)
    assert inside.recommend().rule.startswith("best worst-case")


def test_one_inside_another_inside_a_third():
    def made():
        return GPUCB(LINE, gp=GP(SE(0.2), noise=0.01), seed=1)

    alone, inside = made(), RobustReport(RobustReport(made(), Ball(0.1)), Ball(0.2))
    for _ in range(4):
        query = alone.ask()
        assert inside.ask() == query
        alone.tell(query, float(query.x[0]))
        inside.tell(query, float(query.x[0]))
    twin = Policy.from_state(json.loads(json.dumps(inside.state())))
    assert twin.ask() == inside.ask() == alone.ask()


def test_what_could_not_be_put_on_record_did_not_happen(tmp_path, monkeypatch):
    inside = RobustReport(Stroller(LINE, seed=0), Ball(0.1), journal=tmp_path / "run.jsonl")
    inside.tell(inside.ask(), 1.0)
    before = inside.state()

    def full(*events):
        raise OSError("no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(inside.journal, "append", full)
        for act in (inside.ask, lambda: inside.tell([0.5], 3.0)):
            with pytest.raises(OSError, match="no space"):
                act()
    assert inside.state() == before
    assert inside.ask().index == 1
    assert len(inside.policy.events) == 3


def test_the_policy_inside_is_not_driven_by_itself():
    inside = RobustReport(GPUCB(LINE, seed=0), Ball(0.1))
    inside.policy.ask()
    with pytest.raises(ValueError, match="ask and tell RobustReport"):
        inside.ask()


def test_the_policy_that_was_given_stays_as_it_is():
    given = Stroller(LINE, seed=0)
    inside = RobustReport(given, Ball(0.1))
    inside.tell(inside.ask(), 1.0)
    assert not given.events
    assert given.place == 0


def test_runs_end_where_those_of_the_policy_inside_do():
    inside = RobustReport(BOBOS(Box.unit(1), epochs=4, seed=0), Ball(0.1))
    assert inside.epochs == 4
    assert RobustReport(GPUCB(LINE, seed=0), Ball(0.1)).epochs is None
