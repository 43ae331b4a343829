"""A policy as the pictures see it: its runs in the user's direction, its coordinates as axes, and its belief.

>>> from surefoot import Box, RandomSearch
>>> view = View(RandomSearch(Box([(0.0, 2.0)]), seed=0))
>>> view.reference, view.posterior is None
(array([1.]), True)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from surefoot.domain import Choice, Domain, Space
from surefoot.loop.errors import NoData
from surefoot.loop.policy import Policy
from surefoot.report.runs import direction_of, runs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Coordinate", "View", "coordinates", "number", "short"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Coordinate:
    """One coordinate of the domain, as an axis of a picture.

    >>> Coordinate(0, "rate", 1e-4, 1.0, log=True).unit(np.array([1e-2]))
    array([0.5])
    """

    index: int
    name: str
    low: float
    high: float
    log: bool = False
    whole: bool = False
    labels: tuple[str, ...] = ()

    def unit(self, column: Array) -> Array:
        """Position between the two ends, from 0 to 1."""
        low, high, values = self.low, self.high, column
        if self.log:
            low, high, values = math.log(low), math.log(high), np.log(column)
        return np.full(len(column), 0.5) if high <= low else (values - low) / (high - low)

    def grid(self, count: int) -> Array:
        """Values from one end to the other, evenly on the coordinate's scale."""
        if self.labels or (self.whole and self.high - self.low < count):
            return np.arange(self.low, self.high + 1.0)
        values = np.geomspace(self.low, self.high, count) if self.log else np.linspace(self.low, self.high, count)
        return np.clip(np.unique(np.rint(values) if self.whole else values), self.low, self.high)

    def ends(self) -> list[tuple[float, str]]:
        """Marks on a parallel coordinate: all choices, else both bounds."""
        if self.labels:
            return [(i / max(len(self.labels) - 1, 1), label) for i, label in enumerate(self.labels[:12])]
        return [(0.0, number(self.low)), (1.0, number(self.high))]

    def prepare(self, axes: Axes, which: str) -> None:
        """Give an axis of a picture this coordinate's scale, ticks and limits."""
        from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

        axis = axes.xaxis if which == "x" else axes.yaxis
        limits = axes.set_xlim if which == "x" else axes.set_ylim
        if self.labels:
            axis.set_ticks(range(len(self.labels)), [short(label, 14) for label in self.labels])
            limits(-0.5, len(self.labels) - 0.5)
            return
        if self.log:
            (axes.set_xscale if which == "x" else axes.set_yscale)("log")
            if self.high / self.low >= 100.0:
                axis.set_major_locator(LogLocator(numticks=6))
            else:
                axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=8))
            axis.set_minor_locator(NullLocator())
            axis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
        elif self.whole:
            axis.get_major_locator().set_params(integer=True)
        limits(self.low, self.high)


def coordinates(domain: Domain) -> list[Coordinate]:
    """Return one coordinate per column of a point.

    >>> from surefoot import Choice, Space
    >>> coordinates(Space(kernel=Choice(["rbf", "poly"])))[0].labels
    ('rbf', 'poly')
    """
    if not isinstance(domain, Space):
        bounds = zip(domain.names, domain.lower.tolist(), domain.upper.tolist(), strict=True)
        return [Coordinate(i, name, low, high) for i, (name, low, high) in enumerate(bounds)]
    made = []
    for i, (name, parameter) in enumerate(domain.parameters.items()):
        if isinstance(parameter, Choice):
            labels = tuple(str(value) for value in parameter.values)
            made.append(Coordinate(i, name, 0.0, len(labels) - 1.0, labels=labels))
        else:
            entry = parameter.to_dict()
            made.append(
                Coordinate(i, name, float(entry["low"]), float(entry["high"]), entry["log"], entry["type"] == "int")
            )
    return made


