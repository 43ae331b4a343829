"""BOS²: Bayesian optimization of a perturbation, of its resolution, and of when to give a resolution up.

Question: how few queries does it take to make a classifier, known by its scores only, take an image for another class?

Rule: a perturbation is searched for at a low resolution h × h and resized to the image. An outer loop chooses h by GP-
UCB on what earlier resolutions achieved (:mod:`surefoot.attack.dimension`); an inner loop of at most 40 queries
searches at that resolution by Add-GP-UCB (:mod:`surefoot.policy.ucb.add_gp_ucb`), with the decomposition learned anew,
and is given up by Bayesian optimal stopping when it will not beat the best so far (:mod:`surefoot.attack.abandon`).

Reference: Kharkovskii 2020 (thesis), chapter 5, Algorithms 5 to 7, whose lines are named; the perturbation loop shares
its settings with Ru, Cobb, Blaas & Gal 2020.

Guarantee: none is known.

Authors' options: 900 queries, loops of 40 of which the first 8 are never given up, sizes 6 to 18, 10 random
perturbations at each of 6, 14 and 18, 12 groups, 20 decompositions, fits every 5 queries, 100,000 simulated loops.

Differences: see ``docs/attack.md``. The counter of Algorithm 7 is advanced before the query; the first 30 queries count
against the budget (``count_initial``); the last loop is cut where the budget ends; the noise is fitted, not 10⁻⁶; a
belief is conditioned on at most ``points`` measurements, the best and the newest ones; the inner width is two standard
deviations, which is not published; each part looks at fewer than 5,000 candidates and climbs longer.

Cost of one query: O(M C n + n²) for M groups, C candidates and n ≤ points + 40 measurements; ``benchmarks/attack.py``
measures it.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.attack.abandon import Abandon
from surefoot.attack.ball import NormBall
from surefoot.attack.black_box import BlackBox
from surefoot.attack.dimension import LatentSizes
from surefoot.attack.method import Attack
from surefoot.attack.probe import AttackResult, Finished, PerturbationLoop, Probe, Search
from surefoot.attack.resize import Resize
from surefoot.belief.additive import Parts
from surefoot.belief.decomposition import learn, refine
from surefoot.belief.gp import GP
from surefoot.belief.posterior import Posterior
from surefoot.experimental import experimental
from surefoot.loop.widths import Constant, Width
from surefoot.policy.ucb.add_gp_ucb import maximize_parts

__all__ = ["BOS2", "Latent", "bos2"]

Array = NDArray[np.float64]
SEEDS = 30  # best measured points that every part looks at, besides its random ones


class Latent:
    """Unit perturbations and their objectives at image size, read at any latent size.

    >>> data = Latent((1, 4, 4))
    >>> data.add(np.ones((1, 4, 4)), -3.0)
    >>> data.at(Resize(2, (4, 4)), points=None)[0].shape
    (1, 4)
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.perturbations: list[Array] = []
        self.y: list[float] = []

    def add(self, perturbation: Array, y: float) -> None:
        """Remember a perturbation (c, H, W)."""
        self.perturbations.append(perturbation)
        self.y.append(float(y))

    def at(self, resize: Resize, points: int | None) -> tuple[Array, Array]:
        """Return latent vectors (n, c h²) and objectives (n,), of at most so many: the best and the newest ones."""
        y = np.array(self.y)
        rows = np.arange(len(y))
        if points is not None and len(y) > points:
            newest = points // 2
            best = np.argsort(-y[: len(y) - newest], kind="stable")[: points - newest]
            rows = np.concatenate([np.sort(best), rows[len(y) - newest :]])
        small = resize.down(np.array([self.perturbations[i] for i in rows]).reshape(-1, *self.shape))
        return np.clip(small.reshape(len(rows), -1), -1.0, 1.0), y[rows]


