"""Synthetic games on grids: payoffs drawn from a Gaussian process and scaled to [0, 1], and who plays them.

A payoff is a draw of GP(0, SE), length-scale 0.1, on a grid of each player's actions in [0, 1]. After scaling by its
minimum m and range R it is a draw of a process with mean −m/R and variance 1/R²: the prior of configuration "P". The
published games come scaled; their mean and variance are estimated from the whole table (:func:`scaled_prior`).
Configuration "Q" imitates the released code: mean 0, variance 1, noise variance 1 that counts as uncertainty.

One repetition is one game; several beginnings of the same game are averaged, so that repetitions are independent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from surefoot.belief.gp import GP
from surefoot.belief.kernels import SE
from surefoot.domain import Candidates
from surefoot.games.game import Game, play
from surefoot.games.hedge import GPMW
from surefoot.games.player import Player
from surefoot.games.strategies import Strategy
from surefoot_lab import Metric, Order, datasets
from surefoot_lab.registry import Replicate, Trace

Array = NDArray[np.float64]

LENGTH = 0.1
KINDS = ("common", "general", "constant")
FIVE = ("0v0", "1v0", "1v0 Lite", "2v1", "3v2")
PUBLISHED = 10  # games that came with the released code


def axis(side: int) -> Candidates:
    """Actions of one player."""
    return Candidates(np.linspace(0.0, 1.0, side))


def _modes(side: int) -> tuple[Array, Array]:
    """Eigenvalues (largest first) and eigenvectors of the kernel on one axis: SE is a product over axes."""
    points = np.linspace(0.0, 1.0, side)[:, None]
    values, vectors = np.linalg.eigh(SE(lengthscale=LENGTH)(points))
    return np.maximum(values[::-1], 0.0), vectors[:, ::-1]


def smooth_draw(side: int, players: int, rng: np.random.Generator) -> Array:
    """A draw of GP(0, SE) on the product grid, one mode after the other: no (side^players)² covariance."""
    values, vectors = _modes(side)
    root = vectors * np.sqrt(values)
    f = rng.standard_normal((side,) * players)
    for mode in range(players):
        f = np.moveaxis(np.tensordot(root, f, axes=(1, mode)), 0, mode)
    return f


def scaled_prior(table: Array, keep: float = 1e-6) -> tuple[float, float]:
    """Mean and standard deviation of the process whose draw, with known correlations, fits a table best.

    Maximum likelihood in the coordinates of the eigenvectors; those with a share of the variance below ``keep`` are
    rounding error.
    """
    values, vectors = _modes(table.shape[0])
    ones, f = np.ones_like(table), table
    for mode in range(table.ndim):
        f, ones = (np.moveaxis(np.tensordot(vectors.T, g, axes=(1, mode)), 0, mode) for g in (f, ones))
    weight = values
    for _ in range(table.ndim - 1):
        weight = np.multiply.outer(weight, values)
    used = weight > keep * weight.max()
    f, ones = f[used] / np.sqrt(weight[used]), ones[used] / np.sqrt(weight[used])
    mean = float(ones @ f / (ones @ ones))
    return mean, float(np.sqrt(np.mean((f - mean * ones) ** 2)))


@dataclass(frozen=True)
class Payoff:
    """One payoff in [0, 1], with mean and standard deviation of the process it is a draw of."""

    table: Array
    mean: float
    std: float

    @classmethod
    def drawn(cls, side: int, players: int, rng: np.random.Generator) -> Payoff:
        """A fresh one."""
        f = smooth_draw(side, players, rng)
        low, width = float(f.min()), float(np.ptp(f))
        return cls((f - low) / width, -low / width, 1.0 / width)

    @classmethod
    def published(cls, game: int, seat: int) -> Payoff:
        """One of the released ones."""
        table = np.asarray(datasets.load("r2b2_games")["payoff"][game, seat], dtype=np.float64)
        return cls(table, *scaled_prior(table))

    def mirrored(self) -> Payoff:
        """The rest to 1."""
        return Payoff(1.0 - self.table, 1.0 - self.mean, self.std)

    def prior(self, configuration: str) -> GP:
        """What the players believe beforehand."""
        if configuration == "Q":
            return GP(SE(lengthscale=LENGTH), noise=1.0)
        return GP(SE(lengthscale=LENGTH, variance=self.std**2), noise=0.01 * self.std**2, mean=self.mean)


def two_payoffs(replicate: Replicate) -> list[Payoff]:
    """Both payoffs of the game of one repetition: a published one first, then fresh ones."""
    if replicate.index < replicate["published"]:
        return [Payoff.published(replicate.index, seat) for seat in range(2)]
    rng = replicate.rng("payoffs")
    return [Payoff.drawn(replicate["side"], 2, rng) for _ in range(2)]


def of_kind(kind: str, payoffs: Sequence[Payoff]) -> list[Payoff]:
    """The payoffs of a common-payoff, general-sum or constant-sum game."""
    if kind == "general":
        return list(payoffs)
    return [payoffs[0], payoffs[0] if kind == "common" else payoffs[0].mirrored()]


@dataclass(frozen=True)
class Seating:
    """Who sits where: levels, what they assume about each other, and the level-0 strategies they believe in."""

    levels: tuple[int, ...]
    profiles: tuple[Sequence[int | None] | None, ...]
    lite: bool = False
    strategies: Mapping[int, Sequence[Strategy]] | None = None

    @classmethod
    def read(cls, name: str) -> Seating:
        """From a name such as "2v1", "1v0 Lite" or "210"; with three players, level 2 knows the others' levels."""
        digits, _, rest = name.partition(" ")
        levels = tuple(int(level) for level in digits.replace("v", ""))
        profiles: list[Sequence[int | None] | None] = [None] * len(levels)
        if len(levels) > 2:
            for seat, level in enumerate(levels):
                if level == 2:
                    profiles[seat] = [None if j == seat else min(other, 1) for j, other in enumerate(levels)]
        return cls(levels, tuple(profiles), lite=rest == "Lite")


