"""Groups: what is chosen is a group, and its worst member counts.

On :class:`~surefoot.domain.Candidates` every candidate belongs to one group. In a :class:`~surefoot.domain.Space` the
values of a choice do, and everything else is chosen as usual.

>>> from surefoot import Choice, Float, Space
>>> space = Space(speed=Float(0.0, 1.0), supplier=Choice(["A", "B", "C"]))
>>> region = Groups({"supplier": {"north": ["A", "B"]}}).on(space)
>>> [space.params(x)["supplier"] for x in space.decode(region.spread(space.encode([[0.5, 1.0]]), 1)[0])]
['A', 'B']

Reference: Bogunovic, Scarlett, Jegelka & Cevher 2018, section 4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.domain.base import Domain
from surefoot.domain.candidates import Candidates
from surefoot.domain.mixed import Swapped
from surefoot.domain.parameter import Choice
from surefoot.domain.perturbation import InapplicablePerturbation, Perturbation
from surefoot.domain.sets import ListedSets, Region, Sets
from surefoot.domain.space import Space

__all__ = ["Groups"]

Indices = NDArray[np.intp]


class Groups(Perturbation):
    """A whole group of candidates is chosen, and its worst member counts: max over G of min over x in G of f(x).

    Parameters
    ----------
    labels : sequence of n strings or whole numbers, or mapping of str to mappings
        The group of each candidate. In a space: for each choice that is not one's own to make, by name, the groups
        and their values; which member of the chosen value's group one gets is the adversary's. Values in no group, and
        all other parameters, are kept.

    >>> from surefoot import Candidates
    >>> groups = Groups(["a", "b", "a"])
    >>> groups.on(Candidates([0.0, 1.0, 2.0])).minimum(np.array([3.0, 2.0, 1.0]))
    array([1., 2.])
    >>> groups.members("c")
    Traceback (most recent call last):
    ...
    ValueError: unknown group 'c'; known are ['a', 'b']
    >>> Groups({"supplier": {"north": ["A", "B"]}})
    Groups({'supplier': {'north': ['A', 'B']}})
    """

    def __init__(self, labels: Sequence[Any] | NDArray[Any] | Mapping[str, Mapping[str, Sequence[Any]]]) -> None:
        self.choices: dict[str, dict[str, list[Any]]] | None = None
        if isinstance(labels, Mapping):
            self.choices = _grouped(labels)
            self.labels: list[str | int] = []
            self.names: list[str | int] = []
            return
        self.labels = [_label(label, row) for row, label in enumerate(np.asarray(labels, dtype=object).tolist())]
        if not self.labels:
            raise ValueError("groups need one label per candidate, got none")
        self.names = list(dict.fromkeys(self.labels))
        number = {name: i for i, name in enumerate(self.names)}
        self._belongs = np.array([number[label] for label in self.labels], dtype=np.intp)

    def members(self, name: str | int) -> Indices:
        """Return the candidates of one group."""
        if name not in self.names:
            raise ValueError(f"unknown group {name!r}; known are {self.names[:10]}")
        return np.flatnonzero(self._belongs == self.names.index(name))

    def on(self, domain: Domain) -> Sets | Region:
        if self.choices is not None:
            return self._swapped(domain, self.choices)
        if not isinstance(domain, Candidates):
            raise self._refuse(domain, "Candidates" if not isinstance(domain, Space) else "groups of named choices")
        if len(self.labels) != domain.size:
            raise ValueError(f"{len(self.labels)} labels for {domain.size} candidates")
        order = np.argsort(self._belongs, kind="stable")
        sizes = np.bincount(self._belongs)
        starts = np.cumsum(sizes) - sizes
        return ListedSets(domain.points, order, starts, belongs=self._belongs, labels=self.names)

    def _swapped(self, domain: Domain, choices: dict[str, dict[str, list[Any]]]) -> Swapped:
        if not isinstance(domain, Space):
            raise self._refuse(domain, "one label for each candidate")
        for name, groups in choices.items():
            if name not in domain.parameters:
                raise ValueError(f"unknown parameter {name!r}; known are {domain.names}")
            parameter = domain.parameters[name]
            if not isinstance(parameter, Choice):
                raise InapplicablePerturbation(
                    f"{name!r} is a number: Groups swaps values of a choice; WeightedBox moves numbers"
                )
            for value in (value for group in groups.values() for value in group):
                try:
                    parameter.number(value)
                except ValueError as error:
                    raise ValueError(f"{name} = {value!r} {error}") from None
        return Swapped(domain, {name: list(groups.values()) for name, groups in choices.items()})

    def to_dict(self) -> dict[str, Any]:
        return {"perturbation": "Groups", "labels": self.labels if self.choices is None else self.choices}

    def __repr__(self) -> str:
        if self.choices is not None:
            return f"Groups({self.choices})"
        return f"Groups({len(self.names)} groups of {len(self.labels)} candidates)"


def _grouped(labels: Mapping[str, Mapping[str, Sequence[Any]]]) -> dict[str, dict[str, list[Any]]]:
    """Groups of named choices, checked as far as is possible without their space."""
    if not labels or not all(isinstance(name, str) for name in labels):
        raise ValueError(f"groups of choices are given by one or more names, got {labels!r}")
    for name, groups in labels.items():
        if not isinstance(groups, Mapping) or not groups:
            raise ValueError(f"{name!r} needs groups by name, such as {{'north': ['A', 'B']}}; got {groups!r}")
        for group, values in groups.items():
            if isinstance(values, str) or not isinstance(values, Sequence) or not values:
                raise ValueError(f"group {group!r} of {name!r} is a list of values, got {values!r}")
        every = [repr(value) for values in groups.values() for value in values]
        if len(set(every)) < len(every):
            raise ValueError(f"a value of {name!r} is in two groups, or twice in one: {dict(groups)}")
    return {name: {str(group): list(v) for group, v in groups.items()} for name, groups in labels.items()}


def _label(label: Any, row: int) -> str | int:
    if isinstance(label, (bool, np.bool_)) or not isinstance(label, (str, int, np.integer)):
        raise ValueError(f"candidate {row} has no group: a label is a string or a whole number, got {label!r}")
    return label if isinstance(label, str) else int(label)
