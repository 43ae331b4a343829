"""The Gaussian side of planning ahead: all paths of moves, and what each would measure.

Whatever is measured on the way, covariances do not depend on it; only means do, and they are linear in it. So one tree
of *paths* carries everything that planning needs, however many outcomes are imagined on each of them. With the
measurements whitened (e = L⁻¹ (z − m), L the Cholesky factor of their covariance), a move with stops s after a path has

* blocks  B_j: its whitened covariance with stage j of the path,
* Ψ: the Cholesky factor of the predictive covariance of its *noisy* outputs, so that z = μ + Ψ x with x ~ N(0, I),
* reward  R = 1ᵀμ + β I, with  1ᵀμ = c + Σ_j w_j · x_j,  w_j = B_j 1,  where x_j are the innovations of stage j, and
* information  I = ½ log|I + Σ_f/σ²| = Σ_i log Ψ_ii − k log σ.

No equation is solved for an imagined outcome: it only appends its innovations x. The outcome taken to be most likely is
x = 0. References: Kharkovskii, Ling & Low 2020, "Nonmyopic Gaussian process optimization with macro-actions", eqs. (1)
and (4); the whitened form is ours.

>>> from surefoot import GP, SE, Dives, Paths
>>> grid = np.stack(np.meshgrid(np.arange(7.0), np.arange(7.0), indexing="ij"), axis=-1).reshape(-1, 2)
>>> paths = Paths(grid, Dives((7, 7), 2), start=24)
>>> belief = GP(SE(2.0), noise=1e-4).condition(grid[[24]], [1.0])
>>> tree = PathTree.grow(belief, paths, 24, horizon=2)
>>> [len(level.rows) for level in tree.levels]
[4, 12]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from surefoot.arguments import not_negative
from surefoot.belief.posterior import EXACT, Posterior
from surefoot.domain import Paths
from surefoot.policy.moves import factors

__all__ = ["PathLevel", "PathTree", "check_paths", "path_counts"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]

MANY = 20_000_000  # paths, beyond which a tree would not fit into memory


@dataclass(frozen=True, eq=False)
class PathLevel:
    """All paths of t moves, siblings side by side; P of them, each move of k stops.

    Attributes
    ----------
    parent : array of shape (P,)
        The path of the level above that each of them continues; 0 at the first level.
    action : array of shape (P,)
        Which of the moves from its place the last move is.
    rows : array of shape (P, k)
        The stops of the last move, as rows of the domain's points.
    first, count : array of shape (P,)
        Where the children of each begin in the level below, and how many there are.
    constant : array of shape (P,)
        c, the expected sum of the last move's values while nothing is known of the path's own, less its toll.
    weights : array of shape (P, t − 1, k)
        w_j, by which the innovations of the earlier stages change it.
    information : array of shape (P,)
        What the last move tells about the field, in nats; 0 where it was not asked for.
    blocks : array of shape (P, t − 1, k, k), optional
        B_j: rows are the innovations of stage j, columns the stops. None at the last level, unless information was
        asked for.
    psi : array of shape (P, k, k), optional
        Ψ; None where blocks are.
    """

    parent: Indices
    action: Indices
    rows: Indices
    first: Indices
    count: Indices
    constant: Array
    weights: Array
    information: Array
    blocks: Array | None
    psi: Array | None


@dataclass(frozen=True, eq=False)
class PathTree:
    """All paths of up to ``horizon`` moves that can be continued to that length; made by :meth:`grow`.

    Attributes
    ----------
    levels : tuple of PathLevel
        The paths of 1, 2, ..., horizon moves.
    moves : int
        How many moves there are at the root; those that lead into a dead end too soon are missing from the tree.
    length : int
        k, the stops of a move.
    exploration : float
        β, the weight of information in the reward.
    belief : Posterior
        What is known at the root.
    noise : float
        The variance σ² of a measurement to come.
    places : array of shape (u,)
        All rows of points in the tree, ascending.
    points : array of shape (u, e)
        The same as the belief sees them.
    cov : array of shape (u, u)
        Their covariance given what is known, without noise.

    >>> from surefoot import GP, MoveTable, Paths
    >>> line = Paths([0.0, 1.0, 2.0], MoveTable({0: [[1]], 1: [[0], [2]]}), start=0)
    >>> PathTree.grow(GP().condition(), line, 0, horizon=3).levels[2].rows.tolist()  # 0 to 1 to 0 to 1: 2 is a dead end
    [[1]]
    """

    levels: tuple[PathLevel, ...]
    moves: int
    length: int
    exploration: float
    belief: Posterior
    noise: float
    places: Indices
    points: Array
    cov: Array

    @property
    def horizon(self) -> int:
        """How many moves the tree looks ahead; fewer than asked for where all longer paths end in dead ends."""
        return len(self.levels)

    @classmethod
    def grow(
        cls,
        belief: Posterior,
        domain: Paths,
        location: int,
        horizon: int,
        *,
        exploration: float = 0.0,
        bonus: str = "latent",
        toll: float = 0.0,
    ) -> PathTree:
        """Return the tree of all paths from a location.

        Parameters
        ----------
        belief : Posterior
            What is known, over the domain's points.
        domain : Paths
            The points and the moves between them.
        location : int
            Where the vehicle stands.
        horizon : int
            Moves to look ahead, at least 1.
        exploration : float
            β, the weight of information.
        bonus : {"latent", "noisy"}
            Whose covariance the information is about: that of the field, as it should be, or that of the noisy
            measurements, which counts the noise twice.
        toll : float
            What one unit of a move's cost takes off its reward.

        Raises
        ------
        ValueError
            No move leads away from the location, or there are too many paths to list.
        """
        shapes = _enumerate(domain, location, horizon)
        places, inverse = np.unique(np.concatenate([rows.ravel() for _, _, rows in shapes]), return_inverse=True)
        points = domain.encode(domain.points[places])
        kernel = belief.gp.kernel
        cross = belief.inverse @ kernel(belief.X, points) if belief.n else np.empty((0, len(places)))
        mean = belief.mean(points)
        cov = kernel(points) - cross.T @ cross  # eq. (1), of the field: without the noise of its measurements
        prior = float(kernel.diag(points).max())
        noise = max(belief.gp.noise, EXACT * prior)
        local = np.split(inverse.ravel(), np.cumsum([rows.size for _, _, rows in shapes])[:-1])
        tolls = _tolls(domain, location, shapes, toll) if toll > 0.0 else []
        made: list[PathLevel] = []
        inner: list[Array] = []  # Ψ⁻¹ of each level
        stops: list[Indices] = []
        for depth, (parent, action, rows) in enumerate(shapes):
            stops.append(local[depth].reshape(rows.shape))
            last = depth == len(shapes) - 1
            full = not last or exploration > 0.0
            blocks = _blocks(made, inner, stops, parent, cov, full)
            weights = blocks.sum(axis=-1)
            information, psi = np.zeros(len(rows)), None
            if full:
                own = cov[stops[-1][:, :, None], stops[-1][:, None, :]] - np.einsum("pjab,pjac->pbc", blocks, blocks)
                psi = factors(own, noise, prior)  # ΨΨᵀ = Σ of eq. (1)
                inner.append(np.asarray(np.linalg.inv(psi), dtype=np.float64))
                information = _information(own, psi, noise, prior, bonus) if exploration > 0.0 else information
            below = np.bincount(shapes[depth + 1][0], minlength=len(rows)) if not last else np.zeros(len(rows), np.intp)
            made.append(
                PathLevel(
                    parent=parent,
                    action=action,
                    rows=rows,
                    first=(np.cumsum(below) - below).astype(np.intp),
                    count=below.astype(np.intp),
                    constant=mean[stops[-1]].sum(axis=1) - (tolls[depth] if tolls else 0.0),
                    weights=weights,
                    information=information,
                    blocks=blocks if full else None,
                    psi=psi,
                )
            )
        options = len(domain.moves(location))
        return cls(tuple(made), options, domain.length, exploration, belief, noise, places, points, cov)

    def reward(self, depth: int) -> Array:
        """Return R = c + β I of the paths of ``depth`` moves, shape (P,): eq. (4) at the most likely outcome."""
        level = self.levels[depth - 1]
        return level.constant + self.exploration * level.information

    def ancestors(self, depth: int) -> list[Indices]:
        """Return for the paths of ``depth`` moves their beginnings of 1, 2, ..., depth moves, each of shape (P,)."""
        found = [np.arange(len(self.levels[depth - 1].parent))]
        for level in self.levels[depth - 1 : 0 : -1]:
            found.insert(0, level.parent[found[0]])
        return found

    def slopes(self) -> Array:
        """Return how the innovations of each stage change the sum of all later rewards, by whole path.

        Shape (P, horizon − 1, k): entry (p, t) is Σ_(τ > t) w_t of stage τ along path p, the column sums of the later
        Cholesky blocks.
        """
        whole = self.ancestors(self.horizon)
        total = np.zeros((len(whole[0]), self.horizon - 1, self.length))
        for depth in range(1, self.horizon):
            total[:, :depth] += self.levels[depth].weights[whole[depth]]
        return total

    def leaves(self, depth: int) -> Indices:
        """Return where the whole paths that continue each path of ``depth`` moves begin, and where the last ones end.

        Shape (P + 1,): they stand side by side.

        >>> from surefoot import GP, MoveTable, Paths
        >>> line = Paths([0.0, 1.0, 2.0], MoveTable({0: [[1], [2]], 1: [[0], [2]], 2: [[0]]}), start=0)
        >>> PathTree.grow(GP().condition(), line, 0, horizon=2).leaves(1)
        array([0, 2, 3])
        """
        end = len(self.levels[-1].rows)
        if depth == 0:
            return np.array([0, end], dtype=np.intp)
        starts = np.arange(len(self.levels[depth - 1].rows))
        for level in self.levels[depth - 1 : -1]:
            starts = level.first[starts]
        return np.append(starts, end)

    def best_below(self, depth: int, values: Array) -> Array:
        """Return the largest of the values (P', ...) of the children of each path of ``depth`` moves, shape (P, ...).

        Every path has children but those of the last level; ``depth`` 0 is the root.
        """
        starts = np.zeros(1, dtype=np.intp) if depth == 0 else self.levels[depth - 1].first
        best: Array = np.maximum.reduceat(values, starts, axis=0)
        return best

    def at_root(self, values: Array) -> Array:
        """Return values of the first level's paths as one number per move of the location, −inf where it is missing."""
        table = np.full(self.moves, -np.inf)
        table[self.levels[0].action] = values
        return table


def path_counts(domain: Paths, location: int, horizon: int) -> list[float]:
    """Return how many paths of 1, 2, ..., horizon moves a tree has, without growing it; fewer numbers at dead ends.

    >>> from surefoot import GraphPaths
    >>> path_counts(Paths([[0.0], [1.0], [2.0]], GraphPaths([[1, 2], [0, 2], [0, 1]], 1), start=0), 0, 3)
    [2.0, 4.0, 8.0]
    """
    steps: list[tuple[Indices, Indices]] = []  # the places after so many moves, and where the moves from each end
    places = np.array([location], dtype=np.intp)
    for _ in range(horizon):
        table = domain.generator.table(places)
        ends = np.where(table[:, :, 0] >= 0, table[:, :, -1], -1)
        if not (ends >= 0).any():
            break
        steps.append((places, ends))
        places = np.unique(ends[ends >= 0])
    kept: list[tuple[Indices, Indices, Mask]] = []
    for before, ends in reversed(steps):  # only paths that can be continued to the last level
        keep = (ends >= 0) & np.isin(ends, places)
        kept.insert(0, (before, ends, keep))
        places = before[keep.any(axis=1)]
    counts: list[float] = []
    arrived = np.zeros(domain.size)
    arrived[location] = 1.0
    for before, ends, keep in kept:
        following = np.zeros(domain.size)
        np.add.at(following, ends[keep], np.repeat(arrived[before], keep.sum(axis=1)))
        counts.append(float(following.sum()))
        arrived = following
    return counts


def check_paths(domain: Paths, counts: Sequence[float]) -> None:
    """Refuse a horizon with more paths than fit into memory, given what :func:`path_counts` says of the start.

    >>> from surefoot import MoveTable, Paths
    >>> ring = Paths([0.0, 9.0], MoveTable({0: [[1], [0]], 1: [[1]]}), start=0)
    >>> check_paths(ring, path_counts(ring, 0, 2))
    >>> check_paths(ring, [2.0, 1e12])
    Traceback (most recent call last):
    ...
    ValueError: there are 1.0e+12 paths of 2 moves from place 0: lower horizon, or keep fewer moves; ...
    """
    if counts[-1] * domain.length > MANY:
        raise ValueError(
            f"there are {counts[-1]:.1e} paths of {len(counts)} moves from place {domain.start}: lower horizon, or "
            "keep fewer moves; horizon=None looks as far ahead as is affordable"
        )


def _tolls(domain: Paths, location: int, shapes: list[tuple[Indices, Indices, Indices]], toll: float) -> list[Array]:
    """What the last move of each path takes off its reward, level by level; every move is priced once."""
    known: dict[tuple[int, int], float] = {}
    tolls: list[Array] = []
    places = np.array([location], dtype=np.intp)
    for parent, action, rows in shapes:
        from_place = places[parent]
        made = np.empty(len(rows))
        for i, key in enumerate(zip(from_place.tolist(), action.tolist(), strict=True)):
            if key not in known:
                known[key] = not_negative(
                    domain.price(key[0], rows[i]) or 0.0, f"the cost of the move {rows[i].tolist()}"
                )
            made[i] = toll * known[key]
        tolls.append(made)
        places = rows[:, -1]
    return tolls


def _enumerate(domain: Paths, location: int, horizon: int) -> list[tuple[Indices, Indices, Indices]]:
    """Parents, actions and stops, level by level; only of paths that can be continued to the last level."""
    levels: list[tuple[Indices, Indices, Indices]] = []
    ends = np.array([location], dtype=np.intp)
    for depth in range(horizon):
        table = domain.generator.table(ends)
        parent, action = np.nonzero(table[:, :, 0] >= 0)
        if not len(parent):
            if not depth:
                raise ValueError(f"place {location} is a dead end: no move leads away from it")
            break  # everything longer ends in a dead end
        if len(parent) * domain.length > MANY:
            raise ValueError(
                f"there are {len(parent)} paths of {depth + 1} moves from place {location}: "
                "look less far ahead, or keep fewer moves"
            )
        rows = table[parent, action]
        levels.append((parent, action, rows))
        ends = rows[:, -1]
    for depth in range(len(levels) - 1, 0, -1):
        parent, action, rows = levels[depth - 1]
        alive = np.zeros(len(parent), dtype=np.bool_)
        alive[levels[depth][0]] = True
        renumbered = np.cumsum(alive) - 1
        levels[depth] = (renumbered[levels[depth][0]].astype(np.intp), *levels[depth][1:])
        levels[depth - 1] = (parent[alive], action[alive], rows[alive])
    return levels


def _blocks(
    levels: Sequence[PathLevel],
    inner: Sequence[Array],
    stops: Sequence[Indices],
    parent: Indices,
    cov: Array,
    full: bool,
) -> Array:
    """Whitened covariances of the last stops with the earlier stages, shape (P, t − 1, k, k), or their row sums.

    Forward substitution by blocks: B_j = Ψ_j⁻¹ (C_j − Σ_(i < j) B_ijᵀ B_i), with B_ij those of stage j itself.
    """
    now = stops[-1]
    columns = now.shape[1] if full else 1
    made = np.empty((len(now), len(levels), now.shape[1], columns))
    above = [parent]
    for level in levels[:0:-1]:
        above.insert(0, level.parent[above[0]])
    for j in range(len(levels)):
        rest = cov[stops[j][above[j]][:, :, None], now[:, None, :]]
        rest = rest if full else rest.sum(axis=2, keepdims=True)
        if j:
            earlier = cast(Array, levels[j].blocks)  # only the last level does without
            rest = rest - np.einsum("piab,piac->pbc", earlier[above[j]], made[:, :j])
        made[:, j] = inner[j][above[j]] @ rest
    return made


def _information(own: Array, psi: Array, noise: float, prior: float, bonus: str) -> Array:
    """½ log|I + Σ/σ²| (eq. (4)) of the field's covariance, or of that of its noisy measurements, as printed."""
    factor = psi if bonus == "latent" else factors(own, 2.0 * noise, prior)
    gain: Array = np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1) - 0.5 * own.shape[-1] * np.log(noise)
    return gain
