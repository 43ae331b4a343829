"""How long is one full ask, fit included, and how much memory does it take, beside the peers in the same run?

    python benchmarks/ask_latency.py [--libraries surefoot botorch ...] [--sizes 20 50 ...] [--dimensions 2 6 ...]

Every library, dimension and number of threads has a process of its own, one after the other. Within it the data sets
grow: n random points of a test function, other ones each time, told before the clock starts. The table shows the median
of the asks with the number of threads that suits the library best, and by how much its memory had grown at most since
before the first ask. A library whose ask takes longer than ``--longest`` seconds is not tried on larger data.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time

import numpy as np

from peers import OPTIMIZERS, threads
from surefoot_lab import problems

SIZES, DIMENSIONS = (20, 50, 100, 200, 400, 1000), (2, 6, 10, 20)
LIBRARIES = ("surefoot", "botorch", "optuna", "bayes_opt")
Cell = tuple[str, int, int]  # library, dimension, n


def problem(dimension: int) -> problems.Problem:
    return {2: problems.branin(), 6: problems.hartmann6()}.get(dimension) or problems.levy(dimension)


def ask(library: str, dimension: int, n: int, seed: int) -> float:
    """Seconds of one ask."""
    function, rng = problem(dimension), np.random.default_rng([seed, n])
    X = function.domain.sample(n, rng)
    optimizer = OPTIMIZERS[library](function.domain, X, function(X), seed)
    start = time.perf_counter()
    optimizer.ask()
    return time.perf_counter() - start


def memory() -> float:
    """Peak memory of this process so far, MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(library: str, dimension: int, sizes: list[int], repetitions: int, count: int, longest: float) -> None:
    """What a process of its own does: prints one line of JSON for each n."""
    with threads(count):
        ask(library, dimension, 12, 0)  # imports, and warms up
        before = memory()
        for n in sizes:
            times: list[float] = []
            while len(times) < repetitions and sum(times) < 10 * longest:
                times.append(ask(library, dimension, n, 1 + len(times)))
            line = {"n": n, "seconds": statistics.median(times), "repetitions": len(times), "mib": memory() - before}
            print(json.dumps(line), flush=True)
            if statistics.median(times) > longest:
                break


def collect(
    libraries: list[str], dimensions: list[int], sizes: list[int], repetitions: int, counts: list[int], longest: float
) -> dict[Cell, dict[str, float]]:
    """Run all processes; keep for every cell the number of threads with the shortest ask."""
    best: dict[Cell, dict[str, float]] = {}
    for dimension in dimensions:
        for library in libraries:
            for count in counts:
                variables = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
                environment = os.environ | dict.fromkeys(variables, str(count))
                options = {"--process": library, "--dimensions": dimension, "--repetitions": repetitions}
                options |= {"--threads": count, "--longest": longest}
                words = [str(word) for pair in options.items() for word in pair]
                command = [sys.executable, "-W", "ignore", __file__, *words, "--sizes", *map(str, sizes)]
                done = subprocess.run(command, env=environment, capture_output=True, text=True)
                if done.returncode:
                    raise SystemExit(f"{library} failed:\n{done.stderr}")
                for line in map(json.loads, done.stdout.splitlines()):
                    cell = (library, dimension, line["n"])
                    if cell not in best or line["seconds"] < best[cell]["seconds"]:
                        best[cell] = line | {"threads": count}
                print(f"measured {library}, d = {dimension}, {count} threads", file=sys.stderr, flush=True)
    return best


def table(best: dict[Cell, dict[str, float]]) -> str:
    """Return a Markdown table, one row for each dimension and n."""
    libraries = list(dict.fromkeys(library for library, _, _ in best))
    peers = [library for library in libraries if library != "surefoot"]
    heads = ["d", "n", *(f"{library}, s (threads)" for library in libraries)]
    heads += [f"{peer} / surefoot" for peer in peers] + [f"{library}, MiB" for library in libraries]
    rows = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for d, n in sorted({(d, n) for _, d, n in best}):
        cells = [best.get((library, d, n)) for library in libraries]
        times = [f"{c['seconds']:.4f} ({c['threads']:.0f})" if c else "" for c in cells]
        own = best.get(("surefoot", d, n))
        found = [best.get((peer, d, n)) for peer in peers]
        ratios = [f"{c['seconds'] / own['seconds']:.1f}x" if c and own else "" for c in found]
        sizes = [f"{c['mib']:.0f}" if c else "" for c in cells]
        rows.append(f"| {' | '.join([str(d), str(n), *times, *ratios, *sizes])} |")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--libraries", nargs="+", default=list(LIBRARIES), choices=OPTIMIZERS)
    parser.add_argument("--dimensions", nargs="+", type=int, default=list(DIMENSIONS))
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES))
    parser.add_argument("--repetitions", type=int, default=9)
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--longest", type=float, default=10.0)
    parser.add_argument("--process", choices=OPTIMIZERS, help=argparse.SUPPRESS)
    o = parser.parse_args()
    if o.process:
        measure(o.process, o.dimensions[0], o.sizes, o.repetitions, o.threads[0], o.longest)
    else:
        print(table(collect(o.libraries, o.dimensions, o.sizes, o.repetitions, o.threads, o.longest)))


if __name__ == "__main__":
    main()
