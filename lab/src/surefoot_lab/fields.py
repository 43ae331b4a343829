"""Fields to map: a lake transect and a sea surface, with a threshold that splits them.

The level-set and region experiments of the literature map chlorophyll in a vertical transect of a lake: 1,400 m along,
20 m deep, a grid of 50 by 50 points. Those measurements are not public. Two substitutes share their geometry:

* :func:`baltic` is a satellite field of chlorophyll in the Baltic Sea (data set ``baltic_chlorophyll``): one day, its
  logarithm, a window of 50 by 50 pixels; longitude stands for the length of the transect, latitude for its depth;
* :func:`transect` is simulated: a layer of chlorophyll whose depth and strength vary along the transect, on top of an
  anisotropic Matérn-5/2 process.

In both the truth is the posterior mean of a process given the data of the day, as in the literature, which smooths
pixel noise and fills gaps; the hyper-parameters that a policy may use come from a second data set (another day, another
draw). The level of the sea differs threefold between days, so that the constant mean is that of the day itself. What
can be compared with published figures is the order of methods, never their numbers.

>>> field = transect(np.random.default_rng(0), side=12)
>>> field.points.shape, round(float(field.above.mean()), 2)
((144, 2), 0.2)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.belief.gp import GP
from surefoot.belief.kernels import Matern
from surefoot_lab import datasets
from surefoot_lab.problems import Problem, grid, tabulated
from surefoot_lab.samples import gp_sample_grid

__all__ = ["Field", "baltic", "f1_score", "transect"]

Array = NDArray[np.float64]

LENGTH, DEPTH, SIDE = 1400.0, 20.0, 50  # metres, metres, grid points per axis
# Of all windows without gaps the one whose least varied day varies most (in the logarithm).
WINDOW = (20, 152)
LEVEL = 0.8  # the threshold is this quantile of the field
EXACT = 1e-6  # noise of an exact measurement, in shares of the signal variance
FITTED = 400  # points of the second data set


@dataclass(frozen=True)
class Field:
    """Values on a grid of a transect, the belief a policy starts from, and a threshold.

    Parameters
    ----------
    name : str
        What plots call it.
    points : array of shape (M, 2)
        Position along the transect and depth, in metres; depth varies fastest.
    values : array of shape (M,)
        The truth.
    shape : tuple of int
        Points along each axis.
    gp : GP
        Hyper-parameters from a second data set, for exact measurements.
    threshold : float
        The level whose super-level set is looked for.

    >>> field = transect(np.random.default_rng(0), side=8)
    >>> bool(field.problem().optimum == field.values.max())
    True
    """

    name: str
    points: Array
    values: Array
    shape: tuple[int, int]
    gp: GP
    threshold: float

    @property
    def above(self) -> NDArray[np.bool_]:
        """Where the truth is at least the threshold, shape (M,)."""
        return self.values >= self.threshold

    def problem(self) -> Problem:
        """Return the field as a problem without noise."""
        return tabulated(self.name, self.points, self.values)


def f1_score(truth: ArrayLike, predicted: ArrayLike) -> float:
    """Return the harmonic mean of precision and recall, 2 TP/(2 TP + FP + FN).

    Nothing found where there is nothing to find is perfect, 1; nothing found where there is something, and something
    found where there is nothing, are 0.

    >>> f1_score([True, True, False], [True, False, False])
    0.6666666666666666
    >>> f1_score([False, False], [False, False]), f1_score([True, False], [False, False])
    (1.0, 0.0)
    """
    real, found = np.asarray(truth, dtype=bool), np.asarray(predicted, dtype=bool)
    if real.shape != found.shape:
        raise ValueError(f"truth and prediction must have the same shape, got {real.shape} and {found.shape}")
    counted = int(real.sum()) + int(found.sum())  # 2 TP + FP + FN
    return 2.0 * int((real & found).sum()) / counted if counted else 1.0


def _fit(points: Array, values: Array, rng: np.random.Generator) -> GP:
    """Matérn-5/2 with one length-scale per axis, by maximum likelihood on some of the points."""
    rows = rng.choice(len(values), min(FITTED, len(values)), replace=False)
    start = GP(Matern(2.5, lengthscale=[LENGTH / 5, DEPTH / 5]), noise=1e-2, standardize=True)
    return start.fit(points[rows], values[rows], rng=rng)


def _exact(gp: GP) -> GP:
    """The same process for measurements without noise."""
    return replace(gp, noise=EXACT * float(gp.kernel.diag(np.zeros((1, 2)))[0]), standardize=False)


def _field(name: str, points: Array, values: Array, side: int, gp: GP) -> Field:
    level = float(np.quantile(values, LEVEL))
    return Field(name, points, values, (side, side), _exact(gp), level)


@cache
def baltic(day: int = 0, other: int = 3) -> Field:
    """Return one day of the Baltic field; the kernel is fitted to another day.

    Raises
    ------
    MissingData
        The data set ``baltic_chlorophyll`` is not on this machine.

    >>> baltic(day=7)
    Traceback (most recent call last):
    ...
    ValueError: days are 0 to 3 and must differ, got 7 and 3
    """
    if day not in range(4) or other not in range(4) or day == other:
        raise ValueError(f"days are 0 to 3 and must differ, got {day!r} and {other!r}")
    data = datasets.load("baltic_chlorophyll")
    rows, columns = (slice(start, start + SIDE) for start in WINDOW)
    points = grid([(0.0, LENGTH), (0.0, DEPTH)], SIDE)

    def window(index: int) -> tuple[Array, NDArray[np.bool_]]:
        valid = data["valid"][index, rows, columns].T.ravel().astype(bool)  # longitude first
        raw = data["chlorophyll"][index, rows, columns].T.ravel().astype(np.float64)
        return np.log(np.where(valid, raw, 1.0)), valid

    values, valid = window(day)
    own = _fit(points[valid], values[valid], np.random.default_rng(day))
    truth = own.condition(points[valid], values[valid]).mean(points)
    second, seen = window(other)
    gp = _fit(points[seen], second[seen], np.random.default_rng(other))
    return _field("Baltic chlorophyll", points, truth, SIDE, replace(gp, mean=float(values[valid].mean())))


def transect(rng: np.random.Generator, *, side: int = SIDE) -> Field:
    """Return a simulated transect; the belief is fitted to another one of the same lake.

    >>> transect(np.random.default_rng(1), side=10).shape
    (10, 10)
    """
    if side < 4:
        raise ValueError(f"a transect needs at least 4 points per axis, got {side!r}")
    points = grid([(0.0, LENGTH), (0.0, DEPTH)], side)
    kernel = Matern(2.5, lengthscale=[220.0, 2.5], variance=0.08)
    truth, second = (_layer(points, rng) + gp_sample_grid(kernel, points, rng)(points) for _ in range(2))
    return _field("simulated transect", points, truth, side, _fit(points, second, rng))


def _layer(points: Array, rng: np.random.Generator) -> Array:
    """A layer around 7 m that rises, sinks, thickens and thins along the transect."""
    x, depth = points.T
    a, b, c = rng.uniform(0.0, 2.0 * np.pi, 3)
    turn = 2.0 * np.pi * x / LENGTH
    center = 7.0 + 2.0 * np.sin(turn + a)
    width = 2.2 + 0.8 * np.sin(2.0 * turn + b)
    strength = 1.2 + 0.5 * np.sin(1.5 * turn + c)
    layer: Array = 0.4 + strength * np.exp(-0.5 * ((depth - center) / width) ** 2)
    return layer
