"""Worker processes: where models are made and worked on, so that what takes too long or too much can be ended.

The service itself never makes a policy. A :class:`Pool` has some workers for asks and one for what is short; each of
these lanes serves tenants in turn, and no tenant has all workers of a lane while there are others. A worker is started
when it is first needed, kept warm, and started again after it was killed; whoever waited for it gets an answer from the
next one, or is told to try again.

>>> Pool(Settings(threads=2)).size
0
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import subprocess
import sys
import threading
import weakref
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread

from surefoot.loop.journal import dumps, loads
from surefoot.serve.failures import Unavailable
from surefoot.serve.settings import Settings

__all__ = ["Lane", "ModelBug", "Overrun", "Pool", "Worker"]

T = TypeVar("T")
log = logging.getLogger("surefoot.serve")

_STARTING = 60.0  # seconds until a new worker must be there
_SHORT = 5.0  # seconds that what is short may take
_WAITING = 1000  # requests that may wait in a lane
_REMEMBERED = 10_000  # studies of which tells are not short
_START = "import json, sys; sys.path[:] = json.loads(sys.argv[2]); from surefoot.serve.worker import main; main()"


class ModelBug(Exception):
    """A worker met an error that nobody raised on purpose; the log has the places.

    >>> raise ModelBug("LinAlgError")
    Traceback (most recent call last):
    ...
    surefoot.serve.pool.ModelBug: LinAlgError
    """


class Overrun(Exception):
    """The work took longer than it may, and was ended."""


class _Gone(Exception):
    """The process ended before it answered; ``why`` where that is known."""

    def __init__(self, why: str = "") -> None:
        super().__init__(why)
        self.why = why


class Worker:
    """One process, used by one request at a time.

    >>> worker = Worker(cached=2, memory=0)
    >>> worker.start()
    >>> worker.ready()
    >>> worker.stop()
    """

    def __init__(self, *, cached: int, memory: int) -> None:
        self.cached, self.memory = cached, memory
        self.process: subprocess.Popen[bytes] | None = None
        self.held: OrderedDict[str, int] = OrderedDict()  # versions of the studies it has in memory, as far as we know
        self.overrun = self.greeted = False
        self._guard = threading.Lock()

    def start(self) -> None:
        """Start the process, if there is none."""
        if self.process is None:
            settings = json.dumps({"cached": self.cached, "memory": self.memory})
            process = subprocess.Popen(
                [sys.executable, "-c", _START, settings, json.dumps(sys.path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,  # whatever a library prints there may quote data
            )
            self.process, self.overrun, self.greeted = process, False, False
            self._last = weakref.finalize(self, _end, process)

    def exchange(self, request: dict[str, Any]) -> dict[str, Any]:
        """Send a request and return the answer."""
        answer = self._roundtrip(request)
        if "memory" in answer:
            self.stop()
            raise _Gone(f"needs more than the {self.memory >> 20} MiB of memory that it may have")
        return answer

    def ready(self) -> None:
        """Wait until a process that was started can work."""
        if not self._listen().get("ready"):
            raise _Gone
        self.greeted = True

    def _roundtrip(self, request: dict[str, Any]) -> dict[str, Any]:
        process = self.process
        if process is None or process.stdin is None:
            raise _Gone
        try:
            process.stdin.write(dumps(request).encode() + b"\n")
            process.stdin.flush()
        except (OSError, ValueError):
            self.stop()
            raise _Gone from None
        return self._listen()

    def _listen(self) -> dict[str, Any]:
        process = self.process
        try:
            line = b"" if process is None or process.stdout is None else process.stdout.readline()
        except (OSError, ValueError):
            line = b""
        if not line.endswith(b"\n"):
            self.stop()
            raise _Gone
        answer: dict[str, Any] = loads(line.decode())
        return answer

    def hold(self, id: str, version: int | None) -> None:
        """Note that the process has a study in memory."""
        self.held.pop(id, None)
        if version is not None:
            self.held[id] = version
            while len(self.held) > self.cached:
                self.held.popitem(last=False)

    def end(self) -> None:
        """Kill the process that works too long; whoever waits for its answer clears up."""
        self.overrun = True
        if (process := self.process) is not None:
            process.kill()

    def stop(self) -> None:
        """Kill the process, if there is one."""
        with self._guard:
            process, self.process = self.process, None
            self.held.clear()
        if process is not None:
            self._last.detach()
            _end(process)


def _start(worker: Worker) -> None:
    worker.start()
    worker.ready()


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):
            if pipe is not None:
                pipe.close()


class Lane:
    """Some workers and those who wait for them: tenants in turn, the one with the fewest at work first.

    >>> Lane(3, cached=2, memory=0, seconds=1.0, patience=1.0).share
    2
    """

    def __init__(self, size: int, *, cached: int, memory: int, seconds: float, patience: float) -> None:
        self.free = [Worker(cached=cached, memory=memory) for _ in range(size)]
        self.workers = list(self.free)
        self.share = max(size - 1, 1)  # of the workers, for one tenant
        self.seconds, self.patience = seconds, patience
        self.closed = False
        self._running: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[tuple[asyncio.Future[Worker], str]]] = OrderedDict()

    async def run(self, tenant: str, id: str, job: Callable[[Worker], T]) -> T:
        """Let a worker do a job for a study; once more if its process was lost."""
        for attempt in range(2):
            async with self._worker(tenant, id) as worker:
                try:
                    return await self._work(worker, job)
                except _Gone as gone:
                    log.warning("a worker was lost", extra={"fields": {"reason": gone.why or "killed"}})
                    if attempt:
                        raise Unavailable(f"this {gone.why or 'was interrupted'}; try again later", after=30) from None
        raise AssertionError  # pragma: no cover

    def idle(self, tenant: str, id: str) -> bool:
        """Whether a worker that has the study in memory is free at once."""
        return self._running[tenant] < self.share and any(id in worker.held for worker in self.free)

    async def _work(self, worker: Worker, job: Callable[[Worker], T]) -> T:
        loop = asyncio.get_running_loop()
        if worker.process is not None and worker.process.poll() is not None:
            worker.stop()
        if not worker.greeted or worker.process is None:
            await self._timed(loop, _STARTING, worker, _start)
        return await self._timed(loop, self.seconds, worker, job)

    async def _timed(
        self, loop: asyncio.AbstractEventLoop, seconds: float, worker: Worker, job: Callable[[Worker], T]
    ) -> T:
        if self.closed:
            raise Unavailable("the service is stopping")
        end = loop.call_later(seconds, worker.end)
        try:
            return await to_thread.run_sync(job, worker, limiter=CapacityLimiter(1))
        except _Gone:
            if self.closed:
                raise Unavailable("the service is stopping") from None
            if worker.overrun:
                raise Overrun(f"this took longer than {seconds:g} seconds and was ended; nothing changed") from None
            raise
        finally:
            end.cancel()

    @contextlib.asynccontextmanager
    async def _worker(self, tenant: str, id: str) -> AsyncIterator[Worker]:
        """A worker of one's own for a while, if possible one that has the study in memory."""
        if self.free and self._running[tenant] < self.share:
            worker = self._take(tenant, id)
        else:
            worker = await self._wait(tenant, id)
        try:
            yield worker
        finally:
            self._give_back(tenant, worker)

    async def _wait(self, tenant: str, id: str) -> Worker:
        if sum(map(len, self._waiting.values())) >= _WAITING:
            raise Unavailable("the service is busy; try again in a moment")
        turn: asyncio.Future[Worker] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(tenant, deque()).append((turn, id))
        try:
            async with asyncio.timeout(self.patience):
                return await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():
                self._give_back(tenant, turn.result())
            if isinstance(error, TimeoutError):
                raise Unavailable("the service is busy; try again in a moment") from None
            raise
        finally:
            turn.cancel()

    def _take(self, tenant: str, id: str) -> Worker:
        worker = max(self.free, key=lambda worker: (id in worker.held, worker.process is not None))
        self.free.remove(worker)
        self._running[tenant] += 1
        return worker

    def _give_back(self, tenant: str, worker: Worker) -> None:
        self.free.append(worker)
        self._running[tenant] -= 1
        if not self._running[tenant]:
            del self._running[tenant]
        while self.free:
            ready = [tenant for tenant in self._waiting if self._running[tenant] < self.share]
            if not ready:
                return
            tenant = min(ready, key=lambda tenant: self._running[tenant])
            queue = self._waiting.pop(tenant)
            turn, id = queue.popleft()
            if queue:
                self._waiting[tenant] = queue  # behind the others
            if not turn.done():
                turn.set_result(self._take(tenant, id))

    def close(self) -> None:
        """End all workers; whoever waits for one is told to try again."""
        self.closed = True
        for worker in self.workers:
            worker.stop()


