"""One line of the catalog: something to use, and when.

>>> entry = Entry("surefoot.TVGPUCB", "fade", "drift", "Measurements fade.", "docs/policies/tv-gp-ucb.md")
>>> entry.name, entry.abilities.context
('TVGPUCB', ('time',))
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from surefoot.cli.which.abilities import Abilities, abilities
from surefoot.loop.policy import Policy

__all__ = ["Entry"]


@dataclass(frozen=True)
class Entry:
    """Something to use, and when.

    Attributes
    ----------
    use : str
        Its full name.
    word : str
        The value of ``matters`` that leads to it.
    when : str
        What matters then, a few words.
    why : str
        One or two sentences.
    page : str
        Its page.
    options : tuple of str
        Arguments that the snippet shows besides the necessary ones.
    coordinates : int
        How many the box of the snippet has.
    workers : tuple of str
        The answers to ``parallel`` for which it is offered; empty for all.
    first : tuple of str
        The answers to ``parallel`` for which it comes before others.
    instead : tuple of str
        What else to look at, inside the library or outside.
    goal, special : str, frozenset of str or None
        The answers that lead here, for what no class declares.
    snippet : str
        The whole snippet, where it is not composed.
    needs : tuple of str
        What it takes, where it does not follow from the class.
    extra : str
        The extra to install, or the name of another library.
    holds : tuple of str
        Answers to questions that do not arise here, as ``key=value``, which are true anyhow.

    >>> Entry("surefoot.GPUCB", "guarantee", "a bound", "It has one.", "docs/policies/gp-ucb.md").name
    'GPUCB'
    """

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
    def policy(self) -> type[Policy] | None:
        """The class, if it is a policy of this library."""
        home, _, name = self.use.rpartition(".")
        found: Any = getattr(import_module(home), name) if home.startswith("surefoot") else None
        return found if isinstance(found, type) and issubclass(found, Policy) else None

    @property
    def abilities(self) -> Abilities | None:
        """What the class declares, if it is a policy."""
        policy = self.policy
        return None if policy is None else abilities(policy)
