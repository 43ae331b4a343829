"""Connections: how many there may be, how long a stranger may take, and how the server stops.

A connection *waits* until the head of a request is here, and again after the answer. Whoever waits has a few seconds;
and when there is no room left, who has waited longest is sent away for the newcomer. So a thousand connections on which
nothing arrives keep nobody out: a request whose head arrives at once is answered.

>>> door = Door(2, 2)
>>> [door.enter(guest := Guest("10.0.0.1")) for _ in range(2)], door.size
([True, True], 2)
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import logging
import socket
import time
from collections import Counter
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from surefoot.serve.settings import Settings

__all__ = ["Door", "Guest", "Server", "descriptors"]

log = logging.getLogger("surefoot.serve")

_STUCK = 30.0  # seconds for a caller to take in what is on its way to them
_BACKLOG = 2048
_SAID = b'{"error":"Unavailable","detail":"too many are connected; try again in a moment"}'
_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 2\r\n"
    b"Connection: close\r\nContent-Length: %d\r\n\r\n%s"
) % (len(_SAID), _SAID)


def descriptors() -> int:
    """Return how many files and sockets this process may have open, after asking for as many as it may get.

    >>> descriptors() > 0
    True
    """
    try:
        import resource
    except ImportError:  # Windows has another limit, far away
        return 2**16
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2**16 if hard == resource.RLIM_INFINITY else min(hard, 2**16)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    return 2**16 if soft == resource.RLIM_INFINITY else soft


class Guest:
    """Somebody who is connected.

    >>> Guest("2001:db8::1").address
    '2001:db8::/64'
    """

    def __init__(self, address: str) -> None:
        with contextlib.suppress(ValueError):
            # One subscriber has 2^64 addresses of IPv6.
            if ipaddress.ip_address(address).version == 6:
                address = str(ipaddress.ip_network((address, 64), strict=False))
        self.address = address

    def leave(self) -> None:
        """Be gone, at once."""


class Door:
    """Who is connected, and who leaves when there is no room.

    >>> door = Door(1, 1)
    >>> first, second = Guest("10.0.0.1"), Guest("10.0.0.2")
    >>> door.enter(first), door.enter(second), door.size  # the first waited, and made room
    (True, True, 1)
    >>> door.busy(second)
    >>> door.enter(Guest("10.0.0.3"))
    False
    """

    def __init__(self, most: int, per_address: int) -> None:
        self.most, self.per_address = most, per_address
        self._waiting: dict[Guest, None] = {}  # the longest first
        self._busy: set[Guest] = set()
        self._from: Counter[str] = Counter()

    @property
    def size(self) -> int:
        """How many are connected."""
        return len(self._waiting) + len(self._busy)

    def enter(self, guest: Guest) -> bool:
        """Let somebody in; False if everybody is at work and there is no room."""
        if self._from[guest.address] >= self.per_address and not self.make_room(guest.address):
            return False
        if self.size >= self.most and not self.make_room():
            return False
        self._waiting[guest] = None
        self._from[guest.address] += 1
        return True

    def make_room(self, address: str | None = None) -> bool:
        """Send away who has waited longest, of those from one address if there is one; False if nobody waits."""
        guest = next((one for one in self._waiting if address in (None, one.address)), None)
        if guest is None:
            return False
        self.left(guest)
        guest.leave()
        return True

    def busy(self, guest: Guest) -> None:
        """Somebody has sent a request."""
        if guest in self._waiting:
            del self._waiting[guest]
            self._busy.add(guest)

    def idle(self, guest: Guest) -> None:
        """Somebody has been answered, and may go for others."""
        if guest in self._busy:
            self._busy.remove(guest)
            self._waiting[guest] = None

    def left(self, guest: Guest) -> None:
        """Somebody is gone."""
        if guest in self._waiting or guest in self._busy:
            self._waiting.pop(guest, None)
            self._busy.discard(guest)
            self._from[guest.address] -= 1
            if not self._from[guest.address]:
                del self._from[guest.address]


class _Connection(H11Protocol, Guest):
    """One connection, with a limit of time for whatever the other side has to do."""

    def __init__(self, address: str, door: Door, seconds: float, **given: Any) -> None:
        Guest.__init__(self, address)
        H11Protocol.__init__(self, **given)
        self.app_state = {**self.app_state, "rest": self._rest}
        self._resting = False
        self.door, self.seconds = door, seconds
        self.arriving: asyncio.Task[None] | None = None
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._limit("head", seconds)

    def handle_events(self) -> None:
        super().handle_events()
        self._settle()

    def on_response_complete(self) -> None:
        self._resting = False
        super().on_response_complete()
        self._settle()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.forget()

    def forget(self) -> None:
        for name in list(self._timers):
            self._unlimit(name)
        self.door.left(self)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._limit("write", _STUCK)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._unlimit("write")

    def leave(self) -> None:
        if self.transport is not None:
            self.transport.abort()
        elif self.arriving is not None:
            self.arriving.cancel()

    def _settle(self) -> None:
        """Tell the door, and the clock, whose turn it is."""
        if self.cycle is not None and not self.cycle.response_complete and not self._resting:
            self._unlimit("head")
            self.door.busy(self)
        elif "head" not in self._timers:
            self._limit("head", self.seconds)
            self.door.idle(self)

    def _rest(self) -> None:
        """What is left of a request is not worth a connection that somebody else needs."""
        self._resting = True
        self._settle()

    def _limit(self, name: str, seconds: float) -> None:
        self._unlimit(name)
        self._timers[name] = self.loop.call_later(seconds, self.leave)

    def _unlimit(self, name: str) -> None:
        if (timer := self._timers.pop(name, None)) is not None:
            timer.cancel()


class _Listener:
    """Accepts connections on some sockets; uvicorn takes it for one of asyncio's servers."""

    def __init__(self, server: Server, sockets: list[socket.socket]) -> None:
        self.server, self.sockets = server, sockets
        self.loop = asyncio.get_running_loop()
        self._arriving: set[asyncio.Task[None]] = set()
        self._accepting = [self.loop.create_task(self._accept(one)) for one in sockets]

    async def _accept(self, listening: socket.socket) -> None:
        door = self.server.door
        while True:
            try:
                accepted, peer = await self.loop.sock_accept(listening)
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    log.warning("no descriptors are left", extra={"fields": {"connections": door.size}})
                    door.make_room()
                    await asyncio.sleep(0.05)
                continue  # anything else: the caller has gone meanwhile
            # asyncio does this for sockets that it has made itself; without it answers wait for an acknowledgement.
            with contextlib.suppress(OSError):  # gone already
                accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = self.server.connection(peer[0])
            if not door.enter(connection):
                connection.forget()
                with accepted, contextlib.suppress(OSError):
                    if self.server.config.ssl is None:
                        accepted.send(_FULL)
                continue
            task = self.loop.create_task(self._connect(accepted, connection))
            connection.arriving = task
            self._arriving.add(task)
            task.add_done_callback(self._arriving.discard)
            await asyncio.sleep(0)  # where many come at once, others have their turn too

    async def _connect(self, accepted: socket.socket, connection: _Connection) -> None:
        secure = self.server.config.ssl
        limit = None if secure is None else connection.seconds
        try:
            await self.loop.connect_accepted_socket(
                lambda: connection, accepted, ssl=secure, ssl_handshake_timeout=limit
            )
        except OSError:  # no handshake, or gone
            pass
        finally:
            connection.arriving = None
            if connection.transport is None:
                connection.forget()

    def close(self) -> None:
        """Accept nobody any more."""
        for task in [*self._accepting, *self._arriving]:
            task.cancel()
        for one in self.sockets:
            one.close()

    async def wait_closed(self) -> None:
        """Return when nothing is left to do."""
        await asyncio.gather(*self._accepting, return_exceptions=True)


