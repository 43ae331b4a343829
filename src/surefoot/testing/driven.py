"""How a policy under test is made and driven; what a suite of one's own may replace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest

from surefoot.belief.gp import GP
from surefoot.belief.kernels import Matern
from surefoot.domain import Box, Candidates, Choice, Dives, Domain, Float, Int, Paths, Space
from surefoot.errors import NotSupported
from surefoot.loop.policy import Policy
from surefoot.loop.types import Outcome, Query

__all__ = ["KINDS", "Driven"]

KINDS: dict[str, type[Domain]] = {"Box": Box, "Candidates": Candidates, "Space": Space, "Paths": Paths}


class Driven:
    """Base of the promises: domains, values and contexts of the runs, and the steps these are made of.

    >>> from surefoot import RandomSearch
    >>> class Mine(Driven):
    ...     policy = RandomSearch
    >>> Mine().kinds()
    ['Box', 'Candidates', 'Space']
    """

    policy: ClassVar[Callable[..., Policy]]
    options: ClassVar[dict[str, Any]] = {}
    length: ClassVar[int] = 6
    _runs: ClassVar[dict[tuple[type, str], list[list[str]]]] = {}

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Run what takes a ``kind`` of domain once for each that the policy declares."""
        chosen = any("kind" in mark.args[0] for mark in metafunc.definition.iter_markers("parametrize"))
        if "kind" in metafunc.fixturenames and not chosen:
            metafunc.parametrize("kind", self.kinds())

    # -- what a subclass may replace ---------------------------------------------------------------------------------

    def domain(self, kind: str) -> Domain:
        """Return a small domain of one kind."""
        if kind == "Box":
            return Box([(-1.0, 2.0), (0.0, 5.0)])
        if kind == "Candidates":
            return Candidates(
                np.stack(np.meshgrid(np.linspace(-1, 2, 6), np.linspace(0, 5, 5)), axis=-1).reshape(-1, 2)
            )
        if kind == "Paths":
            points = self.domain("Candidates").points  # type: ignore[attr-defined]
            return Paths(points, Dives((5, 6), 2), start=14)
        return Space(rate=Float(1e-4, 1.0, log=True), depth=Int(1, 6), kind=Choice(["a", "b", "c"]))

    def context(self, step: int) -> dict[str, Any]:
        """Return the context of the ask of one step."""
        return {}

    def value(self, domain: Domain, x: Any) -> Any:
        """Return the value measured at a point, or the list of those at the stops of a move."""
        if np.ndim(x) == 2:
            return [self.value(domain, stop) for stop in x]
        unit = (domain.encode(np.asarray(x)[None]) - domain.lower)[0] / domain.extent()
        return float(2.0 - np.sum((unit - 0.4) ** 2))

    def noisy(self) -> dict[str, Any]:
        """Return options under which measurements are believed to be noisy; none where a policy has no belief."""
        known = getattr(type(self).policy, "__signature__", None)
        return {"gp": GP(Matern(2.5), noise=1.0), "initial": 0} if known and "gp" in known.parameters else {}

    # -- driving -----------------------------------------------------------------------------------------------------

    def kinds(self) -> list[str]:
        """Return the kinds of domain that the policy declares."""
        declared = self.policy.domains  # type: ignore[attr-defined]
        return [kind for kind, cls in KINDS.items() if any(issubclass(cls, allowed) for allowed in declared)]

    def make(self, kind: str, **options: Any) -> Policy:
        """Return a new policy on a domain of one kind; skip the test where it does not support it."""
        if kind not in self.kinds():
            pytest.skip(f"{self.policy.__name__} does not declare {kind}")
        return self.build(options.pop("domain", None) or self.domain(kind), **options)

    def build(self, domain: Domain, **options: Any) -> Policy:
        """Return a new policy on a domain."""
        return type(self).policy(domain, **{"seed": 11, **self.options, **options})

    def ask(self, policy: Policy) -> Query:
        """Ask with the context of the step."""
        context = self.context(len(policy.queries))
        return policy.ask(None, **context)

    def step(self, policy: Policy) -> Query:
        """Ask, measure, tell."""
        query = self.ask(policy)
        policy.tell(query, self.value(policy.domain, query.x))
        return query

    def continue_run(self, policy: Policy, steps: int) -> list[list[str]]:
        """Return the next queries, exactly."""
        return [[float(v).hex() for v in np.ravel(self.step(policy).x)] for _ in range(steps)]

    def whole_run(self, kind: str) -> list[list[str]]:
        """Return the queries of a run of ``length`` steps; it is made once, and every promise compares with it."""
        if (type(self), kind) not in self._runs:
            self._runs[type(self), kind] = self.continue_run(self.make(kind), self.length)
        return self._runs[type(self), kind]

    def alike(self, query: Query, value: float) -> Any:
        """Return the same value for a point, or for each stop of a move."""
        return [value] * len(query.x) if query.x.ndim == 2 else value

    def outcome(self, query: Query, value: float, **fields: Any) -> Outcome:
        """Return the same as an outcome."""
        return Outcome(values=[value] * len(query.x), **fields) if query.x.ndim == 2 else Outcome(value, **fields)

    def negatable(self, policy: Policy) -> bool:
        """Tell whether the policy can minimize."""
        try:
            return policy.negated().direction != policy.direction
        except NotSupported:
            return False

    def alone(self, policy: Policy) -> bool:
        """Tell whether the policy waits for each outcome before it asks again."""
        return not policy.parallel or policy.domain.travels
