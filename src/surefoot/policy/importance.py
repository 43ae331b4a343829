"""Importance of parameters: Sobol indices of what a policy has learnt, with intervals over posterior draws.

The total index T_i is the share of the variance over the domain that would be left if all parameters but i were known;
the first-order index S_i is the share that parameter i explains alone. With f evaluated at two independent samples A
and B of the domain, and at AB_i, which is A with column i of B, Jansen's estimators are

    T_i = E[(f(A) − f(AB_i))²] / (2 V),    S_i = 1 − E[(f(B) − f(AB_i))²] / (2 V),    V = Var f.

They are computed for the posterior mean, and for functions drawn from the posterior (:mod:`surefoot.belief.paths`),
each on rows of the samples drawn again; the quantiles are the interval, so that it holds what the sampling leaves open
too. Points are uniform on the encoded axes: a logarithmic parameter counts by decades.

References: Sobol' 1993; Jansen 1999; Saltelli et al. 2010, table 2; Le Gratiet, Cannamela & Iooss 2014 (draws).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from surefoot.arguments import whole
from surefoot.belief.paths import sample_paths
from surefoot.domain import Domain
from surefoot.errors import NoData, NotSupported

if TYPE_CHECKING:
    from surefoot.policy.base import ModelPolicy

__all__ = ["Importance", "importance", "jansen"]

Array = NDArray[np.float64]
BLOCK = 4096  # points evaluated at a time


@dataclass(frozen=True)
class Importance:
    """How much one parameter matters: its total and first-order Sobol index, with an interval each.

    >>> Importance("rate", 0.8, (0.7, 0.9), 0.6, (0.5, 0.7)).total
    0.8
    """

    name: str
    total: float
    total_interval: tuple[float, float]
    first: float
    first_interval: tuple[float, float]


def importance(policy: ModelPolicy, *, points: int = 1024, draws: int = 64) -> list[Importance]:
    """Return the importance of each parameter under the belief of a policy, the most important first.

    Parameters
    ----------
    policy : ModelPolicy
        Whose belief; over a box or a space, where points can be sampled coordinate by coordinate.
    points : int
        Size of each of the two samples of the domain.
    draws : int
        Functions drawn from the posterior; the interval holds the share ``policy.confidence`` of them.

    >>> from surefoot import Box, ExpectedImprovement
    >>> policy = ExpectedImprovement(Box([(0.0, 1.0), (0.0, 1.0)]), seed=0)
    >>> for x in policy.domain.design(16, np.random.default_rng(0)):
    ...     policy.tell(x, 3.0 * x[0] + 0.1 * x[1])
    >>> policy.importance()[0].name
    'x0'
    """
    domain = policy.domain
    if domain.listed or domain.travels:
        raise NotSupported(f"parameters of {type(domain).__name__} do not vary one by one")
    if all(o.failed for o in policy.history):
        raise NoData(f"{type(policy).__name__} has no successful measurement yet")
    count, many = whole(points, "points", 16), whole(draws, "draws", 2)
    posterior = policy.surrogate.posterior()  # where values are warped: of the warped values
    A, B = policy.stream("importance", 0), policy.stream("importance", 1)
    paths = sample_paths(posterior, many, policy.stream("importance", 2))
    rows = policy.stream("importance", 3).integers(count, size=(many, count))
    totals, firsts = _indices(lambda X: paths(policy.inputs(X)), _samples(domain, count, A, B), rows)
    total, first = _indices(lambda X: posterior.mean(policy.inputs(X))[None], _samples(domain, 8 * count, A, B))
    tail = 50.0 * (1.0 - policy.confidence)
    ends = [np.nanpercentile(values, [tail, 100.0 - tail], axis=0) for values in (totals, firsts)]
    found = [
        Importance(name, float(total[0, i]), _pair(ends[0][:, i]), float(first[0, i]), _pair(ends[1][:, i]))
        for i, name in enumerate(domain.names)
    ]
    return sorted(found, key=lambda one: -one.total)


def _pair(ends: Array) -> tuple[float, float]:
    return float(ends[0]), float(ends[1])


def _samples(domain: Domain, count: int, rng: np.random.Generator, other: np.random.Generator) -> list[Array]:
    """The samples A, B, AB_1, ..., AB_d."""
    A, B = domain.design(count, rng), domain.design(count, other)
    B = B[other.permutation(count)]  # two Sobol sequences are alike row by row
    mixed = [np.where(np.arange(domain.dimension) == i, B, A) for i in range(domain.dimension)]
    return [A, B, *mixed]


def _indices(
    function: Callable[[Array], Array], samples: list[Array], rows: NDArray[np.intp] | None = None
) -> tuple[Array, Array]:
    """The total and the first-order indices of functions, shape (functions, d) each; on the rows given for each."""
    values = []
    for X in samples:
        parts = [function(X[start : start + BLOCK]) for start in range(0, len(X), BLOCK)]
        found = np.concatenate(parts, axis=1)
        values.append(found if rows is None else np.take_along_axis(found, rows, axis=1))
    return jansen(values[0], values[1], np.stack(values[2:]))


def jansen(a: Array, b: Array, mixed: Array) -> tuple[Array, Array]:
    """Return total and first-order indices (functions, d) from values (functions, n) at A, B and (d, ., n) at AB_i.

    A function that does not vary has no indices: they are 0.

    >>> rng = np.random.default_rng(0)
    >>> A, B = rng.random((2, 1, 4096))
    >>> total, first = jansen(A, B, np.stack([B, A]))  # f is the first of two coordinates
    >>> total.round(1), abs(first.round(1))
    (array([[1., 0.]]), array([[1., 0.]]))
    """
    variance = np.var(np.concatenate([a, b], axis=1), axis=1)
    safe = np.where(variance > 0.0, variance, np.inf)
    total = 0.5 * np.mean((a - mixed) ** 2, axis=2) / safe
    first = np.where(variance > 0.0, 1.0 - 0.5 * np.mean((b - mixed) ** 2, axis=2) / safe, 0.0)
    return total.T, first.T