class Server(uvicorn.Server):
    """uvicorn's server, with a door, and with an answer for everybody when it stops.

    >>> from surefoot.serve import Store, create_app
    >>> server = Server(create_app(Store("sqlite://")), Settings(connections=10), host="127.0.0.1", port=0)
    >>> server.door.most
    10
    """

    def __init__(self, app: FastAPI, settings: Settings, **options: Any) -> None:
        options = {"log_config": None, "access_log": False, "server_header": False, **options}
        super().__init__(uvicorn.Config(app, http="h11", ws="none", timeout_graceful_shutdown=2, **options))
        self.app, self.settings, self.service = app, settings, app.state.service
        # The other half is for the database, for workers, and for files.
        self.door = Door(max(min(settings.connections, descriptors() // 2), 1), settings.per_address)

    def connection(self, address: str) -> _Connection:
        """Return the protocol of a new connection."""
        return _Connection(
            address,
            self.door,
            self.settings.head_seconds,
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen."""
        self.app.openapi()  # it takes a while, once: not while somebody waits
        await self.lifespan.startup()
        if self.lifespan.should_exit:
            self.should_exit = True
            return
        listening = sockets or await self._bound()
        for one in listening:
            one.setblocking(False)
        self.servers = [_Listener(self, listening)]  # type: ignore[list-item]
        self.started = True

    async def _bound(self) -> list[socket.socket]:
        """A socket for each address that the host has."""
        host, port = self.config.host, self.config.port
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        made: list[socket.socket] = []
        trouble: OSError | None = None
        for family, _, _, _, address in dict.fromkeys(found):
            try:
                made.append(socket.create_server(address[:2], family=family, backlog=_BACKLOG))
            except OSError as error:
                trouble = error
                if error.errno == errno.EADDRINUSE:
                    break
        if trouble is not None and (not made or trouble.errno == errno.EADDRINUSE):
            for one in made:
                one.close()
            raise ValueError(f"cannot serve at {host}:{port}: {trouble.strerror or trouble}") from None
        return made

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let requests under way come to their end, for a while; answer all others with 503, and stop."""
        self.service.closing = True
        until = time.monotonic() + self.settings.grace
        running = set(self.server_state.tasks)
        while running and not self.force_exit and time.monotonic() < until:
            _, running = await asyncio.wait(running, timeout=0.1)
        self.service.pool.close()  # a task that is cancelled would wait for its worker
        for task in set(self.server_state.tasks):
            task.cancel()  # the guard answers
        await super().shutdown(sockets)
