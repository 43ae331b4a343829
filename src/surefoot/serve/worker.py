"""What a worker process does: it keeps policies and works on them, and can be killed without harm.

A worker has no database. A request brings the row of a study and the events its policy has not seen; the answer takes
along what is to be written. Whatever the worker remembers is only a cache: the marks of studies say whether it still
holds, so an answer that was never written is forgotten when the study is next asked for.

Requests and answers are lines of strict JSON, on standard input and output.

>>> row = Live.row("physics", name="beam", policy="SobolSearch", domain={"domain": "Box", "bounds": [[0, 1]]}, seed=0)
>>> row |= {"version": 0, "hash": "", "release": "0.2.0"}
>>> desk = Desk(cached=2)
>>> answer = desk.work({"act": "ask", "body": None, "row": row, "whole": True, "after": 0, "lines": [], "known": None})
>>> answer["answer"][0]["id"], [name for name, _ in answer["writes"]], answer["version"]
(0, ['append'], 1)
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO, cast

from surefoot.loop.journal import dumps, loads
from surefoot.private.messages import Release
from surefoot.serve import outsourced, studies
from surefoot.serve.failures import STATUS, status_of
from surefoot.serve.live import Live, LiveStudy
from surefoot.serve.logs import frames
from surefoot.serve.rows import built, domain_of, option_errors
from surefoot.serve.schemas import AskRequest, Cancel, Measured, Report, Tell, TellMany
from surefoot.serve.store import Mark, Store
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
    "outsourced answer": Measured,
}
"""What a request brings along, where it is more than a number."""


class _Behind(Exception):
    """The request did not bring everything that is needed: all of the study must be sent."""


class _Draft:
    """Stands for the database while a request is worked on: holds what came along and what is to be written."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        self.request = request
        self.writes: list[tuple[str, dict[str, Any]]] = []

    def study(self, _tenant: str, _id: str, _kind: str = "study", *, whole: bool = True) -> dict[str, Any]:
        if whole and not self.request["whole"]:
            raise _Behind
        return dict(self.request["row"])

    def lines(self, _id: str, *, after: int = 0, until: int | None = None) -> list[str]:
        if after < self.request["after"]:
            raise _Behind
        lines: list[str] = self.request["lines"]
        return lines[after - self.request["after"] :]

    def answered(self, _scope: str, _key: str, _request: str) -> Any:
        return self.request["known"]

    def append(self, _id: str, mark: Mark, lines: Sequence[str], **more: Any) -> None:
        self.writes.append(("append", {"mark": list(mark), "lines": list(lines), **more}))

    def update(self, _id: str, **values: Any) -> None:
        self.writes.append(("update", values))


class Desk:
    """The policies of a worker, and what it does with them.

    >>> Desk(cached=2).live.cached
    2
    """

    def __init__(self, *, cached: int) -> None:
        self.live = Live(cast(Store, None), cached=cached)

    def work(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a request, as JSON."""
        draft, row, act = _Draft(request), request["row"], request["act"]
        body = BODIES[act].model_validate_json(request["body"] or "{}") if act in BODIES else request["body"]
        given = () if body is None else (body,)

        def done(study: LiveStudy) -> Any:
            study.writer.store = store
            return ACTS[act](study, *given)

        store = self.live.store = cast(Store, draft)
        answer: dict[str, Any] = {}
        try:
            if act == "seed":
                answer["answer"] = _made(row, request)
            else:
                build = (lambda row: outsourced.modeler(row, _release(request))) if row["kind"] != "study" else None
                answer["answer"] = self.live.use(row["tenant"], row["id"], done, kind=row["kind"], build=build)
        except _Behind:
            return {"behind": True}
        except MemoryError:
            raise
        except Exception as error:
            status = status_of(error)
            if status is None:
                answer["bug"] = frames(error)
            else:
                kind = next(kind for kind in STATUS if isinstance(error, kind))
                answer["refused"] = [status, {"error": kind.__name__, "detail": str(error)[:2000]}]
        return {**answer, "writes": draft.writes, "version": self._version(row["id"])}

    def _version(self, id: str) -> int | None:
        study = self.live.find(id)
        return None if study is None or study.journal is None else study.journal.version


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
