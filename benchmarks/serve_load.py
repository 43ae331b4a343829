"""The service under load: many workers, servers that are killed, a database that restarts; nothing lost or doubled.

python benchmarks/serve_load.py                     # SQLite in a temporary folder, then PostgreSQL if it is installed
python benchmarks/serve_load.py --database URL      # that database only (a fresh one)
python benchmarks/serve_load.py --quick             # a tenth of everything
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "serve"))

from running import Postgres, Server

from surefoot import Box, Client

BOX = Box([(0.0, 1.0), (0.0, 1.0)])
Disturbance = Callable[[Callable[[float], bool]], None]


@dataclass
class Load:
    """What workers saw: seconds of each request, and every tell that the service acknowledged."""

    asks: list[float] = field(default_factory=list)
    tells: list[float] = field(default_factory=list)
    acknowledged: list[tuple[str, int, float]] = field(default_factory=list)
    errors: list[BaseException] = field(default_factory=list)
    seconds: float = 0.0

    def row(self, name: str) -> str:
        spread = [f"{1000 * np.quantile(part, q):.1f}" for part in (self.asks, self.tells) for q in (0.5, 0.99)]
        return f"| {name} | {len(self.asks)} | {' | '.join(spread)} | {len(self.asks) / self.seconds:.0f} |"


def run(server: Server, *, workers: int, pairs: int, shared: bool, disturb: Disturbance | None = None) -> Load:
    """Let workers ask and tell; check afterwards that the events say exactly what they did."""
    token = server.token(tenant=f"load-{random.getrandbits(32)}")
    client = Client(server.url, token=token, retries=30)
    policy = "SobolSearch" if shared else "GPUCB"
    studies = [client.create(f"load {i}", BOX, policy=policy, seed=i).id for i in range(1 if shared else workers)]
    load, begin = Load(), threading.Event()

    def work(worker: int) -> None:
        try:
            with Client(server.url, token=token, retries=30) as mine:
                study = mine.study(studies[0 if shared else worker])
                begin.wait()
                for i in range(pairs):
                    first = time.perf_counter()
                    query = study.ask()
                    second = time.perf_counter()
                    value = worker + i / 1e6  # says who told it, and in which order
                    study.tell(query, value)
                    third = time.perf_counter()
                    load.asks.append(second - first)
                    load.tells.append(third - second)
                    load.acknowledged.append((study.id, query.id, value))
        except BaseException as error:
            load.errors.append(error)

    def reached(share: float) -> bool:
        """Wait until this share of the pairs is done; False if it never will be."""
        while len(load.acknowledged) < share * workers * pairs:
            if load.errors:
                return False
            time.sleep(0.005)
        return True

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(workers)]
    threads += [threading.Thread(target=disturb, args=(reached,))] if disturb else []
    for thread in threads:
        thread.start()
    begin.set()
    start = time.perf_counter()
    for thread in threads:
        thread.join()
    load.seconds = time.perf_counter() - start
    if load.errors:
        raise load.errors[0]
    check(client, studies, load, workers=workers, pairs=pairs)
    return load


def check(client: Client, studies: list[str], load: Load, *, workers: int, pairs: int) -> None:
    """No tell lost or doubled, each worker's in the order sent, no query left over."""
    assert len(load.acknowledged) == workers * pairs
    kept: list[tuple[str, int, float]] = []
    for id in studies:
        events = client.study(id).trace()
        asked = [event["id"] for event in events if event["event"] == "asked"]
        told = [(id, event["id"], event["value"]) for event in events if event["event"] == "told"]
        assert asked == list(range(len(asked))), "queries are numbered without gaps"
        assert sorted(one for _, one, _ in told) == asked, "every query was told once"
        for worker in range(workers):
            mine = [value for _, _, value in told if int(value) == worker]
            assert mine == sorted(mine), f"worker {worker} was heard out of order"
        info = client.study(id).info()
        assert (info["told"], info["pending"], info["failed"]) == (len(told), 0, 0)
        kept += told
    assert Counter(kept) == Counter(load.acknowledged), "what is kept is what was acknowledged"


def killer(server: Server, *, times: int, seed: int = 0) -> Disturbance:
    """Kill the server at random moments, and start it again."""
    moments = sorted(random.Random(seed).uniform(0.05, 0.9) for _ in range(times))

    def disturb(reached: Callable[[float], bool]) -> None:
        for moment in moments:
            if reached(moment):
                server.kill()
                server.start()

    return disturb


def restarter(postgres: Postgres) -> Disturbance:
    """Stop PostgreSQL in mid-run as a crash would, and start it again."""

    def disturb(reached: Callable[[float], bool]) -> None:
        if reached(0.4):
            postgres.stop("immediate")
            postgres.start()

    return disturb


def measure(database: str, folder: Path, scale: float, postgres: Postgres | None) -> None:
    workers, pairs, deep = max(int(50 * scale), 2), max(int(200 * scale), 2), max(int(40 * scale), 2)
    with Server(database, folder, "--log-level", "warning") as server:
        kind = server.store.kind
        calm = run(server, workers=workers, pairs=pairs, shared=True)
        print(calm.row(f"{kind}, {workers} workers on one SobolSearch study"), flush=True)
        many = run(server, workers=workers, pairs=deep, shared=False)
        print(many.row(f"{kind}, {workers} GP-UCB studies"), flush=True)
        times = max(int(5 * scale), 1)
        killed = run(server, workers=workers, pairs=pairs, shared=True, disturb=killer(server, times=times))
        print(killed.row(f"{kind}, server killed {times} times"), flush=True)
        if postgres is not None:
            away = run(server, workers=workers, pairs=pairs, shared=True, disturb=restarter(postgres))
            print(away.row(f"{kind}, database restarted"), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--database", help="URL of a fresh database; by default SQLite, then PostgreSQL")
    parser.add_argument("--quick", action="store_true", help="a tenth of everything")
    given = parser.parse_args()
    scale = 0.1 if given.quick else 1.0
    print("| load | pairs | ask p50, ms | ask p99, ms | tell p50, ms | tell p99, ms | asks per second |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        if given.database:
            measure(given.database, Path(folder), scale, None)
            return
        measure(f"sqlite:///{folder}/load.db", Path(folder), scale, None)
        if (why := Postgres.unavailable()) is not None:
            print(f"\n{why}")
            return
        cluster = Postgres()
        try:
            measure(cluster.database("load"), Path(folder), scale, cluster)
        finally:
            cluster.remove()


if __name__ == "__main__":
    main()
