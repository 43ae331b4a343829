"""Tune's configurations as axes: what is searched in them, and the rest as it was.

>>> from ray import tune
>>> net = {"depth": tune.randint(1, 5), "act": tune.choice(["relu", "tanh"])}
>>> config = {"net": net, "rate": tune.loguniform(1e-4, 1.0), "data": "digits"}
>>> space = TuneSpace(config)
>>> space.axes.domain
Space({'net/depth': Int(1, 4), 'net/act': Choice(['relu', 'tanh']), 'rate': Float(0.0001, 1.0, log=True)})
>>> space.config([2.0, 1.0, 0.01])
{'net': {'depth': 2, 'act': 'tanh'}, 'rate': 0.01}
>>> space.point({"net": {"depth": 2, "act": "tanh"}, "rate": 0.01, "data": "digits"})
array([2.  , 1.  , 0.01])
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ray.tune.search.sample import Categorical, Domain, Float, Function, Integer, LogUniform, Quantized, Uniform

from surefoot.bridge.axes import Axes, Axis, Items, Lattice, Plain
from surefoot.domain import Float as Real
from surefoot.domain import Int, Space

__all__ = ["TuneSpace", "axis_of", "searched"]

Array = NDArray[np.float64]
Path = tuple[str | int, ...]


class TuneSpace:
    """The searched part of a configuration.

    Parameters
    ----------
    config : mapping or Space
        A configuration of Ray Tune, nested as you like; a parameter ``depth`` inside ``net`` is called ``net/depth``.
        Or a space with such names.

    >>> TuneSpace(Space({"net/depth": Int(1, 9)})).config([3.0])
    {'net': {'depth': 3}}
    """

    def __init__(self, config: Mapping[str, Any] | Space) -> None:
        if isinstance(config, Space):
            paths: list[Path] = [tuple(name.split("/")) for name in config.names]
            self.axes = Axes.of(config)
            self._config: Any = _nested(dict.fromkeys(paths, _SEARCHED))
        else:
            found = dict(searched(config))
            if not found:
                raise ValueError("there is nothing to search: no parameter of the configuration has a distribution")
            paths, self._config = list(found), config
            names = ["/".join(map(str, path)) for path in paths]
            if len(set(names)) < len(names):
                raise ValueError(f"two parameters of the configuration have the same name among {sorted(names)}")
            self.axes = Axes({name: axis_of(found[path], name) for name, path in zip(names, paths, strict=True)})
        self._names = dict(zip(paths, self.axes.axes, strict=True))

    def config(self, x: Sequence[float] | Array) -> dict[str, Any]:
        """Return a configuration with the values at a point; constants are left out, Ray adds them."""
        values = self.axes.values(x)
        filled: dict[str, Any] = self._filled((), self._config, values)
        return filled

    def _filled(self, path: Path, here: Any, values: Mapping[str, Any]) -> Any:
        if path in self._names:
            return values[self._names[path]]
        inside = [known for known in self._names if known[: len(path)] == path]
        if isinstance(here, Mapping):
            wanted = {known[len(path)] for known in inside}
            return {key: self._filled((*path, key), v, values) for key, v in here.items() if key in wanted}
        if inside:  # a list with a distribution in it replaces the whole list
            return [self._filled((*path, i), v, values) for i, v in enumerate(here)]
        return here

    def point(self, config: Mapping[str, Any]) -> Array:
        """Return the point of a configuration; what is not searched in it does not matter."""
        return self.axes.point({name: _at(config, path, name) for path, name in self._names.items()})


def searched(config: Any, path: Path = ()) -> Iterator[tuple[Path, Domain]]:
    """Yield the distributions in a configuration and where they are.

    >>> from ray import tune
    >>> [path for path, _ in searched({"a": 1, "b": {"c": [0, tune.uniform(0, 1)]}})]
    [('b', 'c', 1)]
    """
    name = "/".join(map(str, path))
    if isinstance(config, Domain):
        yield path, config
    elif isinstance(config, Mapping):
        if set(config) == {"grid_search"}:
            raise ValueError(f"{name}: a grid search tries every value, a policy chooses: write tune.choice instead")
        for key, value in config.items():
            yield from searched(value, (*path, key))
    elif isinstance(config, (list, tuple)):
        for i, value in enumerate(config):
            yield from searched(value, (*path, i))


def axis_of(domain: Domain, name: str) -> Axis:
    """Return the axis of one of Tune's distributions.

    >>> from ray import tune
    >>> axis_of(tune.quniform(0.0, 1.0, 0.25), "dropout")
    Lattice(low=0, high=4, step=0.25, log=False)
    >>> axis_of(tune.randn(), "x")
    Traceback (most recent call last):
    ...
    ValueError: x: a policy searches between bounds, which this distribution lacks: write tune.uniform(low, high)
    """
    sampler = domain.get_sampler()
    step = None
    if isinstance(sampler, Quantized):
        step, sampler = sampler.q, sampler.sampler
    try:
        if isinstance(domain, Categorical):
            if any(True for value in domain.categories for _ in searched(value)):
                raise ValueError("a choice among distributions depends on itself; search each of them")
            return Items(domain.categories)
        if isinstance(domain, Function):
            raise ValueError("a policy cannot search what tune.sample_from computes; compute it in the trainable")
        if not isinstance(sampler, (Uniform, LogUniform)) or not isinstance(domain, (Float, Integer)):
            lack = "a policy searches between bounds, which this distribution lacks: write tune.uniform(low, high)"
            raise ValueError(lack)
        log = isinstance(sampler, LogUniform)
        if isinstance(domain, Integer) and step in (None, 1):  # without a larger step the upper bound is excluded
            return Plain(Int(int(domain.lower), int(domain.upper) - 1, log=log))
        if step is None:
            return Plain(Real(domain.lower, domain.upper, log=log))
        low, high = math.ceil(domain.lower / step - 1e-9), math.floor(domain.upper / step + 1e-9)
        return Lattice(low, high, int(step) if isinstance(domain, Integer) else float(step), log)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


_SEARCHED = object()


def _nested(values: Mapping[Path, Any]) -> dict[str, Any]:
    """The nested configuration with these values."""
    nested: dict[str, Any] = {}
    for path, value in values.items():
        here = nested
        for key in path[:-1]:
            here = here.setdefault(str(key), {})
        here[str(path[-1])] = value
    return nested


def _at(config: Any, path: Path, name: str) -> Any:
    """The value at a path of a configuration, which may also be flat, as Ray writes it into results."""
    if isinstance(config, Mapping) and name in config:
        return config[name]
    for key in path:
        try:
            config = config[key]
        except (KeyError, IndexError, TypeError):
            raise ValueError(f"parameter {name!r} is missing") from None
    return config
