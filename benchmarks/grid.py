"""How close GridPosterior.append comes to the memory bandwidth: time of an append over time to read the rows once.

    python benchmarks/grid.py                                      # NumPy, 10⁶ candidates, 200 measurements
    python benchmarks/grid.py --array torch --device cuda          # the same code on a GPU, 1000 measurements

The floor is measured in the same run on the same buffer: the fastest of a sum over it and a scalar product. Every run
also appends the same measurements to a tenth of the candidates twice, as a NumPy array and as the array under test, and
prints the largest difference of means and variances.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np

from surefoot.belief.gp import GP
from surefoot.belief.grid import GridPosterior
from surefoot.belief.kernels import SE, Kernel, Matern
from surefoot.select.objective import to_host
from surefoot_lab.bench_rates import Place, repeated

KERNELS: dict[str, Kernel] = {"se": SE(0.2), "matern": Matern(2.5, [0.2, 0.3])}
COLUMNS = ["array", "kernel", "candidates x measurements", "append, ms", "floor, ms", "ratio", "off NumPy by at most"]
HEAD = f"| {' | '.join(COLUMNS)} |\n" + "|---" * len(COLUMNS) + "|"


def measure(array: str, device: str, kernel: str, candidates: int, measurements: int) -> str:
    """Return one row of the table."""
    place = Place(None if array == "numpy" else device)

    def seconds(work: Callable[[], Any]) -> float:
        return float(repeated(work, place, repeats=1)[0])

    rng = np.random.default_rng(0)
    points = rng.random((candidates, 2))
    gp = GP(KERNELS[kernel], noise=1e-2)
    grid = GridPosterior(gp, place.put(points), capacity=measurements)
    times = []
    for index, value in _measurements(candidates, measurements):
        times.append(seconds(lambda i=index, y=value: grid.append(i, y)))
    rows = grid._V
    flat = rows.reshape(-1)
    floor = statistics.median(min(seconds(rows.sum), seconds(lambda: flat @ flat)) for _ in range(9))
    last = statistics.median(times[-10:])
    apart = _difference(gp, points[: candidates // 10], place, measurements)
    size = f"{candidates:,} x {measurements}"
    cells = [f"{array} on {device}", kernel, size, f"{last * 1e3:.2f}", f"{floor * 1e3:.2f}", f"{last / floor:.2f}"]
    return f"| {' | '.join(cells)} | {apart:.0e} |"


def _measurements(candidates: int, count: int) -> list[tuple[int, float]]:
    rng = np.random.default_rng(1)
    return list(zip(rng.integers(candidates, size=count).tolist(), rng.standard_normal(count).tolist(), strict=True))


def _difference(gp: GP, points: np.ndarray, place: Place, measurements: int) -> float:
    """Largest difference of mean or variance to NumPy's after the same appends."""
    grids = [GridPosterior(gp, where.put(points)) for where in (Place(), place)]
    for index, value in _measurements(len(points), measurements):
        for grid in grids:
            grid.append(index, value)
    found = [to_host(values) for values in (grids[1].mean, grids[1].var)]
    return max(float(np.abs(a - b).max()) for a, b in zip(found, (grids[0].mean, grids[0].var), strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--candidates", type=int, default=1_000_000)
    parser.add_argument("--measurements", type=int, help="by default 200, on a device 1000")
    parser.add_argument("--kernels", nargs="+", default=["se"], choices=KERNELS)
    parser.add_argument("--array", choices=["numpy", "torch"], default="numpy")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    options = parser.parse_args()
    measurements = options.measurements or (200 if options.device == "cpu" else 1000)
    print(HEAD)
    for kernel in options.kernels:
        print(measure(options.array, options.device, kernel, options.candidates, measurements), flush=True)


if __name__ == "__main__":
    main()
