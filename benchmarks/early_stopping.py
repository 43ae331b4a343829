"""Early stopping beside the peers: the same problems, seeds and total number of epochs for every method.

    python benchmarks/early_stopping.py run --runs runs.jsonl [--methods ...] [--problems ...] [--seeds 5] [--cache DIR]
    python benchmarks/early_stopping.py table --runs runs.jsonl [more.jsonl ...]

Two kinds of problems: LCBench, the learning curves of networks on several data sets as a fitted model predicts them;
and real networks, trained by scikit-learn on digits and on a part of Fashion-MNIST. Every method spends the same number
of epochs, begins with the same configurations, and is judged by the highest validation accuracy it has reached. Runs
that were stopped are finished outside the budget: one that ends above the best run of its time was stopped wrongly.
(Optuna's stopped runs are finished on LCBench only, where that costs nothing.)

A run of a method is one line of a JSON-lines file; those already in the file are not repeated, so that a change of one
method costs only its own runs. ``--cache`` keeps the curves of trained networks. One process per core, one thread each.

Optuna's samplers and pruners have their default settings, with two exceptions: the first d + 1 configurations are the
shared ones, and ``GPSampler`` counts these as its start-up trials.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from peers import threads
from surefoot import BOBOS, GPUCB, Int, Policy
from surefoot.intervals import bootstrap_interval, t_interval, wilson
from surefoot_lab.curves import Curves, Run, drive
from surefoot_lab.lcbench import lcbench
from surefoot_lab.networks import Training, digits, fashion_mnist

FIRST_SEED = 5000  # the defaults were chosen on seeds below 5000, and on other data sets of LCBench
TASKS = (3945, 126026, 167149, 167181, 167200, 168331, 168910, 189866)
LCBENCH, NETWORKS = [f"lcbench-{task}" for task in TASKS], ["digits", "fashion"]
OURS, PLAIN, PUBLISHED = "BO-BOS", "GP-UCB", "BO-BOS, published"


@dataclass(frozen=True)
class Case:
    """A problem for a seed and a cache, the budget in complete runs, and how many seeds it gets."""

    make: Callable[[int, str | None], Any]
    budget: int
    seeds: int


def cases() -> dict[str, Case]:
    found = {name: Case(lambda seed, cache, task=name[8:]: lcbench(task), 30, 5) for name in LCBENCH}
    return found | {
        "digits": Case(lambda seed, cache: digits(seed, cache=cache), 25, 10),
        "fashion": Case(lambda seed, cache: fashion_mnist(seed, cache=cache), 25, 10),
    }


# -- methods -----------------------------------------------------------------------------------------------------------

Played = tuple[list[Run], np.ndarray]


def surefoot(make: Callable[[Curves, int], Policy]) -> Callable[[Any, int, int], Played]:
    return lambda problem, budget, seed: drive(make(problem, seed), problem, budget, np.random.default_rng)


def optuna(sampler: Callable[[Any, int, int], Any], pruner: Callable[[Any, int], Any]) -> Callable[..., Played]:
    """Optuna, driven by ask and tell so that epochs can be counted."""

    def play(problem: Any, budget: int, seed: int) -> Played:
        import optuna as library

        library.logging.set_verbosity(library.logging.ERROR)
        shared = GPUCB(problem.domain, seed=seed)
        axes = {name: _axis(library, p) for name, p in problem.domain.parameters.items()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some samplers and options are marked experimental
            study = library.create_study(
                direction="maximize",
                sampler=sampler(library, seed, shared.initial),
                pruner=pruner(library, problem.epochs),
            )
            for query in shared.ask(shared.initial):
                study.enqueue_trial(query.params)
            return _optimize(library, study, axes, problem, budget)

    return play


def _axis(library: Any, parameter: Any) -> Any:
    """A number of ours as one of Optuna's; no problem here has choices."""
    d = library.distributions
    kind = d.IntDistribution if isinstance(parameter, Int) else d.FloatDistribution
    return kind(parameter.low, parameter.high, log=parameter.log)


