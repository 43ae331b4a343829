"""GP: a Gaussian process with its hyper-parameters, the priors on them, and when to fit them again.

A :class:`GP` is an immutable value. :meth:`GP.condition` gives the :class:`~surefoot.belief.posterior.Posterior` after
measurements, :meth:`GP.fit` another GP whose hyper-parameters suit them.

>>> import numpy as np
>>> from surefoot.belief.kernels import Matern
>>> gp = GP(Matern(2.5, lengthscale=0.4), noise=0.01)
>>> gp.condition([[0.0], [1.0]], [1.0, 3.0]).mean([[0.5]]).shape
(1,)

A GP is used as it is unless it says otherwise: only ``gp.refit(every=5)`` and :meth:`GP.automatic` ask to be fitted.
Everything is in the user's units, before and after a fit; ``noise`` is always a variance.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

import surefoot.belief.noisy_inputs  # noqa: F401 - a stored GP finds the kernel by its name
from surefoot.arguments import number, whole
from surefoot.belief.fit import fit, log_likelihood
from surefoot.belief.kernels import SE, Kernel, Matern, Stationary, kernel_from_dict
from surefoot.belief.mixture import MixturePosterior
from surefoot.belief.panels import PanelPosterior
from surefoot.belief.posterior import Posterior
from surefoot.belief.priors import Fixed, LogNormal, Prior, TwoPiece, prior_from_dict

if TYPE_CHECKING:
    from surefoot.domain import Domain

__all__ = ["GP"]

Array = NDArray[np.float64]

GROWTH = 32  # above `large`, a fit is due when this share of the excess is new: 297 of 10,000


@dataclass(frozen=True, eq=False)
class GP:
    """A Gaussian process prior: kernel, constant mean, noise of the measurements.

    Parameters
    ----------
    kernel : Kernel
        How values are tied together; by default ``SE()``.
    noise : float
        Variance of a measurement. Zero is understood as exact up to rounding.
    mean : float
        The constant that f is expected to be far from all measurements.
    priors : mapping from name to prior, optional
        Priors for :meth:`fit`, by the names of :attr:`names`; ``"lengthscale"`` stands for all of them. ``"mean"`` may
        be ``Fixed()``. A parameter that is not named is fitted by maximum likelihood.
    standardize : bool
        Whether :meth:`fit` works on standardized outputs; the priors are then about those.
    floor : float
        Smallest noise that :meth:`fit` may choose (on standardized outputs, where it standardizes).
    every : int, optional
        Fit again after so many new measurements; None: never.
    samples : int
        Draw so many hyper-parameters by slice sampling instead of taking the best ones.
    large : int, optional
        Beyond so many measurements :meth:`fit` sees so many of them only, :meth:`due` asks for a fit when their number
        has grown by a 32nd of the excess, and :meth:`condition` keeps the factor in panels
        (:mod:`surefoot.belief.panels`). None: never.
    members : tuple of GP
        The draws, in a GP returned by :meth:`fit`.

    >>> GP(SE(lengthscale=0.3), noise=1e-4, mean=2.0).names
    ['variance', 'lengthscale', 'noise']
    """

    kernel: Kernel = field(default_factory=SE)
    noise: float = 1e-6
    _: KW_ONLY
    mean: float = 0.0
    priors: Mapping[str, Prior] | None = None
    standardize: bool = False
    floor: float = 0.0
    every: int | None = None
    samples: int = 0
    large: int | None = None
    members: tuple[GP, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise TypeError(f"kernel must be a Kernel, got {self.kernel!r}")
        for name in ("noise", "mean", "floor"):
            value = getattr(self, name)
            if not math.isfinite(number(value)) or (value < 0 and name != "mean"):
                raise ValueError(f"{name} must be finite{'' if name == 'mean' else ' and not negative'}, got {value!r}")
            object.__setattr__(self, name, float(value))
        if self.every is not None:
            object.__setattr__(self, "every", whole(self.every, "every", 1))
        if self.large is not None:
            object.__setattr__(self, "large", whole(self.large, "large", 1))
        object.__setattr__(self, "samples", whole(self.samples, "samples"))
        object.__setattr__(self, "priors", MappingProxyType(dict(self.priors or {})))
        names = self.names if self.priors else []  # once: making them takes as long as there are dimensions
        if unknown := (self.priors or {}).keys() - {"mean"}.union(*map(_aliases, names)):
            raise ValueError(f"priors for unknown parameters {sorted(unknown)}; this GP has {names} and 'mean'")
        for key, prior in (self.priors or {}).items():
            if not isinstance(prior, Prior):
                raise TypeError(f"the prior of {key} must be a LogNormal, a TwoPiece or Fixed, got {prior!r}")
            held = prior.value if isinstance(prior, Fixed) and key != "mean" else None
            if held is not None and not (held > 0 or (held == 0 and key == "noise")):
                raise ValueError(f"{key} cannot be held at {held!r}: it is a positive number")

    def __getstate__(self) -> dict[str, Any]:  # a mapping proxy cannot be pickled
        return {**vars(self), "priors": dict(self.priors or {})}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, priors=MappingProxyType(state["priors"]))

    @classmethod
    def automatic(cls, domain: Domain, *, kernel: Stationary | None = None, samples: int = 0, version: int = 1) -> GP:
        """Return a GP that fits itself to measurements in a domain, after each of them.

        Fitting works on standardized outputs. Each coordinate has its own length-scale, whose prior grows with the
        domain's extent and with the root of its dimension: mode and upper half are BoTorch's, the lower half is
        narrower, since short lengths take noise for signal. The signal variance stays near 1. The prior of the noise is
        wide and low: exact measurements are to be interpolated, noisy ones say so soon enough.

        Parameters
        ----------
        domain : Domain
            Its extent scales the priors of the length-scales.
        kernel : Stationary, optional
            The family to use, e.g. ``SE()``; its length-scale and variance are replaced. By default ``Matern(2.5)``.
        samples : int
            As in :class:`GP`.
        version : int
            1: the belief that chooses points. 2: the one whose average over hyper-parameters is reported
            (:mod:`surefoot.belief.average`); it expects more noise and longer length-scales, and leaves the variance
            open.

        >>> from surefoot.domain import Box
        >>> gp = GP.automatic(Box([(0.0, 1.0), (-5.0, 5.0)]))
        >>> gp.every, gp.kernel.lengthscale.shape
        (1, (2,))

        References: Hvarfner, Hellsten & Nardi 2024, "Vanilla Bayesian optimization performs great in high dimensions",
        for the length-scales.
        """
        extent = np.asarray(domain.extent(), dtype=np.float64)
        # Distances in a unit cube grow like the root of its dimension, and so do the lengths.
        if version not in (1, 2):
            raise ValueError(f"version must be 1 or 2, got {version!r}")
        chosen = {1: (math.exp(math.sqrt(2.0) - 3.0), 0.5, -9.0, 3.0), 2: (0.41, 2.0, -3.5, 2.0)}
        mode, signal, level, spread = chosen[version]
        length = TwoPiece(mode * math.sqrt(domain.dimension), 0.5, math.sqrt(3.0))
        noise, floor = LogNormal.around(math.exp(level), spread), 1e-8
        priors: dict[str, Prior] = {f"lengthscale[{i}]": length.scaled(float(e)) for i, e in enumerate(extent)}
        priors |= {"variance": LogNormal.around(1.0, signal), "noise": noise}
        data = (Matern(2.5) if kernel is None else kernel).to_dict()
        shaped = kernel_from_dict({**data, "lengthscale": (length.mode * extent).tolist(), "variance": 1.0})
        start = floor + noise.mode
        return cls(shaped, start, priors=priors, standardize=True, floor=floor, every=1, samples=samples)

    @property
    def names(self) -> list[str]:
        """One name per entry of :attr:`theta`: the kernel's, then ``noise``."""
        return [*self.kernel.names, "noise"]

    @property
    def theta(self) -> Array:
        """Logarithms of the kernel's hyper-parameters and of the noise, shape (p,)."""
        return np.append(self.kernel.theta, math.log(max(self.noise, 1e-300)))

    def with_theta(self, theta: ArrayLike) -> GP:
        """Return the same GP with other (log) hyper-parameters.

        >>> GP(noise=0.1).with_theta([0.0, 0.0, 0.0]).noise
        1.0
        """
        values = np.asarray(theta, dtype=np.float64)
        if values.shape != self.theta.shape:
            raise ValueError(f"theta must have shape {self.theta.shape}, got {values.shape}")
        return replace(self, kernel=self.kernel.with_theta(values[:-1]), noise=math.exp(values[-1]), members=())

    def prior(self, name: str) -> Prior | None:
        """Return the prior of a parameter, None where there is none.

        >>> GP(SE(lengthscale=[1.0, 2.0]), priors={"lengthscale": LogNormal(0.0, 1.0)}).prior("lengthscale[1]")
        LogNormal(mean=0.0, std=1.0)
        """
        priors = self.priors or {}
        return next((priors[alias] for alias in _aliases(name) if alias in priors), None)

    def refit(self, every: int | None, *, large: int | None = None) -> GP:
        """Return the same GP, to be fitted again after so many new measurements (None: never).

        ``large`` is where fits become fewer and cheaper, as in :class:`GP`; None leaves it as it is.

        >>> GP().refit(every=5).due(7, 3), GP().refit(every=5).due(8, 3)
        (False, True)
        >>> GP().refit(every=1, large=512).due(1530, 1500)  # 1 + (1500 − 512) // 32 = 31 are waited for
        False
        """
        return replace(self, every=every, large=self.large if large is None else large)

    def negated(self) -> GP:
        """Return the same belief about −f.

        >>> GP(mean=2.0).negated().mean
        -2.0
        """
        priors = dict(self.priors or {})
        if isinstance(held := priors.get("mean"), Fixed) and held.value is not None:
            priors["mean"] = Fixed(-held.value)
        members = tuple(member.negated() for member in self.members)
        return replace(self, mean=-self.mean, priors=priors, members=members)

    def due(self, n: int, last: int | None) -> bool:
        """Tell whether n measurements call for a fit, when the last was made with ``last`` of them (None: never)."""
        if self.every is None or n <= 0:
            return False
        excess = 0 if self.large is None or last is None else max(0, last - self.large)
        return last is None or n - last >= self.every + excess // GROWTH

    def condition(
        self, X: ArrayLike | None = None, y: ArrayLike | None = None, noise: ArrayLike | None = None
    ) -> Posterior:
        """Return the posterior given measurements; without any, the prior.

        Parameters
        ----------
        X, y : array of shape (n, e) and (n,), optional
        noise : float or array of shape (n,), optional
            Noise variances that replace ``gp.noise``, except where NaN.

        >>> GP(noise=0.5).condition([[0.0]], [3.0]).mean([[0.0]])
        array([2.])
        """
        if self.members:
            return MixturePosterior(self, [member.condition(X, y, noise) for member in self.members])
        many = self.large is not None and y is not None and len(np.asarray(y)) > self.large
        return (PanelPosterior if many else Posterior)(self, X, y, noise)

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        noise: ArrayLike | None = None,
        *,
        rng: np.random.Generator | None = None,
    ) -> GP:
        """Return the GP whose hyper-parameters suit the measurements best; see :mod:`surefoot.belief.fit`.

        A function of its arguments and of the draws of ``rng``; what an earlier fit found plays no part.

        >>> X = np.linspace(0.0, 1.0, 9)[:, None]
        >>> gp = GP(SE(lengthscale=1.0), noise=0.1).fit(X, np.sin(6.0 * X[:, 0]))
        >>> bool(0.1 < gp.kernel.lengthscale < 1.0 and gp.noise < 1e-3)
        True
        """
        return fit(self, X, y, noise, np.random.default_rng(0) if rng is None else rng)

    @overload
    def log_likelihood(self, X: ArrayLike, y: ArrayLike, noise: ArrayLike | None = None) -> float: ...
    @overload
    def log_likelihood(
        self, X: ArrayLike, y: ArrayLike, noise: ArrayLike | None = None, *, gradient: Literal[True]
    ) -> tuple[float, Array]: ...
    def log_likelihood(
        self, X: ArrayLike, y: ArrayLike, noise: ArrayLike | None = None, *, gradient: bool = False
    ) -> float | tuple[float, Array]:
        """Return the log marginal likelihood of the values, and on request its gradient in :attr:`theta`.

        >>> round(GP(noise=1.0).log_likelihood([[0.0]], [0.0]), 6)  # of N(0, 2) at 0
        -1.265512
        """
        value, slope = log_likelihood(self, X, y, noise)
        return (value, slope) if gradient else value

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able description that :meth:`from_dict` reads back."""
        return {
            "kernel": self.kernel.to_dict(),
            **{name: getattr(self, name) for name in ("noise", "mean", "standardize", "floor", "every", "samples")},
            "priors": {name: prior.to_dict() for name, prior in (self.priors or {}).items()},
            "members": [member.to_dict() for member in self.members],
            **({} if self.large is None else {"large": self.large}),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> GP:
        """Rebuild a GP from :meth:`to_dict`.

        >>> gp = GP(SE(lengthscale=0.1), priors={"noise": LogNormal(-4.0, 1.0)})
        >>> GP.from_dict(gp.to_dict()) == gp
        True
        """
        return cls(
            **{
                **data,
                "kernel": kernel_from_dict(data["kernel"]),
                "priors": {name: prior_from_dict(prior) for name, prior in data.get("priors", {}).items()},
                "members": tuple(cls.from_dict(member) for member in data.get("members", ())),
            }
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GP) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.kernel, self.noise, self.mean))


@cache
def _aliases(name: str) -> list[str]:
    """Names that a prior for this parameter may be given under, the most precise first."""
    names = [name, re.sub(r"\[\d+\]$", "", name), name.rpartition(".")[2]]
    return [*names, re.sub(r"\[\d+\]$", "", names[2])]
