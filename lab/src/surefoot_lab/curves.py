"""Learning curves: problems whose runs report a score after each epoch, and policies side by side on them.

A problem is anything with ``name``, ``domain``, ``epochs``, ``best`` (the highest last score there is) and
``curve(x, rng)``, the scores (N,) of one run. :func:`synthetic_curves` makes problems whose truth is known;
:func:`surefoot_lab.lcbench.lcbench` is another one.

:func:`compare_curves` gives every policy the same total number of epochs, whatever it does with them, and afterwards
finishes every run that a policy stopped, outside the budget: a stopped run that would have beaten the best run of its
time is a *false stop*.

>>> from surefoot_lab.registry import Replicate
>>> from surefoot.policy.search import RandomSearch
>>> problem = synthetic_curves("exponential", epochs=20)
>>> traces = compare_curves({"random": lambda p, seed: RandomSearch(p.domain, seed=seed)}, problem, 60, Replicate(0))
>>> traces["random"]["simple_regret"].shape, float(traces["random"]["runs"])
((60,), 3.0)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.domain import Box, Domain
from surefoot.loop.policy import Policy
from surefoot.loop.types import Query
from surefoot_lab.problems import Problem, branin
from surefoot_lab.registry import Replicate, Trace

__all__ = ["SHAPES", "CurveProblem", "Curves", "Run", "compare_curves", "drive", "summary", "synthetic_curves"]

Array = NDArray[np.float64]


class Curves(Protocol):
    """What :func:`compare_curves` needs of a problem.

    >>> problem: Curves = synthetic_curves("plateau")
    """

    @property
    def name(self) -> str:
        """What plots call it."""

    @property
    def domain(self) -> Domain:
        """Where configurations may lie."""

    @property
    def epochs(self) -> int:
        """Length of a curve."""

    @property
    def best(self) -> float:
        """The highest noise-free score of a complete run."""

    def curve(self, x: ArrayLike, rng: np.random.Generator) -> Array:
        """Return the scores of a run of x after epochs 1, ..., N, shape (N,)."""


@dataclass(frozen=True)
class CurveProblem:
    """A configuration space, the noise-free learning curve of each point, and the noise of a score.

    Parameters
    ----------
    name : str
        What plots call it.
    domain : Domain
        Where configurations may lie; points are raw.
    epochs : int
        Length of a curve.
    function : callable
        Noise-free scores (n, epochs) of points (n, d).
    best : float
        The highest noise-free last score.
    noise : float
        Variance of a score.

    >>> line = CurveProblem("line", Box([(0.0, 1.0)]), 3, lambda X: X * np.array([0.5, 0.8, 1.0]), 1.0)
    >>> line.curves([[0.5]])
    array([[0.25, 0.4 , 0.5 ]])
    """

    name: str
    domain: Domain
    epochs: int
    function: Callable[[Array], Array]
    best: float
    noise: float = 0.0

    def curves(self, X: ArrayLike) -> Array:
        """Return the noise-free scores of the rows of X (n, d), shape (n, epochs)."""
        return self.function(np.atleast_2d(np.asarray(X, dtype=np.float64)))

    def curve(self, x: ArrayLike, rng: np.random.Generator) -> Array:
        """Return the measured scores of one run, shape (epochs,)."""
        return self.curves(x)[0] + np.sqrt(self.noise) * rng.standard_normal(self.epochs)


SHAPES: dict[str, tuple[Callable[[Array, Array], Array], float, float]] = {
    # share of the error still to lose after epoch n, at a rate r; the least and the largest rate
    "exponential": (lambda n, r: np.exp(-r * n), 0.04, 0.25),
    "power": (lambda n, r: (1.0 + n) ** -r, 0.5, 1.5),
    "plateau": (lambda n, r: np.exp(-r * n), 0.15, 0.6),
    "slow start": (lambda n, r: 1.0 / (1.0 + (n * r) ** 3), 0.06, 0.25),
}
"""Shapes of synthetic curves: the share φ(n; r) of the error still to be lost, and the range of rates r."""


def synthetic_curves(
    shape: str = "exponential",
    *,
    surface: Problem | None = None,
    epochs: int = 50,
    noise: float = 0.005**2,
    errors: tuple[float, float] = (0.05, 0.6),
    rng: np.random.Generator | None = None,
) -> CurveProblem:
    """Return error curves a(x) + (0.9 − a(x)) φ(n; r(x)), as scores one minus error.

    The final error a(x) follows the regret of ``surface``, the rate r(x) a smooth function drawn by ``rng``: curves
    cross, and the fastest start is not the best end.

    Parameters
    ----------
    shape : str
        One of :data:`SHAPES`.
    surface : Problem, optional
        A problem on a box whose best points are best here; Branin's function by default.
    epochs : int
        N.
    noise : float
        Variance of a score.
    errors : (float, float)
        The limit of the error at the best point, and about the largest one.
    rng : Generator, optional
        Draws the rates; the default is always the same.

    >>> problem = synthetic_curves("power", epochs=30)
    >>> bool((np.diff(problem.curves(problem.domain.sample(5, np.random.default_rng(1)))) > 0).all())
    True
    """
    if shape not in SHAPES:
        raise ValueError(f"unknown shape {shape!r}; known are {', '.join(SHAPES)}")
    base = branin() if surface is None else surface
    if not isinstance(base.domain, Box):
        raise TypeError(f"the surface is a problem on a Box, not on {base.domain!r}")
    rng = np.random.default_rng(0) if rng is None else rng
    box, (share, slowest, fastest) = base.domain, SHAPES[shape]
    frequencies, phases = rng.normal(0.0, 2.0, (3, box.dimension)), rng.uniform(0.0, 2.0 * np.pi, 3)
    spread = float(np.quantile(base.regret(box.design(1024, np.random.default_rng(0))), 0.9))
    n = np.arange(1, epochs + 1, dtype=np.float64)

    def curves(X: Array) -> Array:
        # The logarithm keeps a basin around the optimum even where a surface is very steep, as Branin's is.
        height = np.log1p(20.0 * base.regret(X) / spread) / np.log(21.0)
        limit = errors[0] + (errors[1] - errors[0]) * height
        unit = (X - box.lower) / box.extent()
        wave = np.sin(unit @ frequencies.T + phases).mean(axis=1)
        rate = np.sqrt(slowest * fastest) * (fastest / slowest) ** (0.5 * wave)
        error = limit[:, None] + (0.9 - limit)[:, None] * share(n, rate[:, None])
        return np.clip(1.0 - error, 0.0, 1.0)

    return CurveProblem(f"{shape} curves", box, epochs, curves, _highest(curves, box), noise)


def _highest(curves: Callable[[Array], Array], domain: Domain) -> float:
    """The highest last score: of many Sobol points, then of ever shorter random steps from the best of them."""
    rng = np.random.default_rng(0)
    points = domain.design(4096, rng)
    values = curves(points)[:, -1]
    for width in (0.03, 0.01, 0.003, 0.001):
        top = points[np.argsort(-values)[:16]]
        moved = domain.encode(np.repeat(top, 64, axis=0))
        moved = np.clip(moved + width * domain.extent() * rng.standard_normal(moved.shape), domain.lower, domain.upper)
        points = np.vstack([top, domain.decode(moved)])
        values = curves(points)[:, -1]
    return float(values.max())


@dataclass(frozen=True)
class Run:
    """What became of one run: the epochs it got, whether it was stopped, and how it would have ended.

    >>> Run(0, np.zeros(1), 0, 12, True, incumbent=0.8, value=0.5, final=0.9).false_stop
    True
    """

    id: int
    x: Array
    start: int
    end: int
    stopped: bool
    incumbent: float | None
    value: float
    final: float

    @property
    def false_stop(self) -> bool:
        """Whether the run was stopped and would have beaten the best run of its time."""
        return self.stopped and self.incumbent is not None and self.final > self.incumbent


def drive(
    policy: Policy, problem: Curves, budget: int, noise: Callable[[int], np.random.Generator]
) -> tuple[list[Run], Array]:
    """Spend a number of epochs on the runs that a policy asks for, one at a time.

    A policy with ``steps`` is told every epoch and obeyed; another gets complete runs. A query with a ``fidelity`` is
    run to that epoch; one whose note says ``resume`` continues an earlier run and pays for the further epochs only. The
    last run is cut off, and cancelled, when the budget is spent.

    Parameters
    ----------
    policy : Policy
        Who chooses.
    problem : Curves
        What is run.
    budget : int
        Epochs of all runs together.
    noise : callable
        ``noise(k)`` draws the noise of the k-th run.

    Returns
    -------
    runs : list of Run
    best : array of shape (budget,)
        The highest score reached so far after each epoch spent: noise-free where the problem knows it.

    >>> from surefoot.policy.search import RandomSearch
    >>> problem = synthetic_curves(epochs=10)
    >>> runs, best = drive(RandomSearch(problem.domain, seed=0), problem, 25, np.random.default_rng)
    >>> [run.end for run in runs], best.shape
    ([10, 10, 5], (25,))
    """
    if budget < 1:
        raise ValueError(f"the budget is at least one epoch, got {budget}")
    runs: list[Run] = []
    reached: list[Array] = []
    curves: dict[int, tuple[Array, Array]] = {}
    incumbent: float | None = None
    left = budget
    while left > 0:
        query = policy.ask()
        first = int(query.note.get("resume", query.id))
        if first not in curves:
            measured = problem.curve(query.x, noise(len(runs)))
            known = getattr(problem, "curves", None)
            curves[first] = measured, measured if known is None else known(query.x)[0]
        curve, truth = curves[first]
        start = next((run.end for run in reversed(runs) if run.id == query.note.get("resume")), 0)
        end, stopped, whole = _follow(policy, query, curve, start, left)
        left -= end - start
        value = float(curve[end - 1])
        runs.append(Run(query.id, query.x, start, end, stopped, incumbent, value, float(curve[-1])))
        reached.append(truth[start:end])
        if not whole:
            policy.cancel(query)
            break
        policy.tell(query, value)
        if np.isfinite(value):
            incumbent = value if incumbent is None else max(incumbent, value)
    return runs, np.fmax.accumulate(np.concatenate(reached))


def _follow(policy: Policy, query: Query, curve: Array, start: int, left: int) -> tuple[int, bool, bool]:
    """Run one query; return its last epoch, whether it was stopped before its end, and whether it is done."""
    goal = min(query.fidelity or len(curve), len(curve))
    last = min(goal, start + left)
    if policy.steps:
        for epoch in range(start + 1, last + 1):
            if policy.report(query, epoch, float(curve[epoch - 1])).stop and epoch < goal:
                return epoch, True, True
    return last, False, last == goal


def compare_curves(
    policies: Mapping[str, Callable[[Curves, int], Policy]], problem: Curves, budget: int, replicate: Replicate
) -> dict[str, Trace]:
    """Give each policy the same total number of epochs and return what it reached, and what it wrongly stopped.

    All policies share the seed, and the k-th run of each has the same noise.

    Parameters
    ----------
    policies : mapping of name to function
        ``f(problem, seed)`` makes the policy.
    problem : Curves
        What is run.
    budget : int
        Epochs of all runs together.
    replicate : Replicate
        Gives the random streams.

    Returns
    -------
    dict of Trace
        ``simple_regret`` (budget,): how far the best score reached is below the best there is, after each epoch spent;
        and the numbers ``runs``, ``stopped``, ``false_stops``, ``false_share`` (of stopped runs; NaN if there is none),
        ``saved`` (epochs that stopped runs did not get), ``length`` (mean epochs of a run).

    >>> from surefoot import GPUCB
    >>> policies = {"GP-UCB": lambda problem, seed: GPUCB(problem.domain, seed=seed)}
    >>> traces = compare_curves(policies, synthetic_curves(epochs=10), 40, Replicate(0))
    >>> float(traces["GP-UCB"]["stopped"])
    0.0
    """
    traces = {}
    for name, make in policies.items():
        policy = make(problem, replicate.integer)
        runs, best = drive(policy, problem, budget, lambda k: replicate.rng("noise", k))
        traces[name] = summary(runs, problem.best - best, problem.epochs)
    return traces


def summary(runs: list[Run], regret: Array, epochs: int) -> Trace:
    """Return the trace of one policy's runs.

    >>> float(summary([Run(0, np.zeros(1), 0, 4, True, 0.5, 0.2, 0.3)], np.zeros(4), 10)["saved"])
    6.0
    """
    stopped = [run for run in runs if run.stopped]
    false = sum(run.false_stop for run in stopped)
    return Trace(
        simple_regret=regret,
        runs=len(runs),
        stopped=len(stopped),
        false_stops=false,
        false_share=false / len(stopped) if stopped else np.nan,
        saved=sum(epochs - run.end for run in stopped),
        length=np.mean([run.end - run.start for run in runs]),
    )
