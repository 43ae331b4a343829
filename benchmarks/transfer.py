"""What earlier tasks are worth: RM-GP-UCB beside GP-UCB, RGPE, TAF and others, with helpful and with misleading tasks.

    python benchmarks/transfer.py run --runs runs.jsonl [--suites svm lcbench] [--tasks good negated permuted]
                                      [--methods ...] [--targets 10] [--seeds 3] [--budget 30] [--workers 2]
    python benchmarks/transfer.py table --runs runs.jsonl [more.jsonl ...]

Suites: ``svm``, 288 configurations of a support vector machine on 50 data sets (49 tasks of 50 measurements each);
``lcbench``, seven hyper-parameters of a network, final accuracy as a fitted model predicts it (10 tasks of 50 random
configurations). Tasks: ``good`` as they are; ``negated``, mirrored about their mean; ``permuted``, their values
shuffled over their points. Every method has its defaults and starts from nothing: GP-UCB begins with its design, a
method that knows tasks lets them choose first. GP-UCB has RM-GP-UCB's width.

Regrets are divided by what a random configuration loses on average, so that targets can be averaged: 1 is random, 0 is
the optimum. A run is one line of a JSON-lines file; those already in the file are not repeated. One process per core,
one thread each. The data sets ``svm_meta`` and ``lcbench`` are looked for under ``SUREFOOT_DATA``.
"""

from __future__ import annotations

import os

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import argparse
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from surefoot import GPUCB, RGPE, RMGPTS, RMGPUCB, TAF, Policy, RandomSearch, Task, widths
from surefoot.intervals import t_interval
from surefoot_lab import Problem, Replicate, compare
from surefoot_lab.baselines.pem import PEMBO
from surefoot_lab.baselines.warm_start import WarmStart
from surefoot_lab.experiments.rm_gp_ucb import _svm
from surefoot_lab.lcbench import TASKS, lcbench

FIRST_SEED = 1000
STEPS = (1, 2, 3, 5, 10, 20, 30)
UCB = "GP-UCB"
Make = Callable[..., Policy]

METHODS: dict[str, Make] = {
    UCB: lambda domain, tasks, **o: GPUCB(domain, width=widths.Logarithmic(0.2), **o),
    "RM-GP-UCB": lambda domain, tasks, **o: RMGPUCB(domain, tasks=tasks, **o),
    "RM-GP-UCB, tasks scaled": lambda domain, tasks, **o: RMGPUCB(domain, tasks=tasks, scaling="task", **o),
    "RM-GP-TS": lambda domain, tasks, **o: RMGPTS(domain, tasks=tasks, **o),
    "RGPE": lambda domain, tasks, **o: RGPE(domain, tasks=tasks, **o),
    "TAF": lambda domain, tasks, **o: TAF(domain, tasks=tasks, **o),
    "TAF, scaled L2": lambda domain, tasks, **o: TAF(domain, tasks=tasks, distance="scaled_l2", **o),
    "PEM-BO": lambda domain, tasks, **o: PEMBO(domain, tasks=tasks, **o),
    "warm start": lambda domain, tasks, **o: WarmStart(domain, tasks=tasks, **o),
    "random": lambda domain, tasks, **o: RandomSearch(domain, **o),
}


def mislead(task: Task, how: str, rng: np.random.Generator) -> Task:
    if how == "negated":
        return Task(task.X, 2.0 * task.y.mean() - task.y, task.name)
    return task if how == "good" else Task(task.X, rng.permutation(task.y), task.name)


def case(suite: str, target: int, replicate: Replicate) -> tuple[Problem, list[Task]]:
    if suite == "svm":
        return _svm.case(target, replicate)
    others = [name for i, name in enumerate(TASKS) if i != target]
    tasks = []
    for i in replicate.rng("tasks").choice(len(others), 10, replace=False):
        curves = lcbench(others[i])
        X = curves.domain.sample(50, replicate.rng("task", int(i)))
        tasks.append(Task(X, curves.final(X), curves.name))
    return lcbench(TASKS[target]).problem(), tasks


