"""The service while writers who mean no good send it all they can think of: its memory, and the time of a health check.

python benchmarks/service_fuzz.py                     # SQLite, six windows of half a minute
python benchmarks/service_fuzz.py --postgres          # PostgreSQL, in a cluster of its own
python benchmarks/service_fuzz.py --seconds 10 --windows 5 --writers 4

Requests are those of the tests (tests/serve/fuzzing.py) and, from one writer, Schemathesis over the OpenAPI document.
Every answer is checked: no file is made, and nothing but 503 with Retry-After is a server's error. Memory is what the
server and its processes hold together, as Linux counts it (proportional set size, so that what they share counts once).
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import httpx
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "serve"))

from fuzzing import Writer, files, nested
from running import Postgres, Server


def _cause(error: BaseException) -> BaseException:
    """What is behind an error that Hypothesis has wrapped."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def held(pid: int) -> float:
    """Return the MiB that a process and those it started hold."""
    total, waiting = 0, [pid]
    while waiting:
        one = Path(f"/proc/{waiting.pop()}")
        with contextlib.suppress(OSError, ValueError):  # it may have ended meanwhile
            lines = (one / "smaps_rollup").read_text().splitlines()
            total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
            for task in (one / "task").iterdir():
                waiting += [int(child) for child in (task / "children").read_text().split()]
    return total / 1024


def interval(values: list[float]) -> str:
    """Return the mean of some windows with its 95 % interval."""
    from scipy import stats

    mean, error = float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(len(values)))
    half = float(stats.t.ppf(0.975, len(values) - 1)) * error
    return f"{mean:.0f} [{mean - half:.0f}, {mean + half:.0f}]"


class Storm:
    """Writers, each in a thread, until they are told to stop."""

    def __init__(self, server: Server, folder: Path, writers: int) -> None:
        self.server, self.folder = server, folder
        self.stopping = threading.Event()
        self.statuses: Counter[int] = Counter()
        self.errors: list[BaseException] = []
        tasks = [lambda seed=seed: self.write(seed) for seed in range(writers)] + [self.nest, self.document]
        self.threads = [threading.Thread(target=self.guarded, args=(task,)) for task in tasks]

    def guarded(self, task: Callable[[], None]) -> None:
        try:
            task()
        except BaseException as error:
            if not self.stopping.is_set():
                self.errors.append(_cause(error))

    def client(self) -> httpx.Client:
        headers = {"Authorization": f"Bearer {self.server.token(tenant='fuzz', scope='write')}"}
        return httpx.Client(base_url=f"{self.server.url}/api/v1", headers=headers, timeout=300.0)

    def write(self, seed: int) -> None:
        """Random options, steps, looks and long bodies."""
        writer = Writer(seed, self.folder)
        with self.client() as http:
            while not self.stopping.is_set():
                self.statuses[writer.send(http, writer.next()).status_code] += 1

    def nest(self) -> None:
        """Policies within every option of every policy, again and again."""
        writer = Writer(0, self.folder)
        with self.client() as http:
            while not self.stopping.is_set():
                for request in nested(self.folder):
                    self.statuses[writer.send(http, request).status_code] += 1
                    if self.stopping.is_set():
                        return

    def document(self) -> None:
        """Requests that fit the OpenAPI document, and requests that nearly do."""
        import schemathesis
        from hypothesis import HealthCheck, Phase, Verbosity, given, settings
        from hypothesis.errors import Unsatisfiable
        from schemathesis.generation import GenerationMode

        api = schemathesis.openapi.from_url(f"{self.server.url}/api/v1/openapi.json")
        headers = {"Authorization": f"Bearer {self.server.token(tenant='fuzz', scope='write')}"}

        def attempt(case) -> None:  # type: ignore[no-untyped-def]
            if self.stopping.is_set():
                return
            answer = case.call(headers=headers, timeout=300)
            self.statuses[answer.status_code] += 1
            names = {name.lower() for name in answer.headers}
            again = answer.status_code == 503 and "retry-after" in names
            assert answer.status_code < 500 or again, (answer.status_code, sorted(names), answer.text)

        while not self.stopping.is_set():
            for operation in [found.ok() for found in api.get_all_operations()]:
                for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
                    quick = settings(
                        max_examples=5,
                        deadline=None,
                        phases=(Phase.generate,),
                        suppress_health_check=list(HealthCheck),
                        database=None,
                        verbosity=Verbosity.quiet,
                    )
                    with contextlib.suppress(Unsatisfiable):
                        quick(given(operation.as_strategy(generation_mode=mode))(attempt))()

    def __enter__(self) -> Storm:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        for thread in self.threads:
            thread.join()


def window(server: Server, seconds: float) -> tuple[list[float], float]:
    """Return the milliseconds of health checks during a window, and the most MiB."""
    times, peak, until = [], 0.0, time.monotonic() + seconds
    assert server.process is not None
    with httpx.Client(base_url=server.url, timeout=60.0) as http:
        while time.monotonic() < until:
            begin = time.perf_counter()
            assert http.get("/api/v1/health").status_code == 200
            times.append(1000 * (time.perf_counter() - begin))
            if len(times) % 10 == 0:
                peak = max(peak, held(server.process.pid))
            time.sleep(0.02)
    return times, peak


def measure(database: str, folder: Path, *, seconds: float, windows: int, writers: int) -> None:
    """Print a row for each window, and the whole."""
    here, beside = folder / "server", folder / "beside"
    here.mkdir()
    beside.mkdir()
    with Server(database.format(folder=here), here, "--log-level", "warning") as server:
        before = files(here, beside)
        calm, rest = window(server, min(seconds, 5.0))
        print("| window | health checks | p50, ms | p99, ms | most memory, MiB |\n|---|---|---|---|---|")
        print(f"| at rest | {len(calm)} | {np.quantile(calm, 0.5):.1f} | {np.quantile(calm, 0.99):.1f} | {rest:.0f} |")
        found = []
        with Storm(server, beside, writers) as storm:
            for number in range(windows):
                times, peak = window(server, seconds)
                found.append((float(np.quantile(times, 0.5)), float(np.quantile(times, 0.99)), peak))
                row = " | ".join(f"{value:.1f}" for value in found[-1])
                print(f"| {number + 1} | {len(times)} | {row} |", flush=True)
        p50, p99, memory = (interval([row[i] for row in found]) for i in range(3))
        print(f"| mean [95 %] | | {p50} | {p99} | {memory} |")
        print(f"\n{sum(storm.statuses.values())} requests: {dict(sorted(storm.statuses.items()))}")
        made = files(here, beside) - before
        print(f"{len(made)} files made, {len(storm.errors)} writers stopped by an answer that must not be")
        for error in storm.errors[:5]:
            print(f"  {type(error).__name__}: {str(error)[:2000]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--postgres", action="store_true", help="PostgreSQL instead of SQLite")
    parser.add_argument("--seconds", type=float, default=30.0, help="of one window")
    parser.add_argument("--windows", type=int, default=6, help="at least two, for an interval")
    parser.add_argument(
        "--writers", type=int, default=4, help="beside the one that nests and the one with the document"
    )
    given = parser.parse_args()
    sizes = {"seconds": given.seconds, "windows": given.windows, "writers": given.writers}
    with tempfile.TemporaryDirectory() as folder:
        if not given.postgres:
            measure("sqlite:///{folder}/fuzz.db", Path(folder), **sizes)
            return
        cluster = Postgres()
        try:
            measure(cluster.database("fuzz"), Path(folder), **sizes)
        finally:
            cluster.remove()


if __name__ == "__main__":
    main()
