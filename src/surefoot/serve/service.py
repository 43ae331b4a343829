"""The service at work: who is calling, whose turn it is, and where the work is done.

Requests arrive on one event loop. What reads the database runs in some threads, what writes to it in others, and
everything that needs a policy in worker processes (:mod:`surefoot.serve.pool`). Requests for one study wait for each
other on the loop, where waiting costs no thread, so neither a busy study nor a database that cannot be written to holds
up the others.

>>> from surefoot.serve.store import Store
>>> Service(Store("sqlite://"), Settings()).live.size
0
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import random
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Annotated, Any, TypeVar

from anyio import CapacityLimiter, to_thread
from fastapi import Depends, HTTPException, Query, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel
from starlette.responses import JSONResponse

from surefoot.loop.journal import dumps
from surefoot.loop.registry import defined, policy_named
from surefoot.serve import studies
from surefoot.serve.failures import Unauthorized, Unavailable, again, status_of
from surefoot.serve.limits import Buckets
from surefoot.serve.live import Live
from surefoot.serve.metrics import Metrics
from surefoot.serve.outsourced import Releases
from surefoot.serve.pool import ModelBug, Pool, Worker
from surefoot.serve.quotas import Quotas
from surefoot.serve.rows import of_the_program
from surefoot.serve.schemas import ErrorAnswer
from surefoot.serve.settings import Settings
from surefoot.serve.store import Mark, Moved, Store
from surefoot.serve.tokens import Caller
from surefoot.serve.worker import ACTS, Desk

__all__ = ["Administrator", "After", "Json", "Limit", "Reader", "Served", "Service", "Writer", "refusal"]

T = TypeVar("T")
log = logging.getLogger("surefoot.serve")

_TRIES = 40
_REMEMBERED = 10_000
_EASY = ("RandomSearch", "SobolSearch")  # their asks are short
_LOOKS = ("recommend", "header", "view", "outsourced close")  # these store nothing
bearer = HTTPBearer(auto_error=False, description="A token: sf_...")


class Json(JSONResponse):
    """Strict JSON, floats exact.

    >>> Json({"value": 0.1}).body
    b'{"value":0.1}'
    """

    def render(self, content: Any) -> bytes:
        """Return the bytes of the body."""
        return dumps(content).encode()


class Threads:
    """A few threads for work of one kind, and a queue that costs none; whoever waits too long is told to try again.

    >>> Threads(2, patience=1.0).patience
    1.0
    """

    def __init__(self, count: int, *, patience: float) -> None:
        self.patience = patience
        self._free = asyncio.Semaphore(count)

    async def run(self, work: Callable[..., T], *given: Any) -> T:
        """Run something in a thread, in turn."""
        await _soon(self._free, self.patience)
        try:
            return await to_thread.run_sync(work, *given, limiter=CapacityLimiter(1))
        finally:
            self._free.release()


async def _soon(lock: asyncio.Semaphore | asyncio.Lock, patience: float) -> None:
    """Take a lock when it is one's turn."""
    if not lock.locked():
        await lock.acquire()
        return
    try:
        async with asyncio.timeout(patience):
            await lock.acquire()
    except TimeoutError:
        raise Unavailable("the service is busy; try again in a moment") from None


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
        self._easy: OrderedDict[str, None] = OrderedDict()  # studies whose asks are short
        self._turns: dict[str, tuple[asyncio.Lock, int]] = {}
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
        self._learn(row["id"], row["policy"])
        return await self.write(self.live.enter, row, key, fields)

    async def seed(self, caller: Caller, row: Mapping[str, Any], release: Any = None) -> str:
        """Return the seed of a new study's policy, which is made for this."""
        policy_named(row["policy"])
        request: dict[str, Any] = {
            "act": "seed",
            "body": None,
            "row": {**row, "version": 0, "hash": ""},
            "whole": True,
            "after": 0,
        }
        limits = {"dimension": self.settings.dimension, "candidates": self.settings.candidates}
        request |= {"lines": [], "known": None, "release": release, "limits": limits}
        with self.quotas.asking(caller.tenant):
            if of_the_program(row["policy"]):
                done = await self._own.run(Desk(cached=1).work, request)
            else:
                done = await self.pool.run(
                    caller.tenant, row["id"], lambda worker: worker.exchange(request), short=False
                )
        return str(_answered(done))

    async def use(
        self, caller: Caller, id: str, act: str, body: Any = None, *, light: bool = False, kind: str = "study"
    ) -> Any:
        """Do something with a study of the caller's, in turn with others who want to."""
        tenant = caller.tenant
        with contextlib.nullcontext() if light else self.quotas.asking(tenant):
            async with self._turn(f"{tenant}/{id}"):
                if _of_the_program(len(defined)):
                    row = await self.light(self.store.study, tenant, id, kind)
                    if of_the_program(row["policy"]):
                        return await self._own.run(self._here, tenant, id, act, body, kind)
                for attempt in range(_TRIES):
                    short = True if id in self._easy else None if light else False
                    done = await self.pool.run(
                        tenant, id, lambda worker: self._send(worker, tenant, id, act, body, kind), short=short
                    )
                    try:
                        if done["writes"]:
                            await self.write(self._written, id, done["writes"])
                        return _answered(done)
                    except Moved:
                        if attempt > 2:
                            await asyncio.sleep(random.uniform(0.0, 0.02 * min(attempt, 10)))
        raise Unavailable("too many servers write to this study at once; try again in a moment")

    def _here(self, tenant: str, id: str, act: str, body: Any, kind: str) -> Any:
        """Work with a policy of the program that the service runs in."""
        given = () if body is None else (body,)
        build = Releases(self.store, largest=self.settings.largest_release).build if kind != "study" else None
        return self.live.use(tenant, id, lambda study: ACTS[act](study, *given), kind=kind, build=build)

    def _send(self, worker: Worker, tenant: str, id: str, act: str, body: Any, kind: str) -> dict[str, Any]:
        """Send a request to a worker, with the events it has not seen, or all it needs to make the policy anew."""
        held = worker.held.get(id)
        with self.store.reading():
            row = self.store.study(tenant, id, kind, whole=False)
            if act not in _LOOKS:
                self.quotas.room(tenant)
            known = studies.known(self.store, id, body)
            new = (
                self.store.lines(id, after=held, until=row["version"])
                if held is not None and held < row["version"]
                else []
            )
        self._learn(id, row["policy"])
        text = body.model_dump_json(exclude_unset=True) if isinstance(body, BaseModel) else body
        request = {"act": act, "body": text, "row": row, "known": known}
        if held is not None and held <= row["version"]:
            done = worker.exchange({**request, "whole": False, "after": held, "lines": new})
            if "behind" not in done:
                worker.hold(id, done["version"])
                return done
        with self.store.reading():
            row = self.store.study(tenant, id, kind)
            request |= {"row": row, "whole": True, "after": 0, "lines": self.store.lines(id, until=row["version"])}
        if len(request["lines"]) != row["version"]:
            raise Unavailable("the events of this study are not all there; try again in a moment")
        if kind != "study":
            request["release"] = Releases(self.store, largest=self.settings.largest_release).material(id)
        done = worker.exchange(request)
        worker.hold(id, done["version"])
        return done

    def _learn(self, id: str, policy: str) -> None:
        """Remember which studies have a policy whose asks are short."""
        if policy in _EASY and id not in self._easy:
            self._easy[id] = None
            while len(self._easy) > _REMEMBERED:
                self._easy.popitem(last=False)

    def _written(self, id: str, writes: Sequence[Any]) -> None:
        for what, given in writes:
            if what == "append":
                self.store.append(id, Mark(*given.pop("mark")), given.pop("lines"), **given)
            else:
                self.store.update(id, **given)

    @contextlib.asynccontextmanager
    async def _turn(self, name: str) -> AsyncIterator[None]:
        """One at a time for each name; nothing is kept of a name that nobody waits for."""
        lock, waiting = self._turns.get(name) or (asyncio.Lock(), 0)
        self._turns[name] = lock, waiting + 1
        try:
            await _soon(lock, self.settings.wait)
            try:
                yield
            finally:
                lock.release()
        finally:
            _, waiting = self._turns[name]
            if waiting == 1:
                del self._turns[name]
            else:
                self._turns[name] = lock, waiting - 1


@functools.cache
def _of_the_program(_known: int) -> bool:
    """Whether there are policies of the program that the service runs in, by how many policies are known."""
    return any(map(of_the_program, list(defined)))


def _answered(done: Mapping[str, Any]) -> Any:
    """What a worker answered, or the error that it met."""
    if "refused" in done:
        raise again(*done["refused"])
    if "bug" in done:
        log.error("bug in a worker", extra={"fields": done["bug"]})
        raise ModelBug(done["bug"]["exception"])
    return done["answer"]


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
