"""Why there are two climbers: each beside the other, and beside SciPy's L-BFGS-B, at both jobs.

    python benchmarks/climbers.py

The jobs are the two that an ask consists of. *Fit*: hyper-parameters from the two starts of a fit, where a gradient
costs a factorization, no bound matters, and what the first climb learned of the curvature helps the second. *Search*:
the point of the highest upper bound on a box, from 16 starts, where a gradient of all of them costs little more than
that of one. ``belief/fit.py`` climbs from one start, ``domain/climb.py`` from all of them in step.

Prints the median over data sets of the time beside that of the climber in use (one thread), of gradient calls, and by
how much each ends below the best of the three, worst case: in nats of the posterior density, and in shares of the
spread of the scores. Both the other two stop as early as they may without ending lower.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import statistics
import time
from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize

from surefoot.belief import fit
from surefoot.belief.gp import GP
from surefoot.domain import Box
from surefoot.domain.climb import climb as together
from surefoot_lab.problems import ackley, branin, hartmann6, levy

HALF = 8.0  # hyper-parameters further than exp(±8) from their start are out of a fit's reach
Job = dict[str, Callable[[], float]]  # a climber, and a call that returns where it ended


class Counted:
    """A function that counts its calls."""

    def __init__(self, function: Callable) -> None:
        self.function, self.calls = function, 0

    def __call__(self, *arguments):
        self.calls += 1
        return self.function(*arguments)


def fitting(evidence: fit.Evidence, starts: np.ndarray) -> tuple[Counted, Job]:
    """Hyper-parameters from two starts."""
    density = Counted(evidence)

    def one_by_one() -> float:
        first = fit.climb(density, starts[0], fit._curvature(evidence))
        return max(first[1], fit.climb(density, starts[1], first[2], rival=first[1])[1])

    def in_step() -> float:
        lower = starts - HALF

        def rows(T: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            found = [density(lower[i] + 2 * HALF * t) for t, i in zip(T, which, strict=True)]
            return np.array([value for value, _ in found]), 2 * HALF * np.array([slope for _, slope in found])

        return float(together(rows, np.full(starts.shape, 0.5), iterations=60, tolerance=fit.NEARLY)[1].max())

    def scipy() -> float:
        def negative(x: np.ndarray) -> tuple[float, np.ndarray]:
            value, slope = density(x)
            return (-value if np.isfinite(value) else 1e10), -slope

        options = {"ftol": 1e-5, "gtol": 1e-2}  # looser ones end lower
        return max(-minimize(negative, x, jac=True, method="L-BFGS-B", options=options).fun for x in starts)

    return density, {"belief/fit.py": one_by_one, "domain/climb.py": in_step, "L-BFGS-B": scipy}


def searching(posterior, box: Box, starts: np.ndarray) -> tuple[Counted, Job]:
    """The highest upper bound from many starts, in the unit cube."""

    def bound(T: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean, std, by_mean, by_std = posterior.gradient(box.lower + T * box.extent())
        return mean + 2.0 * std, (by_mean + 2.0 * by_std) * box.extent()

    spread = float(np.ptp(bound(starts)[0]))
    score = Counted(lambda T: tuple(part / spread for part in bound(T)))

    def in_step() -> float:
        return float(together(lambda T, which: score(T), starts, iterations=50, tolerance=1e-8)[1].max())

    def one_by_one() -> float:
        def inside(t: np.ndarray) -> tuple[float, np.ndarray]:
            if ((t < 0.0) | (t > 1.0)).any():
                return -np.inf, np.zeros_like(t)
            value, slope = score(t[None])
            return float(value[0]), slope[0]

        return max(fit.climb(inside, t, tolerance=1e-8)[1] for t in starts)

    def scipy() -> float:
        def negative(t: np.ndarray) -> tuple[float, np.ndarray]:
            value, slope = score(t[None])
            return -float(value[0]), -slope[0]

        bounds = [(0.0, 1.0)] * starts.shape[1]
        return max(-minimize(negative, t, jac=True, method="L-BFGS-B", bounds=bounds).fun for t in starts)

    return score, {"domain/climb.py": in_step, "belief/fit.py": one_by_one, "L-BFGS-B": scipy}


def compare(name: str, jobs: list[tuple[Counted, Job]]) -> None:
    """Print one line: the climber in use first."""
    rows: dict[str, list[tuple[float, int, float]]] = {climber: [] for climber in jobs[0][1]}
    for counted, climbers in jobs:
        ends = {}
        for climber, run in climbers.items():
            seconds = []
            for _ in range(3):  # the best of three: other programs run too
                counted.calls, begin = 0, time.perf_counter()
                ends[climber] = run()
                seconds.append(time.perf_counter() - begin)
            rows[climber].append((min(seconds), counted.calls, 0.0))
        for climber, end in ends.items():
            rows[climber][-1] = (*rows[climber][-1][:2], max(ends.values()) - end)
    usual = [seconds for seconds, _, _ in next(iter(rows.values()))]
    parts = []
    for climber, measured in rows.items():
        seconds, calls, below = zip(*measured, strict=True)
        ratio = statistics.median(one / other for one, other in zip(seconds, usual, strict=True))
        shown = f"{1e3 * statistics.median(seconds):6.1f} ms" if not parts else f"{ratio:6.1f} times"
        parts.append(f"{climber:>15s} {shown} {statistics.median(calls):5.0f} calls, worst {max(below):7.1e} below")
    print(f"{name:23s}" + "  |".join(parts), flush=True)


def main(seeds: int = 10) -> None:
    problems = {"branin": branin(), "levy-4": levy(4), "ackley-5": ackley(5), "hartmann-6": hartmann6()}
    for name, problem in problems.items():
        for n in (20, 60):
            fits, searches = [], []
            for seed in range(seeds):
                box, rng = problem.domain, np.random.default_rng(seed)
                X = box.design(n, rng)
                y = np.asarray(problem(X))
                z = (y - y.mean()) / y.std(ddof=1)
                gp = GP.automatic(box)
                evidence = fit.Evidence(gp, X, z, np.full(n, np.nan))
                starts = fit._starts(evidence, rng)
                heights = np.array([evidence(start, gradient=False)[0] for start in starts])
                best = [2 * int(np.argmax(heights[::2])), 2 * int(np.argmax(heights[1::2])) + 1]
                fits.append(fitting(evidence, starts[sorted(best, key=lambda i: -heights[i])]))
                searches.append(searching(gp.fit(X, y, rng=rng).condition(X, y), box, rng.random((16, box.dimension))))
            compare(f"fit     {name} n={n}", fits)
            compare(f"search  {name} n={n}", searches)


if __name__ == "__main__":
    main()
