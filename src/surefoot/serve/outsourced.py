"""Outsourced runs: the data stay with their owner, who uploads a release and answers asks by row number.

The service is the modeler (:class:`surefoot.private.Modeler`): it holds the released rows, which the owner made private
before they came here, and a policy on them. A run is ``new`` while its release is being uploaded, then ``open``, then
``closed``.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from surefoot.loop.journal import dumps, loads
from surefoot.loop.registry import policy_named
from surefoot.private.messages import Answer, Release
from surefoot.private.modeler import Modeler
from surefoot.serve.failures import Conflict
from surefoot.serve.live import Live, LiveStudy, digest
from surefoot.serve.rows import option_errors, options_of, stored_options
from surefoot.serve.schemas import Chunk, Measured, NewRun, Start
from surefoot.serve.store import Moved, Store, new_id, now
from surefoot.serve.studies import described
from surefoot.serve.tables import answers, chunks, releases, studies

__all__ = ["KIND", "Releases", "answer", "ask", "close", "modeler"]

KIND = "outsourced"


class Releases:
    """The releases in the database.

    >>> from surefoot.serve.store import Store
    >>> store = Store("sqlite://")
    >>> store.migrate()
    >>> runs = Releases(store, largest=100)
    >>> made = runs.create("physics", NewRun(name="loans", asks=5))
    >>> made["state"], made["asks"]
    ('new', 5)
    """

    def __init__(self, store: Store, *, largest: int) -> None:
        self.store, self.largest = store, largest

    def create(self, tenant: str, body: NewRun) -> dict[str, Any]:
        """Begin a run."""
        policy_named(body.policy)
        request, scope = digest(body.model_dump(exclude={"key"})), f"outsource:{tenant}"
        if body.key is not None and (known := self.store.answered(scope, body.key, request)) is not None:
            return self.described(tenant, known["id"])
        row = {
            "id": new_id(),
            "kind": KIND,
            "tenant": tenant,
            **body.model_dump(include={"name", "policy", "direction"}),
            "domain": "",
            "options": stored_options(body.options, body.direction),
            "seed": "" if body.seed is None else str(body.seed),
            "state": "new",
            "created": now(),
        }
        with option_errors(body.policy):
            options_of(row)
        more: list[Any] = [(releases, {"study": row["id"], "asks": body.asks, "size": 0})]
        if body.key is not None:
            answer = {"scope": scope, "key": body.key, "request": request, "answer": dumps({"id": row["id"]})}
            more.append((answers, answer))
        try:
            self.store.create(row, more=more)
        except Moved:  # the same request, sent again before the first was done
            return self.create(tenant, body)
        return self.described(tenant, str(row["id"]))

    def described(self, tenant: str, id: str) -> dict[str, Any]:
        """Return how a run stands."""
        row = self.store.study(tenant, id, KIND)
        return _described(row, self._release(id))

    def list(self, tenant: str, *, limit: int, after: str | None) -> list[dict[str, Any]]:
        """Return runs, the newest first."""
        rows = self.store.studies(tenant, kind=KIND, limit=limit, after=after)
        with self.store.reading() as connection:
            what = sa.select(releases).where(releases.c.study.in_([row["id"] for row in rows]))
            found = {one["study"]: dict(one) for one in connection.execute(what).mappings()}
        return [_described(row, found[row["id"]]) for row in rows if row["id"] in found]

    def put(self, tenant: str, id: str, part: int, body: Chunk) -> dict[str, Any]:
        """Store one part of the release; the same part again replaces it."""
        self._new(tenant, id)
        try:
            content = base64.b64decode(body.rows, validate=True)
        except (binascii.Error, ValueError):
            raise ValueError("the rows of a chunk are not base64") from None
        if len(content) % 8 or not np.isfinite(np.frombuffer(content, dtype="<f8")).all():
            raise ValueError("the rows of a chunk are finite numbers of 8 bytes each")
        mine = (chunks.c.study == id) & (chunks.c.part == part)
        try:
            with self.store.writing() as connection:
                connection.execute(sa.delete(chunks).where(mine))
                values = {"study": id, "part": part, "size": len(content) // 8, "content": body.rows}
                connection.execute(sa.insert(chunks).values(**values))
                stored = sa.select(sa.func.sum(chunks.c.size)).where(chunks.c.study == id)
                total = connection.execute(stored).scalar_one()
                if total > self.largest:
                    raise ValueError(f"a release has at most {self.largest} numbers")
                connection.execute(sa.update(releases).where(releases.c.study == id).values(size=total))
                size = 11 * total  # 8 bytes of a number are nearly 11 of base64
                connection.execute(sa.update(studies).where(studies.c.id == id).values(bytes=size))
        except IntegrityError:  # the same part, sent again before the first was stored
            return self.put(tenant, id, part, body)
        return {"part": part, "numbers": int(total)}

    def check(self, tenant: str, id: str, body: Start) -> dict[str, Any] | None:
        """Put the parts together and check them; for a run that was started with them before, return how it stands."""
        row = self.store.study(tenant, id, KIND)
        header = {name: value for name, value in body.release.items() if name != "rows"}
        if row["state"] != "new":
            known = self._release(id)
            if (known["sha256"], loads(known["header"])) != (body.sha256, header):
                raise Conflict("this run was started with another release")
            return self.described(tenant, id)
        release = Release.from_wire(self._assembled(id, header, body.sha256))
        asks = self._release(id)["asks"]
        if release.asks != asks:
            raise ValueError(f"this run was begun with {asks} asks, the release says {release.asks}")
        return None

    def whole(self, tenant: str, id: str, body: Start) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return a run and the release it is to be started with, for making its modeler."""
        header = {name: value for name, value in body.release.items() if name != "rows"}
        return self.store.study(tenant, id, KIND), self._assembled(id, header, body.sha256)

    def open(self, tenant: str, id: str, body: Start, seed: str) -> dict[str, Any] | None:
        """Open a run whose release and policy were checked; None where somebody else did meanwhile."""
        header = {name: value for name, value in body.release.items() if name != "rows"}
        with self.store.writing() as connection:
            still = (studies.c.id == id) & (studies.c.state == "new")
            opened = {"state": "open", "seed": seed, "updated": now()}
            done = connection.execute(sa.update(studies).where(still).values(**opened)).rowcount == 1
            if done:
                values = {"header": dumps(header), "sha256": body.sha256}
                connection.execute(sa.update(releases).where(releases.c.study == id).values(**values))
        return self.described(tenant, id) if done else None

    def build(self, row: Mapping[str, Any]) -> Modeler:
        """Return the modeler of a run, before its first event."""
        return modeler(row, Release.from_wire(self.material(row["id"])))

    def material(self, id: str) -> dict[str, Any]:
        """Return the release of a run that was started, as its owner sent it."""
        known = self._release(id)
        if known["header"] is None:
            raise Conflict("this run is not started: upload the release and start it")
        return self._assembled(id, loads(known["header"]), known["sha256"])

    def closed(self, id: str, index: int | None) -> None:
        """Note that a run is over, and which row it named."""
        with self.store.writing() as connection:
            connection.execute(sa.update(releases).where(releases.c.study == id).values(closing=index))
            connection.execute(sa.update(studies).where(studies.c.id == id).values(state="closed", updated=now()))

    def closing(self, tenant: str, id: str) -> dict[str, Any] | None:
        """Return the closing message of a run that is over."""
        if self.store.study(tenant, id, KIND)["state"] != "closed":
            return None
        known = self._release(id)
        return {"schema": 1, "message": "close", "run": loads(known["header"])["run"], "index": known["closing"]}

    def _new(self, tenant: str, id: str) -> dict[str, Any]:
        row = self.store.study(tenant, id, KIND)
        if row["state"] != "new":
            raise Conflict(f"this run is {row['state']}; its release cannot be changed")
        return row

    def _release(self, id: str) -> dict[str, Any]:
        with self.store.reading() as connection:
            return dict(connection.execute(sa.select(releases).where(releases.c.study == id)).mappings().one())

    def _assembled(self, id: str, header: Mapping[str, Any], sha256: str) -> dict[str, Any]:
        """The release, from its header and its parts."""
        what = sa.select(chunks.c.part, chunks.c.content).where(chunks.c.study == id).order_by(chunks.c.part)
        with self.store.reading() as connection:
            parts = connection.execute(what).all()
        if [part.part for part in parts] != list(range(len(parts))):
            raise ValueError(f"chunks are numbered from 0 without gaps, got {[part.part for part in parts][:20]}")
        content = b"".join(base64.b64decode(part.content) for part in parts)
        if hashlib.sha256(content).hexdigest() != sha256:
            raise ValueError("the rows that arrived do not have this SHA-256")
        return {**header, "rows": base64.b64encode(content).decode("ascii")}


