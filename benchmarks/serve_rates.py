"""How many pairs of ask and tell a second the service makes, beside its server, its disk and Optuna's storages.

python benchmarks/serve_rates.py                    # SQLite and PostgreSQL, 1 to 128 workers; four minutes at most
python benchmarks/serve_rates.py --seconds 1        # a quick look
python benchmarks/serve_rates.py --events 100000    # one study with so many trials: ask, tell, restart, memory

One study of SobolSearch is shared by all workers, which are threads of a few processes, so that the clients are not
what is measured. Beside it, with the same clients: an empty route of a server of the same kind, and two durable commits
of the same database for each pair, one after the other. Optuna is asked and told by as many processes, at most 8.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import sqlalchemy as sa

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "serve"))

from running import Postgres, Server, environment, free_port

from surefoot import Box, Client
from surefoot.loop.journal import dumps
from surefoot.serve.live import Live
from surefoot.serve.store import Mark, Store, chain

WORKERS = (1, 8, 32, 128)
PROCESSES = 2
Pair = Callable[[], None]

EMPTY = """
import sys, uvicorn
from fastapi import FastAPI
app = FastAPI()
@app.post("/pair")
async def pair(): return {"version": 1}
@app.get("/api/v1/health")
async def health(): return {}
uvicorn.run(app, port=int(sys.argv[1]), log_level="error", http="h11", access_log=False)
"""


def paced(make: Callable[[], Pair], threads: int, seconds: float) -> tuple[list[float], float]:
    """Seconds of each pair that threads of this process made one after the other, and how long it took."""
    times: list[list[float]] = [[] for _ in range(threads)]
    ready, begin = threading.Barrier(threads + 1), threading.Event()

    def work(own: list[float]) -> None:
        pair = make()
        pair()  # connections and caches
        ready.wait()
        begin.wait()
        end = time.perf_counter() + seconds
        while (start := time.perf_counter()) < end:
            pair()
            own.append(time.perf_counter() - start)

    running = [threading.Thread(target=work, args=(own,)) for own in times]
    for thread in running:
        thread.start()
    ready.wait()
    start = time.perf_counter()
    begin.set()
    for thread in running:
        thread.join()
    return [one for own in times for one in own], time.perf_counter() - start


def of_service(url: str, token: str, id: str) -> Pair:
    study = Client(url, token=token, retries=30).study(id)
    return lambda: study.tell(study.ask(), 1.0)


def of_route(url: str, _token: str, _id: str) -> Pair:
    http = httpx.Client(base_url=url)

    def pair() -> None:
        for _ in range(2):
            http.post("/pair", content=b'{"n": 1}').raise_for_status()

    return pair


def of_optuna(url: str, kind: str, name: str) -> Pair:
    import optuna
    from optuna.storages import JournalStorage, RDBStorage
    from optuna.storages.journal import JournalFileBackend

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    made = JournalStorage(JournalFileBackend(url)) if kind == "journal" else RDBStorage(url)
    study = optuna.create_study(
        study_name=name, storage=made, load_if_exists=True, sampler=optuna.samplers.RandomSampler()
    )

    def pair() -> None:
        trial = study.ask()
        trial.suggest_float("a", 0.0, 1.0)
        study.tell(trial, 1.0)

    return pair


KINDS = {"service": of_service, "route": of_route, "optuna": of_optuna}


def client(kind: str, given: tuple[str, str, str], threads: int, seconds: float) -> tuple[list[float], float]:
    """What one process of clients does."""
    return paced(lambda: KINDS[kind](*given), threads, seconds)


def together(kind: str, given: tuple[str, str, str], workers: int, processes: int, seconds: float) -> str:
    """Let workers make pairs; return a line of pairs a second, and the median and the 99th percentile of a pair."""
    processes = min(processes, workers)
    shares = [workers // processes + (i < workers % processes) for i in range(processes)]
    with concurrent.futures.ProcessPoolExecutor(processes) as pool:
        found = [one.result() for one in [pool.submit(client, kind, given, share, seconds) for share in shares]]
    times = np.concatenate([times for times, _ in found])
    rate = sum(len(times) / spent for times, spent in found)
    p50, p99 = 1000 * np.quantile(times, [0.5, 0.99])
    return f"{workers} | {rate:.0f} | {p50:.1f} | {p99:.1f}"


def commits(store: Store, seconds: float) -> str:
    """Two durable commits for each pair, one pair after the other."""
    with store.writing() as connection:
        connection.execute(sa.text("CREATE TABLE raw (number INTEGER)"))
    times: list[float] = []
    end = time.perf_counter() + seconds
    while (start := time.perf_counter()) < end:
        for _ in range(2):
            with store.writing() as connection:
                connection.execute(sa.text("INSERT INTO raw VALUES (1)"))
        times.append(time.perf_counter() - start)
    p50, p99 = 1000 * np.quantile(times, [0.5, 0.99])
    return f"1 | {len(times) / sum(times):.0f} | {p50:.1f} | {p99:.1f}"


@contextlib.contextmanager
def empty_server(folder: Path) -> Iterator[str]:
    port = free_port()
    process = subprocess.Popen([sys.executable, "-c", EMPTY, str(port)], cwd=folder, env=environment())
    try:
        url = f"http://127.0.0.1:{port}"
        for _ in range(600):
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(f"{url}/api/v1/health").is_success:
                    break
            time.sleep(0.05)
        yield url
    finally:
        process.terminate()
        process.wait()


def cpu(pid: int) -> float:
    """Seconds of CPU that a process and its children have taken, on Linux."""
    found = 0.0
    with contextlib.suppress(OSError):
        tasks = Path(f"/proc/{pid}/task").iterdir()
        family = [pid, *(int(word) for task in tasks for word in (task / "children").read_text().split())]
        for one in family:
            words = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
            found += (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
    return found


def service(database: str, folder: Path, seconds: float) -> None:
    with Server(database, folder, "--log-level", "warning", "--per-address", "1000") as server:
        token = server.token(tenant="rates")
        for workers in WORKERS:
            with Client(server.url, token=token) as made:
                study = made.create(f"{workers}", Box([(0.0, 1.0)] * 2), policy="SobolSearch", seed=0)
                spent = cpu(server.process.pid) if server.process else 0.0
                line = together("service", (server.url, token, study.id), workers, PROCESSES, seconds)
                told = study.info()["told"]
            each = 1000 * (cpu(server.process.pid) - spent) / told if server.process else float("nan")
            print(f"| {server.store.kind} | {line} | {each:.2f} |", flush=True)
        print(f"| {server.store.kind}: two commits | {commits(server.store, seconds)} | |", flush=True)


def rates(seconds: float) -> None:
    print("| what | workers | pairs a second | p50, ms | p99, ms | CPU of the server for each pair, ms |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with empty_server(folder) as url:
            for workers in WORKERS:
                line = together("route", (url, "", ""), workers, PROCESSES, seconds)
                print(f"| empty route | {line} | |", flush=True)
        service(f"sqlite:///{folder}/rates.db", folder, seconds)
        if (why := Postgres.unavailable()) is None:
            cluster = Postgres()
            try:
                service(cluster.database("rates"), folder, seconds)
            finally:
                cluster.remove()
        else:
            print(f"\n{why}\n")
        try:
            import optuna  # noqa: F401
        except ImportError:
            print("\nOptuna is not installed")
            return
        for kind, url in (("SQLite", f"sqlite:///{folder}/optuna.db"), ("journal", f"{folder}/optuna.log")):
            of_optuna(url, kind, "made")()
            for workers in (1, 8):
                line = together("optuna", (url, kind, "made"), workers, workers, seconds)
                print(f"| Optuna, {kind} | {line} | |", flush=True)


def deep(trials: int) -> None:
    """One study with many trials: what an ask and a tell cost, and how long a server takes that has not seen it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store = Store(f"sqlite:///{folder}/deep.db")
        store.migrate()
        domain = {"domain": "Box", "bounds": [[0.0, 1.0]] * 2}
        id = Live(store, cached=1).create("deep", name="deep", policy="SobolSearch", domain=domain, seed=0)
        points = np.random.default_rng(0).random((trials, 2)).tolist()
        mark, at = Mark(0, ""), 0
        for first in range(0, trials, 10_000):
            lines: list[str] = []
            for i in range(first, min(first + 10_000, trials)):
                asked: dict[str, Any] = {"event": "asked", "id": i, "x": points[i], "at": 1.0}
                lines += [dumps(asked), dumps({"event": "told", "id": i, "value": points[i][0], "at": 1.0})]
            hash = chain(mark.hash, lines)
            store.append(id, mark, lines, hash=hash, counts={"told": len(lines) // 2})
            at += len(lines)
            mark = Mark(at, hash)
        store.close()
        with Server(f"sqlite:///{folder}/deep.db", folder, "--log-level", "warning") as server:
            with Client(server.url, token=server.token(tenant="deep")) as made:
                other = made.create("warm", Box([(0.0, 1.0)]), policy="SobolSearch", seed=0)
                other.tell(other.ask(), 1.0)
                study = made.study(id)
                start = time.perf_counter()
                query = study.ask()
                first_ask = time.perf_counter() - start
                asks, tells = [], []
                for _ in range(100):
                    start = time.perf_counter()
                    study.tell(query, 1.0)
                    tells.append(time.perf_counter() - start)
                    start = time.perf_counter()
                    query = study.ask()
                    asks.append(time.perf_counter() - start)
            family = Path(f"/proc/{server.process.pid}/task") if server.process else Path()
            workers = [word for task in family.iterdir() for word in (task / "children").read_text().split()]
            memory = [int(Path(f"/proc/{one}/statm").read_text().split()[1]) * 4096 >> 20 for one in workers]
        print(f"{trials} trials: first ask {first_ask:.2f} s, then ask {1000 * np.median(asks):.1f} ms, ", end="")
        print(f"tell {1000 * np.median(tells):.1f} ms; workers hold {memory} MiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=6.0, help="of each measurement")
    parser.add_argument("--events", type=int, metavar="TRIALS", help="measure one study of so many trials instead")
    given = parser.parse_args()
    if given.events:
        deep(given.events)
    else:
        rates(given.seconds)


if __name__ == "__main__":
    main()
