"""Tokens: who may do what.

A token is ``sf_ID_SECRET``. The secret is 256 random bits, shown once; the database keeps its SHA-256, which is enough
for a secret that nobody can guess. A token belongs to a tenant and has a scope: ``read`` looks, ``write`` also asks and
tells, ``admin`` also makes and revokes the tenant's tokens.

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
from dataclasses import dataclass
from typing import Any

from surefoot.serve.failures import Unauthorized
from surefoot.serve.store import Store, now

__all__ = ["SCOPES", "Caller", "authenticate", "create", "listed"]

SCOPES = ("read", "write", "admin")
"""What a token may do, each more than the one before."""

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


def create(store: Store, tenant: str, name: str, scope: str) -> dict[str, Any]:
    """Make a token and return it, secret included: the only time it can be seen.

    >>> create(Store("sqlite://"), "physics", "x", "owner")
    Traceback (most recent call last):
    ...
    ValueError: scope must be one of read, write, admin; got 'owner'
    """
    if scope not in SCOPES:
        raise ValueError(f"scope must be one of {', '.join(SCOPES)}; got {scope!r}")
    for what, text in (("tenant", tenant), ("name", name)):
        if not 1 <= len(text) <= 200 or not text.isprintable():
            raise ValueError(f"the {what} of a token is 1 to 200 printable characters, got {text[:50]!r}")
    id, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
    row = {"id": id, "tenant": tenant, "name": name, "scope": scope, "created": now(), "revoked": None}
    store.add_token({**row, "digest": _digest(secret)})
    return {**row, "token": f"sf_{id}_{secret}"}


def authenticate(store: Store, token: str) -> Caller:
    """Return whose token it is, or raise :class:`Unauthorized`: the same for unknown, wrong and revoked ones.

    >>> store = Store("sqlite://")
    >>> store.migrate()
    >>> authenticate(store, "sf_0")
    Traceback (most recent call last):
    ...
    surefoot.serve.failures.Unauthorized: this token is not valid
    """
    form = _FORM.fullmatch(token)
    row = store.token(form[1]) if form else None
    kept = row["digest"] if row else "0" * 64
    same = hmac.compare_digest(_digest(form[2] if form else ""), kept)
    if row is None or not same or row["revoked"] is not None:
        raise Unauthorized("this token is not valid", status=401)
    return Caller(row["id"], row["tenant"], row["scope"])


def listed(row: dict[str, Any]) -> dict[str, Any]:
    """Return what a list shows of a token.

    >>> listed({"id": "1", "tenant": "a", "name": "n", "scope": "read", "created": "", "revoked": None, "digest": "x"})
    {'id': '1', 'tenant': 'a', 'name': 'n', 'scope': 'read', 'created': '', 'revoked': None}
    """
    return {key: row[key] for key in ("id", "tenant", "name", "scope", "created", "revoked")}


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
