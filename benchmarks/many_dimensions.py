"""Many dimensions and large budgets: the trust region beside the default, from the same designs, in the same batches.

    python benchmarks/many_dimensions.py run --runs many.jsonl [--methods ei region ...] [--seeds 5] [--problems ...]
    python benchmarks/many_dimensions.py table --runs many.jsonl [more.jsonl ...] [--against ei]

Levy in 100 dimensions, Hartmann-6 hidden among 50 coordinates of which 44 do nothing, and two more. Every method begins
with the same 2d Sobol points; then it is asked for batches of ten until the budget is spent. A run is one line of a
JSON-lines file; what is there is not repeated. Regrets are those of the best measured point; seconds are of this
process (CPU).
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from peers import threads
from regret import interval, stored
from surefoot import Box, ExpectedImprovement, Policy, SobolSearch, TrustRegion
from surefoot_lab import problems

BATCH, FLOOR = 10, 1e-12


def hidden(inner: problems.Problem, dimension: int) -> problems.Problem:
    """A problem in a larger unit cube: only its first coordinates count."""
    d = inner.domain.dimension
    best = np.hstack([inner.optimizers[:1], np.full((1, dimension - d), 0.5)])
    name = f"{inner.name} in {dimension} dimensions"
    return problems.Problem(name, Box.unit(dimension), lambda X: inner(X[:, :d]), inner.optimum, best)


CASES: dict[str, tuple[Callable[[], problems.Problem], int]] = {
    "levy100": (lambda: problems.levy(100), 500),
    "hartmann6_50": (lambda: hidden(problems.hartmann6(), 50), 300),
    "ackley50": (lambda: problems.ackley(50), 300),
    "levy20": (lambda: problems.levy(20), 300),
    "rastrigin200": (lambda: problems.rastrigin(200), 800),
}
POLICIES: dict[str, Callable[[Box, int], Policy]] = {
    "ei": lambda domain, seed: ExpectedImprovement(domain, seed=seed),
    "region": lambda domain, seed: TrustRegion(domain, seed=seed),
    "sobol": lambda domain, seed: SobolSearch(domain, seed=seed),
}


def play(name: str, method: str, seed: int) -> dict[str, Any]:
    """One run; returns what is stored of it."""
    problem, budget = CASES[name][0](), CASES[name][1]
    policy = POLICIES[method](problem.domain, seed)
    first = problem.domain.design(2 * problem.domain.dimension, np.random.default_rng([seed, 0]))
    start, regrets = time.process_time(), [float(r) for r in problem.regret(first)]
    for x, value in zip(first, problem(first), strict=True):
        policy.tell(x, float(value))
    while len(regrets) < budget:
        queries = policy.ask(min(BATCH, budget - len(regrets)))
        X = np.array([query.x for query in queries])
        for query, value in zip(queries, problem(X), strict=True):
            policy.tell(query, float(value))
        regrets += [float(r) for r in problem.regret(X)]
    best = np.minimum.accumulate(regrets)
    trace = [float(f"{r:.3e}") for r in best[BATCH - 1 :: BATCH]]
    return {"regret": float(best[-1]), "trace": trace, "seconds": time.process_time() - start}


def run(path: Path, methods: list[str], names: list[str], seeds: range) -> None:
    done = {(r["problem"], r["method"], r["seed"]) for r in stored([path])}
    with path.open("a", encoding="utf-8") as file, threads(1):
        for seed in seeds:
            for name in names:
                for method in methods:
                    if (name, method, seed) not in done:
                        line = {"problem": name, "method": method, "seed": seed, **play(name, method, seed)}
                        file.write(json.dumps(line) + "\n")
                        file.flush()


def table(paths: list[Path], against: str) -> str:
    """Return Markdown: mean log10 regret at the end, and the paired difference to one method."""
    runs = stored(paths)
    methods = list(dict.fromkeys(r["method"] for r in runs))
    logs = {(r["problem"], r["method"], r["seed"]): math.log10(max(r["regret"], FLOOR)) for r in runs}
    rows = [f"| problem | measurements | seeds | {' | '.join(methods)} | seconds of a run |"]
    rows.append("|---" * (len(methods) + 4) + "|")
    for name in dict.fromkeys(r["problem"] for r in runs):
        seeds = sorted(s for p, m, s in logs if (p, m) == (name, against))
        cells, times = [], []
        for method in methods:
            both = [s for s in seeds if (name, method, s) in logs]
            own = np.array([logs[name, method, s] for s in both])
            gap = ""
            if method != against and len(both):
                middle, low, high = interval(own - [logs[name, against, s] for s in both])
                gap = f" ({middle:+.2f} [{low:+.2f}, {high:+.2f}])"
            cells.append(f"{own.mean():.2f}{gap}" if len(both) else "")
            spent = [r["seconds"] for r in runs if (r["problem"], r["method"]) == (name, method)]
            times.append(f"{np.mean(spent):.0f}" if spent else "")
        rows.append(f"| {name} | {CASES[name][1]} | {len(seeds)} | {' | '.join(cells)} | {', '.join(times)} |")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "table"])
    parser.add_argument("--runs", type=Path, nargs="+", required=True, help="files of runs; `run` adds to the first")
    parser.add_argument("--methods", nargs="+", default=["ei", "region"], choices=POLICIES)
    parser.add_argument("--problems", nargs="+", default=["levy100", "hartmann6_50"], choices=CASES)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=8000)
    parser.add_argument("--against", default="ei")
    options = parser.parse_args()
    if options.what == "run":
        seeds = range(options.first_seed, options.first_seed + options.seeds)
        run(options.runs[0], options.methods, options.problems, seeds)
    print(table(options.runs, options.against))


if __name__ == "__main__":
    main()
