"""What every policy promises, as tests.

The suite reads the abilities a policy declares (``domains``, ``parallel``, ``context``, ``steps``) and checks the
contract on each of them: determinism, resuming in a new process, the journal, pending and failed runs, bad input, hard
data, and that nothing changes inside another policy. On ``Paths`` whole moves are asked for, and some of their stops
are missed.

>>> from surefoot import GPUCB
>>> class TestGPUCB(PolicyContract):
...     policy = GPUCB
...     options = {"initial": 2}

A policy that takes a context overrides :meth:`PolicyContract.context`; one that needs other domains,
:meth:`PolicyContract.domain`.
"""

from __future__ import annotations

import json
from typing import Any, cast

import numpy as np
import pytest

from surefoot.domain import Candidates, Dives, Paths
from surefoot.errors import BudgetSpent, Exhausted, NoData, NotSupported, PendingQuery
from surefoot.loop.events import timeless
from surefoot.loop.policy import Policy
from surefoot.loop.types import FAILED
from surefoot.testing.driven import KINDS
from surefoot.testing.resuming import Resuming
from surefoot.testing.wrapping import WrappingContract

__all__ = ["PolicyContract"]


class PolicyContract(Resuming, WrappingContract):
    """The contract as a pytest class; set ``policy`` and, where needed, ``options``.

    Attributes
    ----------
    policy : type
        The policy under test.
    options : dict
        Keyword arguments for its constructor.
    length : int
        Number of steps of the runs that are compared.

    >>> from surefoot import SobolSearch
    >>> class TestSobol(PolicyContract):
    ...     policy = SobolSearch
    """

    # -- choosing ----------------------------------------------------------------------------------------------------

    def test_queries_lie_in_the_domain_and_are_numbered(self, kind: str) -> None:
        policy = self.make(kind)
        for number in range(self.length):
            query = self.step(policy)
            assert query.id == number
            assert policy.domain.contains(np.atleast_2d(query.x)).all()
            assert (query.params is not None) == (kind == "Space")
            if kind == "Candidates":
                assert np.array_equal(cast(Candidates, policy.domain).points[query.index], query.x)
        assert len(policy.history) == self.length
        assert not policy.pending

    def test_the_seed_decides_everything(self, kind: str) -> None:
        assert self.whole_run(kind) == self.continue_run(self.make(kind), self.length)

    def test_a_policy_refuses_other_domains(self) -> None:
        for kind in KINDS:
            if kind not in self.kinds():
                with pytest.raises(NotSupported, match="works on"):
                    self.build(self.domain(kind))
        with pytest.raises(TypeError):
            type(self).policy([(0.0, 1.0)], **self.options)

    def test_undeclared_context_is_refused(self, kind: str) -> None:
        policy = self.make(kind)
        with pytest.raises(NotSupported):
            policy.ask(weather="fine")
        assert not policy.events

    # -- pending -----------------------------------------------------------------------------------------------------

    def test_pending_points_are_not_asked_again(self, kind: str) -> None:
        policy = self.make(kind)
        for _ in range(3):
            self.step(policy)
        first = self.ask(policy)
        if self.alone(policy):
            before = policy.state()
            with pytest.raises(PendingQuery):
                self.ask(policy)
            assert policy.state() == before
            return
        sparing = policy.spares_pending  # where measurements are noisy, a second one of a point may be worth more
        queries = [first, *policy.ask(4, **self.context(4))]
        assert not sparing or len({query.x.tobytes() for query in queries}) == 5
        assert [query.id for query in policy.pending] == [3, 4, 5, 6, 7]
        for query in reversed(queries):
            policy.tell(query, self.value(policy.domain, query.x))
        assert not policy.pending

    def test_more_asks_than_candidates(self) -> None:
        policy = self.make("Candidates", domain=Candidates([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]))
        if not (policy.parallel and policy.spares_pending):
            pytest.skip("one query at a time" if policy.spares_pending else "measurements are noisy")
        assert sorted(self.ask(policy).index or 0 for _ in range(3)) == [0, 1, 2]
        before = policy.state()
        with pytest.raises(Exhausted):
            self.ask(policy)
        with pytest.raises(Exhausted):
            policy.ask(2, **self.context(3))
        assert policy.state() == before
        policy.cancel(1)
        assert self.ask(policy).index == policy.queries[1].index

    def test_asking_for_more_than_is_left_changes_nothing(self) -> None:
        policy = self.make("Candidates", domain=Candidates([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]))
        if not (policy.parallel and policy.spares_pending):
            pytest.skip("one query at a time" if policy.spares_pending else "measurements are noisy")
        with pytest.raises(Exhausted):
            policy.ask(4, **self.context(0))
        assert not policy.pending
        assert not policy.events

    def test_noisy_measurements_may_be_made_twice_at_once(self) -> None:
        """A second measurement of a pending point tells something where they are noisy: more asks than candidates."""
        options = self.noisy()
        if not options:
            pytest.skip("no belief to tell of noise")
        few = Candidates([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]])
        policy = self.make("Candidates", domain=few, **options)
        if not policy.parallel:
            pytest.skip("one query at a time")
        assert not policy.spares_pending
        for _ in range(3):
            self.ask(policy)
        policy.ask(4, **self.context(3))
        assert len(policy.pending) == 7
        for query in policy.pending:
            policy.tell(query, self.value(policy.domain, query.x))
        self.step(policy)
        once = self.make("Candidates", domain=few, repeats=False, **options)
        assert once.spares_pending
        with pytest.raises(Exhausted):
            once.ask(4, **self.context(0))

    def test_repeats_can_be_forbidden(self) -> None:
        points = self.domain("Candidates").points[:8]  # type: ignore[attr-defined]
        policy = self.make("Candidates", domain=Candidates(points), repeats=False)
        assert sorted(self.step(policy).index or 0 for _ in range(8)) == list(range(8))
        with pytest.raises(Exhausted):
            self.ask(policy)

    def test_cancel_forgets(self, kind: str) -> None:
        policy = self.make(kind)
        self.step(policy)
        query = self.ask(policy)
        policy.cancel(query)
        policy.cancel(query)
        assert not policy.pending
        assert len(policy.history) == 1
        with pytest.raises(ValueError, match="already told"):
            policy.cancel(0)
        self.step(policy)

    # -- telling -----------------------------------------------------------------------------------------------------

    def test_telling_twice(self, kind: str) -> None:
        policy = self.make(kind)
        query = self.ask(policy)
        policy.tell(query, self.outcome(query, 1.0, noise=0.01, cost=3.0))
        before = policy.state()
        policy.tell(query.id, self.outcome(query, 1.0, noise=0.01, cost=3.0))
        with pytest.raises(ValueError, match="already told"):
            policy.tell(query, self.alike(query, 2.0))
        assert policy.state() == before

    def test_unasked_points_are_welcome(self, kind: str) -> None:
        policy = self.make(kind)
        for x in policy.domain.sample(5, np.random.default_rng(0)):
            policy.tell(policy.domain.params(x) or x, self.value(policy.domain, x))
        assert len(policy.history) == 5
        assert [o.id for o in policy.history] == [None] * 5
        self.step(policy)
        policy.recommend()

    def test_telling_the_point_of_a_pending_query_closes_it(self, kind: str) -> None:
        """As people do after a restart: the worker knows its point, not the number of its query."""
        policy = self.make(kind)
        for _ in range(3):
            query = self.ask(policy)
            told = self.value(policy.domain, query.x)
            policy.tell(dict(query.params) if query.params is not None else query.x.tolist(), told)
            assert not policy.pending
            assert policy.history[-1].id == query.id
            policy.tell(query, told)  # the same again, by its number
        assert len(policy.history) == 3
        by_number = self.make(kind)
        for _ in range(3):
            self.step(by_number)
        assert timeless(policy.events) == timeless(by_number.events)
        x = policy.queries[0].x
        x = x[0] if x.ndim == 2 else x
        policy.tell(x, self.value(policy.domain, x))  # nothing waits there any more: one more measurement
        assert policy.history[-1].id is None

    # -- the direction -----------------------------------------------------------------------------------------------

    def test_minimizing_is_maximizing_the_negated_function(self, kind: str) -> None:
        """The same points, bit for bit; values, bounds and reports in the sign of who tells them."""
        policy = self.make(kind)
        if not self.negatable(policy):
            return
        other = policy.negated()
        assert {policy.direction, other.direction} == {"maximize", "minimize"}
        for number in range(self.length):
            query, twin = self.ask(policy), self.ask(other)
            assert query == twin
            value = self.value(policy.domain, query.x)
            if policy.steps:
                advice = policy.report(query, 1, 0.5 * value)
                opposite = other.report(twin, 1, -0.5 * value)
                assert (advice.stop, advice.probability) == (opposite.stop, opposite.probability)
                assert other.reports()[twin.id] == {1: -0.5 * value}
            policy.tell(query, None if number == 2 else value)
            other.tell(twin, None if number == 2 else [-one for one in value] if query.x.ndim == 2 else -value)
            if number != 2:
                assert other.events[-1]["value"] == other.history[-1].value == -(policy.history[-1].value or 0.0)
        assert np.array_equal(other.data()[1], -policy.data()[1])
        assert [o.negated() for o in other.history] == policy.history
        answer: Any = policy.recommend()
        assert other.recommend() == answer.negated()
        resumed = Policy.from_state(json.loads(json.dumps(other.state())))
        assert resumed.state() == other.state()
        assert resumed.recommend() == other.recommend()
        assert self.ask(resumed) == self.ask(other) == self.ask(policy)

    def test_bad_input_changes_nothing(self, kind: str) -> None:
        policy = self.make(kind)
        self.step(policy)
        query = self.ask(policy)
        before = policy.state()
        good = query.params or query.x
        for value in (float("inf"), -float("inf")):
            with pytest.raises(ValueError, match="finite"):
                policy.tell(query, self.alike(query, value))
        with pytest.raises((ValueError, TypeError)):
            policy.tell(query, "high")
        with pytest.raises((ValueError, TypeError)):
            policy.tell(query, [1.0, 2.0, 3.0, 4.0, 5.0])
        for x in self.bad_points(kind, policy):
            with pytest.raises(ValueError):  # noqa: PT011 - the messages are the domains' own
                policy.tell(x, 1.0)
        with pytest.raises(ValueError, match="was not asked"):
            policy.tell(99, 1.0)
        with pytest.raises(ValueError, match="needs a value"):
            policy.tell(good)
        with pytest.raises(ValueError, match="positive whole number"):
            policy.ask(0)
        assert policy.state() == before

    def bad_points(self, kind: str, policy: Policy) -> list[Any]:
        """Return points that are not in the domain, each for another reason."""
        if kind == "Space":
            good = policy.domain.params(policy.domain.sample(1, np.random.default_rng(0))[0]) or {}
            bad = [{**good, "rate": v} for v in (float("nan"), float("inf"), 7.0)]
            return [*bad, {**good, "unknown": 1}, {"rate": 0.1}, {**good, "kind": "z"}, {**good, "depth": 2.5}]
        return [[np.nan, 1.0], [np.inf, 1.0], [0.5], [[0.5, 0.5]], [99.0, 99.0], "ab"]

    # -- failures ----------------------------------------------------------------------------------------------------

    def test_failed_runs_are_remembered_and_not_repeated_at_once(self, kind: str) -> None:
        policy = self.make(kind)
        for _ in range(3):
            self.step(policy)
        for failure in (None, float("nan"), FAILED):
            query = self.ask(policy)
            policy.tell(query, failure)
            assert policy.history[-1].failed
            following = self.ask(policy)
            assert not np.array_equal(following.x, query.x)
            policy.cancel(following)
        assert len(policy.data()[1]) == sum(policy.queries[id].x.size // policy.domain.dimension for id in range(3))
        assert policy.recommend().rule

    def test_nothing_but_failures(self, kind: str) -> None:
        policy = self.make(kind)
        with pytest.raises(NoData):
            policy.recommend()
        for _ in range(5):
            policy.tell(self.ask(policy), None)
        with pytest.raises(NoData):
            policy.recommend()
        self.step(policy)
        policy.recommend()

    def test_every_candidate_failed(self) -> None:
        policy = self.make("Candidates", domain=Candidates([[0.0, 0.0], [1.0, 1.0]]))
        for _ in range(2):
            policy.tell(self.ask(policy), None)
        self.step(policy)

    # -- moves -------------------------------------------------------------------------------------------------------

    def test_moves_start_where_the_last_one_ended(self) -> None:
        policy = self.make("Paths")
        domain = policy.domain
        for number in range(self.length):
            place = policy.journey.place
            query = self.ask(policy)
            assert query.note["stops"] in domain.moves(place).tolist()  # type: ignore[attr-defined]
            assert np.array_equal(domain.points[query.note["stops"]], query.x)  # type: ignore[attr-defined]
            if number == 1:  # not made: the vehicle stays
                policy.cancel(query)
                assert policy.journey.place == place
                continue
            policy.tell(query, None if number == 2 else self.value(domain, query.x))  # it got there all the same
            assert policy.journey.place == query.note["stops"][-1]

    def test_missed_stops(self) -> None:
        """What was measured counts, what was missed does not; a resumed policy knows the difference."""
        policy = self.make("Paths")
        for missed in (float("nan"), None, float("nan")):
            query = self.ask(policy)
            values = self.value(policy.domain, query.x)
            policy.tell(query, [missed, *values[1:]])
            policy.tell(query, [None, *values[1:]])  # the same again
            with pytest.raises(ValueError, match="values"):
                policy.tell(query, values[1:])
            assert not policy.history[-1].failed
        assert len(policy.data()[1]) == 3 * (len(values) - 1)
        twin = Policy.from_state(json.loads(json.dumps(policy.state(), allow_nan=False)))
        assert twin.history == policy.history
        assert self.ask(twin) == self.ask(policy)
        assert twin.recommend() == policy.recommend()

    def test_a_budget_of_stops(self) -> None:
        points = self.domain("Candidates").points  # type: ignore[attr-defined]
        policy = self.make("Paths", domain=Paths(points, Dives((5, 6), 2), start=14, budget=5, include_start=True))
        assert self.step(policy).note["stops"] == [14]
        for _ in range(2):
            self.step(policy)
        before = policy.state()
        with pytest.raises(BudgetSpent, match="4 of 5 stops"):
            self.ask(policy)
        assert policy.state() == before

    # -- hard data ---------------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("data", ["constant", "tiny", "huge", "shifted"])
    def test_hard_outputs(self, kind: str, data: str) -> None:
        scale = {"constant": 0.0, "tiny": 1e-8, "huge": 1e8, "shifted": 1e-3}[data]
        shift = 1e6 if data == "shifted" else 0.0
        policy = self.make(kind)
        for _ in range(6):
            query = self.ask(policy)
            policy.tell(query, shift + scale * np.asarray(self.value(policy.domain, query.x)))
        policy.recommend()

    def test_one_observation_and_duplicates(self, kind: str) -> None:
        policy = self.make(kind)
        x = policy.domain.sample(1, np.random.default_rng(1))[0]
        policy.tell(x, 1.0)
        policy.recommend()
        for value in (1.0, 1.5, 1.0):
            policy.tell(x, value)
        self.step(policy)
        policy.recommend()

    # -- answering ---------------------------------------------------------------------------------------------------

    def test_recommending_is_looking(self, kind: str) -> None:
        """Looking at the answer between steps changes no later query."""
        expected = self.whole_run(kind)
        policy, asked = self.make(kind), []
        for _ in range(self.length):
            asked += self.continue_run(policy, 1)
            assert policy.recommend().rule
            policy.state()
        assert asked == expected

    # -- steps -------------------------------------------------------------------------------------------------------

    def test_reports(self, kind: str) -> None:
        policy = self.make(kind)
        query = self.ask(policy)
        if not policy.steps:
            with pytest.raises(NotSupported):
                policy.report(query, 1, 0.5)
            return
        before = policy.report(query, 1, 0.5)
        assert policy.report(query, 1, 0.5) == before
        with pytest.raises(ValueError, match="already reported"):
            policy.report(query, 1, 0.6)
        policy.report(query, 2, 0.7)
        with pytest.raises(ValueError, match="comes after"):
            policy.report(query, 0, 0.1)
        twin = Policy.from_state(policy.state())
        policy.tell(query)
        twin.tell(0)
        assert timeless(twin.events) == timeless(policy.events)
        with pytest.raises(ValueError, match="closed"):
            policy.report(query, 3, 0.7)

    def test_resumed_in_the_middle_of_a_run(self, kind: str) -> None:
        """A policy rebuilt after any report gives the rest of the advice, and the next query, of the live one."""
        policy = self.make(kind)
        if not policy.steps:
            return
        for number in range(4):
            query = self.ask(policy)
            twins: list[Policy] = []
            last = query.fidelity or 6
            for step in range(1, min(6, last) + 1):
                value = self.value(policy.domain, query.x) * (1.0 - 0.6**step) * (0.2 if number == 3 else 1.0)
                advice = policy.report(query, step, value)
                assert all(twin.report(query, step, value) == advice for twin in twins)
                if number >= 2:
                    twins.append(Policy.from_state(json.loads(json.dumps(policy.state()))))
                if advice.stop:
                    break
            policy.tell(query)
            for twin in twins:
                twin.tell(query)
            if number == 3:
                assert timeless(twins[0].events) == timeless(policy.events)
                assert self.ask(twins[0]) == self.ask(policy)
