"""Names on a command line, and what they stand for: an objective, a policy, its options, a space.

>>> find("math:sqrt")(9.0)
3.0
>>> policy_named("gp-ucb")
<class 'surefoot.policy.ucb.gp_ucb.GPUCB'>
>>> options_from(["width=2.5", "bounds=[0, 1]", "mode=fast"])
{'width': 2.5, 'bounds': [0, 1], 'mode': 'fast'}

Everything that can be wrong here is the user's to correct, and is a ``ValueError`` that says how.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import os
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from surefoot.domain import Space
from surefoot.loop import registry
from surefoot.loop.policy import Policy

__all__ = ["find", "options_from", "policy_named", "space_from"]


def find(target: str) -> Any:
    """Return what ``MODULE:NAME`` stands for.

    ``MODULE`` is a dotted module, looked for in the working directory first, or the path of a Python file, whose folder
    it may import from.

    >>> find("math:squareroot")
    Traceback (most recent call last):
    ...
    ValueError: math has no 'squareroot'; did you mean 'sqrt'?
    """
    where, colon, name = target.rpartition(":")
    if not colon or not where or not name:
        raise ValueError(f"expected MODULE:NAME or FILE.py:NAME, got {target!r}")
    module = _module(where)
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            near = difflib.get_close_matches(part, [n for n in dir(found) if not n.startswith("_")], n=1, cutoff=0.4)
            raise ValueError(f"{where} has no {part!r}{f'; did you mean {near[0]!r}?' if near else ''}")
        found = getattr(found, part)
    return found


def _module(where: str) -> ModuleType:
    path = Path(where)
    by_path = path.suffix == ".py" or os.sep in where or "/" in where
    if by_path and not path.is_file():
        raise ValueError(f"there is no file {where}")
    folder = str(path.resolve().parent) if by_path else os.getcwd()
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return _from_file(path) if by_path else importlib.import_module(where)
    except (Exception, SystemExit) as error:
        missing = isinstance(error, ModuleNotFoundError) and error.name and f"{where}.".startswith(f"{error.name}.")
        if missing and not by_path:
            raise ValueError(f"there is no module {where!r} here ({folder}) or among the installed ones") from error
        raise ValueError(
            f"importing {where} failed: {type(error).__name__}: {error} (surefoot --debug ... shows the traceback)"
        ) from error


def _from_file(path: Path) -> ModuleType:
    file = path.resolve()
    known = sys.modules.get(path.stem)
    if known is not None and getattr(known, "__file__", None) == str(file):
        return known
    spec = importlib.util.spec_from_file_location(path.stem, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    # Registered under its own name, as an import would do (dataclasses and worker processes look it up), but not over a
    # module of the same name that is in use already.
    sys.modules.setdefault(path.stem, module)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        if sys.modules.get(path.stem) is module:
            del sys.modules[path.stem]
        raise
    return module


def policy_named(name: str) -> type[Policy]:
    """Return a policy by its name, however it is spelled, or a policy of your own by ``MODULE:CLASS``.

    >>> policy_named("thompson_sampling").__name__
    'ThompsonSampling'
    >>> policy_named("gradient-descent")
    Traceback (most recent call last):
    ...
    ValueError: there is no policy 'gradient-descent'; there are ..., GPUCB, ...
    """
    found: type[Policy]
    if ":" in name:
        found = find(name)
        if not _is_policy(found):
            raise ValueError(f"{name} is not a policy: {found!r}")
        return found
    return registry.policy_spelled(name)


def _is_policy(value: Any) -> bool:
    return inspect.isclass(value) and issubclass(value, Policy) and value is not Policy


def options_from(words: Sequence[str], policy: Callable[..., Policy] | None = None) -> dict[str, Any]:
    """Return ``key=value`` words as keyword arguments of a policy; a value is read as TOML, else as a plain word.

    >>> from surefoot import GPUCB
    >>> options_from(["initial=5"], GPUCB)
    {'initial': 5}
    >>> options_from(["initial"])
    Traceback (most recent call last):
    ...
    ValueError: an option is written key=value, got 'initial'
    """
    options: dict[str, Any] = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not equals or not key.strip():
            raise ValueError(f"an option is written key=value, got {word!r}")
        try:
            options[key.strip()] = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            options[key.strip()] = text
    if policy is not None:
        known = [name for name in inspect.signature(policy).parameters if name not in ("domain", "seed", "journal")]
        for key in options:
            if key not in known:
                raise ValueError(f"{getattr(policy, '__name__', policy)} has no option {key!r}; it has {known}")
    return options


def space_from(path: str | os.PathLike[str]) -> Space:
    """Read a space from a TOML file: one table per parameter, or the whole of ``Space.to_dict()``.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "space.toml"
    >>> _ = path.write_text('''
    ... [rate]
    ... type = "float"
    ... low = 1e-4
    ... high = 1.0
    ... log = true
    ...
    ... [kernel]
    ... type = "choice"
    ... values = ["rbf", "poly"]
    ... ''')
    >>> space_from(path)
    Space(rate=Float(0.0001, 1.0, log=True), kernel=Choice(['rbf', 'poly']))
    """
    file = Path(path)
    if not file.is_file():
        raise ValueError(f"there is no space file {file}")
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
        return Space.from_dict(data if _whole(data) else {"parameters": data})
    except (ValueError, TypeError) as error:  # tomllib's own error is a ValueError with line and column
        raise ValueError(f"{file}: {error}") from None


def _whole(data: Mapping[str, Any]) -> bool:
    """Whether this is a whole description, not a table of parameters (one of which may be called "parameters")."""
    inside = data.get("parameters")
    if isinstance(data.get("domain"), str):
        return True
    return isinstance(inside, Mapping) and not isinstance(inside.get("type"), str)
