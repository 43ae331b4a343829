"""What the row of a study says: its policy, its domain and its options.

>>> stored_options({"threshold": 2.0}, "minimize")
'{"threshold":2.0,"direction":"minimize"}'
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import surefoot
from surefoot.domain import Domain, Space, domain_from_dict
from surefoot.errors import SurefootError
from surefoot.loop import registry
from surefoot.loop.journal import dumps, loads
from surefoot.loop.policy import Policy
from surefoot.loop.registry import policy_named
from surefoot.loop.state import unpack
from surefoot.serve.failures import Conflict, ServiceError

__all__ = [
    "built",
    "domain_of",
    "of_negated",
    "of_the_program",
    "option_errors",
    "options_of",
    "rebuilding",
    "stored_options",
]

T = TypeVar("T")


def of_the_program(name: str) -> bool:
    """Whether a policy was registered by the program that the service runs in: no other process knows it.

    >>> of_the_program("GPUCB")
    False
    """
    kind = registry.defined.get(name)
    if kind is None or kind.__module__.startswith("surefoot."):
        return False
    with contextlib.suppress(ValueError, SurefootError):  # a package's, that cannot be had from the package
        return registry.find_anywhere(name) is not kind
    return True


def domain_of(data: Mapping[str, Any]) -> Domain:
    """Return the domain of a description: ``to_dict()`` of any domain, or the parameters of a space alone.

    >>> domain_of({"parameters": {"depth": {"type": "int", "low": 1, "high": 9}}})
    Space(depth=Int(1, 9))
    """
    return domain_from_dict(data) if "domain" in data else Space.from_dict(data)


def options_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a study's policy.

    >>> options_of({"options": '{"seed": 3}'})
    Traceback (most recent call last):
    ...
    ValueError: 'seed' is not an option of a study's policy
    """
    stored: dict[str, Any] = loads(row["options"])
    for name in ("seed", "journal", "domain", "path"):
        if name in stored:  # before anything is made of them
            raise ValueError(f"{name!r} is not an option of a study's policy")
    options = {name: unpack(value) for name, value in stored.items()}
    early = str(row.get("release", "")).startswith("0.1.")
    if early and "automatic" in policy_named(row["policy"]).__signature__.parameters:
        options.setdefault("automatic", 1)  # 0.1 had one version of what is automatic, and did not say so
    if of_negated(row):
        options = {**policy_named(row["policy"]).negated_options(options), "direction": "minimize"}
    return options


def stored_options(options: Mapping[str, Any] | None, direction: str) -> str:
    """Return the options of a new study as its row keeps them: the direction is one, where it is not the usual.

    >>> stored_options({"threshold": 2.0}, "minimize")
    '{"threshold":2.0,"direction":"minimize"}'
    """
    if "direction" in (options or {}):
        raise ValueError("'direction' stands beside the options of a study, not among them")
    return dumps({**(options or {}), **({} if direction == "maximize" else {"direction": direction})})


def of_negated(row: Mapping[str, Any]) -> bool:
    """Whether the values among the options and the events of a study are those of −f, as before schema 2.

    >>> of_negated({"direction": "minimize", "options": "{}"})
    True
    """
    return row.get("direction") == "minimize" and "direction" not in loads(row["options"])


@contextlib.contextmanager
def option_errors(policy: str) -> Iterator[None]:
    """Whatever a policy says about options it cannot be made of is the sender's to mend.

    >>> with option_errors("GPUCB"):
    ...     {}["kernel"]
    Traceback (most recent call last):
    ...
    ValueError: GPUCB cannot be made of this (KeyError: 'kernel')
    """
    try:
        yield
    except (SurefootError, ValueError, TypeError):
        raise
    except (LookupError, AttributeError, ArithmeticError, AssertionError, RecursionError) as error:
        raise ValueError(f"{policy} cannot be made of this ({type(error).__name__}: {error})") from None


def built(row: Mapping[str, Any]) -> Policy:
    """Make the policy of a study, before its first event.

    >>> built({"policy": "SobolSearch", "domain": '{"domain":"Box","bounds":[[0,1]]}', "options": "{}", "seed": "3"})
    SobolSearch(Box([(0.0, 1.0)]), asked=0, measured=0)
    """
    kind, options = policy_named(row["policy"]), options_of(row)
    seed = int(row["seed"]) if row["seed"] else None
    return kind(domain_of(loads(row["domain"])), **options, seed=seed)


def rebuilding(build: Callable[[Mapping[str, Any]], T]) -> Callable[[Mapping[str, Any]], T]:
    """Say of a study that this release cannot make again which release made it.

    >>> rebuilding(built)({"policy": "OldUCB", "release": "0.1.0", "options": "{}"})
    Traceback (most recent call last):
    ...
    surefoot.serve.failures.Conflict: this study was begun with surefoot 0.1.0, and surefoot ... cannot ...
    """

    def again(row: Mapping[str, Any]) -> T:
        try:
            with option_errors(row["policy"]):
                return build(row)
        except ServiceError:
            raise
        except (SurefootError, ValueError, TypeError) as error:
            who = f"begun with surefoot {row['release']}, and surefoot {surefoot.__version__}"
            raise Conflict(f"this study was {who} cannot go on with it (policy {row['policy']}): {error}") from None

    return again