def ask(study: LiveStudy) -> dict[str, Any]:
    """Return which row to measure; the same one until it is answered.

    >>> study = _scratch()
    >>> ask(study) == ask(study)
    True
    """
    study.require_open("asking")
    wire: dict[str, Any] = study.made.ask().to_wire()
    return wire


def answer(study: LiveStudy, body: Measured) -> dict[str, Any]:
    """Take an answer in; the same again changes nothing.

    >>> study = _scratch()
    >>> step = ask(study)["step"]
    >>> [answer(study, Measured(step=step, value=1.0))["version"] for _ in range(2)]
    [2, 2]
    """
    study.require_open("answering")
    modeler: Modeler = study.made
    if body.run not in (None, modeler.release.run):
        raise Conflict("this answer is for another run")
    try:
        modeler.tell(Answer(modeler.release.run, body.step, body.value))
    except ValueError:
        if any(o.id == body.step for o in modeler.policy.history):
            raise Conflict(f"step {body.step} was already answered with another value") from None
        raise
    return {"version": study.writer.version}


def close(study: LiveStudy) -> dict[str, Any] | None:
    """Return the message that ends the run, with the row to use; None where the run is over already.

    >>> close(_scratch())["index"] is None  # nothing was measured
    True
    """
    if study.row["state"] == "closed":  # meanwhile, by the same request sent again
        return None
    study.require_open("closing")
    wire: dict[str, Any] = study.made.close().to_wire()
    return wire


