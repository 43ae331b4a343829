"""The mark on what is young: a name that carries it may still change between two minor versions.

The mark stands in the documentation of the name (``help(name)`` and the reference) and can be asked for. It never
warns at run time: there is nothing a caller could do about it but read this.

>>> @experimental
... def forecast(day):
...     '''Return tomorrow's value.
...
...     The rest of the text stays where it was.
...     '''
>>> is_experimental(forecast)
True
>>> print(forecast.__doc__)
Return tomorrow's value.
<BLANKLINE>
**Experimental:** this may still change between two minor versions.
<BLANKLINE>
The rest of the text stays where it was.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar

__all__ = ["NOTE", "experimental", "is_experimental", "marked"]

T = TypeVar("T", bound="type[Any] | Callable[..., Any]")

NOTE = "**Experimental:** this may still change between two minor versions."


def experimental(thing: T) -> T:
    """Mark a class or a function as experimental; a class hands the mark down to no subclass.

    >>> @experimental
    ... class Oracle:
    ...     '''Know the answer.'''
    >>> Oracle.__doc__.splitlines()[-1] == NOTE, is_experimental(type("Child", (Oracle,), {}))
    (True, False)
    """
    first, _, rest = inspect.cleandoc(thing.__doc__ or "").partition("\n\n")
    thing.__doc__ = "\n\n".join(part for part in (first, NOTE, rest) if part)
    setattr(thing, "__experimental__", True)  # noqa: B010 - no type declares this attribute
    return thing


def is_experimental(thing: object) -> bool:
    """Say whether a class or a function carries the mark itself.

    >>> is_experimental(len)
    False
    """
    return "__experimental__" in getattr(thing, "__dict__", {})


def marked(module: ModuleType) -> list[str]:
    """Return the public names of a module or package that are experimental.

    >>> import surefoot.domain
    >>> marked(surefoot.domain)
    []
    """
    return [name for name in module.__all__ if is_experimental(getattr(module, name))]