def _optimize(library: Any, study: Any, axes: dict[str, Any], problem: Any, budget: int) -> Played:
    state = library.trial.TrialState
    runs: list[Run] = []
    reached: list[float] = []
    incumbent = None
    while len(reached) < budget:
        trial = study.ask(axes)
        x = problem.domain.point(trial.params)
        curve, value, stopped = _scores(problem, x), float("nan"), False
        epoch = 0
        while epoch < problem.epochs and len(reached) < budget and not stopped:
            value, epoch = next(curve), epoch + 1
            reached.append(value)
            trial.report(value, epoch)
            stopped = epoch < problem.epochs and trial.should_prune()
        final = value
        if stopped and not isinstance(problem, Training):
            final = list(curve)[-1]
        runs.append(Run(trial.number, x, 0, epoch, stopped, incumbent, value, final))
        if stopped:
            study.tell(trial, state=state.PRUNED)
        elif epoch == problem.epochs:
            study.tell(trial, value)
        incumbent = value if incumbent is None else max(incumbent, value)
    return runs, np.maximum.accumulate(reached)


def _scores(problem: Any, x: np.ndarray) -> Iterator[float]:
    """The scores of a run, trained no further than they are asked for."""
    return problem.scores(x) if isinstance(problem, Training) else iter(problem.curve(x).tolist())


METHODS: dict[str, Callable[[Any, int, int], Played]] = {
    OURS: surefoot(lambda problem, seed: BOBOS(problem.domain, epochs=problem.epochs, seed=seed)),
    PLAIN: surefoot(lambda problem, seed: GPUCB(problem.domain, seed=seed)),
    PUBLISHED: surefoot(lambda problem, seed: BOBOS.published(problem.domain, epochs=problem.epochs, seed=seed)),
    "TPE + median": optuna(
        lambda library, seed, initial: library.samplers.TPESampler(seed=seed),
        lambda library, epochs: library.pruners.MedianPruner(),
    ),
    "TPE + Hyperband": optuna(
        lambda library, seed, initial: library.samplers.TPESampler(seed=seed),
        lambda library, epochs: library.pruners.HyperbandPruner(min_resource=1, max_resource=epochs),
    ),
    "GPSampler": optuna(
        lambda library, seed, initial: library.samplers.GPSampler(seed=seed, n_startup_trials=initial),
        lambda library, epochs: library.pruners.NopPruner(),
    ),
}


# -- running -----------------------------------------------------------------------------------------------------------


def play(name: str, method: str, seed: int, cache: str | None) -> dict[str, Any]:
    """One run; returns what is stored of it."""
    case = cases()[name]
    problem = case.make(seed, cache)
    budget = case.budget * problem.epochs
    start = time.process_time()
    with threads(1):
        runs, best = METHODS[method](problem, budget, seed)
    stopped = [run for run in runs if run.stopped]
    finished = method in (OURS, PUBLISHED) or not isinstance(problem, Training)
    steps = np.flatnonzero(np.diff(best, prepend=-np.inf) > 0)
    return {
        "problem": name,
        "method": method,
        "seed": seed,
        "version": version("optuna" if "TPE" in method or method == "GPSampler" else "surefoot"),
        "budget": budget,
        "epochs": problem.epochs,
        "best": [[int(i) + 1, float(best[i])] for i in steps],
        "ends": [run.end for run in runs],
        "stopped": len(stopped),
        "false": sum(run.false_stop for run in stopped) if finished else None,
        "seconds": round(time.process_time() - start, 2),
    }


def several(name: str, methods: list[str], seed: int, cache: str | None) -> list[dict[str, Any]]:
    return [play(name, method, seed, cache) for method in methods]


