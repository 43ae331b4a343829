"""The service at work: who is calling, whose turn it is, and where the work is done.

Requests arrive on one event loop. What reads the database runs in some threads, what writes to it in others, and
everything that needs a policy in worker processes (:mod:`surefoot.serve.pool`). Requests for one study wait for each
other on the loop (:mod:`surefoot.serve.queues`), where waiting costs no thread, so neither a busy study nor a database
that cannot be written to holds up the others.

>>> from surefoot.serve.store import Store
>>> Service(Store("sqlite://"), Settings()).live.size
0
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Annotated, Any, TypeVar

from fastapi import Depends, HTTPException, Query, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.responses import JSONResponse

from surefoot.loop.journal import dumps
from surefoot.loop.registry import defined, policy_named
from surefoot.serve.callers import Callers
from surefoot.serve.failures import Unauthorized, Unavailable, status_of
from surefoot.serve.leases import Lease, Leases, LeaseWatch, watching
from surefoot.serve.limits import Buckets
from surefoot.serve.live import Live
from surefoot.serve.metrics import Metrics
from surefoot.serve.outsourced import Releases
from surefoot.serve.pool import Pool
from surefoot.serve.queues import Job, Place, Queues, answered
from surefoot.serve.quotas import Quotas
from surefoot.serve.rows import of_the_program
from surefoot.serve.schemas import ErrorAnswer, Expire
from surefoot.serve.settings import Settings
from surefoot.serve.store import Store
from surefoot.serve.threads import Threads
from surefoot.serve.tokens import Caller
from surefoot.serve.worker import ACTS, Desk

__all__ = ["Administrator", "After", "Json", "Limit", "Reader", "Served", "Service", "Writer", "refusal"]

T = TypeVar("T")
log = logging.getLogger("surefoot.serve")

bearer = HTTPBearer(auto_error=False, description="A token: sf_...")


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
        self.live = Live(store, cached=settings.cached)  # policies that no other process knows
        self.pool = Pool(settings)
        self.quotas = Quotas(store, settings)
        self.metrics = Metrics()
        self.buckets = Buckets(rate=settings.rate, burst=settings.burst)
        self._reads = Threads(16, patience=settings.wait)
        self._writes = Threads(8, patience=settings.wait)
        self._own = Threads(settings.threads, patience=settings.wait)
        self.queues = Queues(
            store, self.pool, self.quotas, settings, writes=self._writes, metrics=self.metrics, here=self._here
        )
        self.leases = Leases(store)
        self.callers = Callers(lambda ids: self.light(store.tokens_named, ids))
        self.closing = False  # the server stops: no new request is begun

    async def light(self, work: Callable[..., T], *given: Any) -> T:
        """Run what reads a little; never held up by what writes."""
        return await self._reads.run(work, *given)

    async def write(self, work: Callable[..., T], *given: Any) -> T:
        """Run what writes."""
        return await self._writes.run(work, *given)

    async def begin(self, caller: Caller, fields: dict[str, Any], key: str | None) -> str:
        """Check a new study by making its policy once, store it, and return its id."""
        tenant = caller.tenant
        if key is not None and (known := await self.light(self.live.known, tenant, key, fields)) is not None:
            return known
        await self.light(self.quotas.begin, tenant)
        row = self.live.row(tenant, **fields)
        row["seed"] = await self.seed(caller, row)
        self.queues.learn(row["id"], row["policy"])
        return await self.write(self.live.enter, row, key, fields)

    async def seed(self, caller: Caller, row: Mapping[str, Any], release: Any = None) -> str:
        """Return the seed of a new study's policy, which is made for this."""
        policy_named(row["policy"])
        row = {**row, "version": 0, "hash": ""}
        request: dict[str, Any] = {"jobs": [{"act": "seed"}], "row": row, "whole": True, "after": 0, "lines": []}
        limits = {"dimension": self.settings.dimension, "candidates": self.settings.candidates}
        request |= {"answers": {}, "release": release, "limits": limits}
        with self.quotas.asking(caller.tenant):
            if of_the_program(row["policy"]):
                done = await self._own.run(Desk(cached=1).work, request)
            else:
                done = await self.pool.run(
                    caller.tenant, row["id"], lambda worker: worker.exchange(request), short=False
                )
        return str(answered(done["done"][0]))

    async def use(
        self, caller: Caller, id: str, act: str, body: Any = None, *, light: bool = False, kind: str = "study"
    ) -> Any:
        """Do something with a study of the caller's, in turn with others who want to; the answer is durable."""
        with contextlib.nullcontext() if light else self.quotas.asking(caller.tenant):
            return await self.queues.use(caller.tenant, id, act, body, light=light, kind=kind)

    async def expire(self, lease: Lease) -> None:
        """Take a query back whose lease has run out."""
        body = Expire(query=lease.query, beat=lease.beat)
        await self.queues.use(lease.tenant, lease.study, "expire", body, light=True, kind="study")

    @contextlib.asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Let leases expire meanwhile."""
        look = self.leases.all
        task = asyncio.create_task(watching(lambda: self.light(look), self.expire, LeaseWatch()))
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _here(self, place: Place, job: Job) -> bool:
        """Work with a policy of the program that the service runs in; False where the policy is not one."""
        if not _of_the_program(len(defined)):
            return False
        tenant, id, kind = place
        try:
            row = await self.light(self.store.study, tenant, id, kind)
            if not of_the_program(row["policy"]):
                return False
            given = () if job.body is None else (job.body,)
            build = Releases(self.store, largest=self.settings.largest_release).build if kind != "study" else None

            def work() -> Any:
                return self.live.use(tenant, id, lambda study: ACTS[job.act](study, *given), kind=kind, build=build)

            job.done(await self._own.run(work))
        except Exception as error:
            job.failed(error)
        return True


@functools.cache
def _of_the_program(_known: int) -> bool:
    """Whether there are policies of the program that the service runs in, by how many policies are known."""
    return any(map(of_the_program, list(defined)))


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


Served = Annotated[Service, Depends(_service)]


async def calling(request: Request, _given: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]) -> Caller:
    """Who is calling, as the guard found out before it read the body."""
    caller: Caller | None = getattr(request.state, "caller", None)
    if caller is None:
        raise Unauthorized("a token is needed: Authorization: Bearer sf_...", status=401)
    return caller


def _needs(scope: str) -> Any:
    async def check(caller: Annotated[Caller, Depends(calling)]) -> Caller:
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
    after = {"Retry-After": str(getattr(error, "after", 1))}
    headers = {401: {"WWW-Authenticate": "Bearer"}, 429: after, 503: after}.get(status)
    if isinstance(error, Unavailable):
        log.warning("unavailable", extra={"fields": {"reason": str(error)}})
    return _answer(status, type(error).__name__, str(error), headers)


def _answer(status: int, error: str, detail: str, headers: Mapping[str, str] | None = None) -> Json:
    detail = detail.encode("utf-8", "replace").decode()[:2000]
    return Json(ErrorAnswer(error=error, detail=detail).model_dump(), status, dict(headers or {}))
