"""A policy on record: its configuration, its seed and its ordered events, and nothing else.

:class:`Record` keeps these three, writes them to a journal, and rebuilds the object from a state or a journal.
Whatever else an object knows it derives from its events, in :meth:`Record._apply`.

>>> from surefoot import Box, RandomSearch
>>> policy = RandomSearch(Box([(0.0, 1.0)]), seed=1)
>>> policy.tell(policy.ask(), 0.5)
>>> [event["event"] for event in policy.events]
['asked', 'told']
>>> Record.from_state(policy.state()).ask() == policy.ask()
True
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import os
import time
from abc import ABC, ABCMeta, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np

from surefoot.arguments import near
from surefoot.loop import registry
from surefoot.loop.journal import SCHEMA, Journal, check_schema, dumps, loads, write_atomically
from surefoot.loop.state import pack, reader, unpack
from surefoot.loop.streams import fresh_seed, stream

if TYPE_CHECKING:
    from surefoot.loop.policy import Policy

__all__ = ["Record", "load"]

APART = ("seed", "journal")
"""Arguments that are no part of a configuration: the seed stands beside it, a journal is named by the caller alone."""


@contextlib.contextmanager
def _legible() -> Iterator[None]:
    """Whatever somebody has edited so that it cannot be read is a ValueError, with what was looked for."""
    try:
        yield
    except RecursionError:
        raise ValueError("this state is nested too deeply") from None
    except (LookupError, AttributeError, ArithmeticError) as error:
        raise ValueError(f"this state cannot be read ({type(error).__name__}: {error})") from None


class _Meta(ABCMeta):
    """Keeps the arguments an object was made with, and opens its journal once it is complete."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        args = tuple(map(_own, args))
        kwargs = {name: _own(value) for name, value in kwargs.items()}
        signature = inspect.signature(cls)
        if unknown := [name for name in kwargs if name not in signature.parameters]:
            hint = near(unknown[0], list(signature.parameters))
            raise TypeError(f"{cls.__name__}() got an unexpected keyword argument {unknown[0]!r}{hint}")
        bound = signature.bind(*args, **kwargs)
        given = cast(type[Record], cls)._completed(dict(bound.arguments))
        bound.arguments.update(given)
        bound.arguments.update(cast(type[Record], cls)._as_seen(given))
        made = super().__call__(*bound.args, **bound.kwargs)
        bound.arguments.update(given)
        bound.apply_defaults()
        made._arguments = {key: value for key, value in bound.arguments.items() if key not in APART}
        made._open_journal()
        return made


