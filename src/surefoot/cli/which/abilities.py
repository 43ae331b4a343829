"""What a policy class says about itself, read and not repeated.

>>> from surefoot import BOBOS, TruVaR
>>> sorted(abilities(BOBOS).needs)
['epochs']
>>> sorted(abilities(TruVaR).handles), sorted(abilities(TruVaR).needs)
(['costs', 'precision'], [])
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass

from surefoot.domain import Domain, Paths
from surefoot.loop.policy import Policy

__all__ = ["Abilities", "abilities"]

# What is special about a problem, and the argument of a constructor that takes it.
_ARGUMENTS = {
    "tasks": "tasks",
    "perturbation": "perturbation",
    "losses": "tau",
    "costs": "cost",
    "players": "others",
}


@dataclass(frozen=True)
class Abilities:
    """What a policy can do and what it must be given, as its class declares it.

    Attributes
    ----------
    domains : tuple of types
        Where its points may lie.
    parallel : bool
        Whether it may be asked again before it is told.
    context : tuple of str
        What its asks take, such as ``time``.
    steps, fidelities : bool
        Whether it follows runs step by step; whether it chooses a precision.
    goals : frozenset of str
        ``best``, ``region`` or both.
    handles : frozenset of str
        What may be special about a problem.
    needs : frozenset of str
        The part of it without which the policy makes no sense.
    arguments : frozenset of str
        Names that its constructor takes.

    >>> from surefoot import GPLSE
    >>> abilities(GPLSE).goals
    frozenset({'region'})
    """

    domains: tuple[type[Domain], ...]
    parallel: bool
    context: tuple[str, ...]
    steps: bool
    fidelities: bool
    goals: frozenset[str]
    handles: frozenset[str]
    needs: frozenset[str]
    arguments: frozenset[str]

    def to_dict(self) -> dict[str, object]:
        """Return the declared part as JSON.

        >>> from surefoot import RandomSearch
        >>> abilities(RandomSearch).to_dict()["domains"]
        ['Box', 'Candidates', 'Space']
        """
        return {
            "domains": [domain.__name__ for domain in self.domains],
            "parallel": self.parallel,
            "context": list(self.context),
            "steps": self.steps,
            "fidelities": self.fidelities,
        }


def abilities(policy: type[Policy]) -> Abilities:
    """Read the class attributes of a policy and the arguments of its constructor, those of its bases included.

    >>> from surefoot import TVGPUCB
    >>> abilities(TVGPUCB).context
    ('time',)
    """
    arguments: dict[str, inspect.Parameter] = {}
    for base in reversed(policy.__mro__):
        if "__init__" in vars(base) and issubclass(base, Policy):
            arguments.update(inspect.signature(base).parameters)
    handles = {special for special, name in _ARGUMENTS.items() if name in arguments}
    needs = {special for special in handles if arguments[_ARGUMENTS[special]].default is inspect.Parameter.empty}
    # Asking with the time, or following epochs, is what such a policy is for.
    declared = {"drift": "time" in policy.context, "epochs": policy.steps}
    needs |= {special for special, whether in declared.items() if whether}
    handles |= needs
    if policy.fidelities:
        handles.add("precision")
    if Paths in policy.domains:
        handles.add("moves")
        if set(policy.domains) == {Paths}:
            needs.add("moves")
    goals = {"region"} if "threshold" in arguments else {"best"}
    if "goal" in arguments:
        goals = {"best", "region"}
    return Abilities(
        domains=policy.domains,
        parallel=policy.parallel,
        context=policy.context,
        steps=policy.steps,
        fidelities=policy.fidelities,
        goals=frozenset(goals),
        handles=frozenset(handles),
        needs=frozenset(needs),
        arguments=frozenset(arguments),
    )
