"""Files that version 0.1.0 wrote, for the tests that a later release reads them and goes on as 0.1.0 would have.

Run with 0.1.0, once; a later release must not write them::

    git worktree add /tmp/surefoot-0.1.0 c6c0883
    PYTHONPATH=/tmp/surefoot-0.1.0/src OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python tests/upgrade/v0_1/make.py

Each file is a gzipped JSON; beside what was written stands what 0.1.0 does next.

``policies.json.gz``
    Every policy on every domain that it declares: a saved state with nothing pending, and a journal that goes on from
    there to pending queries. Told, failed, cancelled, reported and received events and warm starts are in each, where
    the policy takes them.
``runs.json.gz``
    Journals of ``optimize`` and ``surefoot tune``, most of them minimized, and what was measured in the user's sign.
``parties.json.gz``
    Ledgers, curators, modelers and coordinators; folders of ``surefoot curate``.
``service.json.gz``
    An SQLite database of the service, with its tokens and what 0.1.0 answers.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from cases import AGAIN, DOMAINS, GIVEN, answer, cases, context, crowd, lived, point, tasks, told, value

import surefoot
from surefoot import Ball, Int, Outcome, Space
from surefoot.federated import Coordinator, Message, SharedFeatures, Weighting
from surefoot.private import (
    Answer,
    Curator,
    GaussianEvent,
    GaussianRelease,
    Ledger,
    Modeler,
    OutputRelease,
    StatedEvent,
)

HERE = Path(__file__).parent


def policies(folder):
    """Every case, with what 0.1.0 does next."""
    for number, (name, kind, build) in enumerate(cases()):
        journal = folder / f"{number}.jsonl"
        policy = build(DOMAINS.get(kind), seed=11, journal=journal)
        settled = lived(policy)
        policy.close()
        again = AGAIN.get(name, {})
        entry = {"name": name, "kind": kind, "state": settled, "journal": journal.read_text(encoding="utf-8")}
        entry.update(following(entry, again, journal))
        yield entry


def following(entry, again, journal):
    """What a release does next with a state and a journal."""
    policy = surefoot.Policy.from_state(json.loads(json.dumps(entry["state"])), **again)
    settled = {"answer": answer(policy), "measured": len(policy.history), "context": context(policy)}
    settled["next"] = point(policy.ask(**settled["context"]))
    with surefoot.load(journal, **again) as policy:
        waiting = {
            "pending": [point(query) for query in policy.pending],
            "reports": {id: list(steps.items()) for id, steps in policy.reports().items()},
            "history": [[o.id, o.x.tolist(), o.outcome.value, o.outcome.values] for o in policy.history],
        }
        if not crowd(policy):
            (query,) = policy.pending
            policy.tell(query, told(policy, query.x))
        waiting["context"] = context(policy)
        waiting["next"] = point(policy.ask(**waiting["context"]))
    return {"settled": settled, "waiting": waiting}


def told_while_pending(folder):
    """Points that were told by their coordinates while their query was pending: 0.1.0 left the query pending."""
    for name, domain in (("GPUCB", DOMAINS["Box"]), ("RandomSearch", Space(n=Int(1, 5)))):
        journal = folder / f"pending-{name}.jsonl"
        with getattr(surefoot, name)(domain, seed=2, journal=journal) as policy:
            first, second = policy.ask(), policy.ask()
            for query in (first, second):
                policy.tell(query.x if query.params is None else query.params, value(domain, query.x))
            policy.tell(second, value(domain, second.x))  # and again, by its number
            history = [[o.id, o.x.tolist(), o.outcome.value] for o in policy.history]
            yield {"policy": name, "journal": journal.read_text(), "pending": [first.id], "history": history}


# -- runs, in the user's sign -----------------------------------------------------------------------------------------

LOSS = """
def loss(params):
    if params["kind"] == "c" and params["depth"] == 6:
        return None
    return 3.0 + (params["depth"] - 3) ** 2 + abs(params["rate"] - 0.1) + (0.5 if params["kind"] == "b" else 0.0)

