"""Bayesian optimal stopping: when to abandon a run because it will not beat the best one so far.

Question: a run has shown its first epochs. Should it go on, given what another epoch costs?

Rule: simulate how the error curve may go on, label each simulated curve by whether it ends above the threshold, and
find by backward induction the decision with the smallest expected loss for every epoch and average error
(:mod:`surefoot.stopping.induction`). The losses are K₁ for stopping a run that would have won, K₂ for accepting one
that would not, and c for each further epoch.

Reference: Dai, Yu, Low & Jaillet 2019, section 3 and Algorithm A.1, with the lines of Dai's thesis (2021), where it is
printed as Algorithm 1.1; Müller et al. 2007.

Guarantee: wherever the table says stop before the last epoch, the probability of winning is at most (K₂ + c)/K₁
(Lemma A.8); so with K₁ growing over the runs of an optimization, the regret caused by stopping vanishes.

Authors' options: 50 epochs, 8 initial ones, 100,000 paths, 100 cells, K₁ = 100/0.95^(t−1) in run t, K₂ = 99, c = 1.
These are the defaults, with the exception of K₁, which the caller raises (``fit(..., k1=)``).

Differences: the hyper-parameters of the curve model are fitted by multi-start marginal likelihood, not by the printed
conjugate rule, which forecasts zero error for every curve. Sparse cells are told to continue, but keep their value in
the recursion. A run already above the threshold is never stopped.

Cost of one fit: O(paths × epochs) time and memory; ``benchmarks/stopping.py`` measures it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.arguments import not_negative, number, one_of
from surefoot.stopping.curves import (
    CurveModel,
    ExponentialDecay,
    LearningModel,
    PathModel,
    model_from_dict,
    model_to_dict,
)
from surefoot.stopping.induction import count, induce
from surefoot.stopping.table import Decision, Table, scores

__all__ = ["OptimalStopping", "Watch"]

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class OptimalStopping:
    """The stopping problem: its losses, its curve model, and how finely it is solved.

    Parameters
    ----------
    epochs : int
        Epochs of a whole run, N.
    initial : int
        Epochs that every run is given before it can be stopped, N₀.
    k1, k2 : float
        Loss of stopping a run that would have won, and of accepting one that would not. ``inf`` switches the decision
        off: with ``k1=inf`` no run is ever stopped.
    cost : float
        Loss per further epoch, c.
    model : CurveModel or PathModel
        Simulates how a curve goes on; :class:`ExponentialDecay` (published) or :class:`Plateau`,
        :class:`Powers`, or your own.
    paths, cells : int
        Simulated curves, and cells of the average error.
    statistic : "after" or "all"
        What is averaged: the errors after the epochs that the table was made from, or all errors from epoch 1 (as
        printed; reaches fewer, coarser cells).
    minimum : int
        Cells with at most so many simulated curves are told to continue.
    unvisited : "continue", "monotone" or "resimulate"
        What to do in such cells. Continue; or stop where an average error smaller than this is already hopeless; or
        ask for a new table from all epochs seen (:meth:`Table.needs_refit`, done by :class:`Watch`).
    every : int, optional
        With "resimulate": also make a new table after so many epochs.
    smoothing : bool
        Estimate probabilities as (wins + ½)/(visits + 1), never 0 or 1, so that a large ``k1`` alone ends stopping.
    adaptive : bool
        Fit the cells of each epoch to the simulated averages.

    >>> rule = OptimalStopping(epochs=50, initial=8, paths=5_000)
    >>> curve = 1.0 - 0.5 * np.exp(-0.02 * np.arange(1, 9))
    >>> table = rule.fit(curve, 0.95, np.random.default_rng(0))
    >>> table.follow([*curve, 0.58])
    Decision(action='stop', probability=0.0..., saved=41.0)
    >>> bool((rule.fit(curve, 0.95, np.random.default_rng(0), k1=math.inf).decisions != 1).all())
    True
    """

    epochs: int
    initial: int = 8
    k1: float = 100.0
    k2: float = 99.0
    cost: float = 1.0
    model: CurveModel | PathModel = field(default_factory=ExponentialDecay)
    paths: int = 100_000
    cells: int = 100
    statistic: Literal["after", "all"] = "after"
    minimum: int = 30
    unvisited: Literal["continue", "monotone", "resimulate"] = "continue"
    every: int | None = None
    smoothing: bool = False
    adaptive: bool = False

    def __post_init__(self) -> None:
        for name, lowest in (("epochs", 1), ("initial", 1), ("paths", 1), ("cells", 3), ("minimum", 0), ("every", 1)):
            value = getattr(self, name)
            if value is None and name == "every":
                continue
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
                raise TypeError(f"{name} must be a whole number, got {value!r}")
            if value < lowest:
                raise ValueError(f"{name} must be at least {lowest}, got {value!r}")
            object.__setattr__(self, name, int(value))
        for name in ("k1", "k2"):
            value = getattr(self, name)
            if not number(value) > 0:
                raise ValueError(f"{name} must be positive (inf switches its decision off), got {value!r}")
        not_negative(self.cost, "cost")
        for name, known in (("statistic", ("after", "all")), ("unvisited", ("continue", "monotone", "resimulate"))):
            one_of(getattr(self, name), name, known)
        if isinstance(self.model, type) or not (hasattr(self.model, "sample") or hasattr(self.model, "simulate")):
            raise TypeError(f"a model has a method sample or simulate, which {self.model!r} has not")

    def fit(
        self, initial_curve: ArrayLike, threshold: float, rng: np.random.Generator, *, k1: float | None = None
    ) -> Table:
        """Simulate how a run may go on and return the decision table for the rest of it.

        Parameters
        ----------
        initial_curve : array of shape (n,)
            Scores of epochs 1 to n in [0, 1], higher is better; at least ``initial`` and fewer than ``epochs``.
        threshold : float
            The score to beat.
        rng : numpy.random.Generator
            Draws the curves; the table is a function of its state.
        k1 : float, optional
            Instead of ``self.k1``.
        """
        curve = scores(initial_curve)
        if not self.initial <= len(curve) < self.epochs:
            raise ValueError(
                f"a table is made from {self.initial} to {self.epochs - 1} epochs of a run of {self.epochs}, "
                f"got {len(curve)}"
            )
        if math.isnan(threshold):
            raise ValueError("threshold must be a number, got nan")
        k1 = self.k1 if k1 is None else float(k1)
        if not k1 > 0:
            raise ValueError(f"k1 must be positive, got {k1!r}")
        errors = 1.0 - curve
        paths, wins = self._simulate(errors, float(threshold), rng)  # line 3, by the kernel (A.1)
        before = (len(errors), float(errors.sum())) if self.statistic == "all" else (0, 0.0)
        counts = count(paths, wins, cells=self.cells, before=before, adaptive=self.adaptive)  # line 1: M intervals
        solution = induce(  # lines 4 to 20
            counts,
            k1=k1,
            k2=self.k2,
            cost=self.cost,
            minimum=self.minimum,
            unvisited=self.unvisited,
            smoothing=self.smoothing,
        )
        return Table(
            counts=counts,
            solution=solution,
            threshold=float(threshold),
            initial=self.initial,
            start=len(errors),
            epochs=self.epochs,
            minimum=self.minimum,
            unvisited=self.unvisited,
            every=self.every,
            before=before,
        )

    def _simulate(self, errors: Array, threshold: float, rng: np.random.Generator) -> tuple[Array, NDArray[Any]]:
        """Draw paths (S, H) and their labels: the model's own, else whether the last error is below that to beat."""
        H = self.epochs - len(errors)
        if isinstance(self.model, PathModel):
            paths, wins = self.model.simulate(errors, self.epochs, threshold, self.paths, rng)
        else:
            paths = self.model.sample(errors, self.epochs, self.paths, rng)
            wins = paths[:, -1] < 1.0 - threshold  # θ_{t,2}: the last score is above y* − ξ_t
        if paths.ndim != 2 or paths.shape[1] != H or not len(paths):
            raise ValueError(f"{type(self.model).__name__} must return paths of shape (S, {H}), got {paths.shape}")
        return paths, wins

    def watch(
        self, threshold: float, stream: Callable[[int], np.random.Generator], *, k1: float | None = None
    ) -> Watch:
        """Return a :class:`Watch` for one run: it makes the table, and new ones where ``unvisited`` asks for them.

        Parameters
        ----------
        threshold : float
            The score to beat.
        stream : callable
            ``stream(n)`` gives the generator for the table made after epoch n, so that what a run is told does not
            depend on how often, or by which process, it was asked.
        k1 : float, optional
            Instead of ``self.k1``.
        """
        return Watch(self, threshold, stream, k1=k1)

    @property
    def room(self) -> float:
        """How far above the best score seen the ceiling of scores without known bounds lies, in ranges of the scores.

        >>> from surefoot.stopping import Powers
        >>> OptimalStopping(epochs=9).room, OptimalStopping(epochs=9, model=Powers()).room
        (0.1, 0.5)
        """
        return self.model.room if isinstance(self.model, LearningModel) else 0.1

    def learnt(self, runs: Sequence[ArrayLike]) -> Self:
        """Return the problem with a model that has learnt from other runs of the study, of which whole ones count.

        Where the model does not learn, it is the same problem.

        Parameters
        ----------
        runs : sequence of arrays
            Their scores, mapped as those of the run will be; what lies outside [0, 1] is brought to its edge.

        >>> from surefoot.stopping import Powers
        >>> len(OptimalStopping(epochs=3, model=Powers()).learnt([[0.1, 0.5, 0.6], [0.2, 0.3]]).model.completed)
        1
        """
        if not isinstance(self.model, LearningModel):
            return self
        whole = [np.clip(run, 0.0, 1.0) for run in runs if len(np.asarray(run)) >= self.epochs]
        return replace(self, model=self.model.learn([1.0 - run for run in whole]))

    def to_dict(self) -> dict[str, Any]:
        """Return a strict-JSON description that :meth:`from_dict` reads back; the model must be registered.

        >>> OptimalStopping.from_dict(OptimalStopping(epochs=9, k1=math.inf).to_dict()).k1
        inf
        """
        data = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "model"}
        finite = {name: (None if name in ("k1", "k2") and math.isinf(value) else value) for name, value in data.items()}
        return {**finite, "model": model_to_dict(self.model)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Rebuild the rule from :meth:`to_dict`."""
        losses = {name: math.inf if data[name] is None else data[name] for name in ("k1", "k2")}
        return cls(**{**data, **losses, "model": model_from_dict(data["model"])})


class Watch:
    """One run under watch: reports go in, decisions come out, tables are made when they are needed.

    Made by :meth:`OptimalStopping.watch`. Everything is a function of the scores, the threshold and the stream, so that
    a watch begun again with the same scores says the same.

    Attributes
    ----------
    table : Table or None
        The table in use; None during the initial epochs.

    >>> rule = OptimalStopping(epochs=30, initial=4, paths=2_000, unvisited="resimulate")
    >>> watch = rule.watch(0.9, np.random.default_rng)
    >>> curve = 0.5 * (1.0 - np.exp(-np.arange(1, 31) / 3.0))     # levels off at 0.5
    >>> [watch.report(curve[:n]).action for n in (3, 4)]
    ['continue', 'continue']
    >>> next(n for n in range(5, 31) if watch.report(curve[:n]).stop) < 15
    True
    """

    def __init__(
        self,
        rule: OptimalStopping,
        threshold: float,
        stream: Callable[[int], np.random.Generator],
        *,
        k1: float | None = None,
    ) -> None:
        self.rule, self.threshold, self.k1 = rule, threshold, k1
        self.table: Table | None = None
        self._stream = stream
        self._seen = rule.initial - 1

    def report(self, curve: ArrayLike) -> Decision:
        """Return the decision for the run's scores of epochs 1, 2, ..., the newest last."""
        values = scores(curve)
        n = len(values)
        # Epoch by epoch, also where several were missed: which tables are made depends on the scores alone.
        for k in range(self._seen + 1, min(n, self.rule.epochs - 1) + 1):
            if self.table is None or self.table.needs_refit(values[:k]):
                self.table = self.rule.fit(values[:k], self.threshold, self._stream(k), k1=self.k1)
            self._seen = k
        return Decision("continue") if self.table is None else self.table.follow(values)
