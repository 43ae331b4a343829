"""Configuration as strict JSON, and back.

Plain values stay as they are. Domains, kernels, processes and widths are stored by their ``to_dict()`` under a type
name that is looked up among registered types, never imported. Configuration that is *code* (a cost function, an own
kernel) is stored by name only and must be passed again when the policy is rebuilt; so are candidate arrays too large
to store. What is read back is values: no reader opens a path, imports a module or looks a function up.

>>> stored = pack({"domain": Box([(0.0, 1.0)]), "scale": float("inf")})
>>> unpack(stored) == {"domain": Box([(0.0, 1.0)]), "scale": float("inf")}
True
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from surefoot.belief.gp import GP
from surefoot.belief.kernels import Kernel, kernel_from_dict
from surefoot.domain import Box, Candidates, Paths, Space, domain_from_dict
from surefoot.domain.perturbation import Perturbation, perturbation_from_dict
from surefoot.domain.product import WithValues
from surefoot.loop.widths import RKHS, Constant, Continuous, Finite, Logarithmic, LogTime, width_from_dict

__all__ = ["pack", "reader", "storable", "unpack"]

T = TypeVar("T", bound=type[Any])

_readers: dict[str, Callable[[dict[str, Any]], Any]] = {}


def storable(cls: T) -> T:
    """Register a class with ``to_dict`` and ``from_dict`` so that policies can keep it in their configuration.

    It is stored under its name, or under ``stored_as``: what was stored before a class was renamed must be read.

    >>> @storable
    ... class Price:
    ...     def __init__(self, rate): self.rate = rate
    ...     def to_dict(self): return {"rate": self.rate}
    ...     @classmethod
    ...     def from_dict(cls, data): return cls(**data)
    >>> unpack(pack(Price(2.0))).rate
    2.0
    """
    _readers[_stored_name(cls)] = cls.from_dict
    return cls


def _stored_name(cls: type) -> str:
    return str(getattr(cls, "stored_as", cls.__name__))


def reader(name: str) -> Callable[[Callable[[dict[str, Any]], Any]], Callable[[dict[str, Any]], Any]]:
    """Register the function that reads a type of stored values back.

    >>> @reader("Celsius")
    ... def celsius(data):
    ...     return data["degrees"] + 273.15
    >>> unpack({"$type": "Celsius", "value": {"degrees": 0.0}})
    273.15
    """

    def register(read: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, Any]], Any]:
        _readers[name] = read
        return read

    return register


for _domain in (Box, Candidates, Paths, Space, WithValues):
    _readers[_domain.__name__] = domain_from_dict
for _perturbation in Perturbation.registry:
    _readers[_perturbation] = perturbation_from_dict
for _width in (Constant, Continuous, Finite, Logarithmic, LogTime, RKHS):
    _readers[_width.__name__] = width_from_dict
_readers["GP"] = GP.from_dict
_readers["Kernel"] = kernel_from_dict


def pack(value: Any) -> Any:
    """Return a strict-JSON form of a configuration value.

    >>> pack((1, None, float("-inf")))
    [1, None, {'$type': 'float', 'value': '-inf'}]
    """
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (float, np.floating)):
        number = float(value)
        return number if math.isfinite(number) else {"$type": "float", "value": str(number)}
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, np.ndarray):
        return {"$type": "array", "value": pack(value.tolist())}
    if isinstance(value, (list, tuple)):
        return [pack(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): pack(item) for key, item in value.items()}
    name = (
        "Kernel" if isinstance(value, Kernel) and type(value).__name__ in Kernel.registry else _stored_name(type(value))
    )
    if name in _readers:
        return {"$type": name, "value": value.to_dict()}
    if hasattr(value, "from_state"):  # a policy inside another: its configuration and its seed, no events
        return {"$type": "Policy", "value": {"policy": name, "config": value.config(), "seed": value.seed}}
    if callable(value):
        return {"$code": getattr(value, "__qualname__", type(value).__qualname__)}
    raise TypeError(f"cannot store a {type(value).__name__} in a configuration; decorate its class with @storable")


def unpack(stored: Any, given: Any = None) -> Any:
    """Rebuild a value from :func:`pack`; ``given`` replaces what could not be stored, and agrees with what was.

    >>> unpack({"$code": "my_cost"})
    Traceback (most recent call last):
    ...
    ValueError: 'my_cost' is code and was stored by name only
    """
    if isinstance(stored, list):
        if given is not None and (not isinstance(given, (list, tuple)) or len(given) != len(stored)):
            raise ValueError(f"the value passed again is not a list of {len(stored)}")
        again = [None] * len(stored) if given is None else given
        return [unpack(item, one) for item, one in zip(stored, again, strict=True)]
    if not isinstance(stored, dict):
        return _agreed(stored, given, stored)
    if "$code" in stored:
        if given is None:
            raise ValueError(f"{stored['$code']!r} is code and was stored by name only")
        return given
    kind = stored.get("$type")
    if kind is None:
        if given is not None and (not isinstance(given, Mapping) or {str(key) for key in given} != stored.keys()):
            raise ValueError(f"the value passed again is not a mapping with the keys {sorted(stored)}")
        parts = {} if given is None else {str(key): item for key, item in given.items()}
        return {key: unpack(item, parts.get(key)) for key, item in stored.items()}
    if "value" not in stored:
        raise ValueError(f"a stored {str(kind)[:100]!r} has no value")
    if kind == "float":
        return _agreed(stored, given, float(stored["value"]))
    if kind == "array":
        return _agreed(stored, given, np.asarray(unpack(stored["value"])))
    if given is not None:
        known = stored["value"].get("sha256") if isinstance(stored["value"], dict) else None
        # What was stored by its hash is compared by its hash.
        if pack(given) != stored if known is None else getattr(given, "sha256", None) != known:
            raise ValueError(f"the {kind} passed again differs from the stored one")
        return given
    if not isinstance(kind, str) or kind not in _readers:
        raise ValueError(f"unknown type {str(kind)[:100]!r} in a stored configuration; known are {sorted(_readers)}")
    return _readers[kind](stored["value"])


def _agreed(stored: Any, given: Any, value: Any) -> Any:
    """The stored value, unless another one was passed."""
    if given is not None and pack(given) != stored:
        raise ValueError(f"it is stored as {value!r} and cannot become {given!r}")
    return value
