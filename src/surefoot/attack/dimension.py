"""Which latent size to search next: Bayesian optimization over a handful of sizes.

The best objective of a perturbation loop is modeled as a function of the pair (latent size, queries spent when the loop
ends). The second coordinate tells repeated uses of a size apart and lets the model learn that later loops, which know
more, do better. A loop of at most i_max queries that begins after t is judged at (size, t + i_max).

Reference: Kharkovskii 2020 (thesis), Algorithm 6. The scaling of the inputs is not published: sizes are mapped to [0,
1] by their side h, of the queries the logarithm is taken, each coordinate has its own length-scale with a weak prior,
and the noise is fitted. Objectives rise steeply in the first loop and ever more slowly after it. On a linear scale the
ten random queries with which three sizes begin lie beside the first loops, whose queries were chosen, and the model
blames the size for the difference: these three would hardly be tried again.

>>> sizes = LatentSizes((6, 10, 14), length=40)
>>> for size, best in ((6, -9.0), (10, -5.0), (14, -8.0)):
...     sizes.record(size, 10, best)
>>> sizes.propose(0, np.random.default_rng(0))
10
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from surefoot.belief.gp import GP
from surefoot.belief.kernels import Matern
from surefoot.belief.priors import LogNormal
from surefoot.domain.ranking import argmax

__all__ = ["LatentSizes"]

Array = NDArray[np.float64]


class LatentSizes:
    """Proposes latent sizes and learns from the loops at them.

    Parameters
    ----------
    sizes : sequence of int
        Sides of the latent images to choose from.
    length : int
        Queries of a whole perturbation loop, i_max.
    choice : "learned", "random" or int
        GP-UCB, a uniform draw, or always this size.
    width : float
        Standard deviations above the mean, √β.

    >>> LatentSizes((6, 8), length=40, choice=8).propose(0, np.random.default_rng(0))
    8
    """

    def __init__(
        self,
        sizes: Sequence[int],
        *,
        length: int,
        choice: Literal["learned", "random"] | int = "learned",
        width: float = 2.0,
    ) -> None:
        self.sizes = tuple(int(size) for size in sizes)
        self.length, self.choice, self.width = length, choice, float(width)
        self.history: list[tuple[int, int, float]] = []
        self.gp = GP(
            Matern(2.5, lengthscale=[0.5, 0.5]),
            0.05,
            priors={
                "lengthscale": LogNormal.around(0.5, 1.0),
                "variance": LogNormal.around(1.0, 0.5),
                "noise": LogNormal.around(0.05, 1.5),
            },
            standardize=True,
            floor=1e-4,
        )

    def record(self, size: int, total: int, best: float) -> None:
        """Remember the best objective of a loop that ended after ``total`` queries."""
        self.history.append((int(size), int(total), float(best)))

    def candidates(self, spent: int) -> list[tuple[int, int]]:
        """Return the pairs (size, queries at the end of a whole loop) that are compared after ``spent`` queries.

        >>> LatentSizes((6, 8), length=40).candidates(50)
        [(6, 90), (8, 90)]
        """
        return [(size, spent + self.length) for size in self.sizes]  # line 3: x = (d_0, t_0 + i_max)

    def _scaled(self, pairs: Sequence[tuple[int, int]]) -> Array:
        low, high = min(self.sizes), max(self.sizes)
        size, total = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
        return np.column_stack([(size - low) / max(high - low, 1), np.log(np.maximum(total, 1.0))])

    def bounds(self, spent: int, rng: np.random.Generator) -> Array:
        """Return the upper confidence bounds of all sizes after ``spent`` queries; all 0 before any loop."""
        if not self.history:
            return np.zeros(len(self.sizes))
        X, y = self._scaled([(size, total) for size, total, _ in self.history]), [best for *_, best in self.history]
        mean, std = self.gp.fit(X, y, rng=rng).condition(X, y).predict(self._scaled(self.candidates(spent)))
        bounds: Array = mean + self.width * std  # lines 4 and 5: α = μ + 2σ
        return bounds

    def propose(self, spent: int, rng: np.random.Generator) -> int:
        """Return the size of the next loop, after ``spent`` queries."""
        if isinstance(self.choice, int):
            return self.choice
        if self.choice == "random":
            return self.sizes[int(rng.integers(len(self.sizes)))]
        return self.sizes[argmax(self.bounds(spent, rng), rng=rng)]  # line 6
