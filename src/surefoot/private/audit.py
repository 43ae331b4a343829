"""Attacks that a guarantee must survive: an empirical lower bound on ε, and the reconstruction of projected rows.

A mechanism that claims (ε, δ) says that no event is more than exp(ε) times as likely, plus δ, under one input as under
a neighboring one. :func:`audit` runs it many times on two neighboring inputs, looks for the event that tells them apart
best, and returns an ε that the mechanism has *at least*, with the stated confidence. A claim below that is false. A
claim above it was not refuted, which is less than a proof.

>>> import numpy as np
>>> def half_noise(x, noise, trials):      # claims ε = 1, δ = 0.01, which needs 1.88
...     return noise.gaussian(np.full(trials, x), 0.94)
>>> found = audit(half_noise, 0.0, 1.0, delta=0.01, trials=40_000, claim=1.0)
>>> found.refuted, found.bound.epsilon > 1.5
(True, True)

:func:`reconstruct` is the attack on projections without noise: whoever knows a few rows knows all.

What we ship is listed in :data:`AUDITS`; ``surefoot audit`` runs all of it.

References: Clopper & Pearson 1934; Jagielski, Ullman & Oprea 2020; Nasr et al. 2023.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv

from surefoot.private.noise import Noise, ResearchNoise

__all__ = ["AUDITS", "Audit", "AuditCase", "Bound", "Reconstruction", "audit", "lower_bound", "reconstruct"]

Array = NDArray[np.float64]
_CHUNK = 2_000_000  # numbers released at a time
_CHOOSING = 3  # one trial in three chooses the event, the others judge it


@dataclass(frozen=True, eq=False)
class AuditCase:
    """A mechanism as it is shipped, two neighboring inputs, and what it claims.

    Attributes
    ----------
    name : str
        What the table calls it.
    release : callable
        ``release(data, noise, trials)`` returns ``trials`` independent releases, stacked along the first axis; all
        noise is drawn from ``noise``, a :class:`~surefoot.private.noise.Noise`, so that a million trials take seconds.
    one, two : any
        Neighboring inputs, as ``release`` takes them; the harder to tell apart is not the point, the easier is.
    epsilon, delta : float
        The claim; ``epsilon=None`` for a mechanism that claims nothing.
    score : callable, optional
        ``score(releases)`` of shape (trials, ...) gives (trials,) numbers, larger the more the release looks like one
        of ``two``; the best is the log-likelihood ratio. Default: the direction between the mean releases, learnt from
        separate trials.
    matrices : callable, optional
        ``matrices(noise)`` returns a released matrix of shape (n, r) and the rows of shape (n, d) it was made of, in
        the same order, for :func:`reconstruct`.
    note : str
        What is being told apart.

    >>> case = AuditCase("blur", lambda x, noise, trials: noise.gaussian(np.full(trials, x), 4.0), 0.0, 1.0, 1.0, 1e-5)
    >>> case.release(case.one, ResearchNoise(0), 3).shape
    (3,)
    """

    name: str
    release: Callable[[Any, Noise, int], Array]
    one: Any
    two: Any
    epsilon: float | None
    delta: float
    score: Callable[[Array], Array] | None = None
    matrices: Callable[[Noise], tuple[Array, Array]] | None = None
    note: str = ""


AUDITS: dict[str, Callable[[float, float], AuditCase]] = {}
"""What is audited by name: ``AUDITS[name](epsilon, delta)`` builds the case of a mechanism calibrated to (ε, δ).

A module that ships a mechanism enters it here: ``AUDITS["gaussian"] = _gaussian_case``."""


@dataclass(frozen=True)
class Bound:
    """A lower bound on ε.

    Attributes
    ----------
    epsilon : float
        The bound; 0 where nothing could be told apart.
    confidence : float
        With which the true ε is at least that.
    threshold : float
        The event is a score of at least this, or less than it.
    above : bool
        Whether it is "at least".
    likelier : {"one", "two"}
        The input under which the event is likelier.
    rates : tuple of float
        Share of the judging trials in which the event happened, under "one" and under "two".

    >>> Bound(0.5, 0.999, 1.2, True, "two", (0.1, 0.2)).epsilon
    0.5
    """

    epsilon: float
    confidence: float
    threshold: float
    above: bool
    likelier: str
    rates: tuple[float, float]


@dataclass(frozen=True, eq=False)
class Audit:
    """What an audit found.

    Attributes
    ----------
    bound : Bound
        The lower bound on ε.
    claim : float or None
        The ε that was claimed.
    delta : float
        At this δ.
    trials : int
        Releases of each input.
    scores : tuple of two arrays of shape (trials,)
        The scores under "one" and "two".

    >>> Audit(Bound(1.5, 0.999, 0.0, True, "two", (0.1, 0.6)), 1.0, 1e-5, 10, (np.zeros(10), np.ones(10))).refuted
    True
    """

    bound: Bound
    claim: float | None
    delta: float
    trials: int
    scores: tuple[Array, Array]

    @property
    def refuted(self) -> bool:
        """Whether there was a claim and it is false, with the bound's confidence."""
        return self.claim is not None and self.bound.epsilon > self.claim


