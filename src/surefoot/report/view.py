"""A policy as the pictures see it: its runs in the user's direction, its coordinates as axes, and its belief.

>>> from surefoot import Box, RandomSearch
>>> view = RunView(RandomSearch(Box([(0.0, 2.0)]), seed=0))
>>> view.reference, view.posterior is None
(array([1.]), True)

Making a view is cheap; the belief and the answer are worked out when a picture first needs them, and once. A function
that draws takes a policy or a view of it, so that all pictures of a page share one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from surefoot.domain import Choice, Domain
from surefoot.errors import NoData
from surefoot.loop.direction import turned
from surefoot.loop.policy import Policy
from surefoot.moved import renamed
from surefoot.optimizer import Result
from surefoot.report.run import direction_of, runs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Coordinate", "RunView", "coordinates", "few", "number", "short", "window"]
__getattr__ = renamed(__name__, {"View": "RunView"})

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
        grid: Array = np.clip(np.unique(np.rint(values) if self.whole else values), self.low, self.high)
        return grid

    def ends(self) -> list[tuple[float, str]]:
        """Marks on a parallel coordinate: all choices, else both bounds."""
        if self.labels:
            return [(i / max(len(self.labels) - 1, 1), label) for i, label in enumerate(self.labels[:12])]
        return [(0.0, number(self.low)), (1.0, number(self.high))]

    def prepare(self, axes: Axes, which: Literal["x", "y"]) -> None:
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
            axes.locator_params(axis=which, integer=True)
        around = 0.0 if self.high > self.low else 0.5 * max(abs(self.low), 1e-3)  # one value only: put it in the middle
        limits(self.low - around, self.high + around)


def coordinates(domain: Domain) -> list[Coordinate]:
    """Return one coordinate per column of a point.

    >>> from surefoot import Choice, Space
    >>> coordinates(Space(kernel=Choice(["rbf", "poly"])))[0].labels
    ('rbf', 'poly')
    """
    if not domain.parameters:
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


class RunView:
    """The runs in the user's direction, the coordinates, the answer, and the belief if there is one.

    Parameters
    ----------
    policy : Policy
        Any policy.
    direction : {"maximize", "minimize"}, optional
        Which way is better; by default that of the policy. With the other one all values change their sign.

    >>> from surefoot import Box, RandomSearch
    >>> policy = RandomSearch(Box([(0.0, 1.0)]), direction="minimize", seed=0)
    >>> policy.tell([0.5], 2.0)
    >>> RunView(policy).y, RunView(policy).quality
    (array([2.]), array([-2.]))
    """

    def __init__(self, policy: Policy, direction: str | None = None) -> None:
        self.policy = policy
        self.direction = direction_of(policy, direction)
        self.sign = -1.0 if self.direction == "minimize" else 1.0  # of the belief, which is about what is maximized
        self.rows = runs(policy, direction=self.direction)
        measured = [row for row in self.rows if row.value is not None]
        self.X = np.array([row.x for row in measured]).reshape(len(measured), policy.domain.dimension)
        self.y = np.array([row.value for row in measured], dtype=np.float64)
        self.quality = self.sign * self.y
        self._all = coordinates(policy.domain)
        self.coordinates = [c for c in self._all if c.low < c.high] or self._all
        self.half = NormalDist().inv_cdf(0.5 + 0.5 * float(policy.confidence))

    @classmethod
    def of(cls, policy: Policy | Result | RunView, direction: str | None = None) -> RunView:
        """Return the view of a policy, or of the policy of a result, or the given one if it looks in that direction."""
        if isinstance(policy, Result):
            policy = policy.policy
        if not isinstance(policy, RunView):
            return cls(policy, direction)
        return policy if direction in (None, policy.direction) else cls(policy.policy, direction)

    @cached_property
    def answer(self) -> Any:
        """The policy's answer in the user's direction; None while there is none."""
        try:
            answer = self.policy.recommend()
        except NoData:
            return None
        return answer if self.direction == self.policy.direction else turned(answer)

    @cached_property
    def recommended(self) -> Array | None:
        """The recommended point, where the answer is one of the domain's."""
        x: Any = getattr(self.answer, "x", None)
        return x if np.shape(x) == (self.policy.domain.dimension,) else None

    @cached_property
    def reference(self) -> Array:
        """Where slices and maps cut: the recommended point, else the best run, else the middle."""
        if self.recommended is not None:
            return np.array(self.recommended, dtype=np.float64)
        if len(self.y):
            return np.array(self.X[np.argmax(self.quality)])
        domain = self.policy.domain
        return np.array(domain.decode(0.5 * (domain.lower + domain.upper)[None])[0], dtype=np.float64)

    @cached_property
    def posterior(self) -> Any:
        """The belief over encoded points; None for a policy that has none, or one over something else."""
        found = self.policy.posterior()
        if found is None or found.X.shape[1] != self.policy.inputs(self.reference[None]).shape[1]:
            return None
        return found

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
        mean, std = self.posterior.predict(self.policy.inputs(points))
        return self.sign * np.asarray(mean), np.asarray(std)

    def window(self) -> tuple[float, float]:
        """A range that shows the better three quarters of the values well; what is far worse is marked at its edge."""
        return window(self.y, self.direction)

    def hopes(self, low: float, high: float) -> tuple[float, float]:
        """The range, widened on its better side to what the recommended point may reach."""
        if self.posterior is None:
            return low, high
        mean, std = self.predict(self.reference[None])
        reach = float(mean[0] + self.sign * self.half * std[0])
        return (min(low, reach), high) if self.direction == "minimize" else (low, max(high, reach))

    def digits(self) -> int:
        """Significant digits that tell the measured values apart."""
        if not len(self.y):
            return 4
        low, high = self.window()
        largest = float(np.abs(np.clip(self.y, low, high)).max())
        return int(np.clip(3 + math.ceil(math.log10(max(largest / (high - low), 1e-9))), 4, 9))


