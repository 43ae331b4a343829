"""How much privacy a sequence of releases costs: (ε, δ) of composed, sub-sampled Gaussian mechanisms.

A release adds Gaussian noise whose standard deviation is ``noise_multiplier`` times the L2 sensitivity, to a sum over
participants each of whom takes part with probability ``sampling`` (Poisson, secret). Neighbors differ by one
participant who is added or removed; with ``sampling=1`` any neighboring relation under which the sensitivity was taken
will do.

>>> rounds = GaussianEvent(1.0, sampling=0.25, count=40)
>>> [round(epsilon(rounds, 200**-1.1, method=method), 2) for method in ("pld", "rdp", "moments")]
[7.05, 8.36, 9.91]

Every method gives an upper bound on the true ε; the smallest is the best:

``"pld"``
    The default. The privacy loss distribution of ``dp-accounting``, on a grid that is as fine as the quietest round
    asks for, rounded against us: that costs less than 1 % in ε (or a quarter of one round's loss, where ε is next to
    nothing) and is several times as fast as the package's own grid. Rounds without sub-sampling are one
    Gaussian mechanism and are computed exactly. Never above ``"rdp"``: the smaller of the two is returned, and beyond ε
    of a few hundred only the latter is computed.
``"rdp"``
    Rényi differential privacy of the sampled Gaussian mechanism (Mironov, Talwar & Zhang 2019) at integer orders by the
    binomial sum and at fractional ones by quadrature, with the conversion of Canonne, Kamath & Steinke 2020.
``"moments"``
    The moments accountant of Abadi et al. 2016 at λ = 1, ..., 32 with its own conversion: what published losses were
    computed with.

``dp-accounting`` (``pip install 'surefoot[private]'``) is needed by "pld" with sub-sampling or stated guarantees only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr

from surefoot.errors import MissingExtra
from surefoot.private import renyi

__all__ = [
    "METHODS",
    "GaussianEvent",
    "StatedEvent",
    "delta",
    "epsilon",
    "gaussian_delta",
    "gaussian_scale",
    "noise_multiplier",
]

METHODS = ("pld", "rdp", "moments")
"""The accountants, the tightest first."""

Array = NDArray[np.float64]
_FINEST, _COARSEST = 2.0**-17, 2.0**-10  # grids of privacy losses
_POINTS = 500_000  # of a grid, about
_FAR = 500.0  # where a privacy loss distribution would be large and its answer useless
_SILENT, _LOUD = 1e-150, 1e10  # multipliers that count as no noise, and that count as no more: squares stay numbers
_LAMBDA = np.arange(1.0, 33.0)  # orders of the moments accountant


@dataclass(frozen=True)
class GaussianEvent:
    """Releases of one Gaussian mechanism, the same ``count`` times.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise over the L2 sensitivity; 0 is no privacy at all.
    sampling : float
        Probability that a participant takes part, each by an own secret coin.
    count : int
        How often.

    >>> GaussianEvent(1.0, sampling=0.5, count=3)
    GaussianEvent(noise_multiplier=1.0, sampling=0.5, count=3)
    >>> GaussianEvent(1.0, sampling=1.5)
    Traceback (most recent call last):
    ...
    ValueError: sampling must be between 0 and 1, got 1.5
    """

    noise_multiplier: float
    sampling: float = 1.0
    count: int = 1

    def __post_init__(self) -> None:
        # Written so that NaN is refused too.
        if not 0.0 <= self.noise_multiplier < math.inf:
            raise ValueError(f"noise_multiplier must be a finite number of at least 0, got {self.noise_multiplier}")
        if not 0.0 <= self.sampling <= 1.0:
            raise ValueError(f"sampling must be between 0 and 1, got {self.sampling}")
        _check_count(self.count)


@dataclass(frozen=True)
class StatedEvent:
    """Releases of any mechanism of which only a guarantee (ε, δ) is known, such as the Laplace mechanism.

    Parameters
    ----------
    epsilon, delta : float
        The guarantee of one release.
    count : int
        How often.

    >>> round(epsilon(StatedEvent(0.1, count=100), 1e-5), 2)  # far less than the sum, 10
    4.32
    """

    epsilon: float
    delta: float = 0.0
    count: int = 1

    def __post_init__(self) -> None:
        if not 0.0 <= self.epsilon < math.inf:
            raise ValueError(f"epsilon must be a finite number of at least 0, got {self.epsilon}")
        if not 0.0 <= self.delta < 1.0:
            raise ValueError(f"delta must be at least 0 and less than 1, got {self.delta}")
        _check_count(self.count)


Event = GaussianEvent | StatedEvent


def epsilon(events: Event | Iterable[Event], delta: float, *, method: str = "pld") -> float:
    """Return an ε with which all the events together are (ε, δ)-differentially private.

    Parameters
    ----------
    events : event or iterable of events
        What was released; rounds may differ, their order does not matter.
    delta : float
        Between 0 and 1.
    method : {"pld", "rdp", "moments"}
        See the module.

    >>> round(epsilon(GaussianEvent(3.731), 1e-5), 3)
    1.0
    >>> round(epsilon([GaussianEvent(2.0, sampling=0.1, count=5), GaussianEvent(4.0)], 1e-5, method="rdp"), 2)
    1.21
    >>> epsilon([], 1e-5)
    0.0
    """
    _check_delta(delta)
    return _epsilon(_merged(events, method), delta, method)


def delta(events: Event | Iterable[Event], epsilon: float, *, method: str = "pld") -> float:
    """Return a δ with which all the events together are (ε, δ)-differentially private.

    >>> f"{delta(GaussianEvent(3.731), 1.0):.3e}"
    '9.984e-06'
    >>> f"{delta(GaussianEvent(3.731), 1.0, method='rdp'):.3e}"
    '3.982e-05'
    """
    if not 0.0 <= epsilon < math.inf:
        raise ValueError(f"epsilon must be a finite number of at least 0, got {epsilon}")
    merged = _merged(events, method)
    if not merged:
        return 0.0
    if _open(merged):
        return 1.0
    if method == "moments":
        slack, moments = _log_moments(merged)
        return min(1.0, slack + float(np.exp((moments - _LAMBDA * epsilon).min())))
    if (single := _gaussian(merged)) is not None and method == "pld":
        return gaussian_delta(single, epsilon)
    slack, divergence = _divergence(merged, renyi.ORDERS)
    bound = min(1.0, slack + renyi.delta(divergence, epsilon))
    if method == "rdp" or _renyi_epsilon(merged, 1e-9) > _FAR:
        return bound
    return min(bound, float(_distribution(merged).get_delta_for_epsilon(epsilon)))


def noise_multiplier(
    epsilon: float, delta: float, *, sampling: float = 1.0, count: int = 1, method: str = "pld"
) -> float:
    """Return the noise multiplier with which ``count`` rounds cost at most (ε, δ), to seven digits, rounded up.

    >>> z = noise_multiplier(2.0, 1e-5, sampling=0.1, count=20, method="rdp")
    >>> round(z, 3), round(epsilon(GaussianEvent(z, 0.1, 20), 1e-5, method="rdp"), 6)
    (1.484, 2.0)
    """
    if not 0.0 < epsilon < math.inf:
        raise ValueError(f"epsilon must be positive and finite, got {epsilon}")
    _check_delta(delta)
    _check_method(method)
    GaussianEvent(1.0, sampling, count)  # checks them
    if sampling == 0.0:
        return 0.0
    if sampling == 1.0 and method == "pld":
        return gaussian_scale(epsilon, delta) * math.sqrt(count)

    start = 1.0
    if method == "pld":  # what the looser and faster accountant asks for is enough
        start = noise_multiplier(epsilon, delta, sampling=sampling, count=count, method="rdp")
    return _least(lambda z: _epsilon([GaussianEvent(z, sampling, count)], delta, method) - epsilon, start)


def gaussian_delta(scale: float, epsilon: float, sensitivity: float = 1.0) -> float:
    """Return the exact δ of the Gaussian mechanism at ε: Balle & Wang 2018, theorem 5.

    δ = Φ(D/2s - εs/D) - exp(ε) Φ(-D/2s - εs/D), with s the standard deviation and D the L2 sensitivity.

    >>> f"{gaussian_delta(1.389, 3.0042):.2e}"
    '9.98e-06'
    """
    _check_positive(scale=scale, sensitivity=sensitivity)
    if not 0.0 <= epsilon < math.inf:
        raise ValueError(f"epsilon must be a finite number of at least 0, got {epsilon}")
    z = scale / sensitivity
    return max(0.0, float(ndtr(0.5 / z - epsilon * z) - np.exp(epsilon + log_ndtr(-0.5 / z - epsilon * z))))


def gaussian_scale(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Return the smallest standard deviation with which Gaussian noise gives (ε, δ), for any ε > 0.

    The analytic Gaussian mechanism (Balle & Wang 2018). The classical formula √(2 ln(1.25/δ)) D/ε holds for ε < 1 only
    and adds more noise than needed there.

    >>> [round(gaussian_scale(e, d), 3) for e, d in ((1.0, 1e-5), (3.0042, 1e-5), (9.9742, 1e-3))]
    [3.731, 1.389, 0.407]
    """
    if not 0.0 < epsilon < math.inf:
        raise ValueError(f"epsilon must be positive and finite, got {epsilon}")
    _check_delta(delta)
    _check_positive(sensitivity=sensitivity)
    low = high = 1.0
    while gaussian_delta(high, epsilon) > delta:
        low, high = high, 2.0 * high
    while gaussian_delta(low, epsilon) <= delta:
        low, high = 0.5 * low, low
    return sensitivity * _bisect(lambda z: gaussian_delta(z, epsilon) <= delta, low, high)