@experimental
@dataclass(frozen=True, kw_only=True)
class BOS2(Attack):
    """The options of BOS²; :meth:`~surefoot.attack.method.Attack.run` attacks one image.

    Parameters
    ----------
    sizes : sequence of int
        Sides of the latent images to choose from.
    initial_sizes, initial_queries
        Sizes of the first random perturbations, and how many of each. None: the smallest, a middle one and the largest.
    stopping : bool or Abandon
        Whether loops are given up, and by which losses.
    dimension : "learned", "random" or int
        How the size of a loop is chosen.
    length : int
        Most queries of a loop, i_max.
    groups, decompositions, refit : int
        Parts of the additive belief, decompositions compared in every loop, queries from one fit to the next.
    width : width
        Of the perturbation loop, in standard deviations of every part.
    points : int, optional
        Measurements that a belief is conditioned on; None: all.
    candidates, steps : int
        Random points of every part, and quasi-Newton steps from the best of them.
    count_initial : bool
        Whether the first random perturbations count against the budget. They always count as queries.

    >>> BOS2(stopping=False).abandon is None, BOS2().abandon.initial
    (True, 8)
    >>> BOS2(sizes=(4, 6, 8, 10)).first
    (4, 8, 10)
    """

    sizes: tuple[int, ...] = (6, 8, 10, 12, 14, 16, 18)
    initial_sizes: tuple[int, ...] | None = None
    initial_queries: int = 10
    stopping: bool | Abandon = True
    dimension: Literal["learned", "random"] | int = "learned"
    length: int = 40
    groups: int = 12
    decompositions: int = 20
    refit: int = 5
    width: Width = field(default_factory=Constant)
    points: int | None = 200
    candidates: int = 200
    steps: int = 15
    count_initial: bool = True

    def __post_init__(self) -> None:
        for name in ("sizes", "initial_sizes"):
            if (value := getattr(self, name)) is None:
                continue
            sides = tuple(value)
            if not sides or any(isinstance(s, bool) or not isinstance(s, (int, np.integer)) or s < 1 for s in sides):
                raise ValueError(f"{name} are positive whole numbers, got {value!r}")
            object.__setattr__(self, name, tuple(int(s) for s in sides))
        optional = ["points"] if self.points is not None else []
        whole = ["initial_queries", "length", "groups", "decompositions", "refit", "candidates", "steps", *optional]
        for name in whole:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
                raise ValueError(f"{name} must be a positive whole number, got {value!r}")
        fixed = isinstance(self.dimension, (int, np.integer)) and not isinstance(self.dimension, bool)
        if not (fixed or self.dimension in ("learned", "random")):
            raise ValueError(f"dimension must be 'learned', 'random' or a size, got {self.dimension!r}")
        if not callable(self.width):
            raise TypeError(f"width must be callable, for example widths.Constant(2.0); got {self.width!r}")
        if isinstance(self.stopping, Abandon) and self.stopping.length != self.length:
            raise ValueError(f"loops of {self.length} queries need Abandon(length={self.length}), got {self.stopping}")

    @property
    def first(self) -> tuple[int, ...]:
        """Sizes of the first random perturbations."""
        if self.initial_sizes is not None:
            return self.initial_sizes
        if isinstance(self.dimension, (int, np.integer)):
            return (int(self.dimension),)
        every = sorted(set(self.sizes))
        # The published 6, 14 and 18 of 6, 8, ..., 18: the ends, and two thirds of the way between them.
        return tuple(dict.fromkeys([every[0], every[round((len(every) - 1) * 2 / 3)], every[-1]]))

    @property
    def abandon(self) -> Abandon | None:
        """The stopping rule; None where loops are never given up."""
        if isinstance(self.stopping, Abandon):
            return self.stopping
        if not self.stopping or self.length < 3:
            return None
        return Abandon(length=self.length, initial=max(1, self.length // 5))

    def check(self, shape: tuple[int, ...], ball: NormBall) -> None:
        fixed = [int(self.dimension)] if isinstance(self.dimension, (int, np.integer)) else list(self.sizes)
        for size in (*fixed, *self.first):
            Resize(size, (shape[1], shape[2]))

    def allowance(self, budget: int) -> int:
        return budget if self.count_initial else budget + self.initial_queries * len(self.first)

    def search(self, probe: Probe) -> Search:
        shape = probe.image.shape
        data = Latent(shape)
        choice = int(self.dimension) if isinstance(self.dimension, (int, np.integer)) else self.dimension
        sizes = LatentSizes(self.sizes, length=self.length, choice=choice)
        yield from self._initial(probe, data, sizes)
        spent = 0  # queries of the loops, t
        known: dict[int, GP] = {}  # the last belief at every size
        for number in range(1, probe.budget + 1):  # Algorithm 5, line 3: while t < T; the probe ends it
            size = sizes.propose(spent, probe.stream("dimension", number))  # line 4: d* ← DimensionBO
            loop = _Loop(self, probe, data, size, number, known.get(size))
            best = yield from loop.run()  # lines 5 and 6: PerturbationBO, which adds to the data
            known[size] = loop.gp
            spent += loop.queries  # line 8: t ← t + i
            sizes.record(size, spent, best)  # line 7: ((d*, t + i), max y_j)

    def _initial(self, probe: Probe, data: Latent, sizes: LatentSizes) -> Search:
        """Random perturbations at some sizes; each size is recorded as a loop of its own that ended early."""
        for size in self.first:
            resize = Resize(size, (probe.image.shape[1], probe.image.shape[2]))
            draws = probe.stream("initial", size)
            best = -math.inf
            for _ in range(self.initial_queries):
                unit = resize.up(draws.uniform(-1.0, 1.0, (probe.image.shape[0], size, size)))
                probe.initial += 1
                y = float((yield from probe.query(probe.ball.stretch(unit[None])))[0])
                data.add(unit, y)
                best = max(best, y)
            sizes.record(size, self.initial_queries, best)


class _Loop:
    """One perturbation loop, Algorithm 7: Add-GP-UCB at one latent size until it is over or given up."""

    def __init__(self, options: BOS2, probe: Probe, data: Latent, size: int, number: int, known: GP | None) -> None:
        self.options, self.probe, self.data, self.size, self.number = options, probe, data, size, number
        self.channels = probe.image.shape[0]
        self.resize = Resize(size, (probe.image.shape[1], probe.image.shape[2]))
        self.P, self.y = data.at(self.resize, options.points)  # line 2: the data, resized to the latent space
        self.gp = learn(
            self.P,
            self.y,
            groups=options.groups,
            candidates=options.decompositions,
            previous=known,
            rng=probe.stream("decomposition", number),
        )
        self.queries = 0

    def run(self) -> Generator[Array, Array, float]:
        """Run the loop and return its best objective; counts :attr:`queries` on the way."""
        options, probe, start = self.options, self.probe, self.probe.spent
        rule = options.abandon
        before, scores, stopped = max(self.data.y), [], False
        watch, lowest = None, min(self.data.y)
        belief = self.gp.condition(self.P, self.y)
        try:
            for i in range(1, options.length + 1):
                if i > 1 and (i - 1) % options.refit == 0:
                    self.gp = refine(self.gp, self.P, self.y)
                    belief = self.gp.condition(self.P, self.y)
                u = self._next(belief, i)  # lines 4 and 11: δ_i = argmax α_i(δ)
                unit = self.resize.up(u.reshape(self.channels, self.size, self.size))
                self.queries = i
                y = float((yield from probe.query(probe.ball.stretch(unit[None])))[0])  # lines 5 and 12: (5.3)
                self.data.add(unit, y)  # lines 6 and 13
                self.P, self.y = np.vstack([self.P, u]), np.append(self.y, y)
                belief.append(u, y)  # lines 7 and 14
                scores.append(y)
                if rule is None or i < rule.initial:
                    continue
                if i == rule.initial:  # line 8: the table that solves (5.5), from the first i_0 objectives
                    lowest = min(lowest, *scores)
                    watch = rule.watch(best=before, lowest=lowest, round=self.number, seed=probe.seed)
                if watch is None or max(scores) > before:
                    continue
                if watch.report(1.0 - rule.errors(scores, lowest)).stop:  # line 16: only a stop, D₁, stops
                    stopped = i < options.length
                    break
        except Finished:  # the last query is in the probe's trace only
            best = max(probe.trace[start:], default=-math.inf)
            probe.rounds.append(PerturbationLoop(self.size, start, probe.spent - start, best, False))
            raise
        probe.rounds.append(PerturbationLoop(self.size, start, self.queries, max(scores), stopped))
        return max(scores)

    def _next(self, belief: Posterior, i: int) -> Array:
        """The point of the box [−1, 1]^d with the highest sum of bounds (5.4); never one that was measured."""
        options = self.options
        d = self.P.shape[1]
        rng = self.probe.stream("acquire", 1000 * self.number + i)
        parts = Parts(belief)
        u, _ = maximize_parts(
            parts,
            -np.ones(d),
            np.ones(d),
            width=options.width(i, dimension=parts.kernel.index.shape[1], gain=0.0),
            rng=rng,
            candidates=options.candidates,
            seeds=self.P[np.argsort(-self.y, kind="stable")[:SEEDS]],
            steps=options.steps,
        )
        if np.abs(self.P - u).max(axis=1).min() < 1e-9:  # the objective is deterministic: again is in vain
            u = np.clip(u + rng.normal(0.0, 0.3, d), -1.0, 1.0)
        return u


@experimental
def bos2(
    black_box: BlackBox,
    image: ArrayLike,
    target: int | None = None,
    *,
    ball: NormBall,
    budget: int = 900,
    label: int | None = None,
    seed: int | None = 0,
    **options: Any,
) -> AttackResult:
    """Attack one image by BOS².

    Parameters
    ----------
    black_box : BlackBox
        The model under test.
    image : array of shape (H, W) or (H, W, c)
        Within the range of the pixels; with ``channels="first"`` (c, H, W).
    target : int, optional
        The class that the image is to be taken for; None: anything but the true class.
    ball : NormBall
        How far the image may be moved.
    budget : int
        Most queries.
    label : int, optional
        True class. None: what the model answers for the image as it is, which is one query.
    seed : int, optional
        Seed of all random draws; None draws one.
    **options
        Of :class:`BOS2`: ``sizes``, ``stopping``, ``dimension``, ...

    >>> def scores(images):
    ...     bright = 1.0 / (1.0 + np.exp(-40.0 * (images.mean(axis=(1, 2)) - 0.5)))
    ...     return np.column_stack([1.0 - bright, bright])
    >>> box = BlackBox(scores)
    >>> result = bos2(box, np.full((10, 10), 0.45), 1, ball=NormBall(0.1), sizes=(3, 5), groups=3, seed=0)
    >>> result.success, result.queries == box.queries == len(result.trace)
    (True, True)
    """
    return BOS2(**options).run(black_box, image, target, ball=ball, label=label, budget=budget, seed=seed)