class Record(ABC, metaclass=_Meta):
    """Base of what can be saved, resumed and journaled.

    Parameters
    ----------
    seed : int, optional
        Seed of all random draws; None draws one and stores it.
    journal : path or Journal, optional
        Where every event is durable before the call that made it returns. An existing journal of the same
        configuration is continued.
    """

    registry: ClassVar[dict[str, type[Record]]] = registry.defined
    __signature__: ClassVar[inspect.Signature]
    _arguments: dict[str, Any]

    def __init_subclass__(cls) -> None:
        cls.__signature__ = _full_signature(cls)
        if not cls.__name__.startswith("_"):
            Record.registry[cls.__name__] = cls

    def __init__(self, *, seed: int | None = None, journal: str | os.PathLike[str] | Journal | None = None) -> None:
        if seed is not None and (not isinstance(seed, (int, np.integer)) or isinstance(seed, bool) or seed < 0):
            raise ValueError(f"seed must be a non-negative integer or None, got {seed!r}")
        self._seed = None if seed is None else int(seed)
        self.journal = journal if journal is None or isinstance(journal, Journal) else Journal(journal)
        self._events: list[dict[str, Any]] = []

    @abstractmethod
    def _apply(self, event: Mapping[str, Any]) -> None:
        """Derive what follows from an event that was committed before."""

    def _cache(self) -> dict[str, Any]:
        """Return what is expensive to recompute, JSON-able."""
        return {}

    def _restore(self, cache: dict[str, Any]) -> None:
        """Take back what :meth:`_cache` gave."""

    @classmethod
    def _completed(cls, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments that are made and recorded: what was left open may follow from a journal."""
        return arguments

    @classmethod
    def _as_seen(cls, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments that the constructor gets in another form than they were given in."""
        return {}

    @classmethod
    def negated_options(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options of the same policy on −f; twice gives the first again."""
        return dict(options)

    @property
    def seed(self) -> int:
        """The seed of all random draws."""
        if self._seed is None:
            self._seed = fresh_seed()
        return self._seed

    def stream(self, purpose: str, step: int = 0) -> np.random.Generator:
        """Return the generator of one purpose at one step (see :mod:`surefoot.loop.streams`)."""
        return stream(self.seed, purpose, step)

    @property
    def events(self) -> list[dict[str, Any]]:
        """The ordered events this object consists of."""
        return [dict(event) for event in self._events]

    def config(self) -> dict[str, Any]:
        """Return the constructor's arguments as strict JSON."""
        return {key: pack(value) for key, value in self._arguments.items()}

    def fresh(self, **changes: Any) -> Self:
        """Return an object of the same configuration and seed, but for ``changes``, that has no events and no journal.

        >>> from surefoot import Box, RandomSearch
        >>> RandomSearch(Box([(0.0, 1.0)]), seed=1).fresh(direction="minimize").seed
        1
        """
        return type(self)(**{**self._arguments, "seed": self.seed, **changes})

    def state(self) -> dict[str, Any]:
        """Return the whole policy as strict JSON: configuration, seed, events, cache."""
        return {
            "schema": SCHEMA,
            "policy": type(self).__name__,
            "config": self.config(),
            "seed": self.seed,
            "events": copy.deepcopy(self._events),  # the caller's own
            "cache": self._cache(),
        }

    @classmethod
    @_legible()
    def from_state(cls, state: Mapping[str, Any], **again: Any) -> Self:
        """Rebuild a policy from :meth:`state`; code and large arrays are passed again by name.

        Other options stay as they are stored, but for ``device=``, which may be another one on another machine.

        >>> from surefoot import Box, Policy, RandomSearch
        >>> policy = RandomSearch(Box([(0.0, 1.0)]), seed=1)
        >>> Policy.from_state(policy.state()).ask() == policy.ask()
        True
        """
        check_schema(state, "state")
        if missing := [key for key in ("policy", "config", "seed", "events") if key not in state]:
            raise ValueError(f"this is not a whole state: {missing[0]!r} is missing")
        whole = isinstance(state["policy"], str) and isinstance(state["config"], Mapping)
        if not whole or not isinstance(state["events"], list):
            raise ValueError("this is not a whole state: 'policy' is a name, 'config' a mapping and 'events' a list")
        kind = registry.find(state["policy"])
        if kind is None or not issubclass(kind, cls):
            raise ValueError(f"{state['policy'][:100]!r} is not a registered {cls.__name__}; import its module first")
        journal = again.pop("journal", None)
        unknown = [name for name in again if name not in state["config"]]
        if unknown:
            raise ValueError(f"{state['policy']} has no option {unknown[0]!r}")
        stored = {**state["config"], **{name: again.pop(name) for name in ("device",) if name in again}}
        if apart := [name for name in APART if name in stored]:  # judged before anything is made of them
            raise ValueError(f"{apart[0]!r} is no part of a stored configuration")
        if foreign := [name for name in stored if name not in kind.__signature__.parameters]:
            raise ValueError(f"in this release {state['policy']} has no option {foreign[0]!r}")
        if "automatic" in kind.__signature__.parameters:
            stored = {"automatic": 1, **stored}  # 0.1 had one version of what is automatic, and did not say so
        turns = state["schema"] == 1 and state.get("direction") == "minimize"  # options are those of −f
        given = kind.negated_options(again) if turns else again
        config = {name: _unpack_option(name, value, given.get(name)) for name, value in stored.items()}
        if turns:
            config = {**kind.negated_options(config), "direction": "minimize"}
        policy: Self = kind(**config, seed=state["seed"])
        policy.replay(copy.deepcopy(state["events"]), state.get("cache", {}))
        if journal is not None:
            policy.journal = journal if isinstance(journal, Journal) else Journal(journal)
            found = policy.journal.open({**policy.header(), "policy": state["policy"]}, policy._first_header)
            try:
                if found != policy._events[: len(found)]:
                    raise ValueError(f"{policy.journal.path} holds other events than this policy")
                policy.journal.append(*policy._events[len(found) :])
            except BaseException:
                policy.journal.close()  # others may write it
                raise
        return policy

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy is made again from the same events. It has no journal: that has one writer.
        return _remade, (type(self), self._arguments, self.seed, self.events, self._cache())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write :meth:`state` to a file, atomically."""
        write_atomically(Path(path), dumps(self.state()))

    def header(self) -> dict[str, Any]:
        """Return what the first line of a journal says of this object, but for the schema."""
        return {"policy": type(self).__name__, "config": self.config(), "seed": self.seed}

    def _first_header(self, found: Mapping[str, Any]) -> dict[str, Any]:
        """What schema 1 wrote in a header where this release writes something else; ``found`` is one."""
        return self.header()

    def _open_journal(self) -> None:
        if self.journal is None:
            return
        if self._seed is None:
            found, _ = self.journal.read()
            self._seed = None if found is None else found.get("seed")
        events = self.journal.open(self.header(), self._first_header)
        try:
            self.replay(events)
        except BaseException:
            self.journal.close()  # others may write it
            raise

    def _commit(self, *events: dict[str, Any]) -> None:
        """Make events durable, each with the time of now (seconds since 1970, UTC), then remember them."""
        at = round(time.time(), 3)  # for people and for leases; no decision reads it
        events = tuple({**event, "at": event.get("at", at)} for event in events)
        text = [dumps(event) for event in events]  # refuses what is not strict JSON before anything changes
        if self.journal is not None:
            self.journal.append(*events)
        self._events.extend(loads(line) for line in text)

    def replay(self, events: Sequence[Mapping[str, Any]], cache: Mapping[str, Any] | None = None) -> None:
        """Take events that are on record elsewhere, such as in the table of a host, as if they had happened here.

        They are not written to the journal and draw nothing. An ``asked`` event may be one of a point that somebody
        else chose. What does not fit is a ``ValueError``; the events before it have been taken then, so that this
        object is to be made anew. ``cache`` is that of the :meth:`state` which all the events are from.

        >>> from surefoot import Box, RandomSearch
        >>> policy = RandomSearch(Box([(0.0, 1.0)]), seed=1)
        >>> policy.replay([{"event": "asked", "id": 0, "x": [0.25]}, {"event": "told", "id": 0, "value": 3.5}])
        >>> policy.recommend().mean
        3.5
        """
        for event in events:
            try:
                self._apply(event)
            except (AttributeError, LookupError, TypeError, ValueError) as error:
                raise ValueError(f"event {len(self._events)} does not fit this policy ({error!r})") from error
            self._events.append(dict(event))
        if cache is not None:
            self._restore(dict(cache))

    def close(self) -> None:
        """Release the journal, if there is one."""
        if self.journal is not None:
            self.journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@reader("Policy")
def _made(header: Mapping[str, Any]) -> Record:
    """A policy that another one keeps in its configuration."""
    if not isinstance(header, Mapping) or header.keys() != {"policy", "config", "seed"}:
        raise ValueError("a policy in a configuration is stored as its name, its own configuration and its seed")
    return Record.from_state({"schema": SCHEMA, **header, "events": []})


def _remade(
    kind: type[Record], arguments: dict[str, Any], seed: int, events: list[dict[str, Any]], cache: dict[str, Any]
) -> Record:
    """What unpickling calls."""
    made: Record = kind(**arguments, seed=seed)
    made.replay(events, cache)
    return made


def _full_signature(cls: type) -> inspect.Signature:
    """The constructor's signature with ``**options`` replaced by the options of the class above."""
    found: dict[str, inspect.Parameter] = {}
    for base in cls.__mro__:
        if "__init__" in vars(base):
            _, *own = inspect.signature(vars(base)["__init__"]).parameters.values()
            for parameter in own:
                if parameter.kind is not parameter.VAR_KEYWORD:
                    found.setdefault(parameter.name, parameter)
            if all(parameter.kind is not parameter.VAR_KEYWORD for parameter in own):
                break
    return inspect.Signature(sorted(found.values(), key=lambda parameter: parameter.kind))


def load(path: str | os.PathLike[str], **again: Any) -> Policy:
    """Rebuild a policy from a file written by ``save`` or from a journal; a journal is continued.

    What was not stored is passed again by name, as in :meth:`Policy.from_state`; so is another ``device=``.

    >>> import tempfile, os
    >>> from surefoot import Box, RandomSearch
    >>> path = os.path.join(tempfile.mkdtemp(), "run.json")
    >>> RandomSearch(Box([(0.0, 1.0)]), seed=1).save(path)
    >>> load(path)
    RandomSearch(Box([(0.0, 1.0)]), asked=0, measured=0)
    """
    head = _head(Path(path))
    check_schema(head, "file")
    if "direction" not in head:
        return cast("Policy", Record.from_state(head, **again))
    journal = Journal(path)
    _, events = journal.read()
    return cast("Policy", Record.from_state({**head, "events": events, "cache": {}}, journal=journal, **again))


def _head(path: Path) -> Any:
    """The whole of a saved state, or the first line of a journal; None for a file that is neither."""
    content = path.read_bytes()
    for text in (content.partition(b"\n")[0], content):  # somebody may have spread a state over many lines
        try:
            return loads(text.decode())
        except ValueError:
            continue
    return None


def _own(value: Any) -> Any:
    """A copy of an array, which the caller may go on to change; anything else as it is."""
    return value.copy() if isinstance(value, np.ndarray) else value


def _unpack_option(name: str, stored: Any, given: Any) -> Any:
    try:
        return unpack(stored, given)
    except ValueError as error:
        advice = "" if given is not None else f" (pass it again: {name}=...)"
        raise ValueError(f"option {name!r}: {error}{advice}") from None