def run(options: argparse.Namespace) -> None:
    done = {(r["problem"], r["method"], r["seed"]) for r in stored([options.runs])}
    work = []
    for name in options.problems:
        seeds = options.seeds or cases()[name].seeds
        for seed in range(options.first, options.first + seeds):
            missing = [method for method in options.methods if (name, method, seed) not in done]
            if missing:
                work.append((seed, name, missing))
    work.sort(key=lambda item: item[0])  # seed by seed: ended early, every problem has some
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = "1"  # read by the workers when they start
    options.runs.parent.mkdir(parents=True, exist_ok=True)
    with (
        options.runs.open("a", encoding="utf-8") as file,
        ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool,
    ):
        waiting = [pool.submit(several, name, methods, seed, options.cache) for seed, name, methods in work]
        for number, future in enumerate(as_completed(waiting), start=1):
            for line in future.result():
                file.write(json.dumps(line) + "\n")
            file.flush()
            print(f"{number}/{len(waiting)}", flush=True)


def stored(paths: Iterable[Path]) -> list[dict[str, Any]]:
    lines = [line for path in paths if path.exists() for line in path.read_text(encoding="utf-8").splitlines()]
    return [json.loads(line) for line in lines]


# -- tables ------------------------------------------------------------------------------------------------------------

Runs = dict[tuple[str, int], dict[str, Any]]  # by problem and seed


def after(record: dict[str, Any], share: float) -> float:
    """The best score after a share of the budget."""
    spent = share * record["budget"]
    return [score for epoch, score in record["best"] if epoch <= spent or epoch == 1][-1]


def needed(record: dict[str, Any], goal: float) -> float | None:
    """The share of the budget after which a score is reached; None: never."""
    return next((epoch / record["budget"] for epoch, score in record["best"] if score >= goal), None)


def table(paths: list[Path]) -> str:
    by_method: dict[str, Runs] = {}
    for r in stored(paths):
        by_method.setdefault(r["method"], {})[r["problem"], r["seed"]] = r
    names = {problem for runs in by_method.values() for problem, _ in runs}
    groups = {"LCBench, all": [n for n in LCBENCH if n in names]} | {n: [n] for n in (*LCBENCH, *NETWORKS)}
    groups = {title: members for title, members in groups.items() if set(members) & names}
    order = [method for method in METHODS if method in by_method]
    return "\n\n".join(
        [
            _scores_table(by_method, groups, order),
            _epochs_table(by_method, groups),
            _stops_table(by_method, groups, order),
        ]
    )


def _pairs(by_method: dict[str, Runs], members: list[str], *methods: str) -> list[tuple[str, int]]:
    common = set.intersection(*(set(by_method.get(method, {})) for method in methods))
    return sorted(key for key in common if key[0] in members)