def window(values: Array, direction: str) -> tuple[float, float]:
    """Return a range that shows the better three quarters of the values well and leaves out what is far worse.

    >>> window(np.array([-1e6, 0.0, 1.0, 2.0, 3.0, 4.0]), "maximize")
    (-5.375, 4.0)
    """
    if not len(values):
        return 0.0, 1.0
    quality = -values if direction == "minimize" else values
    low, high = float(quality.min()), float(quality.max())
    usual = high - float(np.quantile(quality, 0.25))
    if usual > 0 and high - low > 3.0 * usual:
        low = high - 2.5 * usual
    if high <= low:
        margin = 0.5 * abs(high) or 0.5
        low, high = low - margin, high + margin
    return (-high, -low) if direction == "minimize" else (low, high)


def few(quality: Array, most: int) -> NDArray[np.intp]:
    """Return at most ``most`` rows, in order: the better half of them the best there are, the rest spread evenly.

    >>> few(np.array([0.0, 5.0, 1.0, 2.0, 3.0, 4.0]), 4)
    array([0, 1, 4, 5])
    """
    if len(quality) <= most:
        return np.arange(len(quality))
    order = np.argsort(-quality, kind="stable")
    best, others = order[: most // 2], np.sort(order[most // 2 :])
    spread = others[np.linspace(0, len(others) - 1, most - len(best)).astype(np.intp)]
    return np.sort(np.concatenate([best, spread]))


def number(value: float, digits: int = 4) -> str:
    """Return a short decimal.

    >>> number(0.001), number(1e-5), number(128.0), number(0.97991, 5)
    ('0.001', '1e-5', '128', '0.97991')
    """
    text = f"{value:.{digits}g}"
    if "e" not in text:
        return text
    mantissa, exponent = text.split("e")
    return f"{mantissa}e{int(exponent)}"


def short(text: str, longest: int) -> str:
    """Return the text on one line, its end replaced by … when it is too long.

    >>> short("learning\\nrate", 10)
    'learning …'
    """
    line = " ".join(text.split())
    return line if len(line) <= longest else line[: longest - 1] + "…"
