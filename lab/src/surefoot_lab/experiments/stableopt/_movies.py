"""Movies and users as vectors: a user's liking is linear in the movie, and a belief about it has 15 dimensions.

Ratings are factorized into non-negative factors, movies m ∈ R¹⁵ and users u ∈ R¹⁵. A tenth of the users gives the prior
u ~ N(μ, Σ); for everybody else f(m) = mᵀu is a Gaussian process with mean mᵀμ and covariance mᵀΣm′, which Bayesian
linear regression updates in 15 dimensions. That process has no constant mean, so that the three rules are written out
here; with μ = 0 they are StableOpt, MaxiMin-GP-UCB and GP-UCB on groups, which the tests check.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.vq import kmeans2

from surefoot_lab import datasets

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

FACTORS, GROUPS, SWEEPS = 15, 80, 150
WIDTH = 2.0
STABLE, UCB, MAXIMIN = "StableOpt", "GP-UCB", "MaxiMin-GP-UCB"


@dataclass(frozen=True)
class Taste:
    """Movies (n, p), test users (k, p), the prior of a user, and the groups of movies as one list."""

    movies: Array
    users: Array
    mean: Array
    cov: Array
    order: Indices  # movies sorted by group
    starts: Indices  # where each group begins in it

    def lowest(self, values: Array) -> Array:
        """The minimum over each group of values of the movies."""
        lowest: Array = np.minimum.reduceat(values[self.order], self.starts)
        return lowest

    def members(self, group: int) -> Indices:
        """The movies of a group."""
        ends = np.append(self.starts[1:], len(self.order))
        return self.order[self.starts[group] : ends[group]]

    def group_of(self, movie: int) -> int:
        """The group of a movie."""
        place = int(np.flatnonzero(self.order == movie)[0])
        return int(np.searchsorted(self.starts, place, side="right")) - 1


def factorize_ratings(ratings: Array, factors: int, sweeps: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Non-negative factors of users (k, p) and movies (n, p) for ratings (k, n), 0 where there is none.

    Multiplicative updates of the squared error over the ratings that exist (Lee & Seung 2001, with weights).
    """
    known = ratings > 0
    scale = np.sqrt(ratings[known].mean() / factors)
    U, M = (scale * rng.uniform(0.5, 1.5, (count, factors)) for count in ratings.shape)
    for _ in range(sweeps):
        U *= (ratings @ M) / ((known * (U @ M.T)) @ M + 1e-9)
        M *= (ratings.T @ U) / ((known * (U @ M.T)).T @ U + 1e-9)
    return U, M


@cache
def _factors() -> tuple[Array, Array]:
    table = datasets.load("movielens_100k")
    users, user = np.unique(table["inter_user_id"], return_inverse=True)
    movies, movie = np.unique(table["inter_item_id"], return_inverse=True)
    ratings = np.zeros((len(users), len(movies)))
    ratings[user, movie] = table["inter_rating"]
    return factorize_ratings(ratings, FACTORS, SWEEPS, np.random.default_rng(0))


@cache
def tastes(clustering: int = 0) -> Taste:
    """The data with one clustering of the movies, by k-means from one seed."""
    users, movies = _factors()
    return taste(movies, users, GROUPS, np.random.default_rng(clustering))


def taste(movies: Array, users: Array, groups: int, rng: np.random.Generator) -> Taste:
    """A prior from a random tenth of the users, and groups of movies from k-means; empty groups are left out."""
    known = np.zeros(len(users), dtype=bool)
    known[rng.choice(len(users), max(2, len(users) // 10), replace=False)] = True
    labels = kmeans2(movies, groups, minit="++", seed=rng)[1]
    order = np.argsort(labels, kind="stable")
    starts = np.flatnonzero(np.diff(labels[order], prepend=-1))
    cov = np.cov(users[known].T) + 1e-9 * np.eye(users.shape[1])
    return Taste(movies, users[~known], users[known].mean(axis=0), cov, order, starts)


def _stable(taste: Taste, upper: Array, lower: Array) -> tuple[int, int]:
    group = int(taste.lowest(upper).argmax())
    members = taste.members(group)
    return group, int(members[lower[members].argmin()])


def _maximin(taste: Taste, upper: Array, lower: Array) -> tuple[int, int]:
    group = int(taste.lowest(upper).argmax())
    members = taste.members(group)
    return group, int(members[upper[members].argmin()])


def _ucb(taste: Taste, upper: Array, lower: Array) -> tuple[int, int]:
    movie = int(upper.argmax())
    return taste.group_of(movie), movie


RULES: dict[str, Callable[[Taste, Array, Array], tuple[int, int]]] = {STABLE: _stable, UCB: _ucb, MAXIMIN: _maximin}


def ask_user(taste: Taste, user: Array, rule: str, rounds: int, noise: float, rng: np.random.Generator) -> Indices:
    """Ask one user about a movie per round and return the group reported in each, shape (rounds,)."""
    w, S = taste.mean.copy(), taste.cov.copy()
    truth, errors = taste.movies @ user, np.sqrt(noise) * rng.standard_normal(rounds)
    reported = np.empty(rounds, dtype=np.intp)
    for t in range(rounds):
        mean = taste.movies @ w
        half = WIDTH * np.sqrt(np.maximum(np.einsum("mi,ij,mj->m", taste.movies, S, taste.movies, optimize=True), 0.0))
        reported[t], movie = RULES[rule](taste, mean + half, mean - half)
        m = taste.movies[movie]
        gain = S @ m / (m @ S @ m + noise)
        w = w + gain * (truth[movie] + errors[t] - mean[movie])
        S = S - np.outer(gain, S @ m)
        S = 0.5 * (S + S.T)
    return reported
