"""Workers: an objective measured in several places at once, by processes of this machine or by any executor.

A crew starts measurements and hands out messages as they come: a value, the value of an epoch, the end of a run, an
error, or that a worker was lost. It knows nothing of policies. A process that dies takes nothing but its own
measurement with it.

>>> from concurrent.futures import ThreadPoolExecutor
>>> with ThreadPoolExecutor(2) as executor, Hired(executor, lambda x: x * x, 2) as crew:
...     crew.start(0, 3.0)
...     [message] = crew.messages(None)
>>> message.kind, message.content.value
('value', 9.0)
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import socket
import time
import traceback
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, Protocol, Self

from surefoot.errors import SurefootError
from surefoot.loop.events import as_outcome
from surefoot.loop.types import Outcome

__all__ = ["Crew", "Hired", "News", "Processes"]

Objective = Callable[[Any], Any]


@dataclass(frozen=True)
class News:
    """What a crew says of the measurement of a query, and who made it.

    ``kind`` is ``value`` (with an outcome), ``epoch`` (an outcome; the worker waits for an answer where it can),
    ``end`` (of the epochs), ``error`` (an exception), ``lost`` (why) or ``late``.

    >>> News(0, "late", None, "host:17").kind
    'late'
    """

    id: int
    kind: str
    content: Any
    by: str


class Crew(Protocol):
    """What measures: at most ``size`` points at a time."""

    size: int

    def start(self, id: int, point: Any, stops: int | None = None) -> None:
        """Begin to measure a point; ``stops`` is that of a move."""

    def messages(self, timeout: float | None) -> list[News]:
        """Wait for the next messages, for so many seconds at most."""

    def answer(self, id: int, go_on: bool) -> None:
        """Let the run of a query go on after an epoch, or end it."""

    def close(self) -> None:
        """End what is under way, as far as that is possible."""


def whoami() -> str:
    """Return a name for the process that measures.

    >>> whoami().endswith(f":{os.getpid()}")
    True
    """
    return f"{socket.gethostname()}:{os.getpid()}"


# -- processes ---------------------------------------------------------------------------------------------------------


class Processes:
    """One process of this machine for each measurement.

    Parameters
    ----------
    objective : callable
        Where the system can fork, any function, a lambda too; elsewhere one that can be pickled.
    size : int
        How many at a time.
    limit : float, optional
        Seconds after which a process is ended, and its measurement late.
    released : callable, optional
        What a forked process does first: let go of what it shares with this one.

    >>> with Processes(lambda x: x + 1.0, 2) as crew:
    ...     crew.start(0, 1.0)
    ...     [message] = crew.messages(None)
    >>> message.content.value
    2.0
    """

    def __init__(
        self, objective: Objective, size: int, limit: float | None = None, released: Callable[[], None] | None = None
    ) -> None:
        self.objective, self.size, self.limit, self.released = objective, size, limit, released
        forks = "fork" in multiprocessing.get_all_start_methods()
        self._context: Any = multiprocessing.get_context("fork" if forks else "spawn")
        if not forks:
            self.released = None  # nothing is shared
        self._running: dict[Any, tuple[int, Any, float]] = {}  # by pipe: query, process, deadline

    def start(self, id: int, point: Any, stops: int | None = None) -> None:
        here, there = self._context.Pipe()
        process = self._context.Process(target=_work, args=(self.objective, point, stops, there, self.released))
        process.start()
        there.close()  # so that the pipe ends with the process
        deadline = float("inf") if self.limit is None else time.monotonic() + self.limit
        self._running[here] = (id, process, deadline)

    def messages(self, timeout: float | None) -> list[News]:
        first = min((deadline for _, _, deadline in self._running.values()), default=float("inf"))
        left = max(0.0, first - time.monotonic())
        waits = min(left, float("inf") if timeout is None else timeout)
        ready = multiprocessing.connection.wait(list(self._running), None if waits == float("inf") else waits)
        found = [self._read(pipe) for pipe in ready]
        now = time.monotonic()
        for pipe, (id, process, deadline) in list(self._running.items()):
            if now > deadline and pipe not in ready:
                found.append(News(id, "late", f"no value within {self.limit:g} s", _name(process)))
                self._end(pipe)
        return found

    def _read(self, pipe: Any) -> News:
        id, process, _ = self._running[pipe]
        try:
            kind, content = pipe.recv()
        except (EOFError, OSError):
            process.join()
            self._end(pipe)
            return News(id, "lost", f"the process ended with exit code {process.exitcode}", _name(process))
        if kind != "epoch":
            self._end(pipe, kill=False)
        return News(id, kind, content, _name(process))

    def answer(self, id: int, go_on: bool) -> None:
        for pipe, (other, _, _) in list(self._running.items()):
            if other == id:
                with contextlib.suppress(OSError):  # it died meanwhile, which is the next message
                    pipe.send(go_on)

    def _end(self, pipe: Any, kill: bool = True) -> None:
        _, process, _ = self._running.pop(pipe)
        pipe.close()
        if kill and process.is_alive():
            process.kill()
        process.join()

    def close(self) -> None:
        for pipe in list(self._running):
            self._end(pipe)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _name(process: Any) -> str:
    return f"{socket.gethostname()}:{process.pid}"


def _work(objective: Objective, point: Any, stops: int | None, pipe: Any, released: Callable[[], None] | None) -> None:
    """What a process does: measure once."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one who started it
    if released is not None:
        released()
    try:
        result = objective(point)
        if not isinstance(result, Generator):
            pipe.send(("value", as_outcome(result, stops)))
            return
        with contextlib.closing(result):
            for value in result:
                pipe.send(("epoch", as_outcome(value)))
                if not pipe.recv():
                    break
        pipe.send(("end", None))
    except (BrokenPipeError, EOFError):
        return  # nobody waits for it any more
    except BaseException as error:
        with contextlib.suppress(OSError):
            pipe.send(("error", portable(error)))


