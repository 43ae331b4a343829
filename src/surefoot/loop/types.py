"""What passes between a policy and the person, or program, who measures.

A policy hands out a :class:`Query`, receives an :class:`Outcome`, and answers with a :class:`Recommendation`, or with a
:class:`LevelSet` where the question is what lies above a threshold.
Policies that watch a run while it is going answer each report with an :class:`Advice`.

>>> Outcome(0.9, cost=12.0).failed, FAILED.failed
(False, True)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.loop.direction import turned, turned_words

__all__ = [
    "FAILED",
    "Advice",
    "LevelSet",
    "Observation",
    "Outcome",
    "Prediction",
    "Proposal",
    "Query",
    "Recommendation",
]

Array = NDArray[np.float64]

LARGEST = 1e150  # of a measured value: a model works with squares


def _same(a: object, b: object) -> bool:
    """Field-wise equality of two dataclasses that hold arrays."""
    if type(a) is not type(b):
        return False
    pairs = zip(vars(a).values(), vars(b).values(), strict=True)
    return all(np.array_equal(u, v) if isinstance(u, np.ndarray) else u == v for u, v in pairs)


@dataclass(frozen=True, eq=False)
class Query:
    """One thing to measure.

    Parameters
    ----------
    id : int
        Number of the query within its policy, from 0.
    x : array, shape (d,)
        What to measure, in the domain's own units; on ``Paths`` the stops of a whole move, shape (k, d).
    index : int, optional
        Row of the candidate, on ``Candidates``.
    params : dict, optional
        The same point as named parameters, on ``Space``.
    fidelity : int, optional
        Which fidelity to measure at, for policies that choose one.
    time : float, optional
        The time the query was asked for, for policies that take one.
    cost : float, optional
        What the policy expects the measurement to cost.
    note : mapping
        What the policy wants to remember about its choice; JSON-able.

    A query cannot be changed, and can be sent to another process.

    >>> Query(0, np.array([0.5]))
    Query(0, x=[0.5])
    """

    id: int
    x: Array
    index: int | None = None
    params: dict[str, Any] | None = None
    fidelity: int | None = None
    time: float | None = None
    cost: float | None = None
    note: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.x.flags.writeable:
            object.__setattr__(self, "x", self.x.copy())
            self.x.setflags(write=False)
        object.__setattr__(self, "note", MappingProxyType(dict(self.note)))

    def __repr__(self) -> str:
        point = f"x={self.x.tolist()}" if self.params is None else f"params={self.params}"
        rest = {name: getattr(self, name) for name in ("fidelity", "time", "cost")}
        more = "".join(f", {name}={value}" for name, value in rest.items() if value is not None)
        return f"Query({self.id}, {point}{more})"

    def __reduce__(self) -> tuple[Any, ...]:  # a mapping proxy cannot be pickled
        return type(self), tuple(dict(v) if isinstance(v, MappingProxyType) else v for v in vars(self).values())

    def __eq__(self, other: object) -> bool:
        return _same(self, other)

    def __hash__(self) -> int:
        return hash((self.id, self.x.tobytes()))


@dataclass(frozen=True)
class Proposal:
    """What a subclass returns for an ask, and what to remember about it.

    It is a raw point, the index of a candidate, or on ``Paths`` the stops of a move.

    >>> Proposal(index=3).x is None
    True
    """

    x: Array | None = None
    index: int | None = None
    fidelity: int | None = None
    cost: float | None = None
    note: Mapping[str, Any] = field(default_factory=dict)
    stops: Sequence[int] | NDArray[np.intp] | None = None


@dataclass(frozen=True)
class Outcome:
    """What a measurement gave: a value, and optionally its noise variance, cost and time.

    ``value=None`` or NaN says that the run failed. Infinite values are refused, they are neither; so are values beyond
    ±1e150, whose squares would be infinite.

    A move of several stops (on ``Paths``) gives ``values``, one for each stop, None or NaN for a missed one; ``value``
    is then the mean of those measured, and the noise is that of each of them.

    >>> Outcome(float("nan")) == FAILED
    True
    >>> Outcome(values=[1.0, None, 3.0]).value
    2.0
    """

    value: float | None = None
    noise: float | None = None
    cost: float | None = None
    time: float | None = None
    values: Sequence[float | None] | None = None

    def __post_init__(self) -> None:
        if self.values is not None:
            values = tuple(_number(value) for value in self.values)
            measured = [value for value in values if value is not None]
            if self.value is not None:
                raise ValueError(f"give the value of one measurement or the values of a move, not both: {self.value!r}")
            object.__setattr__(self, "values", values)
            object.__setattr__(self, "value", math.fsum(measured) / len(measured) if measured else None)
        object.__setattr__(self, "value", _number(self.value))
        for name, lowest in (("noise", 0.0), ("cost", 0.0), ("time", -math.inf)):
            number = getattr(self, name)
            if number is not None:
                if not (math.isfinite(number) and number >= lowest):
                    raise ValueError(
                        f"{name} must be finite{' and not negative' if lowest == 0 else ''}, got {number!r}"
                    )
                object.__setattr__(self, name, float(number))

    @property
    def failed(self) -> bool:
        """Whether the run gave no value."""
        return self.value is None

    def negated(self) -> Outcome:
        """Return the same outcome for someone who looks from the other side: values change their sign.

        >>> Outcome(1.0, cost=2.0).negated()
        Outcome(value=-1.0, noise=None, cost=2.0, time=None, values=None)
        """
        if self.values is not None:
            return replace(self, value=None, values=[turned(value) for value in self.values])
        return replace(self, value=turned(self.value))


def _number(value: float | None) -> float | None:
    """A measured value, None for a failed one."""
    number = None if value is None else float(value)
    if number is None or math.isnan(number):
        return None
    if abs(number) > LARGEST:
        bound = "be finite" if math.isinf(number) else f"lie within ±{LARGEST:g}"
        raise ValueError(f"a measured value must {bound}, got {value!r} (use None or NaN for a failed run)")
    return number


FAILED = Outcome(None)
"""The outcome of a run that gave no value."""


@dataclass(frozen=True, eq=False)
class Observation:
    """One measured point, as a policy remembers it; ``id`` is None for points it did not ask for.

    >>> Observation(None, np.array([1.0]), FAILED).failed
    True
    """

    id: int | None
    x: Array
    outcome: Outcome
    index: int | None = None

    @property
    def value(self) -> float | None:
        """The measured value, None for a failed run."""
        return self.outcome.value

    @property
    def failed(self) -> bool:
        """Whether the run gave no value."""
        return self.outcome.failed

    def stops(self) -> list[tuple[Array, float | None]]:
        """Return each measured point with its value: one pair, or one for every stop of a move.

        >>> Observation(0, np.array([[1.0], [2.0]]), Outcome(values=[0.5, None])).stops()
        [(array([1.]), 0.5), (array([2.]), None)]
        """
        if self.outcome.values is None:
            return [(self.x, self.value)]
        return list(zip(self.x, self.outcome.values, strict=True))

    def negated(self) -> Observation:
        """Return the same observation of −f.

        >>> Observation(None, np.array([1.0]), Outcome(2.0)).negated().value
        -2.0
        """
        return replace(self, outcome=self.outcome.negated())

    def __eq__(self, other: object) -> bool:
        return _same(self, other)

    def __hash__(self) -> int:
        return hash((self.id, self.x.tobytes()))


@dataclass(frozen=True, eq=False)
class Recommendation:
    """The answer: what to use, the value to expect there, and the rule that chose it.

    What is not known is None: everything but ``x`` and ``mean`` of a policy that has no model.

    Attributes
    ----------
    mean : float
        The value to expect there, without noise.
    lower, upper : float
        Bounds on the noise-free value.
    confidence : float
        How probable it is, by the policy's model, that the value lies between the two.
    next_lower, next_upper : float
        Bounds, as probable, on the next measurement there: wider by its noise.

    >>> Recommendation(np.array([0.2]), mean=1.0, rule="best measured value").rule
    'best measured value'
    """

    x: Array
    index: int | None = None
    params: dict[str, Any] | None = None
    mean: float | None = None
    lower: float | None = None
    upper: float | None = None
    rule: str = ""
    confidence: float | None = None
    next_lower: float | None = None
    next_upper: float | None = None

    def negated(self) -> Recommendation:
        """Return the same answer about −f, to someone who looks for the other end.

        >>> Recommendation(np.array([0.2]), mean=-1.0, lower=-2.0, upper=0.5).negated().upper
        2.0
        """
        values = (self.mean, self.upper, self.lower, self.next_upper, self.next_lower)
        mean, lower, upper, *following = (None if v is None else 0.0 - v for v in values)
        turned = replace(self, mean=mean, lower=lower, upper=upper, rule=turned_words(self.rule))
        return replace(turned, next_lower=following[0], next_upper=following[1])

    def __eq__(self, other: object) -> bool:
        return _same(self, other)

    def __hash__(self) -> int:
        return hash((self.x.tobytes(), self.rule))


@dataclass(frozen=True, eq=False)
class Prediction:
    """What a model predicts at a point: the noise-free value to expect there, and bounds on it.

    >>> Prediction(np.array([0.2]), None, 1.0, 0.5, 1.5).upper
    1.5
    """

    x: Array
    params: dict[str, Any] | None
    mean: float
    lower: float
    upper: float

    def negated(self) -> Prediction:
        """Return the same prediction of −f.

        >>> Prediction(np.array([0.2]), None, 1.0, 0.5, 1.75).negated().lower
        -1.75
        """
        return replace(self, mean=0.0 - self.mean, lower=0.0 - self.upper, upper=0.0 - self.lower)

    def __eq__(self, other: object) -> bool:
        return _same(self, other)

    def __hash__(self) -> int:
        return hash((self.x.tobytes(), self.mean))


@dataclass(frozen=True, eq=False)
class LevelSet:
    """The answer to "where does it exceed the threshold?": points above, points below, and points not decided yet.

    Parameters
    ----------
    above, below, undecided : boolean array of shape (n,)
        Which points are known to lie above the threshold, which below, and which may lie on either side; every point
        is in exactly one of the three.
    rule : str
        What decided.
    points : array of shape (n, d), optional
        The points themselves: the candidates, or what stands for a box.
    threshold : float, optional
        The threshold, or its best estimate where it is a share of an unknown maximum.
    predicted : boolean array of shape (n,), optional
        The best guess of what lies above, the undecided points included: by posterior mean.

    >>> answer = LevelSet(np.array([True, False]), np.array([False, False]), np.array([False, True]), "bounds")
    >>> print(answer)
    1 above, 0 below, 1 undecided, of 2 points (bounds)
    """

    above: NDArray[np.bool_]
    below: NDArray[np.bool_]
    undecided: NDArray[np.bool_]
    rule: str = ""
    points: Array | None = None
    threshold: float | None = None
    predicted: NDArray[np.bool_] | None = None

    def negated(self) -> LevelSet:
        """Return the same answer to someone whose values have the other sign: above and below change places.

        >>> mask = np.array([True, False])
        >>> LevelSet(mask, ~mask, np.zeros(2, dtype=bool), threshold=3.0).negated().threshold
        -3.0
        """
        rule, threshold = turned_words(self.rule), None
        if self.threshold is not None:
            threshold = 0.0 - self.threshold
            rule = rule.replace(f"the threshold {self.threshold:.6g}", f"the threshold {threshold:.6g}")
        predicted = None if self.predicted is None else ~self.predicted
        return replace(self, above=self.below, below=self.above, threshold=threshold, predicted=predicted, rule=rule)

    def counts(self) -> dict[str, int]:
        """Return how many points are above, below and undecided.

        >>> mask = np.array([True, False])
        >>> LevelSet(mask, ~mask, np.zeros(2, dtype=bool)).counts()
        {'above': 1, 'below': 1, 'undecided': 0}
        """
        return {name: int(getattr(self, name).sum()) for name in ("above", "below", "undecided")}

    def __str__(self) -> str:
        counts = ", ".join(f"{count} {name}" for name, count in self.counts().items())
        known = "" if self.threshold is None else f" of the threshold {self.threshold:.6g}"
        return f"{counts}{known}, of {self.above.size} points" + (f" ({self.rule})" if self.rule else "")

    def __eq__(self, other: object) -> bool:
        return _same(self, other)

    def __hash__(self) -> int:
        return hash((self.above.tobytes(), self.below.tobytes(), self.rule))


@dataclass(frozen=True)
class Advice:
    """What a policy says about a run in progress: stop it or not, why, how likely the run still wins.

    ``probability`` is that of ending above the best run so far; ``saved`` the steps that stopping now saves, or that
    the policy expects to save when the run goes on. Both are None where the policy has no opinion.

    >>> Advice(stop=False, reason="too early to tell").stop
    False
    """

    stop: bool
    reason: str = ""
    probability: float | None = None
    saved: float | None = None
