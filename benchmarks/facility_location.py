"""Greedy selection of exemplars beside apricot-select: the same set, the same value, less time and memory.

    python benchmarks/facility_location.py                                # 10,000 points, both, in turns
    python benchmarks/facility_location.py --points 100000 --alone        # bounded memory; no similarities are stored
    python benchmarks/facility_location.py --points 100000 --alone --device cuda

Both are given the points and maximize the sum over all points of D − ‖s − u‖² to the nearest chosen s, with D the
largest squared distance: what apricot's ``FacilityLocationSelection`` does by default (``metric="euclidean"``,
``optimizer="lazy"``). Each row of the table is the median of several runs in turns, from the points to the chosen set,
with one run of each before the clock starts. apricot compiles its inner loop in every call, which is part of what a
user waits for; give both the same number of threads (``OPENBLAS_NUM_THREADS``, ``NUMBA_NUM_THREADS``).

apricot-select is not among the dependencies of any extra: ``pip install apricot-select scikit-learn``.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from surefoot.select import FacilityLocation, greedy
from surefoot_lab.bench_parts import clustered_points

COLUMNS = ["points", "dimensions", "chosen", "surefoot, s", "apricot, s", "ratio", "same set", "values apart by"]


def points(count: int, dimensions: int, kind: str) -> np.ndarray:
    """Return points without structure, or in clusters of very different sizes."""
    if kind == "uniform":
        return np.random.default_rng(0).random((count, dimensions))
    return clustered_points(count, dimensions)


def ours(X: np.ndarray, k: int, device: str = "cpu") -> tuple[list[int], float]:
    given: Any = X
    if device != "cpu":
        import torch

        given = torch.asarray(X, device=device)
    selection = greedy(FacilityLocation(given, similarity="euclidean", average=False), k)
    return list(selection.order), selection.value


def theirs(X: np.ndarray, k: int) -> tuple[list[int], float]:
    from apricot import FacilityLocationSelection

    selector = FacilityLocationSelection(k, metric="euclidean", optimizer="lazy").fit(X)
    return selector.ranking.tolist(), float(selector.gains.sum())


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def compare(count: int, dimensions: int, k: int, repeats: int, kind: str) -> str:
    """Return one row of the table."""
    X = points(count, dimensions, kind)
    mine, other = ours(X, k), theirs(X, k)
    times = [(timed(lambda: ours(X, k))[0], timed(lambda: theirs(X, k))[0]) for _ in range(repeats)]
    first, second = (statistics.median(column) for column in zip(*times, strict=True))
    apart = abs(mine[1] - other[1]) / other[1]
    cells = [f"{count:,} {kind}", str(dimensions), str(k), f"{first:.2f}", f"{second:.2f}", f"{second / first:.1f}"]
    return f"| {' | '.join([*cells, 'yes' if mine[0] == other[0] else 'no', f'{apart:.0e}'])} |"


def alone(count: int, dimensions: int, k: int, device: str, kind: str) -> str:
    """Return time and memory of one run, and what all similarities would take."""
    X = points(count, dimensions, kind)
    ours(X[:2000], 5, device)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds, (_, value) = timed(lambda: ours(X, k, device))
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024.0
    text = f"{count:,} {kind} points, {dimensions} dimensions, {k} chosen on {device}: {seconds:.1f} s"
    text += f", value {value:.6g}"
    if device != "cpu":
        import torch

        more = torch.cuda.max_memory_allocated() / 2**20
    return f"{text}, {more:,.0f} MiB more at the peak (all similarities in float32: {count**2 * 4 / 2**20:,.0f} MiB)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=10_000)
    parser.add_argument("--dimensions", type=int, nargs="+", default=[10, 50])
    parser.add_argument("--kinds", nargs="+", default=["uniform", "clusters"], choices=["uniform", "clusters"])
    parser.add_argument("-k", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--alone", action="store_true", help="Surefoot only, with its memory")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    if not options.alone:
        print(f"| {' | '.join(COLUMNS)} |\n" + "|---" * len(COLUMNS) + "|")
    for kind in options.kinds:
        for dimensions in options.dimensions:
            if options.alone:
                print(alone(options.points, dimensions, options.k, options.device, kind), flush=True)
            else:
                print(compare(options.points, dimensions, options.k, options.repeats, kind), flush=True)


if __name__ == "__main__":
    main()
