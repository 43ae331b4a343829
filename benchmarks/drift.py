"""Drifting functions: the cost of a step, memory over a long stream, and the same model elsewhere.

    python benchmarks/drift.py step                  # one ask and tell at 10⁴ candidates beside a fresh posterior
    python benchmarks/drift.py stream                # 10⁵ tells, an ask after every hundredth: time and memory
    python benchmarks/drift.py peers                 # Ray's PB2 (needs ray[tune] and scikit-learn)

`step` compares with what a user would write down from the paper: (5.3) and (5.4), factorized anew for every ask.
`peers` uses the kernel of Ray's PB2, the nearest there is: `TV_SquaredExp` multiplies a squared exponential by
(1 − ε)^{|t−s|/2}; both sides get the same measurements, kernel and rate.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from surefoot.belief.drift import DriftingGrid
from surefoot.belief.gp import GP
from surefoot.belief.kernels import SE
from surefoot.belief.protocol import EVERY
from surefoot.domain import Candidates
from surefoot.loop.widths import LogTime
from surefoot.policy.drift.tv_gp_ucb import TVGPUCB

GP_ = GP(SE(0.2), noise=0.01)
RATE = 0.01


def seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join([f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)])


def fresh(points: np.ndarray, rows: list[int], y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(5.3) and (5.4) as printed, for the time after the last of the measurements 1, 2, ..."""
    times = np.arange(len(rows))
    D = (1.0 - RATE) ** (np.abs(times[:, None] - times) / 2.0)
    factor = cho_factor(GP_.kernel(points[rows]) * D + GP_.noise * np.eye(len(rows)))
    k = GP_.kernel(points, points[rows]) * (1.0 - RATE) ** ((len(rows) - times) / 2.0)
    return k @ cho_solve(factor, y), 1.0 - np.einsum("mn,nm->m", k, cho_solve(factor, k.T))


def step(candidates: int, marks: list[int]) -> str:
    side = round(candidates**0.5)
    axis = np.linspace(0.0, 1.0, side)
    points = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    policy = TVGPUCB(Candidates(points), forgetting=RATE, gp=GP_, width=LogTime(), seed=0)
    rng, rows, values, out, times = np.random.default_rng(0), [], [], [], []
    for n in range(1, max(marks) + 1):
        start = time.perf_counter()
        query = policy.ask()
        value = float(rng.standard_normal())
        policy.tell(query, value)
        times.append(time.perf_counter() - start)
        rows.append(query.index)
        values.append(value)
        if n in marks:
            policy.clock.speak_of(n + 1.0)
            mean, std = policy.surrogate.believe().predict(EVERY)
            var = std**2
            taken = statistics.median(seconds(lambda: fresh(points, rows, np.array(values))) for _ in range(3))
            exact = fresh(points, rows, np.array(values))
            apart = max(np.abs(mean - exact[0]).max(), np.abs(var - exact[1]).max())
            now = statistics.median(times[-10:])
            out.append(
                [
                    f"{len(points):,}",
                    str(n),
                    f"{now * 1e3:.1f}",
                    f"{taken * 1e3:.1f}",
                    f"{taken / now:.0f}",
                    f"{apart:.0e}",
                ]
            )
    return table(["candidates", "measurements", "ask and tell, ms", "fresh posterior, ms", "ratio", "apart"], out)


def stream(tells: int, candidates: int, every: int) -> str:
    domain = Candidates(np.linspace(0.0, 1.0, candidates))
    policy = TVGPUCB(domain, forgetting=RATE, gp=GP(SE(0.1), noise=0.1), seed=0)
    rng, out = np.random.default_rng(0), []
    for part in range(1, 6):
        asks, start = [], time.perf_counter()
        for n in range(tells // 5):
            policy.tell(domain.points[rng.integers(candidates)], float(rng.standard_normal()))
            if n % every == every - 1:
                asks.append(seconds(lambda: policy.tell(policy.ask(), 0.0)))
        spent = time.perf_counter() - start
        grid = cast(DriftingGrid, policy.surrogate.believe())
        out.append(
            [
                f"{part * tells // 5:,}",
                f"{1e6 * spent / (tells // 5):.0f}",
                f"{1e3 * statistics.median(asks):.1f}",
                f"{grid.nbytes / 2**20:.2f}",
                f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10:.0f}",
            ]
        )
    head = ["tells", "per tell, µs", "ask, ms", "belief, MiB", "process with all events, MiB"]
    return table(head, out)


def peers(counts: list[int], candidates: int) -> str:
    try:
        from ray.tune.schedulers.pb2_utils import TV_SquaredExp
    except ImportError as error:
        return f"Ray's PB2 is not installed ({error}): pip install 'ray[tune]' scikit-learn"
    rng, points, out = np.random.default_rng(0), np.linspace(0.0, 1.0, candidates)[:, None], []
    for n in counts:
        rows, y = rng.integers(candidates, size=n), rng.standard_normal(n)
        # PB2's points have the time in the first column; its squared exponential is exp(−d²/ℓ), ours exp(−d²/2ℓ²).
        X = np.column_stack([np.arange(n), points[rows, 0]])
        Z = np.column_stack([np.full(candidates, n), points[:, 0]])
        kernel = TV_SquaredExp(variance=1.0, lengthscale=2.0 * 0.2**2, epsilon=RATE)

        def theirs(X=X, Z=Z, y=y, kernel=kernel) -> np.ndarray:
            A = kernel(X) + GP_.noise * np.eye(len(X))
            return kernel(Z, X) @ np.linalg.solve(A, y)

        grid = DriftingGrid(GP_, points, RATE)
        for t, (i, value) in enumerate(zip(rows, y, strict=True)):
            grid.append(int(i), float(value), time=float(t))
        with grid.provisional():
            ours = seconds(lambda grid=grid: (grid.advance(grid.time + 1.0), grid.provisionally(0, 0.0)))
        grid.advance(float(n))
        took = statistics.median(seconds(theirs) for _ in range(3))
        apart = np.abs(theirs() - grid.mean).max()
        out.append([str(n), f"{ours * 1e3:.2f}", f"{took * 1e3:.1f}", f"{took / ours:.0f}", f"{apart:.0e}"])
    return table(["measurements", "one more, ms", "PB2's kernel, ms", "ratio", "means apart"], out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["step", "stream", "peers"])
    parser.add_argument("--candidates", type=int, help="by default 10⁴, in a stream 200, beside peers 1000")
    parser.add_argument("--measurements", type=int, nargs="+", default=[100, 200, 400, 800])
    parser.add_argument("--tells", type=int, default=100_000)
    parser.add_argument("--every", type=int, default=100, help="tells between two asks of the stream")
    options = parser.parse_args()
    if options.part == "step":
        print(step(options.candidates or 10_000, options.measurements))
    elif options.part == "stream":
        print(stream(options.tells, options.candidates or 200, options.every))
    else:
        print(peers(options.measurements, options.candidates or 1000))


if __name__ == "__main__":
    main()