def _scores_table(by_method: dict[str, Runs], groups: dict[str, list[str]], order: list[str]) -> str:
    lines = [
        "Best validation score at the end (percent), and BO-BOS less each method at the same number of epochs "
        "(points, 95 % interval, paired)",
        "",
        f"| problem | pairs | {' | '.join(order)} |",
        f"|---|---|{'---|' * len(order)}",
    ]
    for title, members in groups.items():
        cells = []
        for method in order:
            keys = _pairs(by_method, members, OURS, method)
            if not keys:
                cells.append("")
                continue
            scores = 100.0 * np.array([after(by_method[method][key], 1.0) for key in keys])
            ours = 100.0 * np.array([after(by_method[OURS][key], 1.0) for key in keys])
            middle, low, high = t_interval(ours - scores, 0.95)
            cells.append(
                f"{scores.mean():.2f}" + ("" if method == OURS else f"; {middle:+.2f} [{low:+.2f}, {high:+.2f}]")
            )
        lines.append(f"| {title} | {len(_pairs(by_method, members, OURS))} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _epochs_table(by_method: dict[str, Runs], groups: dict[str, list[str]]) -> str:
    lines = [
        "Epochs to GP-UCB's final quality, as a share of the budget (the whole budget where it is not reached)",
        "",
        "| problem | pairs | BO-BOS reaches it | mean share, BO-BOS | GP-UCB itself "
        "| share at which the mean scores meet | BO-BOS at 70 % less GP-UCB at the end, points |",
        "|---|---|---|---|---|---|---|",
    ]
    grid = np.linspace(0.0, 1.0, 101)
    for title, members in groups.items():
        keys = _pairs(by_method, members, OURS, PLAIN)
        if not keys:
            continue
        ours, plain = [by_method[OURS][key] for key in keys], [by_method[PLAIN][key] for key in keys]
        goals = np.array([after(r, 1.0) for r in plain])
        shares = [needed(r, goal) for r, goal in zip(ours, goals, strict=True)]
        own = [needed(r, goal) or 1.0 for r, goal in zip(plain, goals, strict=True)]
        mean = t_interval(np.array([1.0 if share is None else share for share in shares]), 0.95)
        curves = np.array([[after(r, share) for share in grid] for r in ours])

        def meeting(pick: Any, curves: np.ndarray = curves, goals: np.ndarray = goals) -> Any:
            ahead = curves[pick].mean(axis=-2) >= goals[pick].mean(axis=-1)[..., None]
            return np.where(ahead.any(axis=-1), grid[ahead.argmax(axis=-1)], 1.0)

        meet = bootstrap_interval(meeting, len(keys), 0.95)
        gap = t_interval(100.0 * (np.array([after(r, 0.7) for r in ours]) - goals), 0.95)
        lines.append(
            f"| {title} | {len(keys)} | {sum(s is not None for s in shares)} | {_interval(mean)} | {np.mean(own):.2f} "
            f"| {_interval(meet)} | {_interval(gap, '+.2f')} |"
        )
    return "\n".join(lines)


def _stops_table(by_method: dict[str, Runs], groups: dict[str, list[str]], order: list[str]) -> str:
    lines = [
        "Stopped runs, and those that would have beaten the best run of their time (Wilson 95 % interval)",
        "",
        "| problem | method | runs per seed | epochs per run | stopped | wrongly | share |",
        "|---|---|---|---|---|---|---|",
    ]
    for title, members in groups.items():
        for method in order:
            records = [by_method[method][key] for key in _pairs(by_method, members, method)]
            stopped = sum(r["stopped"] for r in records)
            if not stopped:
                continue
            counted = [r["false"] for r in records if r["false"] is not None]
            false = sum(counted)
            low, high = wilson(false, stopped)
            share = (
                f"{false} | {false / stopped:.1%} [{low:.1%}, {high:.1%}]" if len(counted) == len(records) else " | "
            )
            ends = [end for r in records for end in r["ends"]]
            lines.append(
                f"| {title} | {method} | {len(ends) / len(records):.0f} | {np.mean(ends):.0f} | {stopped} | {share} |"
            )
    return "\n".join(lines)


def _interval(found: tuple[float, float, float], form: str = ".2f") -> str:
    middle, low, high = (format(value, form) for value in found)
    return f"{middle} [{low}, {high}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run")
    running.add_argument("--runs", type=Path, required=True)
    running.add_argument("--methods", nargs="+", choices=list(METHODS), default=[m for m in METHODS if m != PUBLISHED])
    running.add_argument("--problems", nargs="+", choices=list(cases()), default=list(cases()))
    running.add_argument("--seeds", type=int, help="by default 5 for each data set of LCBench, 10 for each network")
    running.add_argument("--first", type=int, default=FIRST_SEED)
    running.add_argument("--workers", type=int, default=os.cpu_count())
    running.add_argument("--cache", help="folder for the curves of trained networks")
    printing = commands.add_parser("table")
    printing.add_argument("--runs", type=Path, nargs="+", required=True)
    options = parser.parse_args()
    if options.command == "run":
        run(options)
    else:
        print(table(options.runs))


if __name__ == "__main__":
    main()
