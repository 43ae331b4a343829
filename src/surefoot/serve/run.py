"""The bodies of ``surefoot serve`` and ``surefoot token``.

>>> listing = tokens(database="sqlite://")
>>> listing
[]
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import ssl
from pathlib import Path
from typing import Any

from surefoot.serve import logs
from surefoot.serve import tokens as tickets
from surefoot.serve.app import create_app
from surefoot.serve.listener import Server
from surefoot.serve.settings import Settings
from surefoot.serve.store import Store

__all__ = ["create_token", "revoke_token", "rotate_token", "serve", "tokens"]

log = logging.getLogger("surefoot.serve")


def serve(
    *,
    database: str,
    host: str = "127.0.0.1",
    port: int = 8000,
    certfile: Path | None = None,
    keyfile: Path | None = None,
    migrate_only: bool = False,
    level: str = "info",
    settings: Settings | None = None,
) -> None:
    """Bring the tables up to date and serve until interrupted.

    >>> serve(database="sqlite://", migrate_only=True)
    >>> serve(database="sqlite://", certfile=Path("server.pem"))
    Traceback (most recent call last):
    ...
    ValueError: TLS needs both a certificate and its key: --certfile and --keyfile
    """
    if (certfile is None) != (keyfile is None):
        raise ValueError("TLS needs both a certificate and its key: --certfile and --keyfile")
    for path in (certfile, keyfile):
        if path is not None and not path.is_file():
            raise ValueError(f"there is no file {path}")
    if certfile is not None:
        try:
            ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(certfile, keyfile)
        except ssl.SSLError as error:
            why = error.reason or error
            raise ValueError(f"{certfile} and {keyfile} are no certificate and its key, in PEM ({why})") from None
    store = Store(database)
    store.migrate()
    if migrate_only:
        store.close()
        return
    _check_address(host, port)

    logs.configure(level)
    log.info(
        "serving", extra={"fields": {"host": host, "port": port, "tls": certfile is not None, "database": store.kind}}
    )
    settings = settings or Settings()
    files = {"ssl_certfile": certfile, "ssl_keyfile": keyfile}
    app = create_app(store, settings)
    app.state.service.pool.start()
    try:
        with contextlib.suppress(KeyboardInterrupt):
            server = Server(app, settings, host=host, port=port, **files)
            server.run()
    finally:
        app.state.service.pool.close()
        store.close()


def _check_address(host: str, port: int) -> None:
    """Refuse an address that cannot be served at; the server itself would only say so in its log."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as trial:
            if os.name == "posix":  # as the server does: an address that was in use a moment ago is free
                trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind(address)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or error
        raise ValueError(f"cannot serve at {host}:{port}: {why}") from None


def create_token(*, database: str, tenant: str, name: str, scope: str, expires: str | None = None) -> dict[str, Any]:
    """Make a token; the tables are made first if they are not there.

    >>> create_token(database="sqlite://", tenant="physics", name="first", scope="admin")["token"][:3]
    'sf_'
    """
    store = Store(database)
    try:
        store.migrate()
        return tickets.create(store, tenant, name, scope, expires)
    finally:
        store.close()


def rotate_token(*, database: str, id: str, grace: str = "1d", expires: str | None = None) -> dict[str, Any]:
    """Give a token a new secret; the old one goes on for the time of grace.

    >>> rotate_token(database="sqlite://", id="0")
    Traceback (most recent call last):
    ...
    surefoot.serve.failures.NotFound: there is no such token
    """
    store = Store(database)
    try:
        store.migrate()
        return tickets.rotate(store, id, grace=grace, expires=expires)
    finally:
        store.close()


def tokens(*, database: str, tenant: str | None = None) -> list[dict[str, Any]]:
    """Return the tokens of a tenant, or of all.

    >>> tokens(database="sqlite://", tenant="physics")
    []
    """
    store = Store(database)
    try:
        store.migrate()
        return [{**tickets.listed(row), "state": tickets.state(row)} for row in store.tokens(tenant)]
    finally:
        store.close()


def revoke_token(*, database: str, id: str) -> None:
    """Revoke a token by its id.

    >>> revoke_token(database="sqlite://", id="0")
    Traceback (most recent call last):
    ...
    surefoot.serve.failures.NotFound: there is no such token
    """
    store = Store(database)
    try:
        store.migrate()
        store.revoke(id)
    finally:
        store.close()
