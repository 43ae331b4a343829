"""What a player believes about a payoff: a Gaussian process over the actions of all players together.

:class:`JointActions` puts the action spaces side by side. Where all of them are finite and their product is not too
large, the belief is a *table*: posterior mean and variance at every joint action, updated by one rank per round
(:class:`~surefoot.belief.grid.GridPosterior`), so that a best response is the largest entry of a row. Elsewhere it is a
posterior over joint points, and a best response is searched (:class:`ExpectedScore`).

A belief is a function of the rounds, of the process and of the counts at which it was fitted, and of nothing else.
Players of one game that believe the same may therefore share it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from surefoot.belief.gp import GP
from surefoot.belief.grid import GridPosterior
from surefoot.belief.protocol import Belief
from surefoot.domain import Box, Domain
from surefoot.loop.streams import stream

__all__ = ["ExpectedScore", "JointActions", "PayoffBelief"]

Array = NDArray[np.float64]

TABLE = 2**17  # joint actions up to this number are kept as a table: 150 rounds of them take 160 MB
ROWS = 2**14  # joint points predicted at once


class JointActions:
    """The action spaces of all players side by side.

    Parameters
    ----------
    spaces : sequence of Domain
        One for each seat.

    >>> from surefoot.domain import Candidates
    >>> joint = JointActions([Candidates([0.0, 0.5, 1.0]), Candidates([0.0, 1.0])])
    >>> joint.table, joint.shape, joint.points.shape
    (True, (3, 2), (6, 2))
    >>> joint.row([[0.5], [1.0]])
    3
    """

    def __init__(self, spaces: Sequence[Domain]) -> None:
        if len(spaces) < 2:
            raise ValueError(f"a game has at least two players, got {len(spaces)} action spaces")
        self.spaces = tuple(spaces)
        lists = [space.enumerate() for space in self.spaces if space.listed]
        self.shape = tuple(len(points) for points in lists)
        self.table = len(lists) == len(self.spaces) and math.prod(self.shape) <= TABLE
        ends = np.cumsum([space.encoded_dimension for space in self.spaces])
        starts = [0, *ends[:-1].tolist()]
        self.columns = [slice(start, int(end)) for start, end in zip(starts, ends, strict=True)]
        self.dimension = int(ends[-1])
        sizes = [space.size for space in self.spaces]
        self.size = None if None in sizes else math.prod(size for size in sizes if size is not None)
        if self.table:
            cells = np.indices(self.shape).reshape(len(lists), -1)
            self.points = np.column_stack([points[rows] for points, rows in zip(lists, cells, strict=True)])
        else:
            self.points = np.empty((0, self.dimension))
        self._indices: dict[tuple[int, bytes], int] = {}

    def automatic(self) -> GP:
        """Return a process that fits itself to payoffs over these actions."""
        lower = np.concatenate([space.lower for space in self.spaces])
        upper = np.concatenate([space.upper for space in self.spaces])
        return GP.automatic(Box(np.column_stack([lower, upper])))

    def encode(self, actions: Sequence[Array]) -> Array:
        """Return what a model sees of a joint action, shape (e,)."""
        return np.concatenate(
            [space.encode(action[None])[0] for space, action in zip(self.spaces, actions, strict=True)]
        )

    def row(self, actions: Sequence[Array]) -> int:
        """Return the row of a joint action in the table."""
        cell = [self.index(seat, np.asarray(action, dtype=np.float64)) for seat, action in enumerate(actions)]
        return int(np.ravel_multi_index(cell, self.shape))

    def index(self, seat: int, action: Array) -> int:
        """Return the row of an action among the candidates of a seat; remembered, since games repeat themselves."""
        key = (seat, action.tobytes())
        if key not in self._indices:
            row = self.spaces[seat].row_of(action)
            if row is None:
                raise TypeError(f"rows exist on candidates only, not on {self.spaces[seat]!r}")
            self._indices[key] = row
        return self._indices[key]


class PayoffBelief:
    """The belief about the payoff of one seat.

    Parameters
    ----------
    joint : JointActions
        All action spaces.
    gp : GP
        Prior over the joint actions as the model sees them.
    seat : int
        Whose payoff; names the draws of a fit.
    common : int
        Seed of what all players draw alike: two players fit the same hyper-parameters to the same rounds.

    >>> from surefoot.domain import Candidates
    >>> joint = JointActions([Candidates([0.0, 1.0]), Candidates([0.0, 1.0])])
    >>> belief = PayoffBelief(joint, GP(noise=1e-4), 0)
    >>> posterior = belief.given(joint.points[[3]], [1.0])
    >>> belief.upper(2.0).round(2)
    array([[2.23, 2.2 ],
           [2.2 , 1.02]])
    """

    def __init__(self, joint: JointActions, gp: GP, seat: int, common: int = 0) -> None:
        self.joint, self.gp, self.seat, self.common = joint, gp, seat, common
        self.fits: dict[int, GP] = {}
        self._posterior: Belief | None = None
        self._grid: GridPosterior | None = None  # the same, where it is a table
        self._at: int | None = None
        self._X, self._y = np.empty((0, joint.dimension)), np.empty(0)

    def given(self, X: Array, y: Sequence[float] | Array, at: int | None = None) -> Belief:
        """Return the posterior after payoffs y (n,) of joint points X (n, e), with the fit made at ``at`` of them.

        The first ``at`` are factorized together and the others appended one by one, whatever was asked before.
        """
        values = np.asarray(y, dtype=np.float64)
        posterior, known = self._posterior, len(self._y)
        same = known <= len(values) and np.array_equal(self._X, X[:known]) and np.array_equal(self._y, values[:known])
        if posterior is None or self._at != at or not same:
            gp, start = self.fitted(X, values, at), at or 0
            if self.joint.table and not (gp.members or gp.samples):
                rows = self._rows(X[:start])
                posterior = self._grid = GridPosterior.condition(gp, self.joint.points, rows, values[:start])
            else:
                posterior = gp.condition(X[:start], values[:start]) if start else gp.condition()
        if posterior.n < len(values):
            named = X if self._grid is None else self._rows(X)
            for i in range(posterior.n, len(values)):
                posterior.append(named[i], float(values[i]))
        self._posterior, self._at, self._X, self._y = posterior, at, X.copy(), values.copy()
        return posterior

    def fitted(self, X: Array, y: Array, at: int | None) -> GP:
        """Return the process fitted to the first ``at`` payoffs; None: as it was given."""
        if at is None:
            return self.gp
        if at not in self.fits:
            self.fits[at] = self.gp.fit(X[:at], y[:at], rng=stream(self.common, f"fit {self.seat}", at))
        return self.fits[at]

    def posterior(self) -> Belief:
        """Return the posterior over joint points, where it is not a table."""
        if self._posterior is None or self._grid is not None:
            raise ValueError("this belief is a table, or nothing was given yet")
        return self._posterior

    def upper(self, width: float, *, predictive: bool = False) -> Array:
        """Return mean + width · standard deviation at every joint action, one axis for each seat; eq. (8.2).

        ``predictive`` takes the standard deviation of a further noisy payoff in place of that of its mean.
        """
        mean, variance = self.everywhere()
        if predictive and self._posterior is not None:
            variance = variance + self._posterior.gp.noise
        bound: Array = (mean + width * np.sqrt(variance)).reshape(self.joint.shape)
        return bound

    def everywhere(self) -> tuple[Array, Array]:
        """Return mean and variance at every joint action, shape (size,) each."""
        posterior = self._posterior
        if not self.joint.table or posterior is None:
            raise ValueError("these joint actions have no table, or nothing was given yet")
        if self._grid is not None:
            return self._grid.mean, self._grid.var
        mean, std = posterior.predict(self.joint.points)
        return mean, std**2

    def _rows(self, X: Array) -> NDArray[np.intp]:
        """Rows of joint points in the table."""
        parts = zip(self.joint.spaces, self.joint.columns, strict=True)
        cells = [space.address(X[:, columns]) for space, columns in parts]
        return np.asarray(np.ravel_multi_index(cells, self.joint.shape), dtype=np.intp)


class ExpectedScore:
    """The optimistic payoff of own actions, averaged over what the others may do, with its gradient.

    Parameters
    ----------
    posterior : Belief
        Over joint points.
    width : float
        Standard deviations above the mean.
    columns : slice
        Which columns of a joint point are the own action.
    others : array of shape (s, e)
        Joint points whose own columns are ignored: one for each thing that the others may do.
    weights : array of shape (s,)
        Their probabilities.
    extra : float
        Added to the variance: the noise, where the bound is that of a further payoff.

    >>> posterior = GP(noise=1e-4).condition([[0.0, 1.0]], [2.0])
    >>> score = ExpectedScore(posterior, 0.0, slice(0, 1), np.array([[0.0, 1.0], [0.0, 9.0]]), np.array([0.5, 0.5]))
    >>> score(np.array([[0.0], [9.0]])).round(3)
    array([1., 0.])
    """

    def __init__(
        self, posterior: Belief, width: float, columns: slice, others: Array, weights: Array, extra: float = 0.0
    ) -> None:
        self.posterior, self.width, self.columns = posterior, width, columns
        self.others, self.weights, self.extra = others, weights, extra

    def __call__(self, E: Array) -> Array:
        value = np.empty(len(E))
        for part in self._parts(len(E)):
            mean, std = self.posterior.predict(self._joint(E[part]))
            bound = mean + self.width * np.sqrt(std**2 + self.extra)
            value[part] = bound.reshape(-1, len(self.others)) @ self.weights
        return value

    def gradient(self, E: Array) -> tuple[Array, Array]:
        """Return the averages (m,) and their gradients (m, own e)."""
        value, slope = np.empty(len(E)), np.empty(E.shape)
        for part in self._parts(len(E)):
            mean, std, dmean, dstd = self.posterior.gradient(self._joint(E[part]))
            whole = np.sqrt(std**2 + self.extra)
            rising = (
                dmean[:, self.columns]
                + (self.width * std / np.where(whole > 0, whole, 1.0))[:, None] * (dstd[:, self.columns])
            )
            shape = (-1, len(self.others))
            value[part] = (mean + self.width * whole).reshape(shape) @ self.weights
            slope[part] = np.einsum("msk,s->mk", rising.reshape(*shape, E.shape[1]), self.weights)
        return value, slope

    def _joint(self, E: Array) -> Array:
        Z = np.tile(self.others, (len(E), 1))
        Z[:, self.columns] = np.repeat(E, len(self.others), axis=0)
        return Z

    def _parts(self, rows: int) -> list[slice]:
        step = max(1, ROWS // len(self.others))
        return [slice(start, start + step) for start in range(0, rows, step)]
