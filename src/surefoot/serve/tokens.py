"""Tokens: who may do what.

A token is ``sf_ID_SECRET``. The secret is 256 random bits, shown once; the database keeps its SHA-256, which is enough
for a secret that nobody can guess. A token belongs to a tenant and has a scope: ``read`` looks, ``write`` also asks and
tells, ``admin`` also makes and revokes the tenant's tokens; ``operator`` also sees the metrics of all tenants, and is
made by whoever has the database. A token may expire, and its secret may be replaced by a new one.

>>> from surefoot.serve.store import Store
>>> store = Store("sqlite://")
>>> store.migrate()
>>> made = create(store, "physics", "the cluster", "write")
>>> authenticate(store, made["token"]).tenant
'physics'
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from surefoot.serve.failures import NotFound, Unauthorized
from surefoot.serve.store import Store, now

__all__ = ["SCOPES", "Caller", "authenticate", "create", "id_of", "judged", "listed", "rotate", "state"]

SCOPES = ("read", "write", "admin", "operator")
"""What a token may do, each more than the one before."""

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_FORM = re.compile(r"sf_([0-9a-f]{16})_([A-Za-z0-9_-]{43})")


@dataclass(frozen=True)
class Caller:
    """Whoever sent a request, as their token tells.

    >>> Caller("1", "physics", "write").may("read")
    True
    """

    token: str
    tenant: str
    scope: str

    def may(self, scope: str) -> bool:
        """Whether the token's scope covers this one."""
        return SCOPES.index(self.scope) >= SCOPES.index(scope)


def create(store: Store, tenant: str, name: str, scope: str, expires: str | None = None) -> dict[str, Any]:
    """Make a token and return it, secret included: the only time it can be seen.

    ``expires`` is how long it is valid, as ``90d``; without it, until it is revoked.

    >>> create(Store("sqlite://"), "physics", "x", "owner")
    Traceback (most recent call last):
    ...
    ValueError: scope must be one of read, write, admin, operator; got 'owner'
    """
    if scope not in SCOPES:
        raise ValueError(f"scope must be one of {', '.join(SCOPES)}; got {scope!r}")
    for what, text in (("tenant", tenant), ("name", name)):
        if not 1 <= len(text) <= 200 or not text.isprintable():
            raise ValueError(f"the {what} of a token is 1 to 200 printable characters, got {text[:50]!r}")
    id, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
    row: dict[str, Any] = {"id": id, "tenant": tenant, "name": name, "scope": scope, "created": now(), "revoked": None}
    row["expires"] = None if expires is None else _after(expires)
    store.add_token({**row, "digest": _digest(secret)})
    return {**row, "token": f"sf_{id}_{secret}"}


def rotate(store: Store, id: str, *, grace: str = "1d", expires: str | None = None) -> dict[str, Any]:
    """Give a token a new secret and return it; the old one goes on for the time of grace, older ones end at once.

    >>> from surefoot.serve.store import Store
    >>> store = Store("sqlite://")
    >>> store.migrate()
    >>> old = create(store, "physics", "the cluster", "write")
    >>> new = rotate(store, old["id"], grace="12h")
    >>> [authenticate(store, one["token"]).token == old["id"] for one in (old, new)]
    [True, True]
    """
    until = _after(grace, 0)
    row = store.token(id)
    if row is None:
        raise NotFound("there is no such token")
    if row["revoked"] is not None:
        raise ValueError(f"token {id} is revoked; make a new one")
    changes = {"previous": row["digest"], "previous_until": until}
    if expires is not None:
        changes["expires"] = _after(expires)
    elif state(row) == "expired":
        raise ValueError(f"token {id} has expired; say how long the new secret is valid, as --expires 90d")
    secret = secrets.token_urlsafe(32)
    store.change_token(id, digest=_digest(secret), **changes)
    return {**listed({**row, **changes}), "token": f"sf_{id}_{secret}", "previous_until": until}


def authenticate(store: Store, token: str) -> Caller:
    """Return whose token it is, or raise :class:`Unauthorized`: the same for unknown, wrong and revoked ones.

    Who holds a secret that was valid until a moment ago is told when it ended.

    >>> store = Store("sqlite://")
    >>> store.migrate()
    >>> authenticate(store, "sf_0")
    Traceback (most recent call last):
    ...
    surefoot.serve.failures.Unauthorized: this token is not valid
    """
    id = id_of(token)
    return judged(token, None if id is None else store.token(id))


def id_of(token: str) -> str | None:
    """Return the id in a token; None of what has not the form of one.

    >>> id_of("sf_0123456789abcdef_" + "x" * 43), id_of("sf_0")
    ('0123456789abcdef', None)
    """
    form = _FORM.fullmatch(token)
    return form[1] if form else None


def judged(token: str, row: Mapping[str, Any] | None) -> Caller:
    """Return whose token it is, given its row in the database.

    >>> judged("sf_0", None)
    Traceback (most recent call last):
    ...
    surefoot.serve.failures.Unauthorized: this token is not valid
    """
    form = _FORM.fullmatch(token)
    given, none = _digest(form[2] if form else ""), "0" * 64
    new = hmac.compare_digest(given, row["digest"] if row else none)
    old = hmac.compare_digest(given, (row["previous"] if row else None) or none)
    if row is None or not (new or old) or row["revoked"] is not None:
        raise Unauthorized("this token is not valid", status=401)
    if old and row["previous_until"] <= now():
        said = f"this token has had a new secret, and the old one ended at {row['previous_until']}; use the new one"
        raise Unauthorized(said, status=401)
    if state(row) == "expired":
        raise Unauthorized(f"this token expired at {row['expires']}; ask for a new one", status=401)
    return Caller(row["id"], row["tenant"], row["scope"])


def listed(row: dict[str, Any]) -> dict[str, Any]:
    """Return what a list shows of a token.

    >>> row = {"id": "1", "tenant": "a", "name": "n", "scope": "read", "created": "", "expires": None, "revoked": None}
    >>> listed({**row, "digest": "x"}) == row
    True
    """
    return {key: row[key] for key in ("id", "tenant", "name", "scope", "created", "expires", "revoked")}


def state(row: Mapping[str, Any]) -> str:
    """Return whether a token is valid.

    >>> state({"expires": "2020-01-01T00:00:00.000+00:00", "revoked": None})
    'expired'
    """
    if row["revoked"] is not None:
        return "revoked"
    return "expired" if row["expires"] is not None and row["expires"] <= now() else "valid"


def _after(duration: str, least: int = 1) -> str:
    """The moment after a duration such as 90d, as the database writes moments."""
    found = re.fullmatch(r"([0-9]{1,5})([smhd])", duration)
    if found is None or int(found[1]) < least:
        raise ValueError(f"a duration is a number and one of s, m, h, d, such as 90d or 12h; got {duration!r}")
    span = timedelta(**{_UNITS[found[2]]: int(found[1])})
    return (datetime.now(UTC) + span).isoformat(timespec="milliseconds")


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
