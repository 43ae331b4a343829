"""What every policy is made with: its common options, and a domain that it declares."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from surefoot.domain import Domain, Space
from surefoot.domain.cells import value_in
from surefoot.domain.partial_space import PartialSpace
from surefoot.errors import NotSupported, PendingQuery
from surefoot.loop.journal import Journal

if TYPE_CHECKING:
    from surefoot.loop.policy import Policy
    from surefoot.loop.types import Query

__all__ = ["Options", "asked_for", "check_domain", "held", "keeps"]


class Options(TypedDict, total=False):
    """Keyword arguments that every policy takes.

    ``direction`` says which way is better, ``"maximize"`` or ``"minimize"``; ``seed`` fixes all random draws (None:
    drawn once and stored); ``repeats=False`` never asks for a measured point again; ``journal`` is a path, or a
    :class:`Journal`, in which every event is durable before the call returns.

    >>> from surefoot import Box, RandomSearch
    >>> options: Options = {"seed": 3, "repeats": False}
    >>> RandomSearch(Box([(0.0, 1.0)]), **options).seed
    3
    """

    direction: str
    seed: int | None
    repeats: bool
    journal: str | os.PathLike[str] | Journal | None


def check_domain(domain: Any, allowed: tuple[type[Domain], ...], who: str) -> None:
    """Refuse a domain that a policy does not declare.

    >>> from surefoot.domain import Box, Candidates
    >>> check_domain(Box.unit(1), (Candidates,), "MyPolicy")
    Traceback (most recent call last):
    ...
    surefoot.errors.NotSupported: MyPolicy works on Candidates, not on Box
    """
    if not isinstance(domain, allowed):
        names = ", ".join(kind.__name__ for kind in allowed)
        if not isinstance(domain, Domain):
            raise TypeError(f"{who} needs a domain ({names}), got {type(domain).__name__}")
        raise NotSupported(f"{who} works on {names}, not on {type(domain).__name__}")


def asked_for(policy: Policy, n: Any, context: Mapping[str, Any]) -> int:
    """Return how many queries are asked for, or refuse what a policy does not declare.

    >>> from surefoot import Box, RandomSearch
    >>> asked_for(RandomSearch(Box.unit(1)), None, {})
    1
    """
    who = type(policy).__name__
    if unknown := [name for name in context if name not in policy.context]:
        known = f"takes {', '.join(policy.context)}" if policy.context else "takes no context"
        raise NotSupported(f"{who}.ask() {known}, not {unknown[0]!r}")
    if n is not None and (not isinstance(n, (int, np.integer)) or isinstance(n, bool) or n < 1):
        raise ValueError(f"ask(n) needs a positive whole number, got {n!r}")
    count = 1 if n is None else int(n)
    alone = not policy.parallel or policy.domain.travels  # a vehicle is at one place at a time
    if alone and (policy.pending or count > 1):
        waiting = f"tell or cancel query {policy.pending[0].id} first" if policy.pending else "ask for one at a time"
        raise PendingQuery(f"{who} chooses one point at a time; {waiting}")
    return count


def held(domain: Domain, fixed: Mapping[str, Any]) -> PartialSpace:
    """Return the part of a space in which some parameters have the given values.

    >>> from surefoot.domain import Float
    >>> held(Space(rate=Float(0.0, 1.0), heat=Float(0.0, 9.0)), {"heat": 3}).sample(1, np.random.default_rng(0))[0, 1]
    np.float64(3.0)
    """
    if not isinstance(domain, Space):
        raise NotSupported(f"only parameters of a Space can be fixed; this is a {type(domain).__name__}")
    values = {}
    for name, given in fixed.items():
        if name not in domain.parameters:
            raise ValueError(f"unknown parameter {name!r}; known are {domain.names}")
        try:
            values[name] = domain.parameters[name].number(value_in(domain.parameters[name], given))
        except ValueError as error:
            raise ValueError(f"fixed {name} = {given!r} {error}") from None
    return PartialSpace(domain, values)


def keeps(policy: Policy, query: Query, fixed: Mapping[str, Any] | None) -> None:
    """Refuse a query that does not have the values it should: not every rule can keep some.

    >>> from surefoot import ExpectedImprovement, Float, Int, Space
    >>> policy = ExpectedImprovement(Space(heat=Float(20.0, 90.0), steps=Int(1, 9)), seed=0)
    >>> keeps(policy, policy.ask(fixed={"steps": 3}), {"steps": 3})  # it has them: nothing to refuse
    """
    if fixed is None:
        return
    part = held(policy.domain, fixed)
    if not part.contains(query.x[None])[0]:
        raise NotSupported(f"{type(policy).__name__} cannot keep parameters fixed")
