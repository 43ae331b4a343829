"""Learning public numbers from private data: bounds of features, and hyper-parameters, each for a price.

The other mechanisms take bounds and beliefs as public. Where they are not known they can be learnt, with differential
privacy and charged to the ledger like any release. Both functions publish *counts* with Gaussian noise, and everything
they return is computed from those: replacing a record moves one count down and one up, so the L2 sensitivity is √2 per
histogram, whatever the replacement is.

>>> import numpy as np
>>> ages = np.random.default_rng(0).uniform(20.0, 60.0, (20_000, 1))
>>> learned = learn_bounds(ages, limits=[(0.0, 1000.0)], epsilon=1.0, delta=1e-6)
>>> low, high = learned.value[0]
>>> bool(0.0 <= low <= 32.0 and 45.0 < high < 80.0)
True

:func:`learn_hyperparameters` is the sample-and-aggregate rule: disjoint parts of the records each vote for the belief
that explains them best, and the noisy counts of votes decide.

References: Nissim, Raskhodnikova & Smith 2007 (sample and aggregate); Dwork & Roth 2014, sections 3.3 and 7.2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.belief.gp import GP
from surefoot.errors import SurefootError
from surefoot.private.accounting import GaussianEvent
from surefoot.private.accounting import epsilon as composed
from surefoot.private.guarantee import Guarantee
from surefoot.private.ledger import Ledger
from surefoot.private.noise import Noise, SystemNoise
from surefoot.private.scaling import table

__all__ = ["Learned", "learn_bounds", "learn_hyperparameters"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Learned:
    """A public number learnt from private data.

    Parameters
    ----------
    value : any
        What was learnt; may be published.
    guarantee : Guarantee
        What publishing it protects.
    simulated : bool
        Learnt with reproducible noise: it may not be published.

    >>> Learned(3.0, Guarantee(mechanism="learn_bounds", epsilon=1.0, delta=1e-5)).guarantee.proved
    True
    """

    value: Any
    guarantee: Guarantee
    simulated: bool = False


def learn_bounds(
    data: ArrayLike,
    *,
    limits: ArrayLike,
    epsilon: float,
    delta: float,
    trim: float = 0.01,
    bins: int = 64,
    ledger: Ledger | None = None,
    noise: Noise | None = None,
) -> Learned:
    """Learn bounds of every feature that leave out about a share ``trim`` of the records on either side.

    Parameters
    ----------
    data : array of shape (n, d)
        The private rows; n is public.
    limits : array of shape (d, 2)
        Wide public limits within which the bounds must lie.
    epsilon, delta : float
        Guarantee against the replacement of one whole record, for all features together.
    trim : float
        Share of records below, and above.
    bins : int
        Steps between the limits; the bounds are edges of them.
    ledger : Ledger, optional
        Charged before anything is drawn.
    noise : Noise, optional
        Where random numbers come from; by default the operating system.

    Returns
    -------
    Learned
        Its value are bounds of shape (d, 2), as :class:`~surefoot.private.GaussianRelease` takes them.

    >>> learn_bounds([[1.0]], limits=[(0.0, 0.0)], epsilon=1.0, delta=1e-5)
    Traceback (most recent call last):
    ...
    ValueError: limits must be a lower and a larger upper number for each of the 1 features, got [[0.0, 0.0]]
    """
    rows, wide = table(data), np.array(limits, dtype=np.float64)
    n, d = rows.shape
    if wide.shape != (d, 2) or not np.isfinite(wide).all() or not (wide[:, 0] < wide[:, 1]).all():
        raise ValueError(
            f"limits must be a lower and a larger upper number for each of the {d} features, got {wide.tolist()}"
        )
    if not 0 <= trim < 0.5:
        raise ValueError(f"trim must be at least 0 and below 0.5, got {trim!r}")
    if not isinstance(bins, (int, np.integer)) or bins < 2:
        raise ValueError(f"bins must be a whole number from 2 on, got {bins!r}")
    # Cut to the limits before it becomes a whole number: a cast of what is too large may give any.
    share = (np.clip(rows, wide[:, 0], wide[:, 1]) - wide[:, 0]) / (wide[:, 1] - wide[:, 0])
    places = np.clip((share * bins).astype(np.intp), 0, bins - 1) + bins * np.arange(d)
    counts = np.bincount(places.ravel(), minlength=bins * d).reshape(d, bins).astype(np.float64)
    noisy, guarantee, simulated = publish_counts(
        "learn_bounds", counts, math.sqrt(2.0 * d), epsilon, delta, ledger, noise or SystemNoise()
    )
    below = np.cumsum(noisy, axis=1)
    below[:, -1] = n  # known: all records are below the upper limit
    # The first bin that more than the share reaches into, and the first that leaves no more than the share above.
    first = np.argmax(below > trim * n, axis=1)
    last = np.argmax(below >= (1.0 - trim) * n, axis=1)
    edges = wide[:, :1] + np.linspace(0.0, 1.0, bins + 1) * (wide[:, 1:] - wide[:, :1])
    each = np.arange(d)
    bounds = np.stack([edges[each, first], edges[each, np.maximum(last, first) + 1]], axis=1)
    return Learned(bounds, guarantee, simulated)


def learn_hyperparameters(
    rows: ArrayLike,
    values: ArrayLike,
    beliefs: Sequence[GP],
    *,
    epsilon: float,
    delta: float,
    blocks: int = 50,
    largest: int = 200,
    ledger: Ledger | None = None,
    noise: Noise | None = None,
) -> Learned:
    """Choose the belief, of a public list, that most disjoint parts of the records find most likely.

    Parameters
    ----------
    rows, values : array of shape (n, d) and (n,)
        Private records and their measured values, in the units of the beliefs.
    beliefs : sequence of GP
        The public list.
    epsilon, delta : float
        Guarantee against the replacement of one record and its value.
    blocks : int
        Parts that vote; more of them drown the noise, fewer judge better.
    largest : int
        Records of a part that are looked at.
    ledger, noise
        As in :func:`learn_bounds`.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((400, 1))
    >>> y = np.sin(8.0 * X[:, 0])
    >>> from surefoot.belief import SE
    >>> beliefs = [GP(SE(length), noise=1e-4) for length in (0.01, 0.3)]
    >>> learned = learn_hyperparameters(X, y, beliefs, epsilon=4.0, delta=1e-5, blocks=20)
    >>> float(learned.value.kernel.lengthscale)
    0.3
    """
    X = table(rows)
    try:
        y = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):  # NumPy's message would show a value
        raise TypeError("values must be numbers, one for each row") from None
    if y.shape != (len(X),) or not np.isfinite(y).all():
        raise ValueError(f"values must be {len(X)} finite numbers, one for each row, got shape {y.shape}")
    if not beliefs or not all(isinstance(gp, GP) for gp in beliefs):
        raise ValueError(f"beliefs must be a list of at least one GP, got {beliefs!r}")
    if not 1 <= blocks <= len(X):
        raise ValueError(f"blocks must lie between 1 and the number of rows, {len(X)}, got {blocks!r}")
    source = noise or SystemNoise()
    parts = np.array_split(source.permutation(len(X)), blocks)  # a partition that does not depend on the records
    votes = np.zeros(len(beliefs))
    for part in parts:
        mine = part[:largest]
        votes[int(np.argmax([gp.log_likelihood(X[mine], y[mine]) for gp in beliefs]))] += 1.0
    noisy, guarantee, simulated = publish_counts(
        "learn_hyperparameters", votes, math.sqrt(2.0), epsilon, delta, ledger, source
    )
    return Learned(beliefs[int(np.argmax(noisy))], guarantee, simulated)


def publish_counts(
    name: str,
    counts: Array,
    sensitivity: float,
    epsilon: float,
    delta: float,
    ledger: Ledger | None,
    noise: Noise,
) -> tuple[Array, Guarantee, bool]:
    """Publish counts with Gaussian noise, charged before it is drawn; return them, and what that protects."""
    scale = SystemNoise.certified_scale(epsilon, delta, sensitivity)
    event = GaussianEvent(scale / sensitivity)
    if ledger is not None:
        if noise.simulated:
            raise SurefootError("simulated noise protects nothing: a ledger is for real releases")
        ledger.charge(event, what=name)
    guarantee = Guarantee(
        mechanism=name,
        epsilon=epsilon,
        delta=delta,
        protects="one record, replaced by any other, the number of records being public",
        neighbor=math.inf,
        analytic=composed(event, delta),
    )
    return noise.gaussian(counts, scale), guarantee, noise.simulated