def curve(params):
    for epoch in range(1, 9):
        yield loss(params) * (1.0 + 0.6 ** epoch)
"""
SPACE = """
[rate]
type = "float"
low = 1e-4
high = 1.0
log = true
[depth]
type = "int"
low = 1
high = 6
[kind]
type = "choice"
values = ["a", "b", "c"]
"""


def bowl(x):
    """What is minimized on a box: 3 at best."""
    return 3.0 + float((np.asarray(x) ** 2).sum())


def runs(folder):
    """Journals of whole runs, with what was measured."""
    from surefoot.lab.tune import tune

    (folder / "objective.py").write_text(LOSS)
    (folder / "space.toml").write_text(SPACE)
    functions = {}
    exec(LOSS, functions)

    def told_to_user(policy, sign):
        seen = [[query_x(policy, o), None if o.failed else sign * o.outcome.value] for o in policy.history]
        best = min((s for s in seen if s[1] is not None), key=lambda s: -sign * s[1])
        return {"history": seen, "best": best[1], "at": best[0]}

    def query_x(policy, o):
        params = policy.domain.params(o.x)
        return o.x.tolist() if params is None else params

    box = DOMAINS["Box"]
    for direction, sign in (("minimize", -1.0), ("maximize", 1.0)):
        for name in ("ExpectedImprovement", "GPUCB", "RandomSearch"):
            journal = folder / f"{direction}-{name}.jsonl"
            kind = getattr(surefoot, name)
            objective = bowl if direction == "minimize" else lambda x: -bowl(x)
            result = surefoot.optimize(objective, box, 7, policy=kind, direction=direction, seed=4, journal=journal)
            truth = told_to_user(result.policy, sign)
            numbers = {n: getattr(result.recommendation, n) for n in ("mean", "lower", "upper")}
            with surefoot.load(journal) as again:
                following = again.ask().x.tolist()
            lines = journal.read_text().splitlines(keepends=True)[:-1]  # that ask is not part of the run
            yield {
                "by": "optimize",
                "direction": direction,
                "policy": name,
                "journal": "".join(lines),
                "recommended": {"x": result.x.tolist(), **numbers},
                "next": following,
                **truth,
            }
    for case, options in {
        "plain": {"trials": 7},
        "epochs": {"trials": 6, "epochs": 8},
        "transfer": {"trials": 6, "transfer": [folder / "tune-plain.jsonl"]},
    }.items():
        journal = folder / f"tune-{case}.jsonl"
        function = "curve" if case == "epochs" else "loss"
        given = {"space": folder / "space.toml", "direction": "minimize", "seed": 4, "out": None, "quiet": True}
        given |= {"journal": journal, **options}
        with contextlib.redirect_stdout(None):
            result = tune(f"{folder}/objective.py:{function}", **given)
        whole = journal.read_text()
        events = [n for n, line in enumerate(whole.splitlines()) if '"event":"told"' in line]
        cut = "".join(whole.splitlines(keepends=True)[: events[3] + 2])  # four told, the fifth is pending
        yield {
            "by": "tune",
            "case": case,
            "direction": "minimize",
            "policy": type(result.policy).__name__,
            "options": {k: v for k, v in options.items() if k != "transfer"},
            "journal": whole,
            "interrupted": cut,
            "recommended": {"params": result.params, "mean": result.value},
            **told_to_user(result.policy, -1.0),
        }


# -- parties ----------------------------------------------------------------------------------------------------------


def parties(folder):
    """Ledgers, curators, modelers, coordinators."""
    made = {}
    for method in ("pld", "rdp", "moments"):
        with Ledger(epsilon=30.0, delta=1e-5, path=folder / f"{method}.jsonl", method=method) as ledger:
            ledger.charge(GaussianEvent(3.0, 0.5, 2), receiver="first", round=1, share=0.5, final=False, more=None)
            ledger.charge(StatedEvent(0.2, 1e-7), receiver="größer")
            ledger.charge(GaussianEvent(5.0))
            facts = {"head": ledger.head, "spent": ledger.spent(), "entries": len(ledger.entries)}
            made[method] = {"file": ledger.path.read_text(encoding="utf-8"), **facts}
    result = {"ledgers": made}

    rows = np.random.default_rng(3).random((20, 2))
    mechanism = GaussianRelease(epsilon=3.0, delta=1e-5, bounds=[(0.0, 1.0)] * 2)
    curators = []
    for direction, outputs in (("minimize", None), ("maximize", OutputRelease(bounds=(0, 4), epsilon=1.0, delta=1e-5))):
        place = folder / f"{direction}.curator.jsonl"
        keep = folder / f"{direction}-modeler"
        with (
            Ledger(epsilon=9.0, delta=1e-4, path=folder / f"{direction}.ledger.jsonl") as ledger,
            Curator(
                rows, None, mechanism, asks=6, outputs=outputs, direction=direction, ledger=ledger, path=place
            ) as curator,
            Modeler(curator.release(), path=keep, seed=0) as modeler,
        ):
            for _ in range(3):
                asked = modeler.ask()
                record = curator.accept(asked)
                modeler.tell(curator.settle(asked, float(rows[record].sum())))
            waiting = modeler.ask()
            curator.accept(waiting)
        wire = {
            "direction": direction,
            "outputs": outputs is not None,
            "rows": rows.tolist(),
            "ledger": (folder / f"{direction}.ledger.jsonl").read_text(),
            "curator": place.read_text(),
            "modeler": {file.name: file.read_text() for file in keep.iterdir() if file.suffix != ".lock"},
            "waiting": [waiting.step, waiting.index],
            "spent": ledger.spent(),
        }
        with Modeler.load(keep) as modeler:
            modeler.tell(Answer(waiting.run, waiting.step, 0.5))
            wire["next"] = modeler.ask().index
            wire["recommended"] = modeler.recommend().index
        curators.append(wire)
    result["curators"] = curators

    features = SharedFeatures(2, 8, lengthscale=0.2, noise=0.01, seed=0)
    vectors = np.random.default_rng(1).standard_normal((5, 8))
    coordinators = []
    for name, options in {
        "mean": {},
        "regions": {"regions": 2, "weighting": Weighting(high=60.0)},
        "private": {"noise_multiplier": 1.0, "sampling": 0.5},
    }.items():
        journal, private = folder / f"{name}.jsonl", folder / f"{name}.vectors.jsonl"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            ledger = Ledger(epsilon=90.0, delta=1e-4, path=folder / f"{name}.l.jsonl") if name == "private" else None
            make = lambda **files: Coordinator(features, agents=5, ledger=ledger, **options, **files)  # noqa: E731, B023
            with make(journal=journal, vectors=private) as coordinator:
                for agent, vector in enumerate(vectors[:4]):
                    coordinator.collect(Message(agent, 0, features.hash, vector))
                first = coordinator.release(0)
                coordinator.collect(Message(1, 1, features.hash, vectors[4]))
            files = {"journal": journal.read_text(), "vectors": private.read_text()}
            released = {"first": first.to_fields(), "next": None}
            if ledger is not None:
                ledger.close()
                files["ledger"] = ledger.path.read_text()
            else:
                with make(journal=journal, vectors=private) as coordinator:
                    released["next"] = coordinator.release(1).to_fields()
            coordinators.append({"name": name, **files, **released})
    result["coordinators"] = coordinators
    return result


# -- the service ------------------------------------------------------------------------------------------------------

PEOPLE = "name,age\n" + "".join(f"person {i},{20 + i}\n" for i in range(30))
AGES = """
def near(row):
    return abs(row["age"] - 40.0)