class View:
    """The runs in the user's direction, the coordinates, and the belief if there is one.

    Parameters
    ----------
    policy : Policy
        Any policy.
    direction : {"maximize", "minimize"}, optional
        Which way is better; by default what the journal says.

    >>> from surefoot import Box, RandomSearch
    >>> policy = RandomSearch(Box([(0.0, 1.0)]), seed=0)
    >>> policy.tell([0.5], -2.0)
    >>> View(policy, "minimize").y
    array([2.])
    """

    def __init__(self, policy: Policy, direction: str | None = None) -> None:
        self.policy = policy
        self.direction = direction_of(policy, direction)
        self.sign = -1.0 if self.direction == "minimize" else 1.0
        self.rows = runs(policy, direction=self.direction)
        measured = [row for row in self.rows if row.value is not None]
        self.X = np.array([row.x for row in measured]).reshape(len(measured), policy.domain.dimension)
        self.y = np.array([row.value for row in measured], dtype=np.float64)
        self.quality = self.sign * self.y
        self._all = coordinates(policy.domain)
        self.coordinates = [c for c in self._all if c.low < c.high] or self._all
        believes = getattr(policy, "posterior", None)
        self.posterior: Any = believes() if callable(believes) else None
        self.half = NormalDist().inv_cdf(0.5 + 0.5 * float(getattr(policy, "confidence", 0.95)))
        self.recommended: Array | None
        try:
            self.recommended = policy.recommend().x
        except NoData:
            self.recommended = None
        middle = policy.domain.decode(0.5 * (policy.domain.lower + policy.domain.upper)[None])[0]
        self.reference: Array = np.array(middle if self.recommended is None else self.recommended, dtype=np.float64)

    def coordinate(self, index: int) -> Coordinate:
        """Return one coordinate by its index, whether it varies or not."""
        if not 0 <= index < len(self._all):
            raise ValueError(f"coordinate must be one of 0 to {len(self._all) - 1}, got {index!r}")
        return self._all[index]

    def along(self, coordinate: Coordinate, grid: Array) -> Array:
        """The reference point with one coordinate replaced by each value of the grid."""
        points = np.repeat(self.reference[None], len(grid), axis=0)
        points[:, coordinate.index] = grid
        return points

    def predict(self, points: Array) -> tuple[Array, Array]:
        """Mean, in the user's direction, and standard deviation."""
        mean, std = self.posterior.predict(self.policy.domain.encode(points))
        return self.sign * np.asarray(mean), np.asarray(std)

    def window(self) -> tuple[float, float]:
        """A range that shows the better three quarters of the values well; what is far worse is drawn at its edge."""
        if not len(self.y):
            return 0.0, 1.0
        low, high = float(self.quality.min()), float(self.quality.max())
        usual = high - float(np.quantile(self.quality, 0.25))
        if usual > 0 and high - low > 3.0 * usual:
            low = high - 2.5 * usual
        if high <= low:
            margin = 0.5 * abs(high) or 0.5
            low, high = low - margin, high + margin
        return (-high, -low) if self.direction == "minimize" else (low, high)

    def hopes(self, low: float, high: float) -> tuple[float, float]:
        """The range, widened on its better side to what the recommended point may reach."""
        if self.posterior is None:
            return low, high
        mean, std = self.predict(self.reference[None])
        reach = float(mean[0] + self.sign * self.half * std[0])
        return (min(low, reach), high) if self.direction == "minimize" else (low, max(high, reach))


def number(value: float) -> str:
    """Return a short decimal.

    >>> number(0.001), number(1e-5), number(128.0)
    ('0.001', '1e-5', '128')
    """
    text = f"{value:.4g}"
    if "e" not in text:
        return text
    digits, exponent = text.split("e")
    return f"{digits}e{int(exponent)}"


def short(text: str, longest: int) -> str:
    """Return the text on one line, its end replaced by … when it is too long.

    >>> short("learning\\nrate", 10)
    'learning …'
    """
    line = " ".join(text.split())
    return line if len(line) <= longest else line[: longest - 1] + "…"
