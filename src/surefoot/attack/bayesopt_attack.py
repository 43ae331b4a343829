"""BayesOpt: Bayesian optimization of a low-resolution perturbation, the resolution chosen by marginal likelihood.

A plain Gaussian process over the latent pixels. Every 40 queries one process per size is fitted to everything measured
so far, read at that size, and the most likely one is used. With a fixed size, and an upper bound or a draw from the
belief to be maximized, these are the attackers called BO-UCB and BO-TS. (With an additive process and a fixed size it
is ``BOS2(dimension=size, stopping=False)``.)

Reference: Ru, Cobb, Blaas & Gal 2020. Authors' options: 900 queries, 30 first ones, Matérn-5/2, three standard
deviations, fits every 5 queries, sizes every 40. Differences: the noise is fitted instead of being 10⁻⁶; a belief is
conditioned on at most ``points`` measurements; the bound is maximized from ``candidates`` points and one climb, not
10,000 and five; the first points are uniform draws at the largest size, not a Latin hypercube.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from surefoot.attack.ball import NormBall
from surefoot.attack.bos_squared import SEEDS, Latent
from surefoot.attack.method import Attack
from surefoot.attack.probe import Probe, Search
from surefoot.attack.resize import Resize
from surefoot.belief.additive import Parts
from surefoot.belief.decomposition import learn, refine
from surefoot.belief.gp import GP
from surefoot.belief.posterior import Posterior
from surefoot.policy.ucb.add_gp_ucb import maximize_parts

__all__ = ["BayesOptAttack"]

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class BayesOptAttack(Attack):
    """Bayesian optimization in a latent space of learned or fixed size.

    Parameters
    ----------
    sizes : tuple of int
        Sides of the latent images to choose from.
    dimension : "learned" or int
        Most likely size, or this one.
    rule : "ucb" or "ts"
        Highest upper bound, or highest value of a draw from the belief at random candidates.
    initial, interval, refit : int
        First random perturbations, queries from one choice of the size to the next, and from one fit to the next.
    width : float
        Standard deviations above the mean.
    points : int, optional
        Measurements that a belief is conditioned on.
    candidates : int
        Random points that are looked at.

    >>> import numpy as np
    >>> from surefoot.attack import NormBall, BlackBox
    >>> def scores(images):
    ...     bright = 1.0 / (1.0 + np.exp(-40.0 * (images.mean(axis=(1, 2)) - 0.5)))
    ...     return np.column_stack([1.0 - bright, bright])
    >>> method = BayesOptAttack(sizes=(3, 4), initial=6)
    >>> method.run(BlackBox(scores), np.full((8, 8), 0.45), 1, label=0, ball=NormBall(0.1), budget=60).success
    True
    """

    sizes: tuple[int, ...] = (6, 8, 10, 12, 14, 16, 18, 20)
    dimension: Literal["learned"] | int = "learned"
    rule: Literal["ucb", "ts"] = "ucb"
    initial: int = 30
    interval: int = 40
    refit: int = 5
    width: float = 3.0
    points: int | None = 200
    candidates: int = 500

    def __post_init__(self) -> None:
        if self.rule not in ("ucb", "ts"):
            raise ValueError(f"rule must be 'ucb' or 'ts', got {self.rule!r}")

    @property
    def _allowed(self) -> tuple[int, ...]:
        return self.sizes if self.dimension == "learned" else (int(self.dimension),)

    def check(self, shape: tuple[int, ...], ball: NormBall) -> None:
        for size in self._allowed:
            Resize(size, (shape[1], shape[2]))

    def search(self, probe: Probe) -> Search:
        c, H, W = probe.image.shape
        data = Latent(probe.image.shape)
        largest = Resize(max(self._allowed), (H, W))
        draws = probe.stream("initial")
        for _ in range(self.initial):
            unit = largest.up(draws.uniform(-1.0, 1.0, (c, largest.size, largest.size)))
            probe.initial += 1
            data.add(unit, float((yield from probe.query(probe.ball.stretch(unit[None])))[0]))
        step = 0
        while True:
            gp, resize = self._choose(data, (H, W), probe.stream("sizes", step))
            P, y = data.at(resize, self.points)
            belief = gp.condition(P, y)
            for i in range(self.interval):
                if i and i % self.refit == 0:
                    gp = refine(gp, P, y)
                    belief = gp.condition(P, y)
                u = self._next(belief, P, y, probe.stream("acquire", step))
                unit = resize.up(u.reshape(c, resize.size, resize.size))
                value = float((yield from probe.query(probe.ball.stretch(unit[None])))[0])
                data.add(unit, value)
                P, y = np.vstack([P, u]), np.append(y, value)
                belief.append(u, value)
                step += 1

    def _choose(self, data: Latent, shape: tuple[int, int], rng: np.random.Generator) -> tuple[GP, Resize]:
        """The size whose process explains the measurements best."""
        found = []
        for size in self._allowed:
            resize = Resize(size, shape)
            P, y = data.at(resize, self.points)
            gp = learn(P, y, fixed=(tuple(range(P.shape[1])),), rng=rng)  # one group: a plain process
            found.append((gp.log_likelihood(P, y), gp, resize))
        _, gp, resize = max(found, key=lambda each: each[0])
        return gp, resize

    def _next(self, belief: Posterior, P: Array, y: Array, rng: np.random.Generator) -> Array:
        d = P.shape[1]
        top = P[np.argsort(-y, kind="stable")[:SEEDS]]
        if self.rule == "ucb":
            box = np.ones(d)
            u, _ = maximize_parts(
                Parts(belief), -box, box, width=self.width, rng=rng, candidates=self.candidates, seeds=top
            )
        else:
            wide = rng.uniform(-1.0, 1.0, (self.candidates // 2, d))
            near = np.clip(top[rng.integers(len(top), size=self.candidates // 2)] + 0.2 * wide[::-1], -1.0, 1.0)
            points = np.vstack([wide, near])
            u = points[int(belief.sample(points, 1, rng)[0].argmax())]
        if np.abs(P - u).max(axis=1).min() < 1e-9:
            u = np.clip(u + rng.normal(0.0, 0.3, d), -1.0, 1.0)
        return u