def tired(row):
    if row["age"] >= 0 and len(open("measured").read()) >= 3:
        raise RuntimeError("no more today")
    open("measured", "a").write("x")
    return abs(row["age"] - 40.0)
"""


@contextlib.contextmanager
def server(folder, database):
    """``surefoot serve`` in a process of its own."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = [sys.executable, "-c", "from surefoot.cli import main; main()", "serve", "--port", str(port)]
    words += ["--database", f"sqlite:///{database}"]
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log, cwd=folder)
    try:
        url = f"http://127.0.0.1:{port}"
        for _ in range(300):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0):
                break
            time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait()


def studies(client):
    """Several studies, some of them minimized; yield each with what it was told."""
    box = DOMAINS["Box"]
    beam = client.create("beam", box, policy="GPUCB", direction="minimize", seed=1, gp=GIVEN)
    beam.tell([0.5, 1.0], bowl([0.5, 1.0]))
    for query in beam.ask(3):
        beam.tell(query, bowl(query.x))
    beam.tell(beam.ask(), None)
    beam.cancel(beam.ask())
    beam.tell_many([([0.1, 0.2], bowl([0.1, 0.2])), ([1.0, 4.0], Outcome(bowl([1.0, 4.0]), noise=0.01, cost=2.0))])
    beam.ask()
    fitted = client.create("fitted", DOMAINS["Space"], policy="ExpectedImprovement", direction="minimize", seed=2)
    for number in range(6):
        query = fitted.ask()
        fitted.tell(query, 3.0 + number + query.params["depth"])
    epochs = client.create("epochs", box, policy="BOBOS", direction="minimize", seed=3, epochs=8)
    for _ in range(3):
        query = epochs.ask()
        for step in range(1, 4):
            epochs.report(query, step, bowl(query.x) * (1.0 + 0.6**step))
        epochs.tell(query)
    epochs.report(epochs.ask(), 1, 5.0)
    drift = client.create("drift", box, policy="TVGPUCB", seed=4, forgetting=0.05)
    for hour in range(5):
        query = drift.ask(time=float(hour))
        drift.tell(query, -bowl(query.x))
    level = client.create("level", DOMAINS["Candidates"], policy="Straddle", seed=5, threshold=1.8, gp=GIVEN)
    stable = client.create(
        "stable", DOMAINS["Candidates"], policy="StableOpt", direction="minimize", seed=6, perturbation=Ball(0.6)
    )
    for study, sign in ((level, 1.0), (stable, -1.0)):
        for _ in range(4):
            query = study.ask()
            study.tell(query, sign * value(DOMAINS["Candidates"], query.x))
    moves = client.create("moves", DOMAINS["Paths"], policy="MacroGPO", seed=7, horizon=2, samples=8)
    for _ in range(2):
        query = moves.ask()
        moves.tell(query, value(DOMAINS["Paths"], query.x))
    learnt = client.create("learnt", box, policy="RMGPUCB", seed=8, tasks=tasks(box))
    learnt.tell(learnt.ask(), 1.0)
    closed = client.create("closed", box, policy="RandomSearch", direction="minimize", seed=9)
    closed.tell(closed.ask(), 7.0)
    closed.close()
    empty = client.create("empty", box, policy="SobolSearch", direction="minimize", seed=10)
    return [beam, fitted, epochs, drift, level, stable, moves, learnt, closed, empty]