def _check_count(count: int) -> None:
    if isinstance(count, bool) or not isinstance(count, int | np.integer):
        raise TypeError(f"count must be a whole number, got {count!r}")
    if count < 1:
        raise ValueError(f"count must be at least 1, got {count}")


def _check_delta(value: float) -> None:
    if not 0.0 < value < 1.0:
        raise ValueError(f"delta must lie strictly between 0 and 1, got {value}")


def _check_positive(**values: float) -> None:
    for name, value in values.items():
        if not 0.0 < value < math.inf:
            raise ValueError(f"{name} must be positive and finite, got {value}")


def _check_method(method: str) -> None:
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")


def _merged(events: Event | Iterable[Event], method: str) -> list[Event]:
    """Equal events together; all Gaussian ones without sub-sampling as the one they amount to."""
    _check_method(method)
    sampled: dict[tuple[float, float], int] = {}
    stated: dict[tuple[float, float], int] = {}
    precision = 0.0  # Gaussian mechanisms compose by the sum of 1/z²
    for event in [events] if isinstance(events, GaussianEvent | StatedEvent) else events:
        if isinstance(event, StatedEvent):
            pair = (float(event.epsilon), float(event.delta))
            stated[pair] = stated.get(pair, 0) + int(event.count)
        elif not isinstance(event, GaussianEvent):
            raise TypeError(f"expected a GaussianEvent or a StatedEvent, got {event!r}")
        elif event.noise_multiplier < _SILENT and event.sampling > 0.0:
            return [GaussianEvent(0.0)]
        elif event.sampling == 1.0:
            precision += event.count / min(float(event.noise_multiplier), _LOUD) ** 2
        elif event.sampling > 0.0:
            pair = (float(event.sampling), min(float(event.noise_multiplier), _LOUD))
            sampled[pair] = sampled.get(pair, 0) + int(event.count)
    made: list[Event] = [GaussianEvent(1.0 / math.sqrt(precision))] if precision > 0.0 else []
    made += [GaussianEvent(z, q, count) for (q, z), count in _rounded(sampled).items()]
    return made + [StatedEvent(*pair, count) for pair, count in stated.items()]


