"""How often the forecasts of learning curves hold: every curve model on curves that nothing was chosen on.

    python benchmarks/forecasts.py [--sources lcbench digits fashion] [--models Powers Plateau] [--cache DIR]

A curve model has seen 10, 20 or 40 % of a run, and knows 0, 4 or 12 whole runs of the same study. It forecasts the last
score. The table counts how often the truth lay above its 95 % and 99 % quantile and below its 5 % quantile (ideal: 5, 1
and 5), with intervals that take data sets, or trainings with one seed, as units, and gives the continuous ranked
probability score in units of the scores (small is good).

LCBench: 42 random configurations on each of 24 data sets; the constants of ``Powers`` were chosen on the ten others.
Digits and Fashion-MNIST: 30 random configurations trained with each of 5 seeds. The ceiling of the scores is taken as
policies take it, from the runs known, of which there must be some; or the scores' own range of 0 to 1 is told.
"""

from __future__ import annotations

import argparse

import numpy as np

from surefoot.intervals import bootstrap_interval
from surefoot.policy.epochs.abandon import score_range
from surefoot.stopping import ExponentialDecay, Plateau, Powers
from surefoot_lab.lcbench import TASKS, lcbench
from surefoot_lab.networks import digits, fashion_mnist

REPORTED = ("3945", "126026", "167149", "167181", "167200", "168331", "168910", "189866")
CHOSEN_ON = [task for task in TASKS if task not in REPORTED][:10]
MODELS = {"Powers": Powers, "Plateau": Plateau, "ExponentialDecay": ExponentialDecay}
SHARES, KNOWN, PATHS = (0.1, 0.2, 0.4), (0, 4, 12), 1000
SEEDS, CONFIGURATIONS = 5, 30
Array = np.ndarray


def studies(source: str, cache: str | None) -> list[Array]:
    """Curves (runs, epochs) of each unit of a source."""
    if source == "lcbench":
        rng = lambda: np.random.default_rng(11)  # noqa: E731
        held = [lcbench(task) for task in TASKS if task not in CHOSEN_ON]
        return [problem.curves(problem.domain.sample(42, rng())) for problem in held]
    make = {"digits": digits, "fashion": fashion_mnist}[source]
    found = []
    for seed in range(SEEDS):
        problem = make(seed, cache=cache)
        X = problem.domain.design(CONFIGURATIONS, np.random.default_rng(7000 + seed))[:CONFIGURATIONS]
        found.append(np.array([problem.curve(x) for x in X]))
        print(f"{source}: seed {seed} trained", flush=True)
    return found


def judged(name: str, curves: Array, share: float, known: int, bounds: tuple[float, float] | None) -> Array:
    """One row for each curve: above 95 %, above 99 %, below 5 %, and the ranked probability score."""
    runs, horizon = curves.shape
    n, rows = round(share * horizon), []
    for i, curve in enumerate(curves):
        rng = np.random.default_rng([i, n])
        some = curves[rng.choice([j for j in range(runs) if j != i], known, replace=False)]
        model = MODELS[name]()
        room = getattr(model, "room", 0.1)
        low, high = bounds or score_range(np.concatenate([some.ravel(), curve[:n]]), room)
        errors, others = (1.0 - np.clip((scores - low) / (high - low), 0.0, 1.0) for scores in (curve, some))
        if isinstance(model, Powers):
            model = model.learn(others)
        ends = 1.0 - model.sample(errors[:n], horizon, PATHS, rng)[:, -1]
        end = 1.0 - errors[-1]
        low5, high95, high99 = np.quantile(ends, [0.05, 0.95, 0.99])
        half = len(ends) // 2
        crps = np.abs(ends - end).mean() - 0.5 * np.abs(ends[:half] - ends[half : 2 * half]).mean()
        rows.append((end > high95, end > high99, end < low5, crps * (high - low)))
    return np.array(rows, dtype=np.float64)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sources", nargs="+", default=["lcbench", "digits", "fashion"])
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=["Powers", "Plateau"])
    parser.add_argument("--cache", help="folder in which the curves of trained networks are kept")
    options = parser.parse_args()
    print("source | model | ceiling | seen | known | above 95 % | above 99 % | below 5 % | CRPS")
    print("---|---|---|---|---|---|---|---|---")
    for source in options.sources:
        units = studies(source, options.cache)
        for name in options.models:
            learns = name == "Powers"
            # A model that does not learn knows other runs by the ceiling alone.
            cases = [((0.0, 1.0), k) for k in (KNOWN if learns else (0,))] + [(None, k) for k in KNOWN[1:]]
            for bounds, known in cases:
                for share in SHARES:
                    means = np.array([judged(name, unit, share, known, bounds).mean(axis=0) for unit in units])
                    print(row(source, name, bounds, share, known, means), flush=True)


def row(source: str, name: str, bounds: object, share: float, known: int, means: Array) -> str:
    cells = []
    for column in range(3):
        values = 100.0 * means[:, column]
        centre, low, high = bootstrap_interval(lambda pick, v=values: v[pick].mean(axis=-1), len(values), 0.95)
        cells.append(f"{centre:.1f} [{low:.1f}, {high:.1f}]")
    ceiling = "told" if bounds else "from runs"
    shown = [source, name, ceiling, f"{100 * share:.0f} %", str(known), *cells]
    return " | ".join([*shown, f"{means[:, 3].mean():.4f}"])


if __name__ == "__main__":
    main()
