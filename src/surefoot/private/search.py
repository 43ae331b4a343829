"""Tuning on private data, with a bill for the whole search and not for the run that won.

A search that runs a private mechanism many times and shows the best result shows more than one run does. Two ways to
pay, both here:

- *Composition*: everything that was seen is released and charged. Works for any search; k runs cost k.
- *Selection*: hyper-parameters are drawn independently, the number K of runs is random and secret, and only the best
  result is released. The price hardly grows with the mean of K.

Let one run, its draw of hyper-parameters included, have Rényi divergence ε(λ) at order λ. The best of K runs has

    ε'(λ) = ε(λ) + (1 + η) ((1 − 1/λ̂) ε(λ̂) + log(1/γ)/λ̂) + log(E K)/(λ − 1),   any λ̂            (theorem 2)
            K truncated negative binomial: P(K = k) ∝ (1 − γ)^k Π_{l < k} (l + η)/(l + 1),  k ≥ 1
    ε'(λ) = ε(λ) + μ δ̂ + log(μ)/(λ − 1),   one run being (log(1 + 1/(λ − 1)), δ̂)-private          (theorem 6)
            K Poisson of mean μ, 0 included

η is the ``shape``: 1 is the geometric distribution, 0 the logarithmic one. A run that is ε-private without δ gives a
search that is (2 + η) ε-private (corollary 3; 3ε for the geometric one is Liu & Talwar's).

>>> base = GaussianEvent(4.0)
>>> for trials in (Repeats(10), Repeats(10, shape=0.0), Repeats(10, shape=math.inf)):
...     round(selection_epsilon(base, trials, 1e-5), 2)
2.15
1.78
2.35
>>> round(epsilon(GaussianEvent(4.0, count=10), 1e-5), 2), round(epsilon(base, 1e-5), 2)  # ten releases; one
(3.34, 0.93)

References: Papernot & Steinke 2022; Liu & Talwar 2019.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from surefoot.arguments import positive
from surefoot.domain import Domain
from surefoot.errors import SurefootError
from surefoot.experimental import experimental
from surefoot.private import renyi
from surefoot.private.accounting import Event, GaussianEvent, StatedEvent, epsilon
from surefoot.private.guarantee import Guarantee
from surefoot.private.ledger import Ledger
from surefoot.private.noise import Noise, SystemNoise

__all__ = ["Repeats", "Selected", "private_search", "selection_epsilon", "selection_multiplier"]

Array = NDArray[np.float64]
MOST = 10**7  # runs


@dataclass(frozen=True)
class Repeats:
    """The distribution of the secret number of runs.

    Parameters
    ----------
    mean : float
        E K, at least 1.
    shape : float
        η > −1; 1 is geometric, 0 logarithmic, infinite Poisson. A smaller one costs less and is more spread out: with
        the logarithmic one a single run is the likeliest. A Poisson K may be 0, and then there is no result.

    >>> Repeats(10.0).gamma, Repeats(10.0, shape=0.0).probability(1).round(3)
    (0.1, np.float64(0.269))
    """

    mean: float
    shape: float = 1.0

    def __post_init__(self) -> None:
        if not 1.0 <= self.mean < math.inf:
            raise ValueError(f"mean must be finite and at least 1, got {self.mean!r}")
        if not self.shape > -1.0:
            raise ValueError(f"shape must be above -1, got {self.shape!r}")

    @property
    def gamma(self) -> float:
        """γ, with which E K is the mean: η(1 − γ)/(γ(1 − γ^η)), or (1/γ − 1)/log(1/γ) where η = 0."""
        if self.shape == 1.0:
            return 1.0 / self.mean
        low, high = -700.0, -1e-12  # log γ; the mean falls with γ
        for _ in range(200):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self._mean(middle) > self.mean else (low, middle)
        return math.exp(0.5 * (low + high))

    def _mean(self, log_gamma: float) -> float:
        gain = -math.expm1(log_gamma)  # 1 − γ
        if self.shape == 0.0:
            return gain / (-log_gamma * math.exp(log_gamma))
        return self.shape * gain / (math.exp(log_gamma) * -math.expm1(self.shape * log_gamma))

    def probability(self, k: int | NDArray[np.int64]) -> Any:
        """Return P(K = k).

        >>> bool(np.isclose(Repeats(3.0, shape=0.5).probability(np.arange(400)).sum(), 1.0))
        True
        """
        count = np.asarray(k, dtype=np.float64)
        if math.isinf(self.shape):
            return np.exp(count * math.log(self.mean) - self.mean - gammaln(count + 1.0))
        if self.mean == 1.0:
            return np.where(count == 1.0, 1.0, 0.0)
        gamma, eta = self.gamma, self.shape
        at = np.maximum(count, 1.0)
        logs = at * math.log1p(-gamma)
        if eta == 0.0:
            mass = np.exp(logs) / at / -math.log(gamma)
        else:
            # Π_{l<k} (l + η)/(l + 1) = η Γ(k + η)/(Γ(1 + η) k!), and the norm is γ^(−η) − 1; both have η's sign.
            logs = logs + gammaln(at + eta) - gammaln(1.0 + eta) - gammaln(at + 1.0)
            mass = np.exp(logs) * eta / math.expm1(-eta * math.log(gamma))
        return np.where(count >= 1.0, mass, 0.0)

    def draw(self, noise: Noise, size: int | None = None) -> Any:
        """Return a secret K, or so many of them.

        >>> from surefoot.private import ResearchNoise
        >>> Repeats(1.0).draw(ResearchNoise(0)), Repeats(5.0).draw(ResearchNoise(0), 40_000).mean().round(1)
        (1, np.float64(5.0))
        """
        places = noise.bernoulli(0.5, (1 if size is None else size, 53)) @ 0.5 ** np.arange(1.0, 54.0)
        found = np.searchsorted(_table(self), places, side="right")  # the first k with P(K <= k) > place
        return int(found[0]) if size is None else found

    def divergence(self, base: Array) -> Array:
        """Return ε'(λ) at all :data:`~surefoot.private.renyi.ORDERS` of the divergences of one run.

        >>> best = Repeats(10.0).divergence(renyi.gaussian(4.0))
        >>> round(renyi.epsilon(best, 1e-5), 2)
        2.15
        """
        orders = renyi.ORDERS
        more = math.log(self.mean) / (orders - 1.0)
        if math.isinf(self.shape):  # theorem 6
            misses = np.array([renyi.delta(base, math.log1p(1.0 / (order - 1.0))) for order in orders])
            return np.asarray(base + self.mean * misses + more)
        # theorem 2, with the best λ̂
        constant = (1.0 + self.shape) * float(((1.0 - 1.0 / orders) * base - math.log(self.gamma) / orders).min())
        found = base + constant + more
        # A divergence does not fall with its order: what holds at a higher one holds below.
        return np.asarray(np.minimum.accumulate(found[::-1])[::-1])


@lru_cache(maxsize=16)
def _table(repeats: Repeats) -> Array:
    """P(K <= k) for k = 0, 1, ..., until all but 1e-15 is told; the rest counts as the last."""
    parts, below, start, size = list[Array](), 0.0, 0, 1024
    while 1.0 - below > 1e-15 and start < MOST:
        parts.append(below + np.cumsum(repeats.probability(np.arange(start, start + size))))
        if parts[-1][-1] <= below:
            break  # nothing more is gained in floating point
        below, start, size = float(parts[-1][-1]), start + size, 2 * size
    return np.concatenate(parts)


def selection_epsilon(events: Event | Iterable[Event], repeats: Repeats, delta: float) -> float:
    """Return ε at δ of releasing the best of a random number of runs, of which one is these events together.

    Runs of which only an ε is known, without a δ, are paid by corollary 3 where that is less.

    >>> selection_epsilon(StatedEvent(0.1), Repeats(1000.0, shape=0.0), 1e-6)
    0.2
    """
    listed = [events] if isinstance(events, GaussianEvent | StatedEvent) else list(events)
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta must lie strictly between 0 and 1, got {delta}")
    base, pure = np.zeros(renyi.ORDERS.size), 0.0
    for event in listed:
        if isinstance(event, GaussianEvent):
            if event.noise_multiplier == 0.0 and event.sampling > 0.0:
                return math.inf
            base = base + event.count * renyi.gaussian(event.noise_multiplier, event.sampling)
            pure = math.inf
        elif event.delta > 0.0:
            raise ValueError("runs of which only an (epsilon, delta) is known cannot be selected from: say their noise")
        else:
            base = base + event.count * renyi.pure(event.epsilon)
            pure += event.count * event.epsilon
    if repeats.mean == 1.0 and not math.isinf(repeats.shape):
        return epsilon(listed, delta, method="rdp")
    found = renyi.epsilon(repeats.divergence(base), delta)
    return min(found, (2.0 + repeats.shape) * pure) if math.isfinite(pure) else found


def selection_multiplier(
    epsilon: float, delta: float, repeats: Repeats, *, sampling: float = 1.0, count: int = 1
) -> float:
    """Return the least noise multiplier of one run with which the whole search is (ε, δ)-private.

    >>> z = selection_multiplier(1.0, 1e-5, Repeats(20.0, shape=0.0))
    >>> round(z, 2), bool(0.999 < selection_epsilon(GaussianEvent(z), Repeats(20.0, shape=0.0), 1e-5) <= 1.0)
    (7.47, True)
    """
    positive(epsilon, "epsilon")

    def cost(z: float) -> float:
        return selection_epsilon(GaussianEvent(z, sampling, count), repeats, delta)

    high = 1.0
    while cost(high) > epsilon:
        high *= 2.0
        if high > 1e6:
            raise ValueError(f"no amount of noise gives epsilon = {epsilon:g} with {repeats.mean:g} runs on average")
    low = 0.5 * high if high > 1.0 else 1e-2
    while high - low > 1e-4 * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if cost(middle) <= epsilon else (middle, high)
    return high


@dataclass(frozen=True, eq=False)
class Selected:
    """The best run of a private search: all that may be known of it.

    Parameters
    ----------
    params : mapping or array
        Its hyper-parameters; None where no run was made or none succeeded.
    value : float
        Its value, as it was compared.
    output : any
        What else the run gave, a model say.
    guarantee : Guarantee
        What publishing this protects.
    simulated : bool
        Made with reproducible noise: it may not be published.

    >>> Selected({"x": 1.0}, 0.5, None, Guarantee(mechanism="private_search", epsilon=1.0, delta=1e-5)).value
    0.5
    """

    params: Any
    value: float
    output: Any
    guarantee: Guarantee
    simulated: bool = False


@experimental
def private_search(
    run: Callable[[Any], Any],
    domain: Domain,
    *,
    event: Event | Iterable[Event],
    repeats: Repeats,
    delta: float,
    sensitivity: float | None = None,
    ledger: Ledger | None = None,
    noise: Noise | None = None,
) -> Selected:
    """Run a private mechanism at random hyper-parameters, a secret number of times, and return its best run.

    Parameters
    ----------
    run : callable
        ``run(params)`` returns a value, higher is better, or a pair of a value and anything else. Everything that it
        returns must be private at the price of ``event``: the value too, so measure it on public records, or add noise.
        NaN and exceptions count as the worst of all.
    domain : Domain
        Hyper-parameters are drawn from it uniformly and independently of everything that was seen: the theorems need
        that, so there is no policy here. ``run`` gets a mapping on a ``Space``, else an array.
    event : event or iterable of events
        What one run costs: ``GaussianEvent(z, sampling, steps)`` for DP-SGD.
    repeats : Repeats
        How many runs.
    delta : float
        δ of the whole search; the price at it is charged before the first run.
    sensitivity : float, optional
        For a ``run`` that returns an exact number which one record changes by at most so much: Gaussian noise of the
        event's multiplier is added to it here, and what else it returns is dropped.
    ledger : Ledger, optional
        Charged with (ε, δ) of the whole search.
    noise : Noise, optional
        Where secrets come from; by default the operating system.

    The number of runs is not returned and must not be known: how long a search takes nearly tells it.

    >>> from surefoot import Float, Space
    >>> from surefoot.private import ResearchNoise
    >>> space = Space(rate=Float(0.0, 1.0))
    >>> found = private_search(
    ...     lambda params: -abs(params["rate"] - 0.3), space, event=GaussianEvent(8.0), repeats=Repeats(30),
    ...     delta=1e-5, sensitivity=0.001, noise=ResearchNoise(0),
    ... )
    >>> abs(found.params["rate"] - 0.3) < 0.1, round(found.guarantee.epsilon, 2)
    (True, 1.21)
    """
    listed = [event] if isinstance(event, GaussianEvent | StatedEvent) else list(event)
    source: Noise = SystemNoise() if noise is None else noise
    price = selection_epsilon(listed, repeats, delta)
    if not math.isfinite(price):
        raise ValueError("one run has no finite epsilon: say how much noise it has")
    scale = None if sensitivity is None else _scale(listed, sensitivity)
    if ledger is not None:
        if source.simulated:
            raise SurefootError("simulated noise protects nothing: a ledger is for real releases")
        ledger.charge(StatedEvent(price, delta), what="private_search")
    entropy = secrets.randbits(128) if not source.simulated else int(source.bernoulli(0.5, 62) @ 2 ** np.arange(62))
    rng = np.random.default_rng(entropy)
    best: tuple[Any, float, Any] = (None, -math.inf, None)
    for _ in range(repeats.draw(source)):
        x = domain.sample(1, rng)[0]
        named = domain.params(x)
        point = x if named is None else named
        value, output = _made(run, point)
        if scale is not None:
            if not math.isfinite(value):
                raise ValueError("a run that is exact must return a finite number: that it failed is not protected")
            value, output = float(source.gaussian([value], scale)[0]), None
        if value > best[1]:
            best = (point, value, output)
    guarantee = Guarantee(
        mechanism="private_search",
        epsilon=price,
        delta=delta,
        protects="what one run protects",
        assumptions=(
            "one run, its value included, costs what was stated",
            "nobody learns how many runs there were, or sees any but the best",
        ),
    )
    return Selected(*best, guarantee, source.simulated)


def _scale(events: list[Event], sensitivity: float) -> float:
    """The noise that makes an exact number cost what was stated."""
    positive(sensitivity, "sensitivity")
    (first, *rest) = events
    if rest or not isinstance(first, GaussianEvent) or first.sampling != 1.0 or first.count != 1:
        raise ValueError("noise is added here for one GaussianEvent without sampling; private runs need no sensitivity")
    return sensitivity * first.noise_multiplier


def _made(run: Callable[[Any], Any], point: Any) -> tuple[float, Any]:
    try:
        made = run(point)
        value, output = made if isinstance(made, tuple) else (made, None)
        number = float(value)
    except Exception:  # a text may quote data: it is nobody's business here, and neither is that it failed
        return -math.inf, None
    return (-math.inf, None) if math.isnan(number) else (number, output)