def _rounded(sampled: dict[tuple[float, float], int]) -> dict[tuple[float, float], int]:
    """Multipliers that differ by rounding errors only, as those of a schedule do, counted as the smallest of them."""
    counts: dict[tuple[float, float], int] = {}
    group = (0.0, 0.0)
    for q, z in sorted(sampled):
        if q != group[0] or z > group[1] * (1.0 + 1e-9):
            group = (q, z)
        counts[group] = counts.get(group, 0) + sampled[q, z]
    return counts


def _epsilon(merged: list[Event], delta: float, method: str) -> float:
    if not merged:
        return 0.0
    if _open(merged):
        return math.inf
    if method == "moments":
        return _moments_epsilon(merged, delta)
    if (single := _gaussian(merged)) is not None and method == "pld":
        return _gaussian_epsilon(single, delta)
    bound = _renyi_epsilon(merged, delta)
    if method == "rdp" or _renyi_epsilon(merged, 1e-9) > _FAR:
        return bound
    return min(bound, max(0.0, float(_distribution(merged).get_epsilon_for_delta(delta))))


def _open(merged: list[Event]) -> bool:
    """Whether something was released without noise."""
    return any(isinstance(event, GaussianEvent) and event.noise_multiplier == 0.0 for event in merged)


def _gaussian(merged: list[Event]) -> float | None:
    """The noise multiplier, where a single Gaussian mechanism is all there is."""
    (first, *rest) = merged
    return None if rest or isinstance(first, StatedEvent) or first.sampling < 1.0 else first.noise_multiplier


