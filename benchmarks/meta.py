"""How the time of an ask grows with the number of earlier tasks: linearly, and how much memory it takes.

    python benchmarks/meta.py                                   # 5 to 160 tasks of 50 measurements
    python benchmarks/meta.py --tasks 1000 --length 1000 --asks 3

For every number of tasks: the first ask (which fits and conditions the tasks), the median of the later ones (the
target's belief is fitted again before each), the slope of the latter over the number of tasks on a logarithmic scale
(1 is linear; below it, the target's own share dominates), and the peak of the memory that was taken. Tasks keep equal
weights (``learning_rate=0``) and their influence, so that none drops out: the worst case.
"""

import argparse
import statistics
import time
import tracemalloc

import numpy as np

from surefoot import RGPE, RMGPTS, RMGPUCB, TAF, Box, Candidates, Task
from surefoot.domain import Domain
from surefoot_lab.problems import hartmann6

METHODS = {
    "RM-GP-UCB": lambda domain, tasks: RMGPUCB(domain, tasks=tasks, initial=0, learning_rate=0.0, decay=0.999, seed=0),
    "RM-GP-TS": lambda domain, tasks: RMGPTS(domain, tasks=tasks, initial=0, learning_rate=0.0, decay=0.999, seed=0),
    "RGPE": lambda domain, tasks: RGPE(domain, tasks=tasks, initial=0, seed=0),
    "TAF": lambda domain, tasks: TAF(domain, tasks=tasks, initial=0, bandwidth=10.0, seed=0),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, nargs="+", default=[5, 10, 20, 40, 80, 160])
    parser.add_argument("--length", type=int, default=50)
    parser.add_argument("--asks", type=int, default=10)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=["RM-GP-UCB"])
    parser.add_argument("--domain", choices=["box", "candidates"], default="box")
    options = parser.parse_args()

    problem = hartmann6()
    rng = np.random.default_rng(0)
    domain: Domain = Box.unit(6) if options.domain == "box" else Candidates(rng.random((2000, 6)))

    def shifted(count: int) -> list[Task]:
        """Tasks whose optimum lies a little elsewhere."""
        found = []
        for _ in range(count):
            X = rng.random((options.length, 6))
            found.append(Task(X, problem(np.clip(X + 0.05 * rng.standard_normal(6), 0.0, 1.0))))
        return found

    print(f"{options.domain}, tasks of {options.length} measurements; medians of {options.asks} asks")
    print("| method | tasks | first ask, s | later asks, ms | peak memory, MB |\n|---|---|---|---|---|")
    for name in options.methods:
        times = []
        for count in options.tasks:
            tasks = shifted(count)
            policy, spent = METHODS[name](domain, tasks), []
            for _ in range(options.asks + 1):
                start = time.perf_counter()
                query = policy.ask()
                spent.append(time.perf_counter() - start)
                policy.tell(query, float(problem(query.x[None])[0]))
            tracemalloc.start()  # apart, since it slows everything down
            policy = METHODS[name](domain, tasks)
            for _ in range(2):
                query = policy.ask()
                policy.tell(query, float(problem(query.x[None])[0]))
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            times.append(statistics.median(spent[1:]))
            print(f"| {name} | {count} | {spent[0]:.2f} | {1e3 * times[-1]:.1f} | {peak / 1e6:.0f} |", flush=True)
        if len(times) > 1:
            slope = np.polyfit(np.log(options.tasks[-3:]), np.log(times[-3:]), 1)[0]
            print(f"{name}: time ~ tasks^{slope:.2f} over the last {len(times[-3:])} rows")


if __name__ == "__main__":
    main()
