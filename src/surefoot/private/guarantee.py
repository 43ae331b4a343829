"""What a release protects, in words and in numbers, for people and for programs.

>>> guarantee = Guarantee(mechanism="GaussianRelease", epsilon=1.0, delta=1e-5, protects="one row", neighbor=1.0)
>>> guarantee.proved
True
>>> print(guarantee)
GaussianRelease: (1, 1e-05)-differentially private
protects: one row, changes of at most 1
>>> broken = Guarantee(mechanism="PublishedProjection", claimed=(3.0, 1e-5), failures=(Failure("rank", "because"),))
>>> broken.proved, broken.epsilon is None
(False, True)

A mechanism whose proof is known to fail has no (ε, δ) here: ``epsilon`` and ``delta`` are None, and :class:`Failure`
says why, each with a code that a program can test for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

__all__ = ["Failure", "Guarantee"]


@dataclass(frozen=True)
class Failure:
    """One reason why a claim does not hold: a code for programs, a sentence for people.

    >>> Failure("rank", "the released matrix spans the columns of the data").code
    'rank'
    """

    code: str
    reason: str


@dataclass(frozen=True)
class Guarantee:
    """What is protected against somebody who sees a release, or that nothing is.

    Parameters
    ----------
    mechanism : str
        What made the release.
    epsilon, delta : float, optional
        Of (ε, δ)-differential privacy, as certified for the sampler in use; None: there is no guarantee.
    protects : str
        The neighboring relation in words.
    neighbor : float, optional
        Largest protected change of one row, in the units of the release (Euclidean norm); infinite: any replacement.
    features : tuple of float
        The same change in the original units of each feature, if only that feature changes.
    analytic : float, optional
        The ε that exact accounting gives for the same noise and δ; at most ``epsilon``.
    claimed : tuple of float, optional
        (ε, δ) that others claim and that is not established.
    assumptions : tuple of str
        What must hold, and what is outside.
    failures : tuple of Failure
        Known reasons why there is no guarantee.

    >>> Guarantee.from_dict(Guarantee(mechanism="FullLift", epsilon=1.0, delta=0.1).to_dict()).epsilon
    1.0
    """

    mechanism: str
    epsilon: float | None = None
    delta: float | None = None
    protects: str = ""
    neighbor: float | None = None
    features: tuple[float, ...] = ()
    analytic: float | None = None
    claimed: tuple[float, float] | None = None
    assumptions: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()

    def __post_init__(self) -> None:
        if (self.epsilon is None) != (self.delta is None):
            raise ValueError(f"epsilon and delta come together, got {self.epsilon!r} and {self.delta!r}")
        if self.epsilon is not None and not (0 <= self.epsilon < math.inf):
            raise ValueError(f"epsilon must be finite and not negative, got {self.epsilon!r}")
        if self.delta is not None and not (0 <= self.delta < 1):
            raise ValueError(f"delta must lie in [0, 1), got {self.delta!r}")
        if self.epsilon is not None and self.failures:
            raise ValueError("a mechanism with known failures has no (epsilon, delta) to print")

    @property
    def proved(self) -> bool:
        """Whether there is an (ε, δ) at all."""
        return self.epsilon is not None

    def to_dict(self) -> dict[str, Any]:
        """Return strict JSON that :meth:`from_dict` reads back; an unlimited neighbor is written as null."""
        data = asdict(self)
        data["features"] = [None if math.isinf(x) else x for x in self.features]
        data["replacement"] = self.neighbor == math.inf
        data["neighbor"] = None if data["replacement"] else self.neighbor
        return {key: list(value) if isinstance(value, tuple) else value for key, value in data.items()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Guarantee:
        """Rebuild a guarantee from :meth:`to_dict`.

        >>> Guarantee.from_dict({"mechanism": "GaussianRelease", "price": 3})
        Traceback (most recent call last):
        ...
        ValueError: a guarantee has no field 'price'
        """
        known = {field.name for field in fields(cls)} | {"replacement"}
        unknown = sorted(set(data) - known)
        if unknown:
            raise ValueError(f"a guarantee has no field {unknown[0]!r}")
        values = {key: value for key, value in data.items() if key != "replacement"}
        for name in ("epsilon", "delta", "neighbor", "analytic"):
            if isinstance(values.get(name), bool) or not isinstance(values.get(name), (int, float, type(None))):
                raise ValueError(f"{name} of a guarantee must be a number, got {values[name]!r}")
        if not isinstance(values.get("mechanism"), str):
            raise ValueError(f"a guarantee names its mechanism, got {values.get('mechanism')!r}")
        if data.get("replacement"):
            values["neighbor"] = math.inf
        try:
            if "features" in values:
                values["features"] = tuple(math.inf if x is None else float(x) for x in values["features"])
            if values.get("claimed") is not None:
                first, second = values["claimed"]
                values["claimed"] = (float(first), float(second))
            values["assumptions"] = tuple(str(text) for text in values.get("assumptions", ()))
            values["failures"] = tuple(Failure(**failure) for failure in values.get("failures", ()))
        except (TypeError, ValueError):
            raise ValueError("this is not a guarantee: one of its lists is malformed") from None
        return cls(**values)

    def __str__(self) -> str:
        if self.epsilon is not None:
            exact = "" if self.analytic is None else f" (exact accounting: ε = {self.analytic:.4g})"
            lines = [f"{self.mechanism}: ({self.epsilon:.4g}, {self.delta:.4g})-differentially private{exact}"]
        else:
            lines = [f"{self.mechanism}: NO privacy guarantee"]
            if self.claimed is not None:
                lines.append(f"claimed elsewhere, not established: ({self.claimed[0]:.4g}, {self.claimed[1]:.4g})")
        if self.protects:
            size = "" if self.neighbor is None else f", changes of at most {self.neighbor:.4g}"
            size = ", any replacement of it" if self.neighbor == math.inf else size
            lines.append(f"protects: {self.protects}{size}")
        if self.features and self.neighbor != math.inf:
            lines.append("in original units: " + ", ".join(f"{x:.4g}" for x in self.features))
        lines += [f"assumes: {text}" for text in self.assumptions]
        lines += [f"fails ({failure.code}): {failure.reason}" for failure in self.failures]
        return "\n".join(lines)