def lower_bound(trials_one: ArrayLike, trials_two: ArrayLike, delta: float, confidence: float = 0.999) -> Bound:
    """Return an ε that any mechanism with these scores must have, with the given confidence.

    (ε, δ) means P(E | two) ≤ exp(ε) P(E | one) + δ for every event E, and the same with the inputs exchanged, so that
    ε ≥ log((P(E | two) - δ) / P(E | one)). One trial in three chooses E among the scores above or below some threshold;
    the others, which had no say in the choice, bound both probabilities by Clopper and Pearson's intervals.

    Parameters
    ----------
    trials_one, trials_two : array of shape (trials,)
        Scores of independent releases under two neighboring inputs.
    delta : float
        At least 0 and less than 1.
    confidence : float
        Probability that the bound is right.

    >>> draws = np.random.default_rng(0)
    >>> found = lower_bound(draws.normal(0.0, 1.0, 20_000), draws.normal(1.0, 1.0, 20_000), 0.01)
    >>> 1.2 < found.epsilon < 2.32, found.above, found.likelier     # 2.32 is the truth
    (True, True, 'two')
    """
    one, two = (_scores(trials, name) for trials, name in ((trials_one, "trials_one"), (trials_two, "trials_two")))
    if not 0.0 <= delta < 1.0:
        raise ValueError(f"delta must be at least 0 and less than 1, got {delta}")
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must lie strictly between 0 and 1, got {confidence}")
    miss = (1.0 - confidence) / 2.0  # for each of the two probabilities
    chosen = [np.sort(scores[::_CHOOSING]) for scores in (one, two)]
    judges = [np.delete(scores, np.s_[::_CHOOSING]) for scores in (one, two)]
    # Thresholds of the choice: quantiles of both samples, denser in the tails, where events are rare and telling.
    tails = np.geomspace(1.0 / min(len(scores) for scores in chosen), 0.5, 100)
    levels = np.concatenate([tails, 1.0 - tails])
    thresholds = np.unique(np.concatenate([np.quantile(scores, levels) for scores in chosen]))
    below = [np.searchsorted(scores, thresholds, side="left") / len(scores) for scores in chosen]
    best: tuple[float, float, bool, int] = (-math.inf, float(thresholds[0]), True, 1)
    for above in (True, False):
        rates = [1.0 - share if above else share for share in below]
        for likelier in (0, 1):
            # By what these trials alone would prove: a rare event that looks telling by luck does not win.
            values = _value(rates[likelier], rates[1 - likelier], chosen[likelier], chosen[1 - likelier], delta, miss)
            place = int(np.argmax(values))
            if values[place] > best[0]:
                best = (float(values[place]), float(thresholds[place]), above, likelier)
    _, threshold, above, likelier = best
    seen = [float(np.mean(scores >= threshold if above else scores < threshold)) for scores in judges]
    found = _value(seen[likelier], seen[1 - likelier], judges[likelier], judges[1 - likelier], delta, miss)
    name = ("one", "two")[likelier]
    return Bound(max(0.0, float(found)), confidence, threshold, above, name, (seen[0], seen[1]))


def _scores(trials: ArrayLike, name: str) -> Array:
    scores = np.asarray(trials, dtype=np.float64)
    if scores.ndim != 1 or scores.size < 100:
        raise ValueError(f"{name} must be one score for each of at least 100 releases, got shape {scores.shape}")
    if np.isnan(scores).any():
        raise ValueError(f"{name} holds {int(np.isnan(scores).sum())} scores that are not a number")
    return scores