def match(
    payoffs: Sequence[Payoff], seating: Seating, strategy: Strategy, configuration: str, replicate: Replicate
) -> Trace:
    """Play the game from each beginning; average what the players lost."""
    side, count = payoffs[0].table.shape[0], len(payoffs)
    spaces = [axis(side)] * count
    game = Game([payoff.table for payoff in payoffs], spaces, noise=1e-8 if configuration == "Q" else 0.0)
    gps = [payoff.prior(configuration) for payoff in payoffs]
    mean, external = [], []
    for start in range(replicate["starts"]):
        players = [
            Player(
                spaces[seat],
                others=spaces[1:],
                position=seat,
                level=level,
                profile=seating.profiles[seat],
                strategies=(seating.strategies or {}).get(seat, strategy),
                gp=gps,
                lite=seating.lite,
                predictive=configuration == "Q",
                seed=int(replicate.rng("player", 10 * start + seat).integers(2**53)),
            )
            for seat, level in enumerate(seating.levels)
        ]
        seed = int(replicate.rng("start", start).integers(2**53))
        done = play(game, players, replicate["horizon"], seed=seed)
        mean.append([done.mean_regret(seat) for seat in range(count)])
        external.append(done.external_regret(0) / np.arange(1, replicate["horizon"] + 1))
    lost = np.mean(mean, axis=0)
    named = {f"regret_{seat + 1}": lost[seat] for seat in range(1, count)}
    return Trace(regret=lost[0], external=np.mean(external, axis=0), **named)


def tournament(
    replicate: Replicate,
    strategy: Callable[[str], Strategy],
    seatings: Mapping[str, Seating],
    kinds: Sequence[str] = KINDS,
) -> dict[str, Trace]:
    """Every seating in every kind of game, with the priors of the budget's configurations."""
    both = two_payoffs(replicate)
    traces = {}
    for configuration in replicate["configurations"]:
        for kind in kinds:
            for name, seating in seatings.items():
                trace = match(of_kind(kind, both), seating, strategy(configuration), configuration, replicate)
                traces[named(name, kind, configuration)] = trace
    return traces


def named(seating: str, kind: str, configuration: str = "P") -> str:
    """The name of a method."""
    return f"{seating}, {kind}" + (" (Q)" if configuration == "Q" else "")


def five() -> dict[str, Seating]:
    """The five seatings of the figures."""
    return {name: Seating.read(name) for name in FIVE}


def five_claims(regret: Metric) -> list[Order]:
    """Return what is claimed of the five seatings whatever level 0 is."""
    return [
        Order(
            "1 against 0, 2 against 1 and 3 against 2 are below 0 against 0 in all three games",
            [
                regret[named(name, kind)] < regret[named("0v0", kind)]
                for kind in KINDS
                for name in ("1v0", "2v1", "3v2")
            ],
        ),
        Order(
            "the expectation is below one draw (Lite)",
            [regret[named("1v0", kind)] < regret[named("1v0 Lite", kind)] for kind in KINDS],
        ),
        Order(
            "constant-sum: 3 against 2 is below 2 against 1",
            regret[named("3v2", "constant")] < regret[named("2v1", "constant")],
        ),
    ]


def weights(configuration: str) -> GPMW:
    """GP-MW as the numbers of the table have it: η = 0.1, bounds cut to [0, 1] in P and not in Q."""
    return GPMW(eta=0.1, payoff_range=None if configuration == "Q" else (0.0, 1.0))
