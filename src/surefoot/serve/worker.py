"""What a worker process does: it keeps policies and works on them, and can be killed without harm.

A worker has no database. A request brings the row of a study, the events its policy has not seen, and some jobs; these
are done in order, and the answer takes along what is to be written for all of them together. After a moment of work the
rest of the jobs is left for the next request, so that nobody waits long for what others want. Whatever the worker
remembers is only a cache: the marks of studies say whether it still holds, so an answer that was never written is
forgotten when the study is next asked for.

Requests and answers are lines of strict JSON, on standard input and output.

>>> row = Live.row("physics", name="beam", policy="SobolSearch", domain={"domain": "Box", "bounds": [[0, 1]]}, seed=0)
>>> row |= {"version": 0, "hash": "", "release": "0.2.0"}
>>> desk = Desk(cached=2)
>>> jobs = [{"act": "ask", "body": None}]
>>> answer = desk.work({"jobs": jobs, "row": row, "whole": True, "after": 0, "lines": [], "answers": {}})
>>> answer["done"][0]["answer"][0]["id"], len(answer["writes"]["lines"]), answer["version"]
(0, 1, 1)
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, cast

from surefoot.loop.journal import dumps, loads
from surefoot.private.messages import Release
from surefoot.serve import outsourced, studies
from surefoot.serve.failures import STATUS, status_of
from surefoot.serve.live import Live, LiveStudy
from surefoot.serve.logs import frames
from surefoot.serve.rows import built, domain_of, option_errors
from surefoot.serve.schemas import AskRequest, Cancel, Expire, Measured, Report, Tell, TellMany
from surefoot.serve.store import Mark, Store, answer_to
from surefoot.serve.view import view

__all__ = ["ACTS", "BODIES", "Desk"]


def _view(study: LiveStudy, trials: int) -> dict[str, Any]:
    return study.once(("view", trials), lambda: view(study.policy, trials=trials))


def _seed(study: LiveStudy) -> str:
    return str(study.policy.seed)


ACTS: dict[str, Callable[..., Any]] = {
    "seed": _seed,
    "ask": studies.ask,
    "tell": studies.tell,
    "tell-many": studies.tell_many,
    "report": studies.report,
    "cancel": studies.cancel,
    "expire": studies.expire,
    "recommend": studies.recommend,
    "header": studies.header,
    "view": _view,
    "outsourced ask": outsourced.ask,
    "outsourced answer": outsourced.answer,
    "outsourced close": outsourced.close,
}
"""What can be done with a study in memory."""

BODIES: dict[str, Any] = {
    "ask": AskRequest,
    "tell": Tell,
    "tell-many": TellMany,
    "report": Report,
    "cancel": Cancel,
    "expire": Expire,
    "outsourced answer": Measured,
}
"""What a request brings along, where it is more than a number."""


_MOMENT = 0.02  # seconds of work after which the jobs that are left wait for the next request


class _Behind(Exception):
    """The request did not bring everything that is needed: all of the study must be sent."""


class _Draft:
    """Stands for the database while jobs are done: holds what came along and what is to be written."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        self.request = request
        self.known = {key: tuple(known) for key, known in request["answers"].items()}
        self.written: list[str] = []
        self.mark: Mark | None = None
        self.hash = ""
        self.best: float | None = None
        self.counts: Counter[str] = Counter()
        self.answers: list[dict[str, str]] = []
        self.columns: dict[str, Any] = {}
        self.leases: dict[str, list[Any]] = {}

    def study(self, _tenant: str, _id: str, _kind: str = "study", *, whole: bool = True) -> dict[str, Any]:
        if whole and not self.request["whole"]:
            raise _Behind
        return dict(self.request["row"])

    def lines(self, _id: str, *, after: int = 0, until: int | None = None) -> list[str]:
        if after < self.request["after"]:
            raise _Behind
        lines: list[str] = self.request["lines"]
        return lines[after - self.request["after"] :]

    def answered(self, _scope: str, key: str, request: str) -> Any:
        return answer_to(request, self.known.get(key))

    def append(
        self,
        _id: str,
        mark: Mark,
        lines: Sequence[str],
        *,
        hash: str,
        counts: Mapping[str, int],
        best: float | None = None,
        answered: Sequence[dict[str, str]] = (),
        leases: Mapping[str, Sequence[Any]] | None = None,
    ) -> None:
        for name, some in (leases or {}).items():
            self.leases.setdefault(name, []).extend(some)
        self.mark, self.hash = self.mark or mark, hash
        self.written += lines
        for name, by in counts.items():
            self.counts[name] += by
        self.best = self.best if best is None else best
        self.answers += answered
        self.known |= {one["key"]: (one["request"], one["answer"]) for one in answered}

    def update(self, _id: str, **values: Any) -> None:
        self.columns |= values

    def writes(self) -> dict[str, Any] | None:
        """What the database is to hold, in one transaction."""
        if self.mark is None:
            return {"columns": self.columns} if self.columns else None
        appended = {"mark": list(self.mark), "lines": self.written, "hash": self.hash, "counts": dict(self.counts)}
        return {**appended, "best": self.best, "answered": self.answers, "columns": self.columns, "leases": self.leases}