def _value(likely: Any, other: Any, judges: Array, others: Array, delta: float, miss: float) -> Any:
    """log((p - δ) / q) with p bounded from below and q from above, each with probability of error ``miss``."""
    hits, size = np.round(np.asarray(likely) * judges.size), judges.size
    low = np.where(hits > 0, betaincinv(np.maximum(hits, 1.0), size - hits + 1.0, miss), 0.0)
    hits, size = np.round(np.asarray(other) * others.size), others.size
    high = np.where(hits < size, betaincinv(hits + 1.0, np.maximum(size - hits, 1.0), 1.0 - miss), 1.0)
    return np.log(np.maximum(low - delta, 1e-300)) - np.log(high)


def audit(
    mechanism: Callable[..., Array],
    one: Any,
    two: Any,
    *,
    delta: float,
    claim: float | None = None,
    trials: int = 100_000,
    score: Callable[[Array], Array] | None = None,
    confidence: float = 0.999,
    batched: bool = True,
    noise: Noise | None = None,
) -> Audit:
    """Run a mechanism on two neighboring inputs and bound its ε from below.

    Parameters
    ----------
    mechanism : callable
        ``mechanism(data, noise, trials)`` returning that many releases along the first axis, or, with
        ``batched=False``, ``mechanism(data, noise)`` returning one.
    one, two : any
        Neighboring inputs.
    delta, claim : float
        The claim to test; without ``claim`` the bound alone is found.
    trials : int
        Releases of each input. A bound above log(trials / 10) or so cannot be reached.
    score : callable, optional
        See :class:`AuditCase`.
    confidence : float
        Of the bound.
    noise : Noise, optional
        Default: ``ResearchNoise(0)``, so that an audit can be repeated.

    >>> found = audit(lambda x, noise: noise.gaussian(x, 2.0), [0.0], [1.0], delta=1e-5, trials=500, batched=False)
    >>> found.bound.epsilon < 2.0, found.refuted
    (True, False)
    """
    if isinstance(trials, bool) or not isinstance(trials, int) or trials < 100:
        raise ValueError(f"trials must be a whole number of at least 100, got {trials!r}")
    source: Noise = ResearchNoise(0) if noise is None else noise
    judge = score if score is not None else _direction(mechanism, one, two, source, batched, max(100, trials // 10))
    first, second = (_run(mechanism, data, source, trials, judge, batched) for data in (one, two))
    return Audit(lower_bound(first, second, delta, confidence), claim, delta, trials, (first, second))


def _releases(mechanism: Callable[..., Array], data: Any, noise: Noise, trials: int, batched: bool) -> Array:
    """Independent releases, along the first axis."""
    if not batched:
        return np.stack([np.asarray(mechanism(data, noise), dtype=np.float64) for _ in range(trials)])
    made = np.asarray(mechanism(data, noise, trials), dtype=np.float64)
    if made.ndim == 0 or len(made) != trials:
        raise ValueError(f"the mechanism was to make {trials} releases along the first axis, got shape {made.shape}")
    return made


def _run(
    mechanism: Callable[..., Array],
    data: Any,
    noise: Noise,
    trials: int,
    score: Callable[[Array], Array],
    batched: bool,
) -> Array:
    """Scores of many releases, made in portions that fit into memory."""
    parts: list[Array] = []
    done, now = 0, 1  # one release tells how large they are
    while done < trials:
        made = _releases(mechanism, data, noise, now, batched)
        parts.append(np.asarray(score(made), dtype=np.float64))
        if parts[-1].shape != (now,):
            raise ValueError(f"the score must give one number for each release, got shape {parts[-1].shape} for {now}")
        done += now
        now = min(max(1, _CHUNK * now // max(1, made.size)), trials - done)
    return np.concatenate(parts)


def _direction(
    mechanism: Callable[..., Array], one: Any, two: Any, noise: Noise, batched: bool, trials: int
) -> Callable[[Array], Array]:
    """Score by the direction between the mean releases, each number in units of its standard deviation."""
    size = max(1, _releases(mechanism, one, noise, 1, batched).size)
    few = min(trials, max(100, _CHUNK // size))
    first, second = (
        _releases(mechanism, data, noise, few, batched).reshape(few, -1).astype(np.float64) for data in (one, two)
    )
    spread = first.var(axis=0) + second.var(axis=0)
    gap = second.mean(axis=0) - first.mean(axis=0)
    # A number without noise tells all where it differs; give it the weight of a very quiet one.
    weights = gap / np.maximum(spread, 1e-12 * max(1.0, float(np.abs(gap).max()) ** 2))
    return lambda releases: releases.reshape(len(releases), -1) @ weights


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """Rows computed from a released matrix.

    Attributes
    ----------
    rows : array of shape (n, d)
        What the attack takes all rows to be.
    residual : float
        Largest error with which each known row is predicted from the other known ones, over the spread of the known
        rows; NaN where only d + 1 rows are known, which determine the map and leave none to check it with.
    tail : float
        What the released matrix has outside d dimensions, as the ratio of its singular values d + 1 and 1; 0 where it
        has no more than d columns. The linear image of d columns has rounding errors only.

    >>> Reconstruction(np.zeros((3, 1)), 1e-15, 0.0).works
    True
    """

    rows: Array
    residual: float
    tail: float

    @property
    def works(self) -> bool | None:
        """Whether the attacker can rely on the rows; None where nothing is left to check them with."""
        if self.tail > 1e-9 or self.residual > 1e-6:
            return False
        return None if math.isnan(self.residual) else True


def reconstruct(released: ArrayLike, rows: ArrayLike, positions: Sequence[int] | NDArray[Any]) -> Reconstruction:
    """Compute all rows from a released matrix and a few known rows.

    A projection without noise releases an affine image of the data, whatever matrix was drawn and kept secret and
    however the singular values were lifted. With at least as many columns as the data it can be inverted; d + 1 known
    rows determine the inverse, a few more tell whether it is right.

    Parameters
    ----------
    released : array of shape (n, r)
        What was released, r ≥ d.
    rows : array of shape (k, d)
        Known rows, k ≥ d + 1.
    positions : sequence of k int
        Where they stand in the released matrix.

    >>> draws = np.random.default_rng(0)
    >>> X = draws.normal(size=(50, 3))
    >>> found = reconstruct((X - X.mean(axis=0)) @ draws.normal(size=(3, 10)), X[:5], range(5))
    >>> found.works, bool(np.abs(found.rows - X).max() < 1e-9)
    (True, True)
    >>> reconstruct(X + draws.normal(size=(50, 3)), X[:5], range(5)).works
    False
    """
    Z, known = np.asarray(released, dtype=np.float64), np.asarray(rows, dtype=np.float64)
    places = np.asarray(positions, dtype=np.intp)
    if Z.ndim != 2 or known.ndim != 2 or not (np.isfinite(Z).all() and np.isfinite(known).all()):
        raise ValueError(f"expected two finite matrices, got shapes {Z.shape} and {known.shape}")
    n, d = len(Z), known.shape[1]
    if places.shape != (len(known),) or len(set(places.tolist())) < places.size:
        raise ValueError(f"{len(known)} rows are known, so as many different positions are needed, got {positions!r}")
    if places.size and (places.min() < 0 or places.max() >= n):
        raise ValueError(f"positions must lie between 0 and {n - 1}, got {positions!r}")
    if len(known) < d + 1:
        raise ValueError(f"{d + 1} known rows are needed for {d} columns, got {len(known)}")
    if Z.shape[1] < d:
        raise ValueError(f"a matrix of {Z.shape[1]} columns does not determine rows of {d}")
    # The released matrix in as many coordinates as the data have.
    U, singular, _ = np.linalg.svd(Z - Z.mean(axis=0), full_matrices=False)
    tail = float(singular[d] / singular[0]) if singular.size > d and singular[0] > 0.0 else 0.0
    images = np.column_stack([U[:, :d] * singular[:d], np.ones(n)])
    if singular[0] > 0.0:
        images[:, :d] /= singular[0]
    inverse = np.linalg.pinv(images[places])
    residual = math.nan
    if len(known) > d + 1:
        # Leave-one-out errors of a least-squares fit: those of the fit over 1 - leverage.
        leverage = np.clip(np.einsum("ij,ji->i", images[places], inverse), 0.0, 1.0 - 1e-12)
        errors = (known - images[places] @ (inverse @ known)) / (1.0 - leverage)[:, None]
        spread = float(np.abs(known - known.mean(axis=0)).max())
        residual = float(np.abs(errors).max()) / (spread if spread > 0.0 else 1.0)
    return Reconstruction(images @ (inverse @ known), residual, tail)
