"""Regret beside the peers: the same problems, initial designs, noise and number of measurements for every library.

    python benchmarks/regret.py run --runs runs.jsonl [--methods surefoot botorch ...] [--seeds 20] [--problems ...]
    python benchmarks/regret.py table --runs runs.jsonl [more.jsonl ...]

A run is one line of a JSON-lines file: problem, method, seed, and the regret of the best measured point after every
measurement. Runs already in the file are not repeated, so that a change of one library costs only its own runs. The
table compares, seed by seed, the logarithm of the final regret of Surefoot with that of the better peer: the one whose
mean is lowest on that problem.

Initial designs have d + 1 Sobol points (at least 3). With noise the regret is that of the point each library would have
its user take; without, that of the best measured point.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import t as student

from peers import OPTIMIZERS, threads
from surefoot import Int, Space
from surefoot_lab import datasets, problems

FIRST_SEED = 5000  # the defaults were chosen on seeds below 5000
NOISE = 0.04  # variance of a measurement of the noisy Hartmann-6: a standard deviation of 0.2, values from 0 to 3.32


@dataclass(frozen=True)
class Case:
    """How to make a problem, measurements after its initial design, and the smallest regret told apart from none."""

    make: Callable[[], problems.Problem]
    budget: int
    floor: float = 1e-12
    noisy: bool = False


def svm_grid() -> problems.Problem:
    """1400 measured settings of a support vector machine; a point holds the place of each value on its axis."""
    table = datasets.load("svm_grid")
    names = ("C", "alpha", "epsilon")
    axes = {name: np.unique(table[name]) for name in names}
    places = np.stack([np.searchsorted(axes[name], table[name]) for name in names], axis=1)
    scores = np.full([len(axis) for axis in axes.values()], np.nan)
    scores[tuple(places.T)] = -table["validation_error"]
    space = Space({name: Int(0, len(axis) - 1) for name, axis in axes.items()})
    best = places[np.argmax(-table["validation_error"])][None].astype(np.float64)
    return problems.Problem("SVM grid", space, lambda X: scores[tuple(np.rint(X).astype(int).T)], scores.max(), best)


CASES = {
    "branin": Case(problems.branin, 30),
    "hartmann6": Case(problems.hartmann6, 50),
    "levy4": Case(lambda: problems.levy(4), 50),
    "ackley5": Case(lambda: problems.ackley(5), 50),
    "rosenbrock4": Case(lambda: problems.rosenbrock(4), 50),
    "noisy_hartmann6": Case(lambda: problems.hartmann6().noisy(NOISE), 50, noisy=True),
    "svm_grid": Case(svm_grid, 50, floor=1e-5),  # errors are multiples of 0.00002
}


def play(case: Case, method: str, seed: int) -> dict[str, object]:
    """One run; returns what is stored of it."""
    problem, rng = case.make(), np.random.default_rng([seed, 1])
    size = max(3, problem.domain.dimension + 1)
    X = problem.domain.design(size, np.random.default_rng([seed, 0]))
    optimizer = OPTIMIZERS[method](problem.domain, X, np.array([problem.measure(x, rng) for x in X]), seed)
    regrets = [float(problem.regret(X).min())]
    for _ in range(case.budget):
        x = optimizer.ask()
        optimizer.tell(x, problem.measure(x, rng))
        regrets.append(min(regrets[-1], float(problem.regret(x)[0])))
    taken = float(problem.regret(optimizer.best())[0]) if case.noisy else regrets[-1]
    trace = [float(f"{r:.3e}") for r in regrets]
    return {"version": OPTIMIZERS[method].version(), "regret": taken, "trace": trace}


def run(path: Path, methods: list[str], names: list[str], seeds: int, first: int) -> None:
    done = {(r["problem"], r["method"], r["seed"]) for r in stored([path])}
    with path.open("a", encoding="utf-8") as file:
        for seed in range(first, first + seeds):
            for name in names:
                for method in methods:
                    if (name, method, seed) not in done:
                        line = {"problem": name, "method": method, "seed": seed, **play(CASES[name], method, seed)}
                        file.write(json.dumps(line) + "\n")
                        file.flush()


def stored(paths: Iterable[Path]) -> list[dict]:
    lines = [line for path in paths if path.exists() for line in path.read_text(encoding="utf-8").splitlines()]
    return [json.loads(line) for line in lines]


def interval(differences: np.ndarray) -> tuple[float, float, float]:
    """Mean and its 95 % interval by Student's t."""
    middle, n = float(differences.mean()), len(differences)
    half = float(student.ppf(0.975, n - 1) * differences.std(ddof=1) / math.sqrt(n)) if n > 1 else math.inf
    return middle, middle - half, middle + half


def table(paths: list[Path], against: str = "surefoot") -> str:
    """Return a Markdown table: mean log10 regret of every method, and the paired difference to the better peer."""
    logs: dict[str, dict[str, dict[int, float]]] = {}
    for r in stored(paths):
        value = math.log10(max(r["regret"], CASES[r["problem"]].floor))
        logs.setdefault(r["problem"], {}).setdefault(r["method"], {})[r["seed"]] = value
    methods = [m for m in OPTIMIZERS if any(m in found for found in logs.values())]
    rows = [f"| problem | measurements | seeds | {' | '.join(methods)} | better peer | difference, 95 % interval |"]
    rows.append("|---" * (len(methods) + 5) + "|")
    for name, found in logs.items():
        means = {m: float(np.mean(list(found[m].values()))) for m in methods if m in found}
        most = max((len(found[m]) for m in means if m != against), default=0)
        peers = {m: v for m, v in means.items() if m != against and len(found[m]) == most}  # the others are unfinished
        cells = [f"{means[m]:.2f}" if m in means else "" for m in methods]
        rest = ["", "", ""]
        if against in found and peers:
            rival = min(peers, key=lambda m: peers[m])
            seeds = sorted(set(found[against]) & set(found[rival]))
            if len(seeds) > 1:
                own, peer = ([found[m][s] for s in seeds] for m in (against, rival))
                middle, low, high = interval(np.array(own) - np.array(peer))
                verdict = " **ours**" if high < 0 else " theirs" if low > 0 else ""
                rest = [str(len(seeds)), rival, f"{middle:+.2f} [{low:+.2f}, {high:+.2f}]{verdict}"]
        rows.append(f"| {name} | {CASES[name].budget} | {rest[0]} | {' | '.join(cells)} | {rest[1]} | {rest[2]} |")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "table"])
    parser.add_argument("--runs", type=Path, nargs="+", required=True, help="files of runs; `run` adds to the first")
    parser.add_argument(
        "--methods", nargs="+", default=["surefoot", "botorch", "optuna", "bayes_opt"], choices=OPTIMIZERS
    )
    parser.add_argument("--problems", nargs="+", default=list(CASES), choices=CASES)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    options = parser.parse_args()
    if options.what == "run":
        with threads(1):
            run(options.runs[0], options.methods, options.problems, options.seeds, options.first_seed)
    print(table(options.runs))


if __name__ == "__main__":
    main()
