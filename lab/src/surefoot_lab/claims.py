"""Claims: the six forms a published statement can have, and the rule that judges each.

======== ============================================== =============================================== =============
form     holds                                          fails                                           otherwise
======== ============================================== =============================================== =============
Exact    equal within the tolerance (1e-6)              not equal                                       (no data)
Number   every cell within 2 combined standard errors   some cell off by more than 3 combined standard  undecided
         of the number or within the tolerance (nine    errors and by more than a tenth of the number
         cells in ten if there are ten or more), and
         known well enough to say so (below)
Order    95 % interval of the mean paired difference    some interval on the other side                 undecided
         on the claimed side, for every test
Equal    90 % interval of the difference inside the     interval outside                                undecided
         margin (default: a quarter of the gap between
         best and worst method at that point)
Trend    paired slope over the listed order on the      on the other side                               undecided
         claimed side (Page test and slope interval)
Share    Wilson 95 % interval of the share on the       on the other side                               undecided
         claimed side of the number
======== ============================================== =============================================== =============

Agreement without power is no agreement: a cell holds only where the half-width of our own 95 % interval is at most a
quarter of the number, or of the tolerance where it is the tolerance that it is within.

Every interval is over *independent units*: what an experiment says a repetition is one of (a drawn function), or
belongs to (a day, a field, an image). Repetitions inside a unit are averaged first, and a share counts units. Fewer
than ten units decide nothing except an ``Exact`` claim or one marked ``exact=True`` (deterministic methods).

Where a table of ten or more cells would both hold (nine in ten agree) and fail (one is far off), it fails: a cell
that contradicts the number is the stronger evidence.

A claim is a value; readings (:mod:`surefoot_lab.readings`) say which numbers it is about:

>>> from surefoot_lab.registry import Trace
>>> from surefoot_lab.readings import Metric
>>> S = Metric("regret")
>>> runs = [{"new": Trace(regret=0.1 * i), "old": Trace(regret=0.1 * i + 1)} for i in range(10)]
>>> Order("the new method is better", S["new"] < S["old"]).judge(runs)["verdict"]
'holds'
>>> Number("regret of the old one", {S["old"]: (3.0, 0.1)}).judge(runs)["verdict"]
'fails'
>>> Order("on one day in ten repetitions", S["new"] < S["old"]).judge(runs, units=[0] * 10)["verdict"]
'undecided'

**Marks** repeat the register: ``reproduced``, ``doubtful``, ``not-reproduced``, ``contradicted`` (the expected
verdict is ``fails``), ``card`` (not published), ``needs-original`` (printed beside our numbers, not judged: the
verdict is None).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from surefoot.intervals import FEWEST, bootstrap_interval, page, resamples, t_interval, wilson
from surefoot_lab.claim import MARKS, Claim, Verdict, finding, finite, listed, side
from surefoot_lab.readings import Comparison, Reading, Replicates, Series, as_reading, by_unit, slope_weights

__all__ = [
    "MARKS",
    "Claim",
    "Equal",
    "Exact",
    "Number",
    "Order",
    "Ordering",
    "Share",
    "Trend",
    "falls",
    "one_standard_error",
    "rises",
]

Array = NDArray[np.float64]

ENOUGH = 0.25  # of a number: the half-width of our own interval up to which agreement means something


@dataclass(frozen=True)
class Exact(Claim):
    """Numbers or inequalities that must be met in every single repetition.

    Parameters
    ----------
    cells : mapping of reading to number, comparison, or sequence of comparisons
        The readings and the values they must have; comparisons must be true in each repetition.
    tolerance : float
        Allowed absolute difference.

    >>> from surefoot_lab.registry import Trace
    >>> from surefoot_lab.readings import Metric
    >>> rows = Metric("rows")["table"]
    >>> Exact("1,400 rows", {rows: 1400}).judge([{"table": Trace(rows=1400)}])["verdict"]
    'holds'
    >>> Exact("at most 1,344 rows", rows <= 1344).judge([{"table": Trace(rows=1400)}])["verdict"]
    'fails'
    """

    cells: Mapping[Reading, float] | Comparison | Sequence[Comparison]
    tolerance: float = field(default=1e-6, kw_only=True)
    form: ClassVar[str] = "EXACT"

    def examine(self, replicates: Replicates) -> list[dict[str, Any]]:
        """Return one finding per cell; the estimate is the worst value over the repetitions."""
        findings = []
        if isinstance(self.cells, Mapping):
            for reading, number in self.cells.items():
                values = finite(reading, replicates)
                gap = np.abs(values - float(number))
                worst = values[gap.argmax()] if values.size else math.nan
                ok = values.size > 0 and gap.max() <= self.tolerance
                findings.append(self._cell(reading.label, float(number), float(worst), values, ok))
        else:
            for test in listed(self.cells):
                small, large = test.paired(replicates)
                room = large - small
                # A strict inequality between computed numbers needs no slack; a weak one is equality up to rounding.
                ok = room.size > 0 and bool((room > 0).all() if test.strict else room.min() >= -self.tolerance)
                worst = float(room.min()) if room.size else math.nan
                findings.append(self._cell(test.label, test.label, worst, room, ok))
        return findings

    def _cell(self, label: str, published: Any, worst: float, values: Array, ok: bool) -> dict[str, Any]:
        verdict: Verdict = "undecided" if values.size == 0 else "holds" if ok else "fails"
        interval = (float(values.min()), float(values.max())) if values.size else (math.nan, math.nan)
        return finding(label, published, worst, interval, values.size, verdict)


@dataclass(frozen=True)
class Number(Claim):
    """Published numbers, one per cell, with their standard errors where printed.

    Parameters
    ----------
    cells : mapping of reading to number or (number, standard error)
        What was published.
    repetitions : int, optional
        Published number of repetitions: where no standard error is printed, it is our own standard deviation divided by
        the root of this number (0 when this is not given either: the number is exact).
    tolerance, relative : float, optional
        Stated absolute or relative tolerance; a cell within it agrees if it is known to a quarter of it.

    >>> from surefoot_lab.registry import Trace
    >>> from surefoot_lab.readings import Metric
    >>> S = Metric("regret")
    >>> runs = [{"a": Trace(regret=x), "b": Trace(regret=2 + x)} for x in (0.9, 1.0, 1.1) * 4]
    >>> Number("table 1", {S["a"]: 1.02, S["b"]: (3.05, 0.05)}, repetitions=50).judge(runs)["verdict"]
    'holds'
    """

    cells: Mapping[Reading, float | tuple[float, float]]
    repetitions: int | None = field(default=None, kw_only=True)
    tolerance: float | None = field(default=None, kw_only=True)
    relative: float | None = field(default=None, kw_only=True)
    form: ClassVar[str] = "NUM"

    def examine(self, replicates: Replicates) -> list[dict[str, Any]]:
        """Return one finding per cell; the interval is the estimate ± 2 combined standard errors.

        ``half`` is the half-width of our own 95 % interval.
        """
        return [self._cell(r, p, finite(r, replicates)) for r, p in self.cells.items()]

    def _cell(self, reading: Reading, published: float | tuple[float, float], values: Array) -> dict[str, Any]:
        number, printed = published if isinstance(published, tuple) else (published, None)
        shown: Any = [number, printed] if printed is not None else float(number)
        if values.size == 0:
            return finding(reading.label, shown, math.nan, (math.nan, math.nan), 0, "undecided")
        estimate = float(self._statistic()(values, axis=-1))
        own = self._standard_error(values)
        spread = own * math.sqrt(values.size)
        theirs = printed if printed is not None else spread / math.sqrt(self.repetitions) if self.repetitions else 0.0
        se = math.hypot(own, theirs)
        half = float(stdtrit(values.size - 1, 0.975)) * own if own > 0 and values.size > 1 else own
        verdict = self._verdict(float(number), estimate, se, half)
        found = finding(reading.label, shown, estimate, (estimate - 2 * se, estimate + 2 * se), values.size, verdict)
        return {**found, "half": half if math.isfinite(half) else None}

    def _verdict(self, number: float, estimate: float, se: float, half: float) -> Verdict:
        off, size = abs(estimate - number), abs(number)
        # Two exact numbers are equal up to rounding.
        tolerance = max(self.tolerance or 0.0, (self.relative or 0.0) * size, 1e-12 * (1 + size))
        near = off <= 2 * se and half <= ENOUGH * size
        if near or (off <= tolerance and half <= ENOUGH * tolerance):
            return "holds"
        return "fails" if off > max(3 * se, size / 10, tolerance) else "undecided"

    def _again(self, position: int, test: Mapping[str, Any]) -> Verdict:
        low, high = test["interval"]
        published = list(self.cells.values())[position]
        number, printed = published if isinstance(published, tuple) else (published, None)
        if self.exact and test["estimate"] is not None:
            return self._verdict(float(number), test["estimate"], printed or 0.0, 0.0)
        if test["estimate"] is None or low is None:
            return "undecided"
        se, n = (high - low) / 4, test["n"]
        if (half := test.get("half")) is None:  # records of version 0.1.0 have the combined interval only
            own = math.sqrt(max(0.0, se**2 - printed**2)) if printed is not None else se
            if printed is None and self.repetitions:
                own = se / math.sqrt(1 + n / self.repetitions)
            half = float(stdtrit(n - 1, 0.975)) * own if n > 1 and own > 0 else own
        return self._verdict(float(number), test["estimate"], se, half)

    def _standard_error(self, values: Array) -> float:
        if self.exact:
            return 0.0
        if self.statistic == "mean":
            return float(values.std(ddof=1)) / math.sqrt(values.size) if values.size > 1 else math.inf
        if values.size < FEWEST:
            return math.inf
        return float(np.std(self._statistic()(values[resamples(values.size)], axis=-1), ddof=1))

    def combine(self, verdicts: Sequence[Verdict]) -> Verdict:
        """Return the verdict of the table: of ten or more cells, nine in ten must agree and none be far off."""
        if len(verdicts) < 10 or "fails" in verdicts:
            return super().combine(verdicts)
        return "holds" if sum(v == "holds" for v in verdicts) >= 0.9 * len(verdicts) else "undecided"


@dataclass(frozen=True)
class Order(Claim):
    """One or several paired comparisons, each of which must hold.

    >>> from surefoot_lab.registry import Trace
    >>> from surefoot_lab.readings import Metric
    >>> S = Metric("regret")
    >>> runs = [{"a": Trace(regret=x), "b": Trace(regret=x * x)} for x in (-3.0, 0.1, 0.2)]
    >>> Order("too noisy to say", [S["a"] < S["b"]]).judge(runs)["verdict"]
    'undecided'
    """

    tests: Comparison | Sequence[Comparison]
    form: ClassVar[str] = "ORD"

    def examine(self, replicates: Replicates) -> list[dict[str, Any]]:
        """Return one finding per comparison: the paired difference on the claimed side and its 95 % interval."""
        findings = []
        for test in listed(self.tests):
            small, large = by_unit(replicates, test.small, test.large)
            estimate, low, high = self._difference(small, large, 0.95)
            verdict = side(low, high, strict=test.strict) if small.size else "undecided"
            findings.append(finding(test.label, test.label, estimate, (low, high), small.size, verdict))
        return findings


def one_standard_error(a: Array, b: Array) -> float:
    """Return the standard error of the second reading: a margin for :class:`Equal`.

    >>> one_standard_error(np.zeros(4), np.array([1.0, 2.0, 3.0, 4.0]))
    0.645497...
    """
    return float(b.std(ddof=1) / math.sqrt(b.size)) if b.size > 1 else math.nan


@dataclass(frozen=True)
class Equal(Claim):
    """Two readings that agree up to a margin.

    Parameters
    ----------
    pairs : (reading, reading or number), or sequence of such
        What must agree.
    margin : float or callable, optional
        Largest difference that counts as equal, or a function of both value arrays. By default a quarter of the gap
        between the best and the worst method at that point (plain series readings only).
    relative : float, optional
        Margin as a share of the mean of the second reading, instead.

    >>> from surefoot_lab.registry import Trace
    >>> from surefoot_lab.readings import Metric
    >>> S = Metric("regret")
    >>> runs = [{"a": Trace(regret=x), "b": Trace(regret=x + 0.01), "c": Trace(regret=x + 1)} for x in range(10)]
    >>> Equal("a is as good as b", (S["a"], S["b"])).judge(runs)["verdict"]
    'holds'
    """

    pairs: tuple[Reading, Reading | float] | Sequence[tuple[Reading, Reading | float]]
    margin: float | Callable[[Array, Array], float] | None = field(default=None, kw_only=True)
    relative: float | None = field(default=None, kw_only=True)
    form: ClassVar[str] = "EQ"

    def examine(self, replicates: Replicates) -> list[dict[str, Any]]:
        """Return one finding per pair: the paired difference and its 90 % interval."""
        pairs: Any = self.pairs if isinstance(self.pairs[0], tuple) else (self.pairs,)
        findings = []
        for first, second in pairs:
            other = as_reading(second)
            a, b = by_unit(replicates, first, other)
            label = f"{first.label} = {other.label}"
            if a.size == 0:
                findings.append(finding(label, None, math.nan, (math.nan, math.nan), 0, "undecided"))
                continue
            margin = self._margin(first, a, b, replicates)
            estimate, low, high = self._difference(b, a, 0.90)
            verdict: Verdict = "undecided"
            if low >= -margin and high <= margin:
                verdict = "holds"
            elif low > margin or high < -margin:
                verdict = "fails"
            published = margin if math.isfinite(margin) else None  # one repetition has no standard error
            findings.append(finding(f"{label} ± {margin:.3g}", published, estimate, (low, high), a.size, verdict))
        return findings

    def _margin(self, reading: Reading, a: Array, b: Array, replicates: Replicates) -> float:
        if callable(self.margin):
            return float(self.margin(a, b))
        if self.margin is not None:
            return float(self.margin)
        if self.relative is not None:
            return self.relative * abs(float(b.mean()))
        if not isinstance(reading, Series):
            raise ValueError(f"the default margin needs a plain series reading, not {reading.label!r}: give margin=")
        methods = sorted({name for traces in replicates for name in traces})
        means = [values.mean() for name in methods if (values := finite(reading.of(name), replicates)).size]
        return 0.25 * float(np.ptp(means))


@dataclass(frozen=True)
class Ordering:
    """Readings in a listed order and the direction claimed for them; made by :func:`rises` and :func:`falls`.

    >>> from surefoot_lab.readings import Metric
    >>> rises(*[Metric("output")[f"H = {h}"] for h in (1, 2, 3)]).label
    'output[H = 1] ↗ output[H = 2] ↗ output[H = 3]'
    """

    readings: tuple[Reading, ...]
    sign: int

    @property
    def label(self) -> str:
        """The readings joined by arrows, the inner ones of a long list left out."""
        names = [reading.label for reading in self.readings]
        if len(names) > 4:
            names = [names[0], f"({len(names) - 2} more)", names[-1]]
        return (" ↗ " if self.sign > 0 else " ↘ ").join(names)


def rises(*readings: Reading) -> Ordering:
    """Return the statement that the readings grow in the listed order.

    >>> from surefoot_lab.readings import Metric
    >>> rises(Metric("seconds")["n = 10"], Metric("seconds")["n = 20"]).sign
    1
    """
    return Ordering(readings, 1)


def falls(*readings: Reading) -> Ordering:
    """Return the statement that the readings shrink in the listed order.

    >>> from surefoot_lab.readings import Metric
    >>> falls(*[Metric("regret")["GP-UCB"].at(t) for t in (10, 20, 40)]).sign
    -1
    """
    return Ordering(readings, -1)


@dataclass(frozen=True)
class Trend(Claim):
    """Readings that rise or fall over a listed order of methods, settings or times.

    Holds when the 95 % interval of the mean slope over the ranks 1, 2, 3, ... is on the claimed side and Page's test
    for ordered alternatives agrees at 5 %; fails when both are on the other side.

    >>> from surefoot_lab.registry import Trace
    >>> from surefoot_lab.readings import Metric
    >>> S = Metric("regret")
    >>> runs = [{m: Trace(regret=-k + 0.1 * i) for k, m in enumerate("abcd")} for i in range(10)]
    >>> Trend("falls from a to d", falls(*[S[m] for m in "abcd"])).judge(runs)["verdict"]
    'holds'
    """

    orderings: Ordering | Sequence[Ordering]
    form: ClassVar[str] = "TREND"

    def examine(self, replicates: Replicates) -> list[dict[str, Any]]:
        """Return one finding per ordering: the slope and its 95 % interval."""
        return [self._trend(ordering, replicates) for ordering in listed(self.orderings)]

    def _trend(self, ordering: Ordering, replicates: Replicates) -> dict[str, Any]:
        table = np.stack(by_unit(replicates, *ordering.readings), axis=1)
        published = "rises" if ordering.sign > 0 else "falls"
        if table.shape[0] == 0:
            return finding(ordering.label, published, math.nan, (math.nan, math.nan), 0, "undecided")
        estimate, low, high = self._slope(table)
        verdict = side(*((low, high) if ordering.sign > 0 else (-high, -low)))
        if self.statistic == "mean" and not self.exact:
            z = ordering.sign * page(table)
            if (verdict == "holds" and z < ndtri(0.95)) or (verdict == "fails" and z > ndtri(0.05)):
                verdict = "undecided"
        return finding(ordering.label, published, estimate, (low, high), table.shape[0], verdict)

    def _slope(self, table: Array) -> tuple[float, float, float]:
        weights = slope_weights(np.arange(1.0, table.shape[1] + 1))
        if self.statistic == "mean":
            return t_interval(table @ weights, 0.95, exact=self.exact)
        f = self._statistic()
        return bootstrap_interval(
            lambda pick: np.moveaxis(f(table.T[:, pick], axis=-1), 0, -1) @ weights, len(table), 0.95, exact=self.exact
        )


@dataclass(frozen=True)
class Share(Claim):
    """How often something happens, against a number.

    Each test compares a reading that is 0 or 1 in every repetition, or a share of what happened in it, with the claimed
    share. The interval is that of as many trials as there are independent units, whose means count: what happens within
    a unit is not taken for more than one trial.

    >>> from surefoot_lab.registry import Trace
    >>> from surefoot_lab.readings import Metric
    >>> covered = Metric("covered")["GP-UCB"]
    >>> runs = [{"GP-UCB": Trace(covered=i > 0)} for i in range(100)]
    >>> Share("the band covers f in at least 90 %", covered >= 0.9).judge(runs)["verdict"]
    'holds'
    """

    tests: Comparison | Sequence[Comparison]
    form: ClassVar[str] = "SHARE"

    def examine(self, replicates: Replicates) -> list[dict[str, Any]]:
        """Return one finding per test: the share and its Wilson 95 % interval."""
        findings = []
        for test in listed(self.tests):
            small, large = test.paired(replicates)
            if small.size == 0:
                findings.append(finding(test.label, None, math.nan, (math.nan, math.nan), 0, "undecided"))
                continue
            events, number, sign = (
                (large, small, 1) if np.ndim(test.small.values(replicates)) == 0 else (small, large, -1)
            )
            if np.ptp(number) > 0 or events.min() < 0.0 or events.max() > 1.0:
                raise ValueError(f"a share compares readings from 0 to 1 with a number, not {test.label!r}")
            claimed = float(number[0])
            events = by_unit(replicates, test.large if sign > 0 else test.small)[0]
            low, high = wilson(float(events.sum()), events.size)
            # The interval never passes 0 or 1, so that "at least 0" and "at most 1" hold on the border.
            room = (low - claimed, high - claimed) if sign > 0 else (claimed - high, claimed - low)
            findings.append(
                finding(
                    test.label,
                    claimed,
                    float(events.mean()),
                    (low, high),
                    events.size,
                    side(*room, strict=test.strict),
                )
            )
        return findings
