"""Random and Sobol search: where to measure when nothing is believed.

Question: where is the maximum? Baselines without a model, and hard to beat when every run costs little.

Guarantee: both come arbitrarily close to the maximum of a continuous function; Sobol points (Sobol' 1967, scrambled
after Owen 1998) fill a box more evenly than independent draws. One ask costs O(d).

They recommend the point with the highest mean of its measured values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.domain import Domain
from surefoot.loop.policy import Policy, Proposal
from surefoot.loop.trials import Place
from surefoot.loop.types import Recommendation

__all__ = ["RandomSearch", "SobolSearch", "first_free"]

Array = NDArray[np.float64]


def first_free(
    domain: Domain, points: Iterable[Array], blocked: Sequence[Place], ties: Callable[[], np.random.Generator]
) -> Proposal:
    """Return the first of some points that may be asked for; where none may, any point of the domain that is left.

    >>> from surefoot import Candidates
    >>> line = Candidates([1.0, 2.0])
    >>> first_free(line, line.points, [(line.points[0], 0)], np.random.default_rng).x
    array([2.])
    """
    taken = {x.tobytes() for x, _ in blocked}
    for x in points:
        if x.tobytes() not in taken:
            return Proposal(x)
    # A finite domain of which nearly everything is taken.
    return Proposal(domain.maximize(_Flat(domain.size), rng=ties(), exclude=domain.excluding(blocked)).x)


class _Flat:
    """A score without preferences."""

    def __init__(self, size: int | None) -> None:
        self.size = size

    def __call__(self, at: Any) -> Array:
        return np.zeros(self.size or 0) if isinstance(at, slice) else np.zeros(len(at))

    def gradient(self, at: Array) -> tuple[Array, Array]:
        return np.zeros(len(at)), np.zeros_like(at)


class RandomSearch(Policy):
    """Independent uniform points.

    Parameters
    ----------
    domain : Box, Candidates or Space
        Where points may lie.
    **options
        ``seed``, ``repeats``, ``journal``.

    >>> from surefoot import Box
    >>> policy = RandomSearch(Box([(0.0, 1.0), (5.0, 6.0)]), seed=0)
    >>> policy.ask().x.shape
    (2,)
    """

    def _choose(self, step: int, context: Mapping[str, Any]) -> Proposal:
        points = self.domain.sample(16, self.stream("sample", step))
        return first_free(self.domain, points, self._blocked(), lambda: self.stream("ties", step))

    def _recommend(self) -> Recommendation:
        return self._best_measured()


class SobolSearch(Policy):
    """A scrambled Sobol sequence: evenly spread points, in any number.

    Parameters
    ----------
    domain : Box, Candidates or Space
        Where points may lie.
    **options
        ``seed``, ``repeats``, ``journal``.

    >>> from surefoot import Box
    >>> [query.id for query in SobolSearch(Box([(0.0, 1.0)]), seed=0).ask(3)]
    [0, 1, 2]
    """

    _points: Array | None = None

    def _choose(self, step: int, context: Mapping[str, Any]) -> Proposal:
        block = 64
        while block <= step:
            block *= 2
        if self._points is None or len(self._points) < block:
            # The sequence does not depend on how much of it is drawn, so a longer prefix changes nothing.
            self._points = self.domain.design(block, self.stream("sobol"))
        return first_free(self.domain, self._points[step:], self._blocked(), lambda: self.stream("ties", step))

    def _recommend(self) -> Recommendation:
        return self._best_measured()