def service(folder):
    """The database, and what 0.1.0 answers."""
    import shutil
    import sqlite3

    from rich.console import Console
    from surefoot.lab.curate import curate

    from surefoot.serve.run import create_token, revoke_token

    database = folder / "service.db"
    url = f"sqlite:///{database}"
    tokens = {
        scope: create_token(database=url, tenant="physics", name=scope, scope=scope)
        for scope in ("admin", "write", "read")
    }
    tokens["revoked"] = create_token(database=url, tenant="physics", name="old", scope="write")
    tokens["other"] = create_token(database=url, tenant="chemistry", name="other", scope="admin")
    revoke_token(database=url, id=tokens["revoked"]["id"])
    people = folder / "people"
    people.mkdir()
    (people / "people.csv").write_text(PEOPLE)
    (people / "ages.py").write_text(AGES)
    (people / "measured").write_text("")
    settings = {"epsilon": 3.0, "delta": 1e-5, "bounds": ["age=18:90"], "asks": 6, "direction": "minimize"}
    settings |= {"look": False, "quiet": True, "console": Console(file=open(os.devnull, "w"))}  # noqa: SIM115
    facts = {}
    with server(folder, database) as address, surefoot.Client(address, token=tokens["write"]["token"]) as client:
        kept = studies(client)
        # A request whose answer was lost is sent again with its key.
        facts["repeated"] = {"id": kept[0].id, "body": {"n": 2, "key": "worker-7"}}
        facts["repeated"]["answer"] = kept[0]._post("ask", facts["repeated"]["body"])
        token = tokens["write"]["token"]
        os.chdir(people)
        done = curate("people.csv", objective="ages.py:near", server=address, token=token, **settings)
        facts["curated"] = {"line": done.line, "value": done.value, "answered": done.answered}
        whole = folder_of(people)
        for file in people.glob("people.csv.*"):
            file.unlink()
        with contextlib.suppress(surefoot.SurefootError):
            given = {"server": address, "token": token, "stop_on_error": True}
            curate("people.csv", objective="ages.py:tired", **given, **settings)
        part = folder_of(people)
        os.chdir(folder)
    facts["folders"] = {"finished": whole, "interrupted": part, "server": address}
    with contextlib.closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("PRAGMA journal_mode=DELETE")
        connection.execute("VACUUM")
    bytes_ = database.read_bytes()
    copy = folder / "copy.db"
    shutil.copy(database, copy)
    found = []
    with server(folder, copy) as address, surefoot.Client(address, token=tokens["write"]["token"]) as client:
        for study in client.studies():
            info = study.info()
            entry = {"id": study.id, "info": info, "events": study.trace()}
            if info["told"] > info["failed"]:
                entry["recommend"] = study._get("/recommend")
            if info["state"] == "open":
                body = {"n": 1, **({"time": 9.0} if info["name"] == "drift" else {})}
                entry["ask"] = body
                if info["name"] != "moves" or not info["pending"]:
                    entry["next"] = study._post("ask", body)["queries"]
            found.append(entry)
    return {
        "tokens": {name: one["token"] for name, one in tokens.items()},
        "database": base64.b64encode(gzip.compress(bytes_, 9, mtime=0)).decode(),
        "studies": found,
        **facts,
    }


