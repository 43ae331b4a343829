"""Spaces: named parameters that are real numbers, integers or choices.

Outside, a point of a space is a dict; inside, a vector ``x`` with one number per parameter (the index of a choice); and
a model sees the unit cube: logarithmic axes are straightened, integers lie on a lattice, a choice becomes one column
of 0 or 1 per value.

>>> space = Space(rate=Float(1e-5, 1e-1, log=True), depth=Int(1, 9), kernel=Choice(["rbf", "poly"]))
>>> x = space.point({"rate": 1e-3, "depth": 3, "kernel": "poly"})
>>> x
array([1.e-03, 3.e+00, 1.e+00])
>>> space.encode([x])
array([[0.5 , 0.25, 0.  , 1.  ]])

Round trips are exact. Parameters that go in as a dict come out unchanged, bit for bit. The unit cube cannot tell all
doubles of an axis apart, so the values that ``decode``, ``sample`` and ``design`` give are *short*: decimal fractions
of about 13 digits, which survive ``encode`` and ``decode`` unchanged, as does any value a person would write. A value
with more digits comes back from the unit cube shortened.

:meth:`Space.to_dict` is the description of a space everywhere: in TOML files, HTTP bodies and saved states.

>>> Space.from_dict({"parameters": {"depth": {"type": "int", "low": 1, "high": 9}}})
Space(depth=Int(1, 9))
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.domain.base import Array, Domain, Found, readonly
from surefoot.domain.cells import first_space, read_cells
from surefoot.domain.design import unit_design
from surefoot.domain.parameter import Choice, Float, Int, Parameter, parameter_from_dict
from surefoot.domain.search import maximize

__all__ = ["Choice", "Float", "Int", "Space"]


class Space(Domain):
    """All combinations of named parameters. A model sees the unit cube.

    Parameters
    ----------
    parameters : mapping of str to Parameter, optional
        For names that are not Python identifiers; otherwise write them as keywords.

    >>> space = Space({"learning rate": Float(1e-4, 1e-1, log=True)}, depth=Int(1, 9))
    >>> space.names
    ['learning rate', 'depth']
    """

    def __init__(self, parameters: Mapping[str, Parameter] | None = None, /, **keywords: Parameter) -> None:
        if parameters is not None and not isinstance(parameters, Mapping):
            raise TypeError(f"a space is made of a mapping or of keywords, got {parameters!r}")
        if twice := set(parameters or ()) & set(keywords):
            raise ValueError(f"parameter {min(twice)!r} is given twice")
        self.parameters: dict[str, Parameter] = {**(parameters or {}), **keywords}
        if not self.parameters:
            raise ValueError("a space has at least one parameter")
        for name, parameter in self.parameters.items():
            if not isinstance(name, str) or not name:
                raise ValueError(f"a parameter's name is a non-empty string, got {name!r}")
            if not isinstance(parameter, Parameter):
                raise TypeError(f"parameter {name!r} must be a Float, an Int or a Choice, got {parameter!r}")
        widths = [p.width for p in self.parameters.values()]
        ends = np.cumsum(widths).tolist()
        self._axes = [
            (i, slice(end - p.width, end), p)
            for i, (end, p) in enumerate(zip(ends, self.parameters.values(), strict=True))
        ]
        self._lower = readonly(np.zeros(ends[-1]))
        self._upper = readonly(np.repeat([0.0 if p.size == 1 else 1.0 for p in self.parameters.values()], widths))
        self._continuous = np.repeat([isinstance(p, Float) for p in self.parameters.values()], widths)
        self._ordered = np.repeat([not isinstance(p, Choice) for p in self.parameters.values()], widths)

    @classmethod
    def read_csv(cls, path: str | os.PathLike[str], target: str | None = None) -> Self:
        """Return a first space for the columns of a CSV file: one parameter for each that varies.

        Bounds are those of the table, yours to widen; ``target`` is the column of results, which is no parameter (by
        default a column with such a name, or the last one of numbers). :func:`surefoot.domain.cells.first_space` says
        what is left out.

        >>> import tempfile
        >>> file = tempfile.mktemp(suffix=".csv")
        >>> with open(file, "w") as out:
        ...     _ = out.write("heat,solvent,yield\\n30,water,0.61\\n55.5,acetone,0.7\\n")
        >>> Space.read_csv(file, target="yield")
        Space(heat=Float(30.0, 55.5), solvent=Choice(['water', 'acetone']))
        """
        sheet = read_cells(path)
        return cls(first_space(sheet.columns, sheet.rows, target).parameters)

    @property
    def lower(self) -> Array:
        return self._lower

    @property
    def upper(self) -> Array:
        return self._upper

    @property
    def dimension(self) -> int:
        return len(self.parameters)

    @property
    def names(self) -> list[str]:
        return list(self.parameters)

    @property
    def size(self) -> int | None:
        sizes = [p.size for p in self.parameters.values()]
        return None if None in sizes else math.prod(s for s in sizes if s is not None)

    @property
    def continuous(self) -> NDArray[np.bool_]:
        return self._continuous

    @property
    def ordered(self) -> NDArray[np.bool_]:
        return self._ordered

    def point(self, params: Mapping[str, Any]) -> Array:
        """Return the point with these parameters, or raise a ValueError that names the wrong one.

        >>> space = Space(depth=Int(1, 9))
        >>> space.point({"depth": 12})
        Traceback (most recent call last):
        ...
        ValueError: depth = 12 is outside [1, 9]
        """
        for name in params:
            if name not in self.parameters:
                raise ValueError(f"unknown parameter {name!r}; known are {self.names}")
        x = np.empty(self.dimension)
        for i, (name, parameter) in enumerate(self.parameters.items()):
            if name not in params:
                raise ValueError(f"parameter {name!r} is missing")
            try:
                x[i] = parameter.number(params[name])
            except ValueError as error:
                raise ValueError(f"{name} = {params[name]!r} {error}") from None
        return readonly(x)

    def params(self, x: ArrayLike) -> dict[str, Any]:
        numbers = self.validate(x).tolist()
        return {name: p.value(number) for (name, p), number in zip(self.parameters.items(), numbers, strict=True)}

    def validate(self, x: Any) -> Array:
        return self.point(x) if isinstance(x, Mapping) else super().validate(x)

    def _check(self, x: Array) -> None:
        for (name, p), number in zip(self.parameters.items(), x.tolist(), strict=True):
            if not p.contains(np.array([number]))[0]:
                allowed = f"{p}" if not isinstance(p, Choice) else f"an index into {list(p.values)}"
                raise ValueError(f"{name} = {number} is outside {allowed}")

    def contains(self, X: ArrayLike) -> NDArray[np.bool_]:
        rows = self._rows(X, self.dimension)
        return np.asarray(np.all([p.contains(rows[:, i]) for i, _, p in self._axes], axis=0))

    def encode(self, X: ArrayLike) -> Array:
        rows = self._rows(X, self.dimension)
        E = np.empty((rows.shape[0], self.encoded_dimension))
        for i, columns, p in self._axes:
            E[:, columns] = p.encode(rows[:, i])
        return E

    def decode(self, E: ArrayLike) -> Array:
        rows = self._rows(E, self.encoded_dimension)
        X = np.empty((rows.shape[0], self.dimension))
        for i, columns, p in self._axes:
            X[:, i] = p.decode(rows[:, columns])
        return X

    def project(self, E: ArrayLike) -> Array:
        P = np.clip(self._rows(E, self.encoded_dimension), self.lower, self.upper)
        for _, columns, p in self._axes:
            if not isinstance(p, Float):
                P[:, columns] = p.encode(p.decode(P[:, columns]))
        return P

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        return self._spread(rng.random((n, self.dimension)))

    def design(self, n: int, rng: np.random.Generator, method: str = "sobol") -> Array:
        return self._spread(unit_design(n, self.dimension, rng, method))

    def _spread(self, U: Array) -> Array:
        return np.column_stack([p.spread(U[:, i]) for i, _, p in self._axes])

    def neighbors(self, x: ArrayLike, rng: np.random.Generator | None = None) -> Array:
        """Return the points that differ from x in one integer or one choice, shape (k, d).

        An integer moves by one, and by a twentieth and a fifth of its axis; with ``rng`` also to two random values.
        A choice takes each of its other values.

        >>> Space(a=Int(0, 3), b=Choice(["u", "v"])).neighbors([1.0, 0.0]).tolist()
        [[0.0, 0.0], [2.0, 0.0], [1.0, 1.0]]
        """
        here = np.asarray(x, dtype=np.float64)
        moves = [(i, value) for i, _, p in self._axes for value in p.steps(float(here[i]), rng)]
        X = np.tile(here, (len(moves), 1))
        for row, (i, value) in zip(X, moves, strict=True):
            row[i] = value
        return X

    def maximize(
        self, score: Any, *, rng: np.random.Generator, seeds: ArrayLike | None = None, exclude: Any = None
    ) -> Found:
        x, value = maximize(score, self, rng=rng, seeds=seeds, exclude=exclude)
        return Found(x, None, value)

    def enumerate(self) -> Array:
        if self.size is None:
            return super().enumerate()
        axes = [p.numbers() for p in self.parameters.values()]
        return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, self.dimension)

    def to_dict(self) -> dict[str, Any]:
        return {"domain": "Space", "parameters": {name: p.to_dict() for name, p in self.parameters.items()}}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        described = cls._fields(data, "parameters").get("parameters")
        if not isinstance(described, Mapping):
            raise ValueError(f"a space is described by a table of parameters, got {described!r}")
        return cls({name: parameter_from_dict(name, entry) for name, entry in described.items()})

    def __eq__(self, other: object) -> bool:
        # The order of the parameters counts: it is the order of the coordinates.
        return isinstance(other, Space) and list(self.parameters.items()) == list(other.parameters.items())

    __hash__ = Domain.__hash__

    def __repr__(self) -> str:
        if all(name.isidentifier() for name in self.parameters):
            return f"Space({', '.join(f'{name}={p!r}' for name, p in self.parameters.items())})"
        return f"Space({self.parameters!r})"
