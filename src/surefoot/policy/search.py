"""Random and Sobol search: where to measure when nothing is believed.

Question: where is the maximum? Baselines without a model, and hard to beat when every run costs little.

Guarantee: both come arbitrarily close to the maximum of a continuous function; Sobol points (Sobol' 1967, scrambled
after Owen 1998) fill a box more evenly than independent draws. One ask costs O(d).

They recommend the point with the highest mean of its measured values.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.domain import Candidates
from surefoot.domain.search import argmax, maximize
from surefoot.loop.policy import Policy, Proposal
from surefoot.loop.types import Recommendation

__all__ = ["RandomSearch", "SobolSearch"]

Array = NDArray[np.float64]


class _Search(Policy):
    """Takes the first admissible point of a stream of proposals."""

    @abstractmethod
    def _proposals(self, step: int) -> Array:
        """Return points in the order of preference, shape (k, d)."""

    def _choose(self, step: int, context: Mapping[str, Any]) -> Proposal:
        blocked = {x.tobytes() for x, _ in self._blocked()}
        for x in self._proposals(step):
            if x.tobytes() not in blocked:
                return Proposal(x)
        # A finite domain of which nearly everything is taken: any point that is left.
        return Proposal(self._anything_left(step))

    def _anything_left(self, step: int) -> Array:
        if isinstance(self.domain, Candidates):
            free = np.zeros(self.domain.points.shape[0])
            row = argmax(free, rng=self.stream("ties", step), exclude=self._excluded_rows())
            return np.asarray(self.domain.points[row])
        x, _ = maximize(_Flat(), self.domain, rng=self.stream("ties", step), exclude=self._excluded_points())
        return x

    def _recommend(self) -> Recommendation:
        return self._best_measured()


class _Flat:
    """A score without preferences."""

    def __call__(self, E: Array) -> Array:
        return np.zeros(len(E))

    def gradient(self, E: Array) -> tuple[Array, Array]:
        return np.zeros(len(E)), np.zeros_like(E)


class RandomSearch(_Search):
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

    def _proposals(self, step: int) -> Array:
        return self.domain.sample(16, self.stream("sample", step))


class SobolSearch(_Search):
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

    def _proposals(self, step: int) -> Array:
        block = 64
        while block <= step:
            block *= 2
        if self._points is None or len(self._points) < block:
            # The sequence does not depend on how much of it is drawn, so a longer prefix changes nothing.
            self._points = self.domain.design(block, self.stream("sobol"))
        return self._points[step:]
