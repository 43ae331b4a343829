"""How long is an ask, on average over many, once thousands of measurements are told, and how much memory does it take?

    python benchmarks/size.py [--libraries surefoot optuna botorch ...] [--sizes 1000 2000 5000 10000] [--dimension 6]

Every library and every n has a process of its own, one after the other, with one thread. n measurements are told before
the clock starts: a third anywhere, the others around the best of these at distances over three orders of magnitude, as
in a run that goes on. Then some asks follow, each told its value. What is amortized is made explicit: the first ask,
which may have to fit and factorize everything, is shown by itself, and so are those after it. Surefoot's next fit is
due after 1 + (n − 512) / 32 measurements, and its amortized time adds the first ask divided by this number to the mean
of the others; a library without a schedule is simply measured. Seconds are of this process (CPU), so that a busy
machine disturbs them less. A library is not tried on more measurements once an ask took longer than ``--longest``.

With ``--python`` the peers run in another environment, which has them.
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

SIZES = (1000, 2000, 5000, 10000)
LIBRARIES = ("surefoot", "optuna", "botorch")


def crowded(problem: problems.Problem, n: int, rng: np.random.Generator) -> np.ndarray:
    """Points as late in a run: a third anywhere, the others around the best of these."""
    domain = problem.domain
    X = domain.sample(n // 3, rng)
    best, radius = X[np.argmax(problem(X))], 10.0 ** rng.uniform(-3.0, 0.0, (n - len(X), 1))
    near = best + 0.3 * radius * rng.standard_normal((n - len(X), domain.dimension)) * (domain.upper - domain.lower)
    return np.vstack([X, np.clip(near, domain.lower, domain.upper)])[rng.permutation(n)]


def measure(library: str, dimension: int, n: int, asks: int, longest: float) -> None:
    """What a process of its own does: prints one line of JSON."""
    problem, rng = problems.hartmann6() if dimension == 6 else problems.levy(dimension), np.random.default_rng([1, n])
    with threads(1):
        X = crowded(problem, 24, rng)
        OPTIMIZERS[library](problem.domain, X, problem(X), 0).ask()  # imports, and warms up
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        X = crowded(problem, n, rng)
        optimizer, seconds = OPTIMIZERS[library](problem.domain, X, problem(X), 0), []
        while len(seconds) < asks and sum(seconds) < longest:
            start = time.process_time()
            x = optimizer.ask()
            seconds.append(time.process_time() - start)
            optimizer.tell(x, float(problem(x[None])[0]))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    first, others = seconds[0], statistics.mean(seconds[1:] or seconds)
    period = 1 + max(0, n - 512) // 32 if library == "surefoot" else 1
    amortized = others + max(0.0, first - others) / period if period > 1 else statistics.mean(seconds)
    line = {"library": library, "d": dimension, "n": n, "first": first, "others": others, "asks": len(seconds)}
    print(json.dumps(line | {"amortized": amortized, "mib": peak - before}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--libraries", nargs="+", default=list(LIBRARIES), choices=OPTIMIZERS)
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES))
    parser.add_argument("--dimension", type=int, default=6)
    parser.add_argument("--asks", type=int, default=8)
    parser.add_argument("--longest", type=float, default=60.0)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--process", choices=OPTIMIZERS, help=argparse.SUPPRESS)
    o = parser.parse_args()
    if o.process:
        measure(o.process, o.dimension, o.sizes[0], o.asks, o.longest)
        return
    one = os.environ | dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    print("| library | n | amortized, s | first ask, s | later asks, s | memory, MiB |\n|---|---|---|---|---|---|")
    for library in o.libraries:
        for n in o.sizes:
            words = ["--process", library, "--sizes", n, "--dimension", o.dimension, "--asks", o.asks]
            command = [o.python, "-W", "ignore", __file__, *map(str, [*words, "--longest", o.longest])]
            done = subprocess.run(command, env=one, capture_output=True, text=True)
            if done.returncode:
                print(f"| {library} | {n} | {done.stderr.strip().splitlines()[-1][:60]} |", flush=True)
                break
            found = json.loads(done.stdout)
            cells = [f"{found[name]:.3g}" for name in ("amortized", "first", "others")]
            print(f"| {library} | {n} | {' | '.join(cells)} | {found['mib']:.0f} |", flush=True)
            if found["others"] > o.longest:
                break


if __name__ == "__main__":
    main()
