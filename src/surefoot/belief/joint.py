"""Fitting one set of hyper-parameters to several functions at once.

The functions are independent draws from one process: their log likelihoods add up, and the priors count once,

    Σᵢ log p(yᵢ | Xᵢ, θ) + Σⱼ log p(θⱼ),

with one constant mean for all. The search is that of :mod:`surefoot.belief.fit`.

>>> import numpy as np
>>> from surefoot.belief import GP, SE
>>> X = np.linspace(0.0, 1.0, 9)[:, None]
>>> data = [(X, np.sin(6.0 * X[:, 0] + phase), None) for phase in (0.0, 1.0, 2.0)]
>>> gp = fit_jointly(GP(SE(lengthscale=1.0), noise=0.1), data, np.random.default_rng(0))
>>> bool(0.1 < gp.kernel.lengthscale < 1.0 and gp.noise < 1e-3)
True
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from surefoot.belief.fit import Evidence, _starts, climb
from surefoot.belief.gp import GP
from surefoot.belief.posterior import observations
from surefoot.belief.priors import Fixed

__all__ = ["fit_jointly"]

Array = NDArray[np.float64]


def fit_jointly(gp: GP, data: Sequence[tuple[Array, Array, Array | None]], rng: np.random.Generator) -> GP:
    """Return the GP whose hyper-parameters suit several data sets best.

    Parameters
    ----------
    gp : GP
        Kernel, priors, and whether outputs are standardized: here by the mean and the standard deviation of all values
        together, so that the scale of the functions relative to each other is kept.
    data : sequence of (X, y, noise)
        Points (n, e), values (n,) and noise variances (n,) or None of each function.
    rng : Generator
        Draws the starts of the search.

    >>> from surefoot.belief import GP
    >>> fit_jointly(GP(noise=0.1), [([[0.0]], [1.0], None), ([[0.0]], [3.0], None)], np.random.default_rng(0)).mean
    2.0
    """
    sets = [observations(X, y, noise) for X, y, noise in data]
    if not any(len(y) for _, y, _ in sets):
        return gp
    values = np.concatenate([y for _, y, _ in sets])
    pinned = (gp.priors or {}).get("mean")
    shift = float(values.mean()) if not isinstance(pinned, Fixed) else gp.mean
    scale = (float(values.std()) or 1.0) if gp.standardize else 1.0
    inside = replace(
        gp,
        kernel=gp.kernel.scaled(scale**-2),
        noise=gp.noise / scale**2,
        mean=0.0,
        priors={**(gp.priors or {}), "mean": Fixed()},
        members=(),
    )
    parts = [Evidence(inside, X, (y - shift) / scale, noise / scale**2) for X, y, noise in sets]
    first = parts[0]

    def density(x: Array) -> tuple[float, Array]:
        found = [part(x) for part in parts]
        distance = first.full(x) - first.center
        weight = np.where(distance < 0, first.below, first.above) ** -2
        again = len(parts) - 1  # every part has counted the priors
        value = sum(part[0] for part in found) + 0.5 * again * float(weight @ (distance * distance))
        slope = np.sum([part[1] for part in found], axis=0) + again * (weight * distance)[first.free]
        return (value, slope) if math.isfinite(value) else (-math.inf, np.zeros_like(x))

    best = first.frame[first.free]
    if best.size:
        begin = _starts(first, rng)
        heights = np.array([density(start)[0] for start in begin])
        order = [2 * int(np.argmax(heights[::2])), 2 * int(np.argmax(heights[1::2])) + 1]
        best = max((climb(density, begin[i]) for i in order), key=lambda top: top[1])[0]
    theta = first.full(best)
    return replace(
        gp,
        kernel=gp.kernel.with_theta(theta[:-1]).scaled(scale**2),
        noise=(first.floor + math.exp(theta[-1])) * scale**2,
        mean=shift,
        members=(),
    )
