"""Add-GP-UCB: upper confidence bounds of many coordinates, a few at a time.

Question: where is the maximum of an expensive function of tens or hundreds of coordinates, if it is (nearly) a sum of
functions of a few coordinates each, and nobody knows of which?

Rule: x_t maximizes Σⱼ μ⁽ʲ⁾(x⁽ʲ⁾) + β_t^(1/2) σ⁽ʲ⁾(x⁽ʲ⁾) over the parts of an additive Gaussian process. Each part is
maximized on its own, in few dimensions; together they are the maximizer. The decomposition is the most likely of some
random ones, learned anew with every fit (:mod:`surefoot.belief.decomposition`).

Reference: Kandasamy, Schneider & Póczos 2015, Algorithm 1 and section 3.3.

Guarantee: with the true prior and decomposition and β_t of order log(t D), the regret grows like that of GP-UCB in the
largest group, √(D T β_T γ_T) up to constants (Theorem 5), where D is the dimension: the exponential dependence on D is
gone. Nothing is promised for a decomposition that is learned, as it is here by default.

Authors' options: β_t = 0.2 d log 2t with d the size of a group (``widths.Logarithmic(0.2)``), decompositions learned
every 25 measurements. Differences: two standard deviations by default; all parts are searched at once, and the climbs
of all parts are one climb of their sum, which is separable. Σⱼ σ⁽ʲ⁾ is at least the posterior deviation: the score is
an upper bound of GP-UCB's, equal to it for one group.

Cost of one ask: O(M C n + R n²) for M groups, C candidates and R of them that the mean alone does not rule out; a fit
every five measurements.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack, cast

import numpy as np
from numpy.typing import NDArray

from surefoot.arguments import whole
from surefoot.belief.additive import Additive, Parts
from surefoot.belief.decomposition import FLOOR, learn, partition
from surefoot.belief.gp import GP
from surefoot.belief.posterior import Posterior
from surefoot.domain import Box, Domain
from surefoot.loop.types import Proposal
from surefoot.loop.widths import Constant, Width, given_or
from surefoot.policy.base import ModelOptions, ModelPolicy
from surefoot.policy.surrogate import Surrogate
from surefoot.policy.view import View

__all__ = ["AddGPUCB", "maximize_parts"]

Array = NDArray[np.float64]
EVERY = 5  # measurements from one fit to the next


def maximize_parts(
    parts: Parts,
    lower: Array,
    upper: Array,
    *,
    width: float,
    rng: np.random.Generator,
    candidates: int = 5000,
    seeds: Array | None = None,
    steps: int = 30,
) -> tuple[Array, float]:
    """Return the point (d,) of the box that maximizes Σⱼ μ⁽ʲ⁾ + width · σ⁽ʲ⁾, and this bound.

    Every part picks the best of its own candidates; from there one climb of the sum, which is a climb of every part.

    Parameters
    ----------
    parts : Parts
        Of the belief.
    lower, upper : arrays of shape (d,)
        The box.
    width : float
        Standard deviations above the mean.
    rng : numpy.random.Generator
        Draws the candidates, half of them corners of the box: bounds of a rising function are highest there.
    candidates : int
        Random candidates of each part.
    seeds : array of shape (s, d), optional
        Points that every part tries as well.
    steps : int
        Quasi-Newton steps of the climb.

    >>> X = np.random.default_rng(0).uniform(size=(20, 2))
    >>> belief = GP(Additive([(0,), (1,)]), noise=1e-4).condition(X, -((X - 0.3) ** 2).sum(axis=1))
    >>> x, _ = maximize_parts(Parts(belief), np.zeros(2), np.ones(2), width=0.0, rng=np.random.default_rng(1))
    >>> bool(abs(x - 0.3).max() < 0.05)
    True
    """
    from scipy.optimize import Bounds, minimize  # slow to import, and seldom needed

    drawn = rng.random((candidates, len(lower)))
    drawn[::2] = drawn[::2] > 0.5
    points = np.clip(lower + drawn * (upper - lower), lower, upper)
    if seeds is not None and len(seeds):
        points = np.vstack([points, seeds])
    U = parts.split(points)
    rows, _ = parts.best(U, width)  # argmax of each part alone: together the argmax of their sum
    first = np.clip(parts.kernel.join(U[np.arange(len(rows)), rows][:, None], len(lower))[0], lower, upper)

    def negative(x: Array) -> tuple[float, Array]:
        value, gradient = parts.bound(x, width)
        return -value, -gradient

    start, _ = parts.bound(first, width)
    found = minimize(
        negative, first, jac=True, method="L-BFGS-B", bounds=Bounds(lower, upper), options={"maxiter": steps}
    )
    x = np.clip(found.x, lower, upper)
    value, _ = parts.bound(x, width)
    return (x, value) if value >= start else (first, start)


class _Sum:
    """The score of whole points, for the rare searches that must avoid some of them."""

    def __init__(self, parts: Parts, width: float) -> None:
        self.parts, self.width = parts, width

    def __call__(self, E: Array) -> Array:
        mean, std = self.parts.predict(self.parts.split(E))
        bounds: Array = (mean + self.width * std).sum(axis=0)  # Σⱼ μ⁽ʲ⁾ + β_t^(1/2) σ⁽ʲ⁾
        return bounds

    def gradient(self, E: Array) -> tuple[Array, Array]:
        values, gradients = zip(*(self.parts.bound(x, self.width) for x in E), strict=True)
        return np.array(values), np.array(gradients)


class SumOfBounds:
    """x_t = argmax Σⱼ μ⁽ʲ⁾(x⁽ʲ⁾) + β_t^(1/2) σ⁽ʲ⁾(x⁽ʲ⁾), every part maximized on its own.

    Parameters
    ----------
    width, candidates
        As of :class:`AddGPUCB`.
    """

    def __init__(self, width: Width, candidates: int) -> None:
        self.width, self.candidates = width, candidates

    def propose(self, view: View) -> Proposal:
        """Return the point whose sum of bounds is highest."""
        with view.hallucinated() as belief:
            parts, box = Parts(cast(Posterior, belief)), view.domain
            largest = cast(Additive, belief.gp.kernel).index.shape[1]
            width = self.width(view.round, size=None, dimension=largest, gain=belief.information_gain)
            x, _ = maximize_parts(
                parts,
                box.lower,
                box.upper,
                width=width,
                rng=view.stream("maximize", view.step),
                candidates=self.candidates,
                seeds=view.incumbents(belief, count=50),
            )
            if any(np.array_equal(x, taken) for taken, _ in view.blocked()):
                return view.highest(_Sum(parts, width), belief)
            return Proposal(x)


class AddGPUCB(ModelPolicy):
    """Measure where the sum of the parts' upper confidence bounds is highest.

    Parameters
    ----------
    domain : Box
        Where points may lie.
    groups : int or sequence of sequences of int
        Number of groups of coordinates, of sizes as equal as can be; or the groups themselves, which are then kept.
    decompositions : int
        Random decompositions that every fit compares.
    width : width, optional
        Standard deviations above the mean of every part; None: ``Constant(2.0)``. ``dimension`` is told the size of the
        largest group.
    candidates : int
        Random points at which every part is looked at before the climb.
    **options
        ``gp`` (with an :class:`~surefoot.belief.additive.Additive` kernel, used as it is), ``initial``, ``confidence``,
        ``seed``, ``repeats``, ``journal``.

    >>> policy = AddGPUCB(Box.unit(6), groups=3, initial=5, seed=0)
    >>> for _ in range(7):
    ...     query = policy.ask()
    ...     policy.tell(query, -float(((query.x - 0.3) ** 2).sum()))
    >>> len(policy.groups)
    3
    """

    width: Width

    domains = (Box,)

    def __init__(
        self,
        domain: Domain,
        *,
        groups: int | Sequence[Sequence[int]] = 12,
        decompositions: int = 20,
        width: Width | None = None,
        candidates: int = 5000,
        **options: Unpack[ModelOptions],
    ) -> None:
        given = options.get("gp")
        if given is not None and not (isinstance(given, GP) and isinstance(given.kernel, Additive)):
            raise TypeError(f"AddGPUCB needs a gp with an Additive kernel, got {given!r}")
        super().__init__(domain, **options)
        self.width = given_or(width, Constant(2.0))
        self.decompositions = whole(decompositions, "decompositions", 1)
        self.candidates = whole(candidates, "candidates", 1)
        fixed: tuple[tuple[int, ...], ...] | None = None
        if isinstance(groups, (int, np.integer)) and not isinstance(groups, bool):
            count = min(whole(groups, "groups", 1), domain.dimension)
            first = partition(domain.dimension, count, self.stream("partition"))
        else:
            if isinstance(groups, str) or not isinstance(groups, (Sequence, np.ndarray)):
                raise TypeError(f"groups must be a whole number or a sequence of groups of coordinates, got {groups!r}")
            first = fixed = Additive(groups).groups
            count = len(first)
        kernel = given.kernel if given is not None else Additive(first, units=domain.extent())
        seen = sorted(i for group in cast(Additive, kernel).groups for i in group)
        if seen != list(range(domain.dimension)):
            raise ValueError(f"groups must hold each of the {domain.dimension} coordinates once, got {seen}")

        def fitted(X: Array, y: Array, noise: Array | None, /, *, rng: np.random.Generator) -> GP:
            return learn(
                X,
                y,
                noise,
                groups=count,
                candidates=self.decompositions,
                rng=rng,
                units=domain.extent(),
                extent=1.0,
                fixed=fixed,
            )

        if given is None:
            gp = GP(kernel.scaled(1.0 / count), FLOOR, every=EVERY)
            self.surrogate = Surrogate(self.trials, gp, self.stream, fitter=fitted)
        self.rule = SumOfBounds(self.width, self.candidates)

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The decomposition in use."""
        return cast(Additive, self.surrogate.now().kernel).groups
