"""The decision table of one run, and what it says after each epoch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.stopping.induction import ACCEPT, CONTINUE, STOP, Counts, Solution

__all__ = ["Action", "Decision", "Table", "scores"]

Array = NDArray[np.float64]
Action = Literal["stop", "accept", "continue"]

_ACTIONS: dict[int, Action] = {STOP: "stop", ACCEPT: "accept", CONTINUE: "continue"}


def scores(curve: ArrayLike) -> Array:
    """Return a curve of scores as a checked array: one-dimensional, finite, in [0, 1].

    >>> scores([0.1, 1.2])
    Traceback (most recent call last):
    ...
    ValueError: scores must lie in [0, 1], got 1.2: rescale them first
    """
    values = np.asarray(curve, dtype=np.float64)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise ValueError(f"a curve is a one-dimensional array of finite scores, got {curve!r}")
    outside = (values < -1e-9) | (values > 1.0 + 1e-9)
    if outside.any():
        raise ValueError(f"scores must lie in [0, 1], got {values[outside][0]}: rescale them first")
    return np.clip(values, 0.0, 1.0)


@dataclass(frozen=True)
class Decision:
    """What to do with a run, how likely it still wins, and what that saves.

    Attributes
    ----------
    action : "stop", "accept" or "continue"
        Abandon the run; it will win; cannot tell yet. A tuner that wants the final score goes on in both last cases.
    probability : float or None
        Probability of ending above the threshold; None where no simulated path came.
    saved : float or None
        Epochs that stopping now saves, or that the table is expected to save later on.

    >>> Decision("stop", probability=0.01, saved=30.0).stop
    True
    """

    action: Action
    probability: float | None = None
    saved: float | None = None

    @property
    def stop(self) -> bool:
        """Whether to abandon the run."""
        return self.action == "stop"


def _decision(code: int, probability: float, saved: float) -> Decision:
    p, epochs = float(probability), float(saved)
    return Decision(_ACTIONS[int(code)], None if np.isnan(p) else p, None if np.isnan(epochs) else epochs)


@dataclass(frozen=True, eq=False)
class Table:
    """The best decision for every epoch and average error; made by :meth:`OptimalStopping.fit`.

    Row j belongs to epoch ``start`` + 1 + j, column m to the average error between ``edges[j, m]`` and
    ``edges[j, m + 1]``.

    Attributes
    ----------
    threshold : float
        The score to beat.
    initial, start, epochs : int
        Epochs that are always run, epochs seen when the table was made, and epochs of a whole run.
    decisions, probability, value, saved : arrays of shape (H, M)
        Decision codes, probability of winning, expected loss and expected savings; see :class:`Solution`.
    visits, edges : arrays of shape (H, M) and (H, M + 1)
        Simulated paths in each cell, and the borders of the cells.

    >>> from surefoot.stopping import OptimalStopping
    >>> rule = OptimalStopping(epochs=20, initial=5, paths=2_000)
    >>> table = rule.fit([0.3, 0.32, 0.33, 0.35, 0.36], 0.9, np.random.default_rng(0))
    >>> table.decisions.shape, table.start
    ((15, 100), 5)
    >>> table.decide(6, 0.63).action        # after one more epoch with an error of 0.63
    'stop'
    """

    counts: Counts
    solution: Solution
    threshold: float
    initial: int
    start: int
    epochs: int
    minimum: int
    unvisited: str
    every: int | None
    before: tuple[int, float]

    @property
    def decisions(self) -> NDArray[np.int8]:
        """Decision codes, shape (H, M)."""
        return self.solution.decisions

    @property
    def probability(self) -> Array:
        """Probability of winning, shape (H, M)."""
        return self.solution.probability

    @property
    def value(self) -> Array:
        """Expected loss, shape (H, M)."""
        return self.solution.value

    @property
    def saved(self) -> Array:
        """Expected epochs saved, shape (H, M)."""
        return self.solution.saved

    @property
    def visits(self) -> Array:
        """Simulated paths in each cell, shape (H, M)."""
        return self.counts.visits

    @property
    def edges(self) -> Array:
        """Borders of the cells, shape (H, M + 1)."""
        return self.counts.edges

    @property
    def forecast(self) -> float:
        """Probability of winning as it was when the table was made.

        >>> from surefoot.stopping import OptimalStopping
        >>> rule = OptimalStopping(epochs=20, initial=5, paths=2_000)
        >>> rule.fit([0.3, 0.4, 0.45, 0.5, 0.52], 0.1, np.random.default_rng(0)).forecast
        1.0
        """
        return self.solution.root.probability

    def solved(self, solution: Solution) -> Table:
        """Return the same table with another solution of its counts, for example for another loss.

        >>> from surefoot.stopping import OptimalStopping, induce
        >>> rule = OptimalStopping(epochs=20, initial=5, paths=2_000)
        >>> table = rule.fit([0.3, 0.32, 0.33, 0.35, 0.36], 0.6, np.random.default_rng(0))
        >>> dear = table.solved(induce(table.counts, k1=1e4, k2=rule.k2, cost=rule.cost))
        >>> bool((dear.decisions == 1).sum() < (table.decisions == 1).sum())
        True
        """
        return replace(self, solution=solution)

    def locate(self, epoch: int, statistic: ArrayLike) -> NDArray[np.intp]:
        """Return the columns of average errors after an epoch; beyond the borders, the outermost column."""
        if not self.start < epoch <= self.epochs:
            raise ValueError(f"the table covers epochs {self.start + 1} to {self.epochs}, not {epoch}")
        edges, values = self.edges[epoch - self.start - 1], np.asarray(statistic, dtype=np.float64)
        if not np.isfinite(values).all():
            raise ValueError(f"the average error must be finite, got {statistic!r}")
        place = (values - edges[0]) * ((len(edges) - 1) / (edges[-1] - edges[0]))
        columns: NDArray[np.intp] = np.clip(place, 0, len(edges) - 2).astype(np.intp)
        return columns

    def statistic(self, curve: ArrayLike) -> float:
        """Return the average error of a run's scores from epoch 1 on, as the columns of this table count it.

        >>> from surefoot.stopping import OptimalStopping
        >>> rule = OptimalStopping(epochs=20, initial=2, paths=2_000)
        >>> table = rule.fit([0.3, 0.4], 0.9, np.random.default_rng(0))
        >>> round(table.statistic([0.3, 0.4, 0.5, 0.7]), 3)     # of the two epochs after the first two
        0.4
        """
        errors = 1.0 - scores(curve)[self.start :]
        if not errors.size:
            raise ValueError(f"the table needs a score after epoch {self.start}, got {np.size(curve)} epochs")
        n, total = self.before
        return float((total + errors.sum()) / (n + errors.size))  # the summary statistic of BO-BOS

    def decide(self, epoch: int, statistic: float) -> Decision:
        """Return the decision after an epoch with the given average error.

        Parameters
        ----------
        epoch : int
            Epochs done, counted from 1; after ``start``.
        statistic : float
            Average error as :meth:`statistic` defines it.
        """
        at = epoch - self.start - 1, self.locate(epoch, statistic)
        return _decision(self.decisions[at], self.probability[at], self.saved[at])

    def follow(self, curve: ArrayLike) -> Decision:
        """Return the decision for a run with these scores of epochs 1, 2, ...

        The initial epochs are always run. A table made later on, from all epochs of a run, also decides about the epoch
        it was made in. A run that has already been above the threshold is never stopped: learning curves rise, whatever
        the average of its errors says.

        >>> from surefoot.stopping import OptimalStopping
        >>> rule = OptimalStopping(epochs=20, initial=5, paths=2_000)
        >>> start = [0.3, 0.32, 0.33, 0.35, 0.36]
        >>> table = rule.fit(start, 0.9, np.random.default_rng(0))
        >>> table.follow([*start, 0.37]).action, table.follow([*start, 0.91]).action
        ('stop', 'continue')
        """
        values = scores(curve)
        if len(values) > self.start:
            found = self.decide(len(values), self.statistic(values))  # C1 of BO-BOS: is it d₁?
        elif len(values) == self.start > self.initial:
            root = self.solution.root
            found = _decision(root.decision, root.probability, root.saved)
        else:
            return Decision("continue", self.forecast, self.solution.root.saved)
        return replace(found, action="continue") if found.stop and values.max() > self.threshold else found

    def needs_refit(self, curve: ArrayLike) -> bool:
        """Whether a run with these scores should get a new table, from all of its epochs: ``unvisited="resimulate"``.

        It should when its average error has left the cells that simulated paths visited, or ``every`` epochs after
        this table was made.
        """
        n = len(values := scores(curve))
        if self.unvisited != "resimulate" or not self.start < n < self.epochs:
            return False
        if self.every is not None and n - self.start >= self.every:
            return True
        return bool(self.visits[n - self.start - 1, self.locate(n, self.statistic(values))] <= self.minimum)

    def play(self, paths: ArrayLike) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Follow the table along many error curves at once.

        Parameters
        ----------
        paths : array of shape (S, H)
            Errors of epochs ``start`` + 1 to ``epochs``.

        Returns
        -------
        epoch : array of shape (S,)
            The epoch in which each run ends: where it is stopped, else ``epochs``.
        stopped : array of shape (S,)
            Whether it was stopped before the last epoch.

        >>> from surefoot.stopping import OptimalStopping
        >>> rule = OptimalStopping(epochs=20, initial=5, paths=2_000)
        >>> table = rule.fit([0.3, 0.32, 0.33, 0.35, 0.36], 0.9, np.random.default_rng(0))
        >>> table.play(np.full((2, 15), 0.63))
        (array([6, 6]), array([ True,  True]))
        """
        E = np.asarray(paths)
        H = self.epochs - self.start
        if E.ndim != 2 or E.shape[1] != H:
            raise ValueError(f"paths must have shape (S, {H}), got {E.shape}")
        n, earlier = self.before
        total, lowest = np.full(len(E), earlier), np.full(len(E), np.inf)
        epoch, running = np.full(len(E), self.epochs, dtype=np.intp), np.ones(len(E), dtype=np.bool_)
        for j in range(H - 1):  # all curves at once, epoch by epoch
            total += E[:, j]
            np.minimum(lowest, E[:, j], out=lowest)
            columns = self.locate(self.start + j + 1, total / (n + j + 1))
            stops = running & (self.decisions[j] == STOP)[columns]
            stops &= lowest >= 1.0 - self.threshold  # the guard of `follow`
            epoch[stops] = self.start + j + 1
            running &= ~stops
        return epoch, ~running
