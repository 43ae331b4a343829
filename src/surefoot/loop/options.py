"""What every policy is made with: its common options, and a domain that it declares."""

from __future__ import annotations

import os
from typing import Any, TypedDict

from surefoot.domain import Domain
from surefoot.errors import NotSupported
from surefoot.loop.journal import Journal

__all__ = ["Options", "check_domain"]


class Options(TypedDict, total=False):
    """Keyword arguments that every policy takes.

    ``direction`` says which way is better, ``"maximize"`` or ``"minimize"``; ``seed`` names all random draws (None:
    drawn once and stored); ``repeats=False`` never asks for a measured point again; ``journal`` is a path, or a
    :class:`Journal`, in which every event is durable before the call returns.

    >>> from surefoot import Box, RandomSearch
    >>> options: Options = {"seed": 3, "repeats": False}
    >>> RandomSearch(Box([(0.0, 1.0)]), **options).seed
    3
    """

    direction: str
    seed: int | None
    repeats: bool
    journal: str | os.PathLike[str] | Journal | None


def check_domain(domain: Any, allowed: tuple[type[Domain], ...], who: str) -> None:
    """Refuse a domain that a policy does not declare.

    >>> from surefoot.domain import Box, Candidates
    >>> check_domain(Box.unit(1), (Candidates,), "MyPolicy")
    Traceback (most recent call last):
    ...
    surefoot.errors.NotSupported: MyPolicy works on Candidates, not on Box
    """
    if not isinstance(domain, allowed):
        names = ", ".join(kind.__name__ for kind in allowed)
        if not isinstance(domain, Domain):
            raise TypeError(f"{who} needs a domain ({names}), got {type(domain).__name__}")
        raise NotSupported(f"{who} works on {names}, not on {type(domain).__name__}")