def portable(error: BaseException) -> BaseException:
    r"""Return an exception that can be sent, with the traceback of here as a note.

    >>> portable(ValueError("no")).__notes__
    ['in a worker:\nValueError: no']
    """
    text = "".join(traceback.format_exception(error)).rstrip()
    if isinstance(error, KeyboardInterrupt | SystemExit):
        error = RuntimeError(f"the objective raised {type(error).__name__}({error})")
    try:
        sent: BaseException = pickle.loads(pickle.dumps(error))
    except Exception:
        sent = SurefootError(f"{type(error).__name__}: {error}")
    sent.add_note(f"in a worker:\n{text}")
    return sent


# -- executors ---------------------------------------------------------------------------------------------------------


class Hired:
    """An executor of somebody else: threads, processes, Dask, MPI, Ray.

    Parameters
    ----------
    executor : concurrent.futures.Executor
        It is not shut down here.
    objective : callable
        What the executor can send to its workers.
    size : int
        How many measurements are submitted at a time.
    limit : float, optional
        Seconds from submission after which a measurement is late; what it gives later is not heard.
    """

    def __init__(
        self, executor: concurrent.futures.Executor, objective: Objective, size: int, limit: float | None = None
    ) -> None:
        self.executor, self.objective, self.size, self.limit = executor, objective, size, limit
        self._futures: dict[concurrent.futures.Future[Any], tuple[int, float]] = {}
        self._ready: dict[int, list[News]] = {}  # epochs that are to be judged one by one

    def start(self, id: int, point: Any, stops: int | None = None) -> None:
        future = self.executor.submit(_elsewhere, self.objective, point, stops)
        self._futures[future] = (id, float("inf") if self.limit is None else time.monotonic() + self.limit)

    def messages(self, timeout: float | None) -> list[News]:
        if self._ready:
            return [rest.pop(0) for rest in self._take_ready()]
        first = min((deadline for _, deadline in self._futures.values()), default=float("inf"))
        waits = min(max(0.0, first - time.monotonic()), float("inf") if timeout is None else timeout)
        done, _ = concurrent.futures.wait(
            self._futures, None if waits == float("inf") else waits, concurrent.futures.FIRST_COMPLETED
        )
        found = []
        for future in sorted(done, key=lambda future: self._futures[future][0]):
            id, _ = self._futures.pop(future)
            first_message, *rest = _heard(id, future)
            found.append(first_message)
            if rest:
                self._ready[id] = rest
        now = time.monotonic()
        for future, (id, deadline) in list(self._futures.items()):
            if now > deadline:
                future.cancel()
                del self._futures[future]
                found.append(News(id, "late", f"no value within {self.limit:g} s", "the executor"))
        return found

    def _take_ready(self) -> list[list[News]]:
        found = [rest for rest in self._ready.values() if rest]
        self._ready = {id: rest for id, rest in self._ready.items() if len(rest) > 1}
        return found

    def answer(self, id: int, go_on: bool) -> None:
        if not go_on and id in self._ready:
            self._ready[id] = self._ready[id][-1:]  # the run is over already; its other epochs do not count

    def close(self) -> None:
        for future in self._futures:
            future.cancel()
        self._futures.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _elsewhere(objective: Objective, point: Any, stops: int | None) -> tuple[str, list[Outcome], Any]:
    """What a worker of an executor does: who it is, the outcomes, and an exception or None."""
    try:
        result = objective(point)
        if isinstance(result, Generator):
            return whoami(), [as_outcome(value) for value in result], "epochs"
        return whoami(), [as_outcome(result, stops)], None
    except Exception as error:
        return whoami(), [], portable(error)


def _heard(id: int, future: concurrent.futures.Future[Any]) -> list[News]:
    """What a finished future says, the last message being the end of it."""
    try:
        by, outcomes, ending = future.result()
    except concurrent.futures.CancelledError:
        return [News(id, "lost", "the executor cancelled it", "the executor")]
    except concurrent.futures.BrokenExecutor as error:
        return [News(id, "broken", error, "the executor")]
    except Exception as error:  # the executor's own: a worker that was killed, a function that cannot be sent
        return [News(id, "error", error, "the executor")]
    if isinstance(ending, BaseException):
        return [News(id, "error", ending, by)]
    if ending == "epochs":
        return [*(News(id, "epoch", one, by) for one in outcomes), News(id, "end", None, by)]
    return [News(id, "value", outcomes[0], by)]
