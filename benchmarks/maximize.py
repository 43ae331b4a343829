"""The batched maximizer beside SciPy's L-BFGS-B run from each of the same starts, on the same score.

    python benchmarks/maximize.py

Prints for each case the time of both (one thread), their ratio, and how far the best value of each lies below the best
that any of them found, in units of log expected improvement. The last column is the share of the maximizer's time that
is spent outside the score.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import statistics
import time

import numpy as np
from scipy.optimize import minimize

from surefoot.belief.gp import GP
from surefoot.domain import Box
from surefoot.domain import search as search
from surefoot.policy.acquisition import BeliefScore
from surefoot.policy.improvement import LogImprovement
from surefoot_lab.problems import ackley, branin, hartmann6, levy


class Timed:
    """Counts the time that a score takes."""

    def __init__(self, score: BeliefScore) -> None:
        self.score, self.seconds = score, 0.0

    def __call__(self, E: np.ndarray) -> np.ndarray:
        begin = time.perf_counter()
        out = self.score(E)
        self.seconds += time.perf_counter() - begin
        return out

    def gradient(self, E: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        begin = time.perf_counter()
        out = self.score.gradient(E)
        self.seconds += time.perf_counter() - begin
        return out


def one_by_one(score: BeliefScore, box: Box, starts: np.ndarray) -> float:
    lower, width = box.lower, box.extent()

    def negative(t: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = score.gradient((lower + t * width)[None, :])
        return -value[0], -gradient[0] * width

    bounds = [(0.0, 1.0)] * len(lower)
    runs = (minimize(negative, (e - lower) / width, jac=True, method="L-BFGS-B", bounds=bounds) for e in starts)
    return max(-run.fun for run in runs)


def compare(name: str, problem, n: int, repetitions: int = 10) -> None:
    rows = []
    for seed in range(repetitions):
        box, rng = problem.domain, np.random.default_rng(seed)
        X = box.design(n, rng)
        y = problem(X)
        posterior = GP.automatic(box).fit(X, y, rng=rng).condition(X, y)
        score = BeliefScore(posterior, LogImprovement(float(posterior.mean(X).max()), 1e-10))
        seeds = X[np.argsort(-y)[:3]]
        search.maximize(score, box, rng=rng, seeds=seeds)  # warm

        timed, begin = Timed(score), time.perf_counter()
        _, ours = search.maximize(timed, box, rng=np.random.default_rng(seed), seeds=seeds)
        whole = time.perf_counter() - begin

        begin = time.perf_counter()
        E, groups = search._raw_points(box, seeds, 512, np.random.default_rng(seed))
        values = score(E)
        starts = E[search._pick(E, values, groups, 16, box.extent())]
        theirs = one_by_one(score, box, starts)
        peer = time.perf_counter() - begin
        best = max(ours, theirs)
        rows.append((whole * 1e3, peer * 1e3, peer / whole, best - ours, best - theirs, 1 - timed.seconds / whole))
    a, b, ratio, _, _, share = (statistics.median(column) for column in zip(*rows, strict=True))
    worst = [max(row[i] for row in rows) for i in (3, 4)]
    print(
        f"{name:10s} n={n:3d}  {a:7.1f} ms  L-BFGS-B {b:7.1f} ms  {ratio:4.1f}x  "
        f"worst gap {worst[0]:.0e} | {worst[1]:.0e}  own {share:.0%}"
    )


if __name__ == "__main__":
    for name, problem in {
        "branin": branin(),
        "levy-4": levy(4),
        "ackley-5": ackley(5),
        "hartmann-6": hartmann6(),
        "levy-30": levy(30),
    }.items():
        for n in (20, 60, 200):
            compare(name, problem, n)
