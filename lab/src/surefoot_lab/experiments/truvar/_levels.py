"""Mapping a level set: one policy, one field, and how good the map is after each measurement.

Every map classifies by the posterior mean, {μ ≥ h}, whatever the policy, and is scored by F1 of the super-level set.
The policy starts from one measured point, for which nothing is paid. One that has decided every point stops, and keeps
its map.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from surefoot.belief.gp import GP
from surefoot.belief.grid import GridPosterior
from surefoot.domain import Candidates
from surefoot.loop.policy import Policy
from surefoot.loop.types import Query
from surefoot_lab.fields import f1_score

Array = NDArray[np.float64]
Price = Callable[[int, Query], float]

TRUVAR, GCHK, STRADDLE, VARIANCE, RANDOM = "TruVaR", "GP-LSE", "straddle", "variance", "random"


@dataclass
class Survey:
    """What one policy did: F1, money spent so far and candidate after each measurement."""

    f1: list[float] = field(default_factory=list)
    spent: list[float] = field(default_factory=list)
    visited: list[int] = field(default_factory=list)
    fidelity: list[int] = field(default_factory=list)

    def over(self, rounds: int) -> Array:
        """F1 in every round, the last one kept after an early end."""
        return np.array(self.f1 + self.f1[-1:] * (rounds - len(self.f1)))

    def along(self, money: Array) -> Array:
        """F1 of the map one has after spending so much; 0 before the first measurement."""
        count = np.searchsorted(np.array(self.spent), money * (1 + 1e-12), side="right")
        return np.concatenate([[0.0], self.f1])[count]

    def cost_of(self, level: float, budget: float) -> float:
        """Money spent when F1 first reached a level; the whole budget where it never did."""
        reached = np.flatnonzero(np.array(self.f1) >= level)
        return min(self.spent[reached[0]], budget) if reached.size else budget


def survey(
    policy: Policy,
    gp: GP,
    values: Array,
    threshold: float,
    start: int,
    *,
    rounds: int,
    budget: float = np.inf,
    goal: float = np.inf,
    price: Price | None = None,
    noises: tuple[float, ...] = (0.0,),
    errors: np.random.Generator | None = None,
) -> Survey:
    """Drive a policy on ``Candidates`` until rounds or money are spent, or the goal is reached.

    Parameters
    ----------
    policy : Policy
        What is driven.
    gp : GP
        The belief that maps are made from: the policy's own.
    values : array of shape (M,)
        The truth.
    threshold : float
        The level.
    start : int
        The candidate that is measured first, free of charge.
    rounds, budget, goal
        Measurements, money, and the F1 at which to stop.
    price : callable, optional
        ``price(previous candidate, query)``; 1 by default.
    noises : tuple of float
        Variance of a measurement, by fidelity.
    errors : Generator, optional
        Draws the errors.
    """
    domain = policy.domain
    if not isinstance(domain, Candidates):
        raise TypeError(f"a survey is made on Candidates, not on {domain!r}")
    belief = GridPosterior(gp, domain.points, capacity=min(rounds + 1, 1024))
    above, done, previous, money = values >= threshold, Survey(), start, 0.0
    first = _measured(values[start], noises[0], errors)
    policy.tell(domain.points[start], first)
    belief.append(start, first, noises[0] or None)
    for _ in range(rounds):
        query = policy.ask()
        index = domain.index_of(query.x) if query.index is None else query.index
        variance = noises[query.fidelity or 0]
        money += 1.0 if price is None else price(previous, query)
        if money > budget:
            break
        value = _measured(values[index], variance, errors)
        policy.tell(query, value)
        belief.append(index, value, variance or None)
        done.f1.append(f1_score(above, belief.mean >= threshold))
        done.spent.append(money)
        done.visited.append(index)
        done.fidelity.append(query.fidelity or 0)
        previous = index
        if done.f1[-1] >= goal or policy.finished:
            break
    return done


def _measured(value: float, variance: float, errors: np.random.Generator | None) -> float:
    return float(value) + (np.sqrt(variance) * float(errors.standard_normal()) if errors is not None else 0.0)
