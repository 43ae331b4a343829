"""Treated rows: a belief sees values on the scale that evidence prefers, and does not believe outliers.

What is maximal stays maximal on any increasing scale, so a rule that asks for a maximum may believe on the one that
suits a Gaussian process (:mod:`surefoot.belief.treatment`). Only what is told to people is turned back. An outlier that
would be the best value is measured once more: that confirms a narrow peak and not a mistake. A treatment is found where
a fit is, from the same measurements: it follows from the events, and a policy that is loaded again finds it again.

>>> from surefoot import Box, ExpectedImprovement
>>> policy = ExpectedImprovement(Box([(0.0, 1.0)]), seed=0)
>>> for i in range(12):
...     policy.tell([i / 11], -1e6 if i == 4 else i / 11)
>>> [observation.value for observation in policy.outliers]
[-1000000.0]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.belief.posterior import Posterior
from surefoot.belief.treatment import PLAIN, Treatment, treat
from surefoot.belief.warped import WarpedPosterior
from surefoot.policy.surrogate import Data, Rows

if TYPE_CHECKING:
    from surefoot.policy.surrogate import Surrogate

__all__ = ["TreatedRows"]

Array = NDArray[np.float64]


class TreatedRows(Rows):
    """One row for each measurement, with values as evidence would have them.

    Parameters
    ----------
    surrogate : Surrogate
        The belief that sees them; it says when a fit is due.

    >>> from surefoot import Box, GPUCB
    >>> GPUCB(Box([(0.0, 1.0)]), seed=0).surrogate.rows.treatment(None).plain
    True
    """

    def __init__(self, surrogate: Surrogate) -> None:
        super().__init__(surrogate.trials)
        self.surrogate = surrogate
        self._treatments: dict[int, Treatment] = {}

    def treatment(self, at: int | None) -> Treatment:
        """Return how values are treated by the fit that was made once ``at`` measurements succeeded."""
        if at is None:
            return PLAIN
        if at not in self._treatments:
            (X, y, noise), end = super().data(), self.span(at)
            found = treat(self.surrogate.gp, X[:end], y[:end], None if noise is None else noise[:end])
            self._treatments = {**dict(list(self._treatments.items())[-1:]), at: found}
        return self._treatments[at]

    @property
    def now(self) -> Treatment:
        """How values are treated by the fit in use."""
        return self.treatment(self.surrogate.due(self.successes))

    def data(self) -> Data:
        X, y, noise = super().data()
        return X, *self.now.values(y, noise)

    def fitted(self, at: int) -> Data:
        (X, y, noise), end = super().data(), self.span(at)
        return X[:end], *self.treatment(at).values(y[:end], None if noise is None else noise[:end])

    def told(self, values: ArrayLike) -> Array:
        return self.now.warp.inverse(values)

    def in_units(self, posterior: Posterior) -> Posterior:
        warp = self.now.warp
        return posterior if warp.straight else WarpedPosterior(posterior, warp)

    @property
    def outliers(self) -> list[int]:
        return sorted(self.now.outliers)

    def unconfirmed(self) -> Array | None:
        X, y, _ = super().data()
        rows = self.outliers
        best = np.delete(y, rows).max() if rows else np.inf
        for row in rows:
            again = [o for o in self.trials.observations if np.array_equal(o.x, X[row])]
            if y[row] > best and len(again) == 1 and self.trials.waiting_at(X[row]) is None:
                return np.array(X[row])
        return None