def one(suite: str, how: str, target: int, seed: int, method: str, budget: int) -> dict:
    replicate = Replicate(1000 * target + seed, FIRST_SEED)
    problem, tasks = case(suite, target, replicate)
    tasks = [mislead(task, how, replicate.rng("mislead", i)) for i, task in enumerate(tasks)]
    options = {"repeats": False} if suite == "svm" else {}
    scale = float(problem.regret(problem.domain.sample(1000, np.random.default_rng(0))).mean())
    start = time.perf_counter()
    policies = {method: lambda domain, s: METHODS[method](domain, tasks, seed=s, **options)}
    trace = compare(policies, problem, budget, replicate)[method]
    return {
        "suite": suite,
        "tasks": how,
        "target": target,
        "seed": seed,
        "method": method,
        "regret": np.maximum(trace["simple_regret"] / scale, 0.0).round(6).tolist(),
        "seconds": round(time.perf_counter() - start, 3),
    }


def key(run: dict) -> tuple:
    return run["suite"], run["tasks"], run["target"], run["seed"], run["method"], len(run["regret"])


def read(paths: list[Path]) -> Iterator[dict]:
    for path in paths:
        if path.exists():
            yield from (json.loads(line) for line in path.read_text().splitlines())


def run(arguments: argparse.Namespace) -> None:
    done = {key(found) for found in read(arguments.runs)}
    jobs = [
        (suite, how, target, seed, method, arguments.budget)
        for seed in range(arguments.seeds)
        for suite in arguments.suites
        for target in np.linspace(0, 49 if suite == "svm" else len(TASKS) - 1, arguments.targets).astype(int).tolist()
        for how in arguments.tasks
        for method in arguments.methods
        if not (method == "PEM-BO" and suite != "svm")  # candidates only
    ]
    jobs = [job for job in jobs if (*job[:4], job[4], job[5]) not in done]
    with (
        ProcessPoolExecutor(arguments.workers, mp_context=get_context("spawn")) as pool,
        open(arguments.runs[0], "a", encoding="utf-8") as file,
    ):
        futures = [pool.submit(one, *job) for job in jobs]
        for number, future in enumerate(as_completed(futures), start=1):
            file.write(json.dumps(future.result()) + "\n")
            file.flush()
            if number % 50 == 0 or number == len(jobs):
                print(f"{number} of {len(jobs)} runs", flush=True)


def table(arguments: argparse.Namespace) -> None:
    runs = {key(found): found for found in read(arguments.runs)}
    for suite, how, budget in sorted({(k[0], k[1], k[5]) for k in runs}):
        steps = [t for t in STEPS if t <= budget]
        found = {k[2:5]: np.array(r["regret"]) for k, r in runs.items() if (k[0], k[1], k[5]) == (suite, how, budget)}
        print(f"\n### {suite}, {how} tasks\n")
        print("| method | runs | " + " | ".join(f"t = {t}" for t in steps) + " | against GP-UCB at the end [95 %] |")
        print("|" + "---|" * (len(steps) + 3))
        for method in METHODS:
            own = {k[:2]: r for k, r in found.items() if k[2] == method}
            if not own:
                continue
            mean = np.mean(list(own.values()), axis=0)
            pairs = [(r, found[(*k, UCB)]) for k, r in own.items() if (*k, UCB) in found]
            ends = np.array([[mine[-1], other[-1]] for mine, other in pairs]).reshape(-1, 2).T
            beside = "" if method == UCB or not pairs else against(*ends)
            print(f"| {method} | {len(own)} | " + " | ".join(f"{mean[t - 1]:.3f}" for t in steps) + f" | {beside} |")


def against(own: np.ndarray, other: np.ndarray) -> str:
    """The paired difference, and where it lies in standard errors of GP-UCB."""
    estimate, low, high = t_interval(own - other, 0.95)
    error = other.std(ddof=1) / np.sqrt(len(other)) if len(other) > 1 else np.nan
    return f"{estimate:+.3f} [{low:+.3f}, {high:+.3f}], {estimate / error:+.1f} se of GP-UCB"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["run", "table"])
    parser.add_argument("--runs", type=Path, nargs="+", required=True)
    parser.add_argument("--suites", nargs="+", default=["svm", "lcbench"], choices=["svm", "lcbench"])
    parser.add_argument("--tasks", nargs="+", default=["good", "negated", "permuted"])
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--targets", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--budget", type=int, default=30)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    chosen = parser.parse_args()
    (run if chosen.what == "run" else table)(chosen)
