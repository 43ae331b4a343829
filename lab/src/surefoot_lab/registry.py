"""Experiments: a function of one repetition, its budgets and its claims.

An experiment file says *what* is measured and *what was claimed*; processes, pairing, budgets, resuming and verdicts
belong to :mod:`surefoot_lab.runner`. The id of an experiment is its path: ``lab/experiments/gp_ucb/regret_bound.py``
is ``gp-ucb/regret-bound``. A whole file::

    S = Metric("simple_regret")

    claims = [
        Order("StableOpt is below each baseline", lowest(S["StableOpt"], [S["GP-UCB"], S["random"]])),
        Exact("the maximum of f is 20.82", {Metric("maximum")["constants"]: 20.82}, tolerance=0.02),
    ]

    @experiment("stableopt/polynomial", source="...", data="synthetic", quick=Budget(4, horizon=60), full=...)
    def run(replicate):
        \"\"\"StableOpt on the published polynomial.\"\"\"
        traces = compare(policies, problem, replicate["horizon"], replicate)
        if replicate.index == 0:  # what does not vary is computed once
            traces["constants"] = Trace(maximum=problem.optimum)
        return traces

Entry k of ``claims``, counted from 1, is the claim ``stableopt/polynomial#Ck`` of the register.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.errors import MissingData
from surefoot.loop.streams import as_integer, stream
from surefoot_lab.claim import Claim

__all__ = ["Budget", "Data", "Experiment", "Replicate", "Trace", "Unit", "experiment", "find", "names"]

Array = NDArray[np.float64]
_PACKAGE = "surefoot_lab.experiments"
_REGISTRY: dict[str, Experiment] = {}


class Trace:
    """What one method did in one repetition: named numbers and named series (one entry per step).

    NaN means "not measured here" and leaves the repetition out of claims about that number; infinity is refused.

    >>> trace = Trace(regret=[3.0, 1.0], seconds=0.2)
    >>> trace["regret"]
    array([3., 1.])
    >>> Trace.from_json(trace.to_json()).to_json()
    {'regret': [3.0, 1.0], 'seconds': 0.2}
    """

    def __init__(self, **metrics: ArrayLike) -> None:
        self.metrics: dict[str, Array] = {}
        for name, values in metrics.items():
            array = np.asarray(values, dtype=np.float64)
            if array.ndim > 1 or np.isinf(array).any():
                raise ValueError(f"{name} must be a number or a series without infinities, got {values!r}")
            self.metrics[name] = array

    def __getitem__(self, name: str) -> Array:
        return self.metrics[name]

    def to_json(self) -> dict[str, Any]:
        """Return plain lists and numbers, null for NaN."""
        plain = {name: np.where(np.isnan(array), np.array(None), array) for name, array in self.metrics.items()}
        return {name: array.tolist() for name, array in plain.items()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Trace:
        """Rebuild a trace from :meth:`to_json`."""
        return cls(**{name: np.array(values, dtype=np.float64) for name, values in data.items()})

    def __repr__(self) -> str:
        return f"Trace({', '.join(f'{k}[{v.size}]' if v.ndim else k for k, v in self.metrics.items())})"


class Budget:
    """How much an experiment may spend: repetitions, minutes, and settings of its own.

    >>> Budget(4, horizon=60)
    Budget(4, minutes=2.0, horizon=60)
    """

    def __init__(self, repetitions: int, *, minutes: float = 2.0, **settings: Any) -> None:
        if repetitions < 1 or not minutes > 0:
            raise ValueError(f"need one repetition and some time, got {repetitions} and {minutes} minutes")
        self.repetitions, self.minutes = int(repetitions), float(minutes)
        self.settings: Mapping[str, Any] = MappingProxyType(settings)

    def __repr__(self) -> str:
        settings = "".join(f", {key}={value!r}" for key, value in self.settings.items())
        return f"Budget({self.repetitions}, minutes={self.minutes}{settings})"


@dataclass(frozen=True)
class Replicate:
    """One repetition: its number, its random streams and the settings of the budget.

    The problem, the noise and *every* method draw from the same seed, ``SeedSequence(root, spawn_key=(index,))``, so
    that methods are compared on the same function, start and noise.

    >>> replicate = Replicate(3, settings={"horizon": 20})
    >>> replicate["horizon"]
    20
    >>> replicate.rng("noise").random() == replicate.rng("noise").random()
    True
    >>> 0 <= replicate.integer < 2**53
    True
    """

    index: int
    root: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    out: str = "results"

    @property
    def seed(self) -> np.random.SeedSequence:
        """The seed of this repetition."""
        return np.random.SeedSequence(self.root, spawn_key=(self.index,))

    @property
    def integer(self) -> int:
        """The seed as one whole number: what a policy takes as ``seed=``."""
        return as_integer(self.seed)

    def rng(self, purpose: str, step: int = 0) -> np.random.Generator:
        """Return a fresh generator for one purpose (and step); the same call always gives the same draws."""
        return stream(self.root, purpose, step, within=(self.index,))

    def stored(self, id: str) -> dict[int, dict[str, Trace]]:
        """Return the traces of another experiment, by repetition and method, from its results in the same folder.

        Raises
        ------
        MissingData
            It was not run yet.
        """
        from surefoot_lab.results import FILE, Results

        folder = Path(self.out) / id
        if not (folder / FILE).exists():
            raise MissingData(f"needs the results of {id}: run `surefoot reproduce {id}` first")
        return Results.load(folder, find(id)).replicates

    def __getitem__(self, name: str) -> Any:
        return self.settings[name]


@dataclass(frozen=True)
class Data:
    """What an experiment measures on.

    Parameters
    ----------
    kind : str
        "published" (the data of the document), "synthetic" (drawn or simulated), "substitute" (other data of the same
        kind: only orders carry over, and every report says so in its title), or "unobtainable".
    names : str or tuple of str
        Data sets of :mod:`surefoot_lab.datasets` that must be on this machine.
    instead_of : str
        What a substitute stands for.

    >>> Data("substitute", ("metr_la",), instead_of="I-880 South").label
    'SUBSTITUTE data: metr_la instead of I-880 South'
    """

    kind: str = "synthetic"
    names: str | tuple[str, ...] = ()
    instead_of: str = ""

    def __post_init__(self) -> None:
        if self.kind not in ("published", "synthetic", "substitute", "unobtainable"):
            raise ValueError(f"data are published, synthetic, substitute or unobtainable, not {self.kind!r}")
        object.__setattr__(self, "names", (self.names,) if isinstance(self.names, str) else tuple(self.names))

    @property
    def label(self) -> str:
        """One phrase for titles and lists."""
        names = f": {', '.join(self.names)}" if self.names else ""
        instead = f" instead of {self.instead_of}" if self.instead_of else ""
        return f"{'SUBSTITUTE' if self.kind == 'substitute' else self.kind} data{names}{instead}"


@dataclass(frozen=True)
class Unit:
    """What is independent of each other in an experiment: the intervals of its claims count these, not repetitions.

    A claim about a printed function or a published table is about runs on it, and each repetition is one. Drawn
    functions are drawn to stand for others, and so are substitute data: repetitions that share a function, a day or a
    data set are of one unit.

    Parameters
    ----------
    name : str
        One unit, in words.
    of : callable, optional
        The number of the unit to which a repetition belongs, from its index and the settings of the budget; by default
        each repetition is a unit of its own.

    >>> Unit("image", lambda index, settings: index // settings["targets"]).number(20, {"targets": 9})
    2
    >>> Unit("drawn function").shared
    False
    """

    name: str = "repetition"
    of: Callable[[int, Mapping[str, Any]], int] | None = None

    @property
    def shared(self) -> bool:
        """Whether several repetitions may belong to one unit."""
        return self.of is not None

    def number(self, index: int, settings: Mapping[str, Any]) -> int:
        """Return the number of the unit to which a repetition belongs."""
        return index if self.of is None else self.of(index, settings)

    @classmethod
    def single(cls, name: str) -> Unit:
        """Return the unit of all repetitions together: all of them have the same data.

        >>> Unit.single("lake").number(7, {})
        0
        """
        return cls(name, lambda index, settings: 0)


@dataclass(frozen=True)
class Experiment:
    """A registered experiment; made by the :func:`experiment` decorator.

    >>> find("gp-ucb/regret-bound").family
    'gp-ucb'
    """

    id: str
    run: Callable[[Replicate], Mapping[str, Trace]]
    source: str
    data: Data
    quick: Budget
    full: Budget
    title: str = ""
    priority: int = 1
    limit: int | None = None
    own_claims: tuple[Claim, ...] | None = None
    unit: Unit = field(default_factory=Unit)

    @property
    def family(self) -> str:
        """The part of the id before the slash."""
        return self.id.split("/")[0]

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The claims given to the decorator, else the list ``claims`` of the experiment's module."""
        if self.own_claims is not None:
            return self.own_claims
        return tuple(getattr(sys.modules[self.run.__module__], "claims", ()))

    @property
    def heading(self) -> str:
        """The title; with substitute data it says so."""
        return f"{self.title} ({self.data.label})" if self.data.kind == "substitute" else self.title

    def budget(self, mode: str) -> Budget:
        """Return the budget "quick" or "full"."""
        if mode not in ("quick", "full"):
            raise ValueError(f"the budget is quick or full, not {mode!r}")
        return self.quick if mode == "quick" else self.full


def experiment(
    id: str,
    *,
    source: str,
    data: str | Data = "synthetic",
    quick: Budget,
    full: Budget,
    title: str | None = None,
    priority: int = 1,
    limit: int | None = None,
    claims: Sequence[Claim] | None = None,
    unit: str | Unit = "repetition",
) -> Callable[[Callable[[Replicate], Mapping[str, Trace]]], Experiment]:
    """Register a function of one repetition as an experiment.

    Parameters
    ----------
    id : str
        ``family/short-name``; inside this package it must be the path of the module.
    source : str
        Where the claims are printed.
    data : str or Data
        What it measures on.
    quick, full : Budget
        Under 2 minutes, under 2 hours.
    title : str, optional
        One line; by default the first line of the function's docstring.
    priority : int
        1 cheap and discriminating, 2 dearer, 3 needs a GPU or long runs.
    limit : int, optional
        Repetitions that exist at all (recorded fields, published games); resuming never goes beyond.
    claims : sequence of Claim, optional
        By default the list ``claims`` of the module, so that claims can stand above or below the function.
    unit : str or Unit
        What the intervals of the claims count: what one repetition is (words), or belongs to (a :class:`Unit`).

    >>> @experiment("example/coin", source="folklore", quick=Budget(20), full=Budget(100), claims=[])
    ... def coin(replicate):
    ...     "A fair coin."
    ...     return {"coin": Trace(heads=replicate.rng("coin").integers(2))}
    >>> coin.title
    'A fair coin'
    """
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*/[a-z0-9]+(-[a-z0-9]+)*", id):
        raise ValueError(f"an experiment id looks like family/short-name, not {id!r}")

    def register(run: Callable[[Replicate], Mapping[str, Trace]]) -> Experiment:
        if run.__module__.startswith(_PACKAGE + ".") and run.__module__ != _module(id):
            raise ValueError(f"experiment {id!r} must live in {_module(id)}, not in {run.__module__}")
        first = (title or run.__doc__ or id).strip().splitlines()[0].rstrip(".")
        made = Experiment(
            id=id,
            run=run,
            source=source,
            data=data if isinstance(data, Data) else Data(data),
            quick=quick,
            full=full,
            title=first,
            priority=priority,
            limit=limit,
            own_claims=None if claims is None else tuple(claims),
            unit=unit if isinstance(unit, Unit) else Unit(unit),
        )
        _REGISTRY[id] = made
        return made

    return register


def _module(id: str) -> str:
    return f"{_PACKAGE}.{id.replace('-', '_').replace('/', '.')}"


def names() -> list[str]:
    """Return the ids of all experiments that come with Surefoot, sorted; nothing is imported.

    >>> "gp-ucb/regret-bound" in names()
    True
    """
    return sorted(_walk())


def _walk() -> Iterator[str]:
    package = importlib.import_module(_PACKAGE)
    for family in pkgutil.iter_modules(package.__path__):
        if family.ispkg:
            folder = importlib.import_module(f"{_PACKAGE}.{family.name}")
            for module in pkgutil.iter_modules(folder.__path__):
                if not module.name.startswith("_"):
                    yield f"{family.name}/{module.name}".replace("_", "-")


def find(id: str, module: str | None = None) -> Experiment:
    """Return an experiment by its id, importing its module (by default the one its id names).

    >>> find("gp-ucb/regret-bund")
    Traceback (most recent call last):
    ...
    ValueError: no experiment 'gp-ucb/regret-bund'; did you mean gp-ucb/regret-bound?
    """
    if module is not None:
        importlib.import_module(module)
    elif id not in _REGISTRY and id in names():
        importlib.import_module(_module(id))
    if id not in _REGISTRY:
        known = sorted({*names(), *_REGISTRY})
        near = difflib.get_close_matches(id, known, n=3, cutoff=0.7)
        hint = f"did you mean {' or '.join(near)}?" if near else "`surefoot reproduce --list` shows all"
        raise ValueError(f"no experiment {id!r}; {hint}")
    return _REGISTRY[id]
