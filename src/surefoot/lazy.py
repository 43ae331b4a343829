"""Names of a package that are imported when they are first used (PEP 562)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from surefoot import moved

__all__ = ["names"]


def names(
    package: str,
    homes: Mapping[str, Sequence[str]],
    modules: Mapping[str, str] | None = None,
    *,
    missing: Callable[[str], Exception] | None = None,
    renamed: Mapping[str, str] | None = None,
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return what a package calls ``__getattr__``, ``__dir__`` and ``__all__``.

    Parameters
    ----------
    package
        Name of the package, its ``__name__``.
    homes
        The names each module of the package offers; the module is given relative to the package.
    modules
        Names that are modules themselves, and where they lie, in full.
    missing
        Makes the error for a name whose module needs a package that is not there, from a sentence that names both.
    renamed
        Old names, which work with a warning, and new ones.

    Examples
    --------
    >>> find, listing, public = names("surefoot", {"domain.box": ["Box"]})
    >>> public
    ['Box']
    >>> find("Box")([(0.0, 1.0)]).dimension
    1
    """
    home = {name: f"{package}.{module}" for module, offered in homes.items() for name in offered}
    where = modules or {}
    public = sorted([*home, *where])

    def find(name: str) -> Any:
        if name in home:
            try:
                return getattr(import_module(home[name]), name)
            except ModuleNotFoundError as error:
                if missing is None or str(error.name).startswith("surefoot"):
                    raise
                raise missing(f"{package}.{name} needs {error.name}") from None
        if name in where:
            return import_module(where[name])
        return moved.renamed(package, renamed or {})(name)

    return find, lambda: public, public
