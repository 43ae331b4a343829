"""Eight points at a time: regret per batch and seconds per ask, of all that chooses batches here, beside qLogEI.

    python benchmarks/batches.py run --runs batches.jsonl [--methods ei penalization ...] [--seeds 10] [--problems ...]
    python benchmarks/batches.py table --runs batches.jsonl [more.jsonl ...] [--against ei-measured]

Every method gets the same d + 1 Sobol points (at least 3) and the same noise; then come batches of eight. A run is one
line of a JSON-lines file; what is there is not repeated. The regret is that of the best measured point after each
batch, with noise that of the point that is recommended at the end. Seconds are of this process (CPU), per batch.
``botorch`` needs an environment that has it; tables take files from several.
"""

from __future__ import annotations

import argparse
import json
import math
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from peers import OPTIMIZERS, threads
from regret import interval, stored
from surefoot import GPUCB, GPUCBPE, QEI, Box, ExpectedImprovement, LocalPenalization, Policy, ThompsonSampling
from surefoot.policy.improvement import Improvement, LogImprovement
from surefoot_lab import problems

Q, BATCHES, FLOOR = 8, 6, 1e-12
NOISE = 0.04

CHOOSING: dict[str, Callable[[], problems.Problem]] = {  # the default was chosen on these
    "branin": problems.branin,
    "hartmann6": problems.hartmann6,
    "levy4": lambda: problems.levy(4),
    "ackley5": lambda: problems.ackley(5),
    "rosenbrock4": lambda: problems.rosenbrock(4),
    "noisy_hartmann6": lambda: problems.hartmann6().noisy(NOISE),
}
REPORTING: dict[str, Callable[[], problems.Problem]] = {  # and is reported on these
    "hartmann3": problems.hartmann3,
    "goldstein_price": problems.goldstein_price,
    "griewank5": lambda: problems.griewank(5),
    "dixon_price4": lambda: problems.dixon_price(4),
    "styblinski_tang4": lambda: problems.styblinski_tang(4),
    "levy8": lambda: problems.levy(8),
}
CASES = CHOOSING | REPORTING


def measured_only(domain: Box, seed: int) -> ExpectedImprovement:
    """Expected improvement as 0.1 chose its batches: what a point under way promises is not to be beaten."""
    policy = ExpectedImprovement(domain, seed=seed)
    policy.rule = Improvement(LogImprovement, 0.0)
    return policy


POLICIES: dict[str, Callable[[Box, int], Policy]] = {
    "ei": lambda domain, seed: ExpectedImprovement(domain, seed=seed),
    "ei-measured": measured_only,
    "penalization": lambda domain, seed: LocalPenalization(domain, seed=seed),
    "thompson": lambda domain, seed: ThompsonSampling(domain, seed=seed),
    "ucb": lambda domain, seed: GPUCB(domain, seed=seed),
    "ucb-pe": lambda domain, seed: GPUCBPE(domain, seed=seed),
    "qei": lambda domain, seed: QEI(domain, samples=64, sweeps=0, seed=seed),
}


class Ours:
    """A policy of this library."""

    def __init__(self, name: str, domain: Box, X: np.ndarray, y: np.ndarray, seed: int) -> None:
        self.policy = POLICIES[name](domain, seed)
        for x, value in zip(X, y, strict=True):
            self.policy.tell(x, float(value))

    def ask(self) -> np.ndarray:
        self.queries = self.policy.ask(Q)
        return np.array([query.x for query in self.queries])

    def tell(self, X: np.ndarray, y: np.ndarray) -> None:
        for query, value in zip(self.queries, y, strict=True):
            self.policy.tell(query, float(value))

    def best(self) -> np.ndarray:
        return self.policy.recommend().x