def modeler(row: Mapping[str, Any], release: Release) -> Modeler:
    """Make the modeler of a run, before its first event.

    >>> row = {"seed": "0", "policy": "RandomSearch", "options": "{}"}
    >>> modeler(row, Release("k3", np.eye(3), asks=2)).policy.seed
    0
    """
    seed = int(row["seed"]) if row["seed"] else None
    return Modeler(release, policy_named(row["policy"]), **options_of(row), seed=seed)


def _described(row: Mapping[str, Any], release: Mapping[str, Any]) -> dict[str, Any]:
    answered = row["told"] + row["failed"]
    shape = loads(release["header"]).get("shape", [0]) if release["header"] else [0]
    more = {"asks": release["asks"], "step": answered, "answered": answered, "rows": shape[0]}
    return {**described(row, whole=False), **more, "numbers": release["size"], "index": release["closing"]}


def _scratch() -> LiveStudy:
    """A run on three rows, in memory, for trying things out."""
    store = Store("sqlite://")
    store.migrate()
    runs, release = Releases(store, largest=100), Release("scratch", np.eye(3), asks=2)
    id = runs.create("scratch", NewRun(name="scratch", policy="RandomSearch", asks=2, seed=0))["id"]
    wire = release.to_wire()
    content = base64.b64decode(rows := wire.pop("rows"))
    runs.put("scratch", id, 0, Chunk(rows=rows))
    start = Start(release=wire, sha256=hashlib.sha256(content).hexdigest())
    runs.check("scratch", id, start)
    runs.open("scratch", id, start, seed="0")
    return Live(store, cached=1).use("scratch", id, lambda study: study, kind=KIND, build=runs.build)
