"""The promise about policies inside others: what wraps a policy asks the very same points as the policy alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from surefoot.domain.perturbation import Ball
from surefoot.errors import NotSupported
from surefoot.loop.events import timeless
from surefoot.loop.policy import Policy
from surefoot.loop.record import load
from surefoot.loop.types import Query
from surefoot.policy.robust.robust_report import RobustReport
from surefoot.testing.driven import Driven

__all__ = ["WrappingContract"]


class WrappingContract(Driven):
    """A policy inside another one hears everything, so that its choices are the same to the bit."""

    def wrapped(self, policy: Policy, **options: Any) -> Policy:
        """Return a policy that has a fresh one inside; skip the test where no perturbation goes with its domain."""
        try:
            return RobustReport(policy, Ball(0.6), **options)
        except NotSupported as error:
            pytest.skip(f"{type(policy).__name__} cannot be wrapped: {error}")

    def test_inside_another_policy_it_asks_the_very_same(self, kind: str, tmp_path: Path) -> None:
        """With points told unasked, batches, failures, cancelled and reported runs; live, resumed, from a journal."""
        if kind == "Paths":
            pytest.skip("nothing moves an answer on Paths")
        alone = self.make(kind)
        inside = self.wrapped(self.make(kind), journal=tmp_path / "run.jsonl")
        for part in (self._first, self._second, self._third):
            expected = part(alone)
            twin = Policy.from_state(json.loads(json.dumps(inside.state(), allow_nan=False)))
            assert part(inside) == expected
            assert part(twin) == expected
            assert timeless(twin.state()["events"]) == timeless(inside.events) == timeless(alone.events)
        assert inside.history == alone.history
        assert inside.pending == alone.pending
        assert inside.reports() == alone.reports()
        assert inside.recommend() == twin.recommend()
        inside.close()
        with load(tmp_path / "run.jsonl") as resumed:
            assert resumed.recommend() == inside.recommend()
            assert self._first(resumed) == self._first(alone)

    def _first(self, policy: Policy) -> list[Any]:
        """A point told unasked, then three steps; the rest of a run under way is told first."""
        for query in policy.pending:
            policy.tell(query, self.value(policy.domain, query.x))
        x = policy.domain.sample(1, np.random.default_rng(len(policy.queries)))[0]
        policy.tell(policy.domain.params(x) or x, self.value(policy.domain, x))
        return [self._said(self.step(policy)) for _ in range(3)]

    def _second(self, policy: Policy) -> list[Any]:
        """A cancelled query, a failed one, and bad input; several at once, one of them left open."""
        gone, lost = self.ask(policy), None
        policy.cancel(gone)
        lost = self.ask(policy)
        policy.tell(lost, None)
        with pytest.raises(ValueError, match="was not asked"):
            policy.tell(99, 1.0)
        if self.alone(policy):
            return [self._said(query) for query in (gone, lost, self.step(policy), self.ask(policy))]
        batch = policy.ask(3, **self.context(len(policy.queries)))
        for query in batch[:0:-1]:
            for _ in range(2):  # the same again changes nothing
                policy.tell(query.id, self.value(policy.domain, query.x))
        return [self._said(query) for query in (gone, lost, *batch)]

    def _third(self, policy: Policy) -> list[Any]:
        """A run that reports on its way, where that is possible; then a last step."""
        said: list[Any] = []
        for query in policy.pending:
            for step in range(1, 1 + min(4, query.fidelity or 4) if policy.steps else 0):
                advice = policy.report(query, step, self.value(policy.domain, query.x) * (1.0 - 0.6**step))
                said.append(advice)
                if advice.stop:
                    break
            policy.tell(query, *([] if said else [self.value(policy.domain, query.x)]))
        return [*said, self._said(self.step(policy))]

    def _said(self, query: Query) -> Any:
        """A query, exactly."""
        exact = [float(value).hex() for value in query.x]
        return query.id, exact, query.index, query.fidelity, query.time, query.cost, json.dumps(dict(query.note))