def folder_of(place):
    """The files of a folder, but for locks."""
    files = (file for file in sorted(place.iterdir()) if file.is_file() and file.suffix != ".lock")
    return {file.name: file.read_text() for file in files}


# -- all --------------------------------------------------------------------------------------------------------------


def write(name, content):
    """Write one bundle."""
    text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    (HERE / f"{name}.json.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def read(name):
    """Read one bundle."""
    return json.loads(gzip.decompress((HERE / f"{name}.json.gz").read_bytes()))


def main():
    """Write all bundles, or those that are named."""
    if surefoot.__version__ != "0.1.0":
        raise SystemExit(f"these files are written by surefoot 0.1.0, not by {surefoot.__version__}")
    wanted = sys.argv[1:] or ["policies", "runs", "parties", "service"]
    for name in wanted:
        folder = Path(tempfile.mkdtemp())
        if name == "policies":
            write(name, {"policies": list(policies(folder)), "told while pending": list(told_while_pending(folder))})
        elif name == "runs":
            write(name, {"space": SPACE, "objective": LOSS, "runs": list(runs(folder))})
        elif name == "parties":
            write(name, parties(folder))
        else:
            write(name, service(folder))
        print(name, (HERE / f"{name}.json.gz").stat().st_size)


if __name__ == "__main__":
    main()
