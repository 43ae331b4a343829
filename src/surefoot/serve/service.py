"""The service at work: who is calling, whose turn it is, and where the work is done.

Requests arrive on one event loop. Everything that waits for the database or computes runs in threads, asks and pictures
in a few of their own; requests for one study wait for each other on the loop, where waiting costs no thread, so a busy
study does not hold up the others.

>>> from surefoot.serve.store import Store
>>> Service(Store("sqlite://"), Settings()).live.size
0
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Annotated, Any, TypeVar

from anyio import CapacityLimiter, to_thread
from fastapi import Depends, HTTPException, Query, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.responses import JSONResponse

from surefoot.loop.journal import dumps
from surefoot.serve.failures import Unauthorized, Unavailable, status_of
from surefoot.serve.limits import Buckets
from surefoot.serve.live import Live, LiveStudy
from surefoot.serve.metrics import Metrics
from surefoot.serve.schemas import Failure
from surefoot.serve.settings import Settings
from surefoot.serve.store import Store
from surefoot.serve.tokens import Caller

__all__ = ["Administrator", "After", "Json", "Limit", "Reader", "Served", "Service", "Writer", "refusal"]

T = TypeVar("T")
log = logging.getLogger("surefoot.serve")
_bearer = HTTPBearer(auto_error=False, description="A token: sf_...")


class Json(JSONResponse):
    """Strict JSON, floats exact.

    >>> Json({"value": 0.1}).body
    b'{"value":0.1}'
    """

    def render(self, content: Any) -> bytes:
        """Return the bytes of the body."""
        return dumps(content).encode()


class Service:
    """What all requests share.

    >>> from surefoot.serve.store import Store
    >>> Service(Store("sqlite://"), Settings(rate=0.0)).settings.rate
    0.0
    """

    def __init__(self, store: Store, settings: Settings) -> None:
        self.store, self.settings = store, settings
        self.live = Live(store, cached=settings.cached)
        self.metrics = Metrics()
        self.buckets = Buckets(rate=settings.rate, burst=settings.burst)
        self._heavy: CapacityLimiter | None = None
        self._light: CapacityLimiter | None = None
        self._turns: dict[str, tuple[asyncio.Lock, int]] = {}
        self.closing = False  # the server stops: no new request is begun

    async def light(self, work: Callable[..., T], *given: Any) -> T:
        """Run what is short in a thread."""
        self._light = self._light or CapacityLimiter(32)
        return await to_thread.run_sync(work, *given, limiter=self._light)

    async def heavy(self, work: Callable[..., T], *given: Any) -> T:
        """Run what computes in one of a few threads."""
        self._heavy = self._heavy or CapacityLimiter(self.settings.threads)
        return await to_thread.run_sync(work, *given, limiter=self._heavy)

    async def use(
        self,
        caller: Caller,
        id: str,
        act: Callable[[LiveStudy], T],
        *,
        heavy: bool = False,
        kind: str = "study",
        build: Callable[[Mapping[str, Any]], Any] | None = None,
    ) -> T:
        """Do something with a study of the caller's, in turn with others who want to."""

        def work() -> T:
            return self.live.use(caller.tenant, id, act, kind=kind, build=build)

        async with self._turn(f"{caller.tenant}/{id}"):
            return await (self.heavy(work) if heavy else self.light(work))

    @contextlib.asynccontextmanager
    async def _turn(self, name: str) -> AsyncIterator[None]:
        """One at a time for each name; nothing is kept of a name that nobody waits for."""
        lock, waiting = self._turns.get(name) or (asyncio.Lock(), 0)
        self._turns[name] = lock, waiting + 1
        try:
            async with lock:
                yield
        finally:
            _, waiting = self._turns[name]
            if waiting == 1:
                del self._turns[name]
            else:
                self._turns[name] = lock, waiting - 1


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


Served = Annotated[Service, Depends(_service)]


async def _caller(request: Request, _given: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]) -> Caller:
    """Who is calling, as the guard found out before it read the body."""
    caller: Caller | None = getattr(request.state, "caller", None)
    if caller is None:
        raise Unauthorized("a token is needed: Authorization: Bearer sf_...", status=401)
    return caller


def _needs(scope: str) -> Any:
    async def check(caller: Annotated[Caller, Depends(_caller)]) -> Caller:
        if not caller.may(scope):
            raise Unauthorized(f"this needs a token with scope {scope}", status=403)
        return caller

    return Depends(check)


Reader = Annotated[Caller, _needs("read")]
Writer = Annotated[Caller, _needs("write")]
Administrator = Annotated[Caller, _needs("admin")]
Limit = Annotated[int, Query(ge=1, le=1000)]  # of one page of a list
After = Annotated[str | None, Query(max_length=64, pattern="^[0-9a-f]+$")]  # the last id of the page before


def refusal(error: Exception) -> Json:
    """Return the answer to a request that failed; errors that nobody raised on purpose are raised again.

    >>> refusal(ValueError("n must be positive, got -1")).status_code
    422
    """
    if isinstance(error, HTTPException):
        return _answer(error.status_code, "HTTPException", str(error.detail), error.headers)
    status = status_of(error)
    if status is None:
        raise error
    headers = {401: {"WWW-Authenticate": "Bearer"}, 503: {"Retry-After": "1"}}.get(status)
    if isinstance(error, Unavailable):
        log.warning("unavailable", extra={"fields": {"reason": str(error)}})
    return _answer(status, type(error).__name__, str(error), headers)


def _answer(status: int, error: str, detail: str, headers: Mapping[str, str] | None = None) -> Json:
    detail = detail.encode("utf-8", "replace").decode()[:2000]
    return Json(Failure(error=error, detail=detail).model_dump(), status, dict(headers or {}))
