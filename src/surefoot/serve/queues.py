"""Requests for a study wait in a queue; those that wait are worked out in order, written together, and then answered.

One transaction makes durable whatever waited while the one before was written: a database that can commit so many times
a second serves many times as many requests. Each answer goes out after the commit that holds its events and, under its
key, the answer itself. Whoever never gets it sends the request again, and gets it then. Waiting costs no thread.

An ask of a model is a batch of its own: it may take as long as ever, and is written as soon as it is done. Of what is
short a worker leaves to the next batch what it has not begun after a moment of work. When a batch cannot be done, its
requests are tried one by one, so that one of them cannot fail the others.

>>> from surefoot.serve.service import Service
>>> Service(Store("sqlite://"), Settings()).queues.size
0
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from surefoot.serve.failures import Unavailable, again
from surefoot.serve.metrics import Metrics
from surefoot.serve.outsourced import Releases
from surefoot.serve.pool import ModelBug, Pool, Worker
from surefoot.serve.quotas import Quotas
from surefoot.serve.settings import Settings
from surefoot.serve.store import Mark, Moved, Store
from surefoot.serve.threads import Threads

__all__ = ["Job", "Place", "Queues", "answered"]

log = logging.getLogger("surefoot.serve")

Place = tuple[str, str, str]
"""Whose study, which, and of what kind."""

LARGEST = 256
"""Requests in one batch."""

_BYTES = 1_000_000  # of their bodies
_TRIES = 40
_REMEMBERED = 10_000
_EASY = ("RandomSearch", "SobolSearch")  # their asks are short
_LOOKS = ("recommend", "header", "view", "outsourced close")  # these store nothing


@dataclass(eq=False)
class Job:
    """A request that waits, or is being worked out.

    >>> Job("view", 500).begun
    False
    """

    act: str
    body: Any
    light: bool = False
    begun: bool = False
    since: float = field(default_factory=time.monotonic)
    answer: asyncio.Future[Any] | None = None

    def __post_init__(self) -> None:
        model = isinstance(self.body, BaseModel)
        self.text = self.body.model_dump_json(exclude_unset=True) if model else None
        self.key = getattr(self.body, "key", None)

    def done(self, answer: Any) -> None:
        """Answer, if somebody still waits."""
        if self.answer is not None and not self.answer.done():
            self.answer.set_result(answer)

    def failed(self, error: BaseException) -> None:
        """Say what went wrong, if somebody still waits."""
        if self.answer is not None and not self.answer.done():
            self.answer.set_exception(error)


class Queues:
    """The queues of all studies that somebody waits for; nothing is kept of the others.

    Parameters
    ----------
    store : Store
        The database.
    pool : Pool
        Where policies are.
    quotas : Quotas
        Who may store more.
    settings : Settings
        How long a request may wait.
    writes : Threads
        Where batches are written.
    metrics : Metrics
        What is counted.
    here : callable
        Does a request whose policy no other process knows; False where that is not so.
    """

    def __init__(
        self,
        store: Store,
        pool: Pool,
        quotas: Quotas,
        settings: Settings,
        *,
        writes: Threads,
        metrics: Metrics,
        here: Callable[[Place, Job], Awaitable[bool]],
    ) -> None:
        self.store, self.pool, self.quotas, self.settings = store, pool, quotas, settings
        self.writes, self.metrics, self.here = writes, metrics, here
        self._easy: OrderedDict[str, None] = OrderedDict()  # studies whose asks are short
        self._waiting: dict[Place, deque[Job]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def size(self) -> int:
        """Studies that somebody waits for."""
        return len(self._waiting)

    def learn(self, id: str, policy: str) -> None:
        """Remember which studies have a policy whose asks are short."""
        if policy in _EASY and id not in self._easy:
            self._easy[id] = None
            while len(self._easy) > _REMEMBERED:
                self._easy.popitem(last=False)

    async def use(self, tenant: str, id: str, act: str, body: Any = None, *, light: bool, kind: str) -> Any:
        """Do something with a study, in turn; return the answer when it is durable."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()
        job = Job(act, body, light, answer=answer)
        place = (tenant, id, kind)
        if (queue := self._waiting.get(place)) is not None:
            queue.append(job)
        else:
            self._waiting[place] = deque([job])
            task = loop.create_task(self._serve(place))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        timer = loop.call_later(self.settings.wait, _waited, job)
        try:
            return await answer
        finally:
            timer.cancel()

    async def _serve(self, place: Place) -> None:
        """Work until nobody waits for this study."""
        queue, alone = self._waiting[place], 0
        batch: list[Job] = []
        try:
            while True:
                batch = self._batch(place[1], queue, 1 if alone else LARGEST)
                if not batch:
                    return
                try:
                    left = await self._done(place, batch)
                except Unavailable as error:
                    if len(batch) > 1 and error.after > 1:  # one of them took too much: which one?
                        alone, left = len(batch), batch
                    else:
                        left = _all_failed(batch, error)
                except Exception as error:
                    left = _all_failed(batch, error)
                else:
                    alone = max(alone - len(batch), 0)
                for job in reversed(left):
                    job.begun = False
                    queue.appendleft(job)
        finally:
            del self._waiting[place]
            _all_failed([*batch, *queue], Unavailable("the service is stopping"))

    def _batch(self, id: str, queue: deque[Job], most: int) -> list[Job]:
        """Take the next requests that workers of one kind can do."""
        batch: list[Job] = []
        size, late = 0, time.monotonic() - self.settings.wait
        while queue and len(batch) < most and size < _BYTES:
            job = queue[0]
            if job.answer is None or job.answer.done():
                queue.popleft()  # nobody waits for it any more
                continue
            if job.since < late:
                _waited(queue.popleft())
                continue
            if batch and not self._together(id, batch[0], job):
                break
            job.begun = True
            size += 0 if job.text is None else len(job.text)
            batch.append(queue.popleft())
        return batch

    def _together(self, id: str, first: Job, job: Job) -> bool:
        """Whether two requests can be in one batch; an ask of a model has its limits of time and memory to itself."""
        same = (first.light and job.light) or id in self._easy
        alike = all((first.act in acts) == (job.act in acts) for acts in (_LOOKS, ("expire",)))
        return same and alike

    async def _done(self, place: Place, batch: list[Job]) -> list[Job]:
        """Work a batch out, write it and answer; return the requests that were left for later."""
        tenant, id, _ = place
        began = time.monotonic()
        if await self.here(place, batch[0]):
            return batch[1:]
        for attempt in range(_TRIES):
            short = True if id in self._easy else None if batch[0].light else False
            worked = await self.pool.run(tenant, id, lambda worker: self._send(worker, place, batch), short=short)
            try:
                wrote = time.monotonic()
                if worked["writes"] is not None:
                    await self.writes.run(self._written, id, worked["writes"])
                    self.metrics.observe("commit_seconds", time.monotonic() - wrote)
                break
            except Moved:
                if attempt > 2:
                    await asyncio.sleep(random.uniform(0.0, 0.02 * min(attempt, 10)))
        else:
            raise Unavailable("too many servers write to this study at once; try again in a moment")
        done = worked["done"]
        self.metrics.observe("batch_requests", len(done))
        for job, said in zip(batch, done, strict=False):
            self.metrics.observe("wait_seconds", max(began - job.since, 0.0))
            try:
                job.done(answered(said))
            except Exception as error:
                job.failed(error)
        return batch[len(done) :]

    def _send(self, worker: Worker, place: Place, batch: Sequence[Job]) -> dict[str, Any]:
        """Send a batch to a worker, with the events it has not seen, or all it needs to make the policy anew."""
        tenant, id, kind = place
        held = worker.held.get(id)
        with self.store.reading():
            row = self.store.study(tenant, id, kind, whole=False)
            if batch[0].act not in (*_LOOKS, "expire"):
                self.quotas.room(tenant)
            known = self.store.answers(id, [job.key for job in batch if job.key is not None])
            new = (
                self.store.lines(id, after=held, until=row["version"])
                if held is not None and held < row["version"]
                else []
            )
        self.learn(id, row["policy"])
        jobs = [{"act": job.act, "body": job.body if job.text is None else job.text} for job in batch]
        request: dict[str, Any] = {"jobs": jobs, "row": row, "answers": known}
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

    def _written(self, id: str, writes: Mapping[str, Any]) -> None:
        """Write what a batch gave, in one transaction."""
        if "mark" not in writes:
            self.store.update(id, **writes["columns"])
            return
        given = dict(writes)
        self.store.append(id, Mark(*given.pop("mark")), given.pop("lines"), **given)


def answered(done: Mapping[str, Any]) -> Any:
    """Return what a worker answered, or raise the error that it met.

    >>> answered({"answer": {"version": 3}})
    {'version': 3}
    """
    if "refused" in done:
        raise again(*done["refused"])
    if "bug" in done:
        log.error("bug in a worker", extra={"fields": done["bug"]})
        raise ModelBug(done["bug"]["exception"])
    return done["answer"]


def _waited(job: Job) -> None:
    """Tell somebody who has waited long enough to come again."""
    if not job.begun:
        job.failed(Unavailable("the service is busy; try again in a moment"))


def _all_failed(batch: Sequence[Job], error: BaseException) -> list[Job]:
    for job in batch:
        job.failed(error)
    return []