def _gaussian_epsilon(z: float, delta: float) -> float:
    if gaussian_delta(z, 0.0) <= delta:
        return 0.0
    high = 1.0
    while gaussian_delta(z, high) > delta:
        high *= 2.0
    return _bisect(lambda value: gaussian_delta(z, value) <= delta, 0.0, high)


def _divergence(merged: list[Event], orders: Array) -> tuple[float, Array]:
    """Return the δ that stated guarantees use up, and the Rényi divergence of everything."""
    slack, total = 0.0, np.zeros(orders.size)
    for event in merged:
        if isinstance(event, GaussianEvent):
            once = renyi.gaussian(event.noise_multiplier, event.sampling, orders)
        else:
            once = renyi.pure(event.epsilon, orders)
            slack += event.count * event.delta
        total = total + event.count * once
    return slack, total


def _renyi_epsilon(merged: list[Event], delta: float) -> float:
    slack, divergence = _divergence(merged, renyi.ORDERS)
    return math.inf if delta <= slack else renyi.epsilon(divergence, delta - slack)


def _log_moments(merged: list[Event]) -> tuple[float, Array]:
    """Return used δ and the log-moments at λ = α - 1 = 1, ..., 32: Abadi et al. 2016, theorem 2."""
    slack, divergence = _divergence(merged, _LAMBDA + 1.0)
    return slack, _LAMBDA * divergence


def _moments_epsilon(merged: list[Event], delta: float) -> float:
    slack, moments = _log_moments(merged)
    if delta <= slack:
        return math.inf
    return float(((moments - math.log(delta - slack)) / _LAMBDA).min())  # min over λ of (μ(λ) + log(1/δ))/λ


def _distribution(merged: list[Event]) -> Any:
    """The privacy loss distribution of everything, in both directions."""
    grid = _grid(merged)
    parts = [_one_distribution(_single(event), grid).self_compose(event.count) for event in merged]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.compose(part)
    return whole


def _grid(merged: list[Event]) -> float:
    """The step of the grid: a quarter of the privacy loss of the quietest round, in powers of two.

    One round loses q/z or so. A step of a quarter of that costs 0.5 % in ε, a step as large as that several percent.
    """
    losses = (
        event.sampling / event.noise_multiplier if isinstance(event, GaussianEvent) else event.epsilon / 64.0
        for event in merged
    )
    least = min((loss for loss in losses if loss > 0.0), default=1.0)
    wanted = 2.0 ** math.floor(math.log2(least / 4.0))
    room = 2.0 ** math.ceil(math.log2(max(_renyi_epsilon(merged, 1e-9), 1e-9) / _POINTS))
    return min(max(wanted, room, _FINEST), _COARSEST)


def _single(event: Event) -> Event:
    if isinstance(event, StatedEvent):
        return StatedEvent(event.epsilon, event.delta)
    return GaussianEvent(event.noise_multiplier, event.sampling)


@lru_cache(maxsize=512)
def _one_distribution(event: Event, grid: float) -> Any:
    try:
        from dp_accounting.pld import common, privacy_loss_distribution
    except ImportError:
        raise MissingExtra(
            "accounting of sub-sampled releases by privacy loss distributions needs dp-accounting: "
            "pip install 'surefoot[private]', or choose method='rdp'"
        ) from None
    if isinstance(event, StatedEvent):
        return privacy_loss_distribution.from_privacy_parameters(
            common.DifferentialPrivacyParameters(event.epsilon, event.delta), value_discretization_interval=grid
        )
    return privacy_loss_distribution.from_gaussian_mechanism(
        event.noise_multiplier, sampling_prob=event.sampling, value_discretization_interval=grid
    )


def _bisect(enough: Callable[[float], bool], low: float, high: float) -> float:
    """Return the smallest value that is enough, given that ``high`` is; never one that is not."""
    for _ in range(100):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _least(excess: Callable[[float], float], start: float) -> float:
    """Return the least z > 0 at which a decreasing function is not positive, to seven digits, from above."""
    from scipy.optimize import brentq

    low = high = start
    while excess(high) > 0.0:
        low, high = high, 2.0 * high
    while low > 1e-6 and excess(low) <= 0.0:
        low, high = 0.5 * low, low
    if excess(low) <= 0.0:
        return low
    # ε may be infinite at the lower end; the root finder needs numbers.
    root = float(brentq(lambda z: min(excess(z), 1e6), low, high, xtol=1e-12, rtol=1e-8))
    while excess(root) > 0.0:
        root *= 1.0 + 1e-8
    return root
