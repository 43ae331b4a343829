"""What all claims share: a name, marks, and how findings become a verdict.

The six forms are in :mod:`surefoot_lab.claims`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from surefoot.intervals import bootstrap_interval, t_interval
from surefoot_lab.readings import Grouped, Reading, Replicates, by_unit

__all__ = ["FEWEST_UNITS", "MARKS", "Claim"]

Array = NDArray[np.float64]
Verdict = Literal["holds", "fails", "undecided"]
Statistic = Callable[..., Any]

FEWEST_UNITS = 10  # independent units below which only exact claims are decided
MARKS = ("reproduced", "doubtful", "not-reproduced", "contradicted", "needs-original", "card")


def _trimmed(values: Array, axis: int = -1) -> Any:
    from scipy.stats import trim_mean  # slow to import, and seldom needed

    return trim_mean(values, 0.05, axis=axis)


STATISTICS: dict[str, Statistic] = {
    "mean": np.mean,
    "median": np.median,
    "std": lambda values, axis=-1: np.std(values, axis=axis, ddof=min(1, values.shape[axis] - 1)),
    "trimmed": _trimmed,
}


@dataclass(frozen=True)
class Claim(ABC):
    """A statement that repetitions of an experiment can confirm or contradict.

    Parameters
    ----------
    name : str
        The statement, in words.
    marks : str or tuple of str
        What the register says about it, out of :data:`MARKS`.
    note : str
        Anything a reader of the verdict should know.
    statistic : str or callable
        What is compared over the repetitions: "mean" (t interval), "median", "std", "trimmed" (5 % on each side), or a
        function of (values, axis=). All but the mean use a paired bootstrap, which needs five repetitions.
    exact : bool
        The readings have no sampling error, so that one repetition decides. Without it, fewer than ten independent
        units decide nothing.

    >>> from surefoot_lab.claims import Exact
    >>> Exact("six columns", {}, marks=("surprising",))
    Traceback (most recent call last):
    ...
    ValueError: unknown mark 'surprising'; known are reproduced, doubtful, ...
    """

    name: str
    marks: str | tuple[str, ...] = field(default=(), kw_only=True)
    note: str = field(default="", kw_only=True)
    statistic: str | Statistic = field(default="mean", kw_only=True)
    exact: bool = field(default=False, kw_only=True)

    form: ClassVar[str] = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "marks", (self.marks,) if isinstance(self.marks, str) else tuple(self.marks))
        for mark in self.marks:
            if mark not in MARKS:
                raise ValueError(f"unknown mark {mark!r}; known are {', '.join(MARKS)}")
        if isinstance(self.statistic, str) and self.statistic not in STATISTICS:
            raise ValueError(f"unknown statistic {self.statistic!r}; known are {', '.join(STATISTICS)}")

    @abstractmethod
    def examine(self, replicates: Replicates) -> list[dict[str, Any]]:
        """Return one finding per test: ``label, published, estimate, interval, n, verdict``."""

    def combine(self, verdicts: Sequence[Verdict]) -> Verdict:
        """Return the verdict of the claim from those of its tests: all must hold, one failure is a failure."""
        if "fails" in verdicts:
            return "fails"
        return "holds" if verdicts and all(v == "holds" for v in verdicts) else "undecided"

    def judge(self, replicates: Replicates, units: Sequence[int] | None = None) -> dict[str, Any]:
        """Return the JSON-able entry of ``results.json``.

        ``published``, ``estimate`` and ``interval`` are plain for a single test and lists for several, in the order of
        ``tests``. A claim that cannot be judged (a reading that fits no repetition) is undecided and says why.

        Parameters
        ----------
        replicates : sequence of mapping
            The traces of each repetition.
        units : sequence of int, optional
            To which independent unit each repetition belongs; by default each is one of its own.
        """
        return self._entry(self.examine(replicates if units is None else Grouped(replicates, units)))

    def judge_again(self, tests: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the entry that stored tests give under the rules as they are now; no repetition is needed."""
        return self._entry([{**test, "verdict": self._again(i, test)} for i, test in enumerate(tests)])

    def _again(self, position: int, test: Mapping[str, Any]) -> Verdict:
        """The verdict of a stored test, before units are counted."""
        verdict: Verdict = test["verdict"] or "undecided"
        return verdict

    def _entry(self, tests: list[dict[str, Any]]) -> dict[str, Any]:
        judged = "needs-original" not in self.marks
        few = [test for test in tests if not (self.exact or self.form == "EXACT") and test["n"] < FEWEST_UNITS]
        for test in few:
            test["verdict"] = "undecided"
        verdict = self.combine([test["verdict"] for test in tests]) if judged else None
        if not judged:
            tests = [{**test, "verdict": None} for test in tests]
        empty = [test["label"] for test in tests if test["n"] == 0]
        words = [self.note, f"no data for {', '.join(empty)}" if empty else ""]
        if judged and len(few) > len(empty):
            words.append(f"fewer than {FEWEST_UNITS} independent units decide nothing")
        note = "; ".join(filter(None, words))
        one = len(tests) == 1
        entry: dict[str, Any] = {"name": self.name, "form": self.form}
        for key in ("published", "estimate", "interval"):
            entry[key] = tests[0][key] if one else [test[key] for test in tests]
        expected = {"expected": "fails"} if "contradicted" in self.marks else {}
        return {**entry, "verdict": verdict, **expected, "marks": list(self.marks), "note": note, "tests": tests}

    def _statistic(self) -> Statistic:
        return STATISTICS[self.statistic] if isinstance(self.statistic, str) else self.statistic

    def _difference(self, a: Array, b: Array, level: float) -> tuple[float, float, float]:
        """Statistic of b less that of a over the repetitions, with its interval."""
        if a.size == 0:
            return math.nan, -math.inf, math.inf
        if self.statistic == "mean":
            return t_interval(b - a, level, exact=self.exact)
        f = self._statistic()
        return bootstrap_interval(
            lambda pick: f(b[pick], axis=-1) - f(a[pick], axis=-1), a.size, level, exact=self.exact
        )


def side(low: float, high: float, *, strict: bool = True) -> Verdict:
    """On which side of 0 the interval lies; a claim of "at least" also holds on the border."""
    if low > 0 or (not strict and low >= 0):
        return "holds"
    return "fails" if high < 0 else "undecided"


def finding(
    label: str, published: Any, estimate: float, interval: tuple[float, float], n: int, verdict: Verdict
) -> dict[str, Any]:
    """The JSON-able finding of one test over n independent units; null for what is not finite."""
    low, high = ((x if math.isfinite(x) else None) for x in interval)
    number = estimate if math.isfinite(estimate) else None
    return {
        "label": label,
        "published": published,
        "estimate": number,
        "interval": [low, high],
        "n": int(n),
        "verdict": verdict,
    }


def listed(tests: Any) -> tuple[Any, ...]:
    """One test or several, as a tuple."""
    return tuple(tests) if isinstance(tests, Sequence | set) else (tests,)


def finite(reading: Reading, replicates: Replicates) -> Array:
    """The values of a reading where it was measured, one per independent unit."""
    return by_unit(replicates, reading)[0]
