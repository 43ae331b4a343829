"""Readings: which number of a repetition a claim is about.

An experiment returns one :class:`~surefoot_lab.registry.Trace` per method and repetition. A *reading* turns that into
one number per repetition, and readings combine like numbers, so that a claim can be written as it is spoken:

>>> S = Metric("simple_regret")
>>> S["GP-UCB"] < S["random"]
simple_regret[GP-UCB] < simple_regret[random]
>>> S["slow"].at(20) > 5 * S["fast"].at(20)
simple_regret[slow] at 20 > 5 · simple_regret[fast] at 20

``S["GP-UCB"]`` is the last entry of the series; ``.at(t)`` the entry after t steps (counted from 1), ``.part(0.25)``
the entry after a quarter of the run, ``.over(80, 100)`` a mean over steps, ``.reduced(np.max, "max")`` anything else.
A repetition that has no such number (another budget, a method run on a subset only) is left out of the claim, which
reports how many repetitions it had.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from surefoot_lab.registry import Trace

__all__ = [
    "Comparison",
    "Metric",
    "Reading",
    "Series",
    "across",
    "ascending",
    "by_unit",
    "derived",
    "event",
    "highest",
    "lowest",
    "slope",
]

Array = NDArray[np.float64]
Replicates = Sequence[Mapping[str, "Trace"]]


class Grouped(list[Mapping[str, "Trace"]]):
    """Repetitions that know to which independent unit each belongs.

    >>> Grouped([{}, {}, {}], [0, 1, 0]).units
    array([0, 1, 0])
    """

    def __init__(self, replicates: Replicates, units: Sequence[int]) -> None:
        super().__init__(replicates)
        self.units = np.asarray(units, dtype=np.intp)


class Reading:
    """One number per repetition; NaN where a repetition does not have it.

    Readings add, subtract, multiply and divide, with each other and with numbers; ``<`` and ``>`` make a
    :class:`Comparison`.

    >>> abs(Metric("regret")["a"] - 18.02) < 1
    |regret[a] − 18.02| < 1
    """

    own_units = False  # whether it has one number per unit of its own already (see :func:`across`)

    def __init__(self, label: str, values: Callable[[Replicates], Array]) -> None:
        self.label = label
        self._values = values

    def _like(self, *others: Reading) -> Reading:
        self.own_units = any(other.own_units for other in others)
        return self

    def values(self, replicates: Replicates) -> Array:
        """Return the numbers, shape (n,); shape () for a constant."""
        return np.asarray(self._values(replicates), dtype=np.float64)

    def named(self, label: str) -> Reading:
        """Return the same reading under another label.

        >>> (Metric("regret")["a"] - Metric("regret")["b"]).named("excess of a")
        excess of a
        """
        return Reading(label, self._values)._like(self)

    def _combine(
        self, other: Reading | float, sign: str, operation: Callable[[Array, Array], Array], swap: bool = False
    ) -> Reading:
        left, right = (as_reading(other), self) if swap else (self, as_reading(other))
        first, second = (
            f"({side.label})" if sign != "+" and (" + " in side.label or " − " in side.label) else side.label
            for side in (left, right)
        )
        made = Reading(f"{first} {sign} {second}", lambda r: operation(left.values(r), right.values(r)))
        return made._like(left, right)

    def __add__(self, other: Reading | float) -> Reading:
        return self._combine(other, "+", np.add)

    def __radd__(self, other: float) -> Reading:
        return self._combine(other, "+", np.add, swap=True)

    def __sub__(self, other: Reading | float) -> Reading:
        return self._combine(other, "−", np.subtract)

    def __rsub__(self, other: float) -> Reading:
        return self._combine(other, "−", np.subtract, swap=True)

    def __mul__(self, other: Reading | float) -> Reading:
        return self._combine(other, "·", np.multiply)

    def __rmul__(self, other: float) -> Reading:
        return self._combine(other, "·", np.multiply, swap=True)

    def __truediv__(self, other: Reading | float) -> Reading:
        return self._combine(other, "/", _divide)

    def __rtruediv__(self, other: float) -> Reading:
        return self._combine(other, "/", _divide, swap=True)

    def __abs__(self) -> Reading:
        return Reading(f"|{self.label}|", lambda r: np.abs(self.values(r)))._like(self)

    def __lt__(self, other: Reading | float) -> Comparison:
        return Comparison(self, as_reading(other), f"{self.label} < {as_reading(other).label}", strict=True)

    def __le__(self, other: Reading | float) -> Comparison:
        return Comparison(self, as_reading(other), f"{self.label} ≤ {as_reading(other).label}", strict=False)

    def __gt__(self, other: Reading | float) -> Comparison:
        return Comparison(as_reading(other), self, f"{self.label} > {as_reading(other).label}", strict=True)

    def __ge__(self, other: Reading | float) -> Comparison:
        return Comparison(as_reading(other), self, f"{self.label} ≥ {as_reading(other).label}", strict=False)

    def __repr__(self) -> str:
        return self.label


def as_reading(value: Reading | float) -> Reading:
    """Return a reading as it is, and a number as the constant reading."""
    if isinstance(value, Reading):
        return value
    number = float(value)
    return Reading(f"{number:.6g}", lambda _: np.float64(number))  # type: ignore[arg-type, return-value]


def _divide(a: Array, b: Array) -> Array:
    """a/b, NaN (the repetition is left out) where b is 0."""
    return np.divide(a, np.where(b == 0, np.nan, b))


class Series(Reading):
    """A metric of one method, reduced to one number per repetition.

    >>> Series("GP-UCB", "regret").over(80, 100)
    regret[GP-UCB] mean of 80..100
    """

    def __init__(
        self, method: str, metric: str, reduce: Callable[[Array], float] | None = None, suffix: str = ""
    ) -> None:
        self.method, self.metric, self._suffix = method, metric, suffix
        self._reduce = reduce or (lambda series: series[-1])
        super().__init__(f"{metric}[{method}]{suffix}", self._read)

    def _read(self, replicates: Replicates) -> Array:
        return np.array([self._one(traces) for traces in replicates], dtype=np.float64)

    def _one(self, traces: Mapping[str, Trace]) -> float:
        trace = traces.get(self.method)
        if trace is None or self.metric not in trace.metrics:
            return math.nan
        series = np.atleast_1d(trace.metrics[self.metric])
        return float(self._reduce(series)) if series.size else math.nan

    def reduced(self, reduce: Callable[[Array], float], label: str) -> Series:
        """Return the reading with another reduction of the series (shape (T,) to a number)."""
        return Series(self.method, self.metric, reduce, f" {label}")

    def at(self, step: int) -> Series:
        """Return the entry after ``step`` steps, counted from 1; missing where the series is shorter."""
        if step < 1:
            raise ValueError(f"steps are counted from 1, got {step}")
        return self.reduced(lambda s: s[step - 1] if step <= s.size else math.nan, f"at {step}")

    def part(self, share: float) -> Series:
        """Return the entry after a share of the run, 0 < share ≤ 1, whatever its length."""
        if not 0 < share <= 1:
            raise ValueError(f"a share of the run lies in (0, 1], got {share}")
        return self.reduced(lambda s: s[math.ceil(share * s.size) - 1], f"after {share:.0%}")

    def over(self, first: int = 1, last: int | None = None) -> Series:
        """Return the mean over steps first..last, both included; missing where the series is shorter."""
        if first < 1 or (last is not None and last < first):
            raise ValueError(f"steps first..last are counted from 1, got {first}..{last}")
        span = f"mean of {first}..{'end' if last is None else last}"
        return self.reduced(lambda s: s[first - 1 : last].mean() if s.size >= (last or first) else math.nan, span)

    def of(self, method: str) -> Series:
        """Return the same reading of another method."""
        return Series(method, self.metric, self._reduce, self._suffix)


class Metric:
    """A metric by name; indexing with a method gives its :class:`Series`.

    >>> Metric("regret")["random"].at(50)
    regret[random] at 50
    """

    def __init__(self, name: str = "simple_regret") -> None:
        self.name = name

    def __getitem__(self, method: str) -> Series:
        return Series(method, self.name)


class Comparison:
    """``small < large``, a statement about paired readings.

    Python's chained form ``a < b < c`` cannot be kept apart from ``a < b and b < c`` and is refused; use
    :func:`ascending`.

    >>> m = Metric("regret")
    >>> ascending(m["a"], m["b"], m["c"])
    [regret[a] < regret[b], regret[b] < regret[c]]
    """

    def __init__(self, small: Reading, large: Reading, label: str, *, strict: bool) -> None:
        self.small, self.large, self.label, self.strict = small, large, label, strict

    def paired(self, replicates: Replicates) -> tuple[Array, Array]:
        """Return both sides, shape (n,) each, where both are there."""
        return paired(self.small, self.large, replicates)

    def __bool__(self) -> bool:
        raise TypeError("a comparison of readings is a statement to judge; write ascending(a, b, c) for a < b < c")

    def __repr__(self) -> str:
        return self.label


def paired(first: Reading, second: Reading, replicates: Replicates) -> tuple[Array, Array]:
    """Return the two readings, shape (n,) each, in the repetitions that have both."""
    a, b = np.broadcast_arrays(np.atleast_1d(first.values(replicates)), second.values(replicates))
    keep = np.isfinite(a) & np.isfinite(b)
    return a[keep], b[keep]


def by_unit(replicates: Replicates, *readings: Reading) -> tuple[Array, ...]:
    """Return the readings where all are there, averaged within each independent unit; shape (units,) each.

    Repetitions inside a unit (first sensors on one day, noise on one field) are not independent of each other: what is
    compared over units is their mean.

    >>> from surefoot_lab.registry import Trace
    >>> runs = [{"a": Trace(regret=x)} for x in (1.0, 2.0, 6.0)]
    >>> by_unit(Grouped(runs, ["Monday" == day for day in ("Monday", "Monday", "Tuesday")]), Metric("regret")["a"])
    (array([6. , 1.5]),)
    """
    tables = np.broadcast_arrays(*[np.atleast_1d(reading.values(replicates)) for reading in readings])
    keep = np.isfinite(np.stack(tables)).all(axis=0)
    if not isinstance(replicates, Grouped) or any(reading.own_units for reading in readings):
        return tuple(table[keep] for table in tables)
    _, place = np.unique(replicates.units[keep], return_inverse=True)
    count = np.bincount(place)
    return tuple(np.bincount(place, weights=table[keep]) / count for table in tables)


def derived(function: Callable[[Mapping[str, Trace]], float], label: str) -> Reading:
    """Return a reading computed from all traces of one repetition.

    >>> derived(lambda traces: len(traces), "methods").values([{}, {}])
    array([0., 0.])
    """
    return Reading(label, lambda replicates: np.array([function(t) for t in replicates], dtype=np.float64))


def across(function: Callable[[Replicates], Array], label: str) -> Reading:
    """Return a reading over units of its own (targets, events): the function returns one number per unit.

    The units must be independent of each other, since the interval of a claim counts them.

    >>> across(lambda replicates: np.array([1.0, 0.0]), "per target").values([])
    array([1., 0.])
    """
    reading = Reading(label, function)
    reading.own_units = True
    return reading


def event(comparison: Comparison) -> Reading:
    """Return 1 in the repetitions in which the comparison is true, else 0: what a ``Share`` counts.

    >>> event(Metric("regret")["a"] < Metric("regret")["b"])
    (regret[a] < regret[b])
    """

    def values(replicates: Replicates) -> Array:
        small, large = comparison.small.values(replicates), comparison.large.values(replicates)
        true = small < large if comparison.strict else small <= large
        return np.where(np.isfinite(small) & np.isfinite(large), true.astype(np.float64), np.nan)

    return Reading(f"({comparison.label})", values)._like(comparison.small, comparison.large)


def ascending(*readings: Reading) -> list[Comparison]:
    """Return the comparisons first < second < third ...

    >>> len(ascending(*[Metric("regret")[name] for name in "abcd"]))
    3
    """
    return [small < large for small, large in pairwise(readings)]


def lowest(reading: Reading, others: Sequence[Reading]) -> list[Comparison]:
    """Return the comparisons that say ``reading`` is below each of the others.

    >>> m = Metric("regret")
    >>> lowest(m["a"], [m["b"], m["c"]])
    [regret[a] < regret[b], regret[a] < regret[c]]
    """
    return [reading < other for other in others if other is not reading]


def highest(reading: Reading, others: Sequence[Reading]) -> list[Comparison]:
    """Return the comparisons that say ``reading`` is above each of the others.

    >>> m = Metric("output")
    >>> highest(m["a"], [m["b"]])
    [output[a] > output[b]]
    """
    return [reading > other for other in others if other is not reading]


def slope(readings: Sequence[Reading], positions: ArrayLike | None = None) -> Reading:
    """Return the least-squares slope over the readings, at 1, 2, 3, ... or at the given positions.

    >>> m = Metric("seconds")
    >>> slope([m["20 tasks"], m["40 tasks"]], positions=[20, 40])
    slope(seconds[20 tasks], seconds[40 tasks])
    """
    if len(readings) < 2:
        raise ValueError(f"a slope needs two or more readings, got {len(readings)}")
    x = np.arange(1.0, len(readings) + 1) if positions is None else np.asarray(positions, dtype=np.float64)
    if x.shape != (len(readings),) or np.ptp(x) == 0:
        raise ValueError(f"positions must be {len(readings)} numbers, not all equal, got {positions!r}")
    weights = slope_weights(x)

    def values(replicates: Replicates) -> Array:
        return weights @ np.stack([np.atleast_1d(reading.values(replicates)) for reading in readings])

    return Reading(f"slope({', '.join(r.label for r in readings)})", values)._like(*readings)


def slope_weights(positions: Array) -> Array:
    """Return the weights w, shape (k,), for which w · y is the least-squares slope of y over the positions."""
    centred = positions - positions.mean()
    weights: Array = centred / (centred @ centred)
    return weights
