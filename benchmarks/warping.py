"""Treated values: the default with and without warps and outliers, on functions whose values are badly scaled and not.

    python benchmarks/warping.py run --runs warping.jsonl [--part report] [--seeds 10] [--problems ...]
    python benchmarks/warping.py table --runs warping.jsonl

Both runs of a pair are expected improvement with the same seed, 45 measurements without noise; one sees the values as
they are. A regret below a billionth of the range of the function over 256 Sobol points counts as that. Settings were
chosen on the part `choose`; the page reports the part `report`, other functions and seeds. Runs already in the file are
not repeated.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.stats import t as student

from surefoot import Box, ExpectedImprovement
from surefoot_lab import problems
from surefoot_lab.problems import Problem

BUDGET, FLOOR = 45, 1e-9
Array = np.ndarray


class AsTheyAre(ExpectedImprovement):
    """The default, which sees values as they are told."""

    treats = False


METHODS = {"treated": ExpectedImprovement, "as they are": AsTheyAre}


def _made(name: str, bounds: list[tuple[float, float]], f: Callable[[Array], Array], best: list[float]) -> Problem:
    """A function to minimize, with its minimizer."""
    at = np.array([best])
    return Problem(name, Box(bounds), lambda X: -f(X), float(-f(at)[0]), at)


def powell() -> Problem:
    def f(X: Array) -> Array:
        a, b, c, d = X.T
        return (a + 10 * b) ** 2 + 5 * (c - d) ** 2 + (b - 2 * c) ** 4 + 10 * (a - d) ** 4

    return _made("Powell-4", [(-4.0, 5.0)] * 4, f, [0.0] * 4)


def colville() -> Problem:
    def f(X: Array) -> Array:
        a, b, c, d = X.T
        valleys = 100 * (a**2 - b) ** 2 + (a - 1) ** 2 + (c - 1) ** 2 + 90 * (c**2 - d) ** 2
        return valleys + 10.1 * ((b - 1) ** 2 + (d - 1) ** 2) + 19.8 * (b - 1) * (d - 1)

    return _made("Colville-4", [(-10.0, 10.0)] * 4, f, [1.0] * 4)


def zakharov() -> Problem:
    def f(X: Array) -> Array:
        slope = 0.5 * X @ np.arange(1, X.shape[1] + 1)
        return (X**2).sum(axis=1) + slope**2 + slope**4

    return _made("Zakharov-4", [(-5.0, 10.0)] * 4, f, [0.0] * 4)


def three_humps() -> Problem:
    def f(X: Array) -> Array:
        a, b = X.T
        return 2 * a**2 - 1.05 * a**4 + a**6 / 6 + a * b + b**2

    return _made("Three-hump camel", [(-5.0, 5.0)] * 2, f, [0.0, 0.0])


def exponential() -> Problem:
    def f(X: Array) -> Array:
        return np.exp(12.0 * np.sqrt(((X - 0.4) ** 2).mean(axis=1)))

    return _made("exp of a distance", [(0.0, 1.0)] * 3, f, [0.4] * 3)


BADLY = {
    "choose": [
        problems.goldstein_price,
        lambda: problems.rosenbrock(4),
        problems.beale,
        lambda: problems.dixon_price(4),
    ],
    "report": [powell, colville, zakharov, three_humps, exponential, lambda: problems.rosenbrock(2)],
}
SMOOTH = {
    "choose": [problems.branin, problems.hartmann6, lambda: problems.levy(4), problems.six_hump_camel],
    "report": [
        problems.hartmann3,
        lambda: problems.styblinski_tang(3),
        problems.michalewicz,
        lambda: problems.ackley(3),
        problems.shekel,
        lambda: problems.rastrigin(2),
    ],
}
FIRST_SEED = {"choose": 0, "report": 7000}


def play(problem: Problem, method: str, seed: int) -> dict[str, float]:
    """One run: regret relative to the range of the function, after 25 and after all measurements."""
    values = problem(problem.domain.design(256, np.random.default_rng(0)))
    policy, regrets = METHODS[method](problem.domain, seed=seed), []
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for _ in range(BUDGET):
            query = policy.ask()
            policy.tell(query, float(problem(query.x)[0]))
            regrets.append(float(problem.regret(query.x)[0]) / float(np.ptp(values)))
    return {"after 25": min(regrets[:25]), "regret": min(regrets), "warnings": len(said)}


def run(path: Path, part: str, seeds: int, names: list[str] | None) -> None:
    done = {(r["problem"], r["method"], r["seed"]) for r in stored(path)}
    with path.open("a", encoding="utf-8") as file:
        for seed in range(FIRST_SEED[part], FIRST_SEED[part] + seeds):
            for kind, makers in (("badly scaled", BADLY[part]), ("smooth", SMOOTH[part])):
                for problem in (make() for make in makers):
                    for method in METHODS:
                        if (problem.name, method, seed) in done or (names and problem.name not in names):
                            continue
                        head = {"kind": kind, "problem": problem.name, "method": method, "seed": seed}
                        file.write(json.dumps({**head, **play(problem, method, seed)}) + "\n")
                        file.flush()


def stored(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def table(path: Path) -> str:
    """Return a Markdown table of the paired differences of log10 regret, with 95 % intervals by Student's t."""
    logs: dict[tuple[str, str], dict[str, dict[int, tuple[float, float]]]] = {}
    for r in stored(path):
        pair = float(np.log10(max(r["after 25"], FLOOR))), float(np.log10(max(r["regret"], FLOOR)))
        logs.setdefault((r["kind"], r["problem"]), {}).setdefault(r["method"], {})[r["seed"]] = pair
    lines = [
        "| function | seeds | as they are | treated less that, 25 measurements | 45 measurements |",
        "|---|---|---|---|---|",
    ]
    means: dict[str, list[Array]] = {}
    for (kind, name), found in logs.items():
        seeds = sorted(set.intersection(*(set(runs) for runs in found.values()))) if len(found) == 2 else []
        if len(seeds) < 2:
            continue
        plain, treated = (np.array([found[m][s] for s in seeds]) for m in ("as they are", "treated"))
        difference = treated - plain
        means.setdefault(kind, []).append(difference.mean(axis=0))
        cells = [_interval(difference[:, i]) for i in (0, 1)]
        lines.append(f"| {name} ({kind}) | {len(seeds)} | {plain[:, 1].mean():.2f} | {cells[0]} | {cells[1]} |")
    for kind, rows in means.items():
        cells = [_interval(np.array(rows)[:, i]) for i in (0, 1)] if len(rows) > 1 else ["", ""]
        lines.append(f"| mean over {len(rows)} {kind} functions | | | {cells[0]} | {cells[1]} |")
    return "\n".join(lines)


def _interval(values: Array) -> str:
    middle, n = float(values.mean()), len(values)
    half = float(student.ppf(0.975, n - 1) * values.std(ddof=1) / np.sqrt(n))
    return f"{middle:+.2f} [{middle - half:+.2f}, {middle + half:+.2f}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "table"])
    parser.add_argument("--runs", type=Path, required=True, help="a JSON-lines file; `run` adds to it")
    parser.add_argument("--part", choices=list(FIRST_SEED), default="report")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--problems", nargs="+")
    options = parser.parse_args()
    if options.what == "run":
        run(options.runs, options.part, options.seeds, options.problems)
    print(table(options.runs))


if __name__ == "__main__":
    main()