class QLogEI(OPTIMIZERS["botorch"]):  # type: ignore[misc]
    """BoTorch's qLogExpectedImprovement with its defaults, on the model of `peers.py`."""

    def ask(self) -> np.ndarray:
        import torch
        from botorch.acquisition.logei import qLogExpectedImprovement
        from botorch.optim import optimize_acqf

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.manual_seed(1000 * self.seed + len(self.y))
            score = qLogExpectedImprovement(self._model(), best_f=float(self.y.max()))
            found, _ = optimize_acqf(score, bounds=self.box, q=Q, num_restarts=10, raw_samples=512)
        return found.numpy()

    def tell(self, X: np.ndarray, y: np.ndarray) -> None:
        self.X, self.y = np.vstack([self.X, X]), np.concatenate([self.y, y])


def play(name: str, method: str, seed: int) -> dict[str, Any]:
    """One run; returns what is stored of it."""
    problem, rng = CASES[name](), np.random.default_rng([seed, 1])
    X = problem.domain.design(max(3, problem.domain.dimension + 1), np.random.default_rng([seed, 0]))
    y = np.array([problem.measure(x, rng) for x in X])
    optimizer = QLogEI(problem.domain, X, y, seed) if method == "botorch" else Ours(method, problem.domain, X, y, seed)
    trace, seconds = [float(problem.regret(X).min())], []
    for _ in range(BATCHES):
        start = time.process_time()
        X = optimizer.ask()
        seconds.append(time.process_time() - start)
        optimizer.tell(X, np.array([problem.measure(x, rng) for x in X]))
        trace.append(min(trace[-1], float(problem.regret(X).min())))
    taken = float(problem.regret(optimizer.best())[0]) if problem.noise else trace[-1]
    return {"regret": taken, "trace": [float(f"{r:.3e}") for r in trace], "seconds": float(np.mean(seconds))}


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
    """Return Markdown: mean log10 regret after the last batch, and the paired difference to one method."""
    runs = stored(paths)
    methods = list(dict.fromkeys(r["method"] for r in runs))
    logs = {(r["problem"], r["method"], r["seed"]): math.log10(max(r["regret"], FLOOR)) for r in runs}
    rows = [f"| problem | seeds | {' | '.join(methods)} |", "|---" * (len(methods) + 2) + "|"]
    differences: dict[str, list[float]] = {method: [] for method in methods}
    for name in dict.fromkeys(r["problem"] for r in runs):
        cells, counts = [], []
        for method in methods:
            seeds = sorted(s for p, m, s in logs if (p, m) == (name, method) and (name, against, s) in logs)
            counts.append(len(seeds))
            if not seeds:
                cells.append("")
                continue
            own = np.array([logs[name, method, s] for s in seeds])
            gaps = own - [logs[name, against, s] for s in seeds]
            differences[method].append(float(gaps.mean()))
            middle, low, high = interval(gaps)
            rest = "" if method == against else f" ({middle:+.2f} [{low:+.2f}, {high:+.2f}])"
            cells.append(f"{own.mean():.2f}{rest}")
        rows.append(f"| {name} | {min(filter(None, counts), default=0)} | {' | '.join(cells)} |")
    means = [f"{np.mean(differences[m]):+.2f}" if differences[m] else "" for m in methods]
    rows.append(f"| mean difference to {against} | | {' | '.join(means)} |")
    times = [f"{np.mean([r['seconds'] for r in runs if r['method'] == m]):.2f}" for m in methods]
    rows.append(f"| seconds for a batch | | {' | '.join(times)} |")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "table"])
    parser.add_argument("--runs", type=Path, nargs="+", required=True, help="files of runs; `run` adds to the first")
    parser.add_argument("--methods", nargs="+", default=list(POLICIES), choices=[*POLICIES, "botorch"])
    parser.add_argument("--problems", nargs="+", default=list(CHOOSING), choices=CASES)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=7000)
    parser.add_argument("--against", default="ei-measured")
    options = parser.parse_args()
    if options.what == "run":
        seeds = range(options.first_seed, options.first_seed + options.seeds)
        run(options.runs[0], options.methods, options.problems, seeds)
    print(table(options.runs, options.against))


if __name__ == "__main__":
    main()