class Desk:
    """The policies of a worker, and what it does with them.

    >>> Desk(cached=2).live.cached
    2
    """

    def __init__(self, *, cached: int) -> None:
        self.live = Live(cast(Store, None), cached=cached)

    def work(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answers to the jobs of a request, as far as they were done, and what is to be written."""
        draft, row = _Draft(request), request["row"]
        store = self.live.store = cast(Store, draft)

        def work(study: LiveStudy) -> list[dict[str, Any]]:
            study.writer.store = store
            return list(_all(study, request["jobs"]))

        try:
            if row["version"] == 0 and request["jobs"][0]["act"] == "seed":
                return {"done": [_one(lambda: _made(row, request))], "writes": None, "version": None}
            build = (lambda row: outsourced.modeler(row, _release(request))) if row["kind"] != "study" else None
            done = self.live.use(row["tenant"], row["id"], work, kind=row["kind"], build=build)
        except (_Behind, MemoryError) as error:
            if isinstance(error, _Behind):
                return {"behind": True}
            raise
        except Exception as error:  # the policy cannot be made
            done = [_said(error)] * len(request["jobs"])
        study = self.live.find(row["id"])
        version = None if study is None or study.journal is None else study.journal.version
        return {"done": done, "writes": draft.writes(), "version": version}


def _all(study: LiveStudy, jobs: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Do jobs in order, until there are no more, it has taken a moment, or the policy must be made anew."""
    end = time.monotonic() + _MOMENT
    for job in jobs:
        act = job["act"]
        body = BODIES[act].model_validate_json(job["body"] or "{}") if act in BODIES else job["body"]
        given = () if body is None else (body,)
        yield _one(lambda act=act, given=given: ACTS[act](study, *given))  # type: ignore[misc]
        if time.monotonic() >= end or study.journal is None:
            return


def _one(work: Callable[[], Any]) -> dict[str, Any]:
    """What one job gave, or what went wrong."""
    try:
        return {"answer": work()}
    except (_Behind, MemoryError):
        raise
    except Exception as error:
        return _said(error)


def _said(error: Exception) -> dict[str, Any]:
    status = status_of(error)
    if status is None:
        return {"bug": frames(error)}
    kind = next(kind for kind in STATUS if isinstance(error, kind))
    return {"refused": [status, {"error": kind.__name__, "detail": str(error)[:2000]}]}


def _made(row: Mapping[str, Any], request: Mapping[str, Any]) -> str:
    """Make the policy of a new study for the first time; return its seed."""
    with option_errors(row["policy"]):
        if row["kind"] != "study":
            release = _release(request)
            _small_enough(release.rows.shape, request["limits"])
            return str(outsourced.modeler(row, release).policy.seed)
        described = loads(row["domain"])
        domain = domain_of(described)
        points = described.get("points", described.get("values", ()))  # those that are listed
        _small_enough((len(points), max(domain.dimension, domain.encoded_dimension)), request["limits"])
        return str(built(row).seed)


def _small_enough(shape: tuple[int, ...], limits: Mapping[str, int]) -> None:
    for size, name, what in zip(shape, ("candidates", "dimension"), ("points", "dimensions"), strict=True):
        if size > limits[name]:
            raise ValueError(f"this domain has {size} {what}; the service takes {limits[name]} (limit {name!r})")


def _release(request: Mapping[str, Any]) -> Release:
    """What an outsourced run works on; it is sent with the whole of a run only."""
    if request.get("release") is None:
        raise _Behind
    return Release.from_wire(request["release"])


def main() -> None:
    """Work until the server is gone."""
    settings = json.loads(sys.argv[1])
    for name in ("SIGINT", "SIGTERM"):  # meant for the server, which says when it is over
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print is no answer
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(sys.stdin.buffer, requests), daemon=True).start()
    desk = Desk(cached=settings["cached"])
    _bound(settings["memory"])
    _say(answers, {"ready": True})
    while True:
        request = loads(requests.get().decode())
        try:
            _say(answers, desk.work(request))
        except MemoryError:
            _say(answers, {"memory": True})


def _read(source: BinaryIO, requests: queue.SimpleQueue[bytes]) -> None:
    """Take requests in; the end of them, however it came, is the end of this process."""
    for line in source:
        requests.put(line)
    os._exit(0)


def _say(answers: BinaryIO, answer: Mapping[str, Any]) -> None:
    answers.write(dumps(answer).encode() + b"\n")
    answers.flush()


def _bound(memory: int) -> None:
    """Allow so many bytes beyond what this process has already, where the system can do that."""
    if not memory or sys.platform != "linux":
        return
    import resource

    with open("/proc/self/statm") as file:
        taken = int(file.read().split()[0]) * resource.getpagesize()
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    limit = taken + memory if most == resource.RLIM_INFINITY else min(taken + memory, most)
    resource.setrlimit(resource.RLIMIT_AS, (limit, most))
