"""What ``surefoot which`` can ask and answer: ``table.toml``, and what the classes in it declare.

>>> from surefoot import BOBOS, TruVaR
>>> sorted(abilities(BOBOS).needs), sorted(abilities(TruVaR).handles)
(['epochs'], ['costs', 'precision'])
"""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from surefoot.domain import Paths
from surefoot.loop.policy import Policy

__all__: list[str] = []

TABLE: dict[str, Any] = tomllib.loads(Path(__file__).with_name("table.toml").read_text(encoding="utf-8"))

# What is special about a problem, and the argument of a constructor that takes it.
_ARGUMENTS = {
    "tasks": "tasks",
    "perturbation": "perturbation",
    "losses": "tau",
    "costs": "cost",
    "players": "others",
}


@dataclass(frozen=True)
class Question:
    """One question, and what each of its answers means; without any they follow from the answers before."""

    key: str
    text: str
    choices: Mapping[str, str] = field(default_factory=dict)
    several: bool = False


QUESTIONS = tuple(Question(key, **given) for key, given in TABLE["questions"].items())


@dataclass(frozen=True)
class Abilities:
    """What a policy declares, what special things it can do with, and those that it must be given."""

    declared: dict[str, Any]
    goals: frozenset[str]
    handles: frozenset[str]
    needs: frozenset[str]
    arguments: frozenset[str]


def abilities(policy: type[Policy]) -> Abilities:
    """Read the class attributes of a policy and the arguments of its constructor, those of its bases included."""
    arguments: dict[str, inspect.Parameter] = {}
    for base in reversed(policy.__mro__):
        if "__init__" in vars(base) and issubclass(base, Policy):
            arguments.update(inspect.signature(base).parameters)
    handles = {special for special, name in _ARGUMENTS.items() if name in arguments}
    needs = {special for special in handles if arguments[_ARGUMENTS[special]].default is inspect.Parameter.empty}
    # Asking with the time, or following epochs, is what such a policy is for.
    needs |= {"drift"} if "time" in policy.context else set()
    needs |= {"epochs"} if policy.steps else set()
    handles |= needs | ({"precision"} if policy.fidelities else set())
    if Paths in policy.domains:
        handles.add("moves")
        needs |= {"moves"} if set(policy.domains) == {Paths} else set()
    goals = {"best", "region"} if "goal" in arguments else {"region"} if "threshold" in arguments else {"best"}
    declared = {
        "domains": [domain.__name__ for domain in policy.domains],
        "parallel": policy.parallel,
        "context": list(policy.context),
        "steps": policy.steps,
        "fidelities": policy.fidelities,
    }
    return Abilities(declared, frozenset(goals), frozenset(handles), frozenset(needs), frozenset(arguments))


@dataclass(frozen=True)
class Entry:
    """Something to use, and when; ``table.toml`` says what each field is."""

    use: str
    word: str
    when: str
    why: str
    page: str
    options: tuple[str, ...] = ()
    coordinates: int = 2
    workers: tuple[str, ...] = ()
    first: tuple[str, ...] = ()
    instead: tuple[str, ...] = ()
    goal: str = "best"
    special: frozenset[str] | None = None
    snippet: str = ""
    needs: tuple[str, ...] = ()
    extra: str = ""
    holds: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The last part of its full name, or the name of another library."""
        return self.use.rpartition(".")[2] if self.use.startswith("surefoot") else self.extra.capitalize()

    @property
    def abilities(self) -> Abilities | None:
        """What the class declares, if it is a policy of this library."""
        home, _, name = self.use.rpartition(".")
        found: Any = getattr(import_module(home), name) if home.startswith("surefoot") else None
        return abilities(found) if isinstance(found, type) and issubclass(found, Policy) else None


def _entry(use: str, given: Mapping[str, Any]) -> Entry:
    fields: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in given.items()}
    if "special" in fields:
        fields["special"] = frozenset(fields["special"])
    return Entry(use, **{**fields, "page": f"docs/{fields['page']}.md"})


ENTRIES = [_entry(use, given) for use, given in TABLE["use"].items()]