class Pool:
    """All worker processes of a server.

    >>> pool = Pool(Settings(threads=2))
    >>> len(pool.asks.workers), len(pool.short.workers)
    (2, 1)
    """

    def __init__(self, settings: Settings) -> None:
        shared = {"memory": settings.ask_memory, "cached": settings.cached}
        self.asks = Lane(settings.threads, seconds=settings.ask_seconds, patience=settings.wait, **shared)
        self.short = Lane(1, seconds=min(_SHORT, settings.ask_seconds), patience=settings.wait, **shared)
        self._slow: OrderedDict[str, None] = OrderedDict()

    @property
    def size(self) -> int:
        """Studies in the memory of the workers."""
        return sum(len(worker.held) for lane in (self.asks, self.short) for worker in lane.workers)

    @property
    def ready(self) -> bool:
        """Whether in each lane a process was started, and none has ended by itself."""
        started = [[w.process for w in lane.workers if w.process is not None] for lane in (self.asks, self.short)]
        return not self.asks.closed and all(any(one.poll() is None for one in lane) for lane in started)

    async def run(self, tenant: str, id: str, job: Callable[[Worker], T], *, short: bool | None) -> T:
        """Let a worker do a job for a study; what turns out not to be short is done again where asks are.

        None is short too, but better done by a worker for asks that knows the study, if it has nothing else to do.
        """
        if short is None:
            short = not self.asks.idle(tenant, id)
        if short and id not in self._slow:
            try:
                return await self.short.run(tenant, id, job)
            except Overrun:
                self._slow[id] = None
                while len(self._slow) > _REMEMBERED:
                    self._slow.popitem(last=False)
        try:
            return await self.asks.run(tenant, id, job)
        except Overrun as error:
            raise Unavailable(str(error), after=30) from None

    def start(self) -> None:
        """Start one worker of each lane, so that the first request need not wait for it."""
        for lane in (self.asks, self.short):
            lane.workers[0].start()

    def close(self) -> None:
        """End all workers."""
        for lane in (self.asks, self.short):
            lane.close()
