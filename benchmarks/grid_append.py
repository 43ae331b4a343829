"""How close GridPosterior.append comes to the memory bandwidth: time of an append over time to read the rows once.

    python benchmarks/grid_append.py                       # NumPy, one million candidates, 200 measurements
    python benchmarks/grid_append.py --array torch --device cuda

The floor is measured in the same run on the same buffer: the fastest of a sum over it and a scalar product.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from surefoot.belief.gp import GP
from surefoot.belief.grid import GridPosterior
from surefoot.belief.kernels import SE, Kernel, Matern


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--candidates", type=int, default=1_000_000)
    parser.add_argument("--measurements", type=int, default=200)
    parser.add_argument("--dimension", type=int, default=2)
    parser.add_argument("--kernel", choices=["se", "matern"], default="se")
    parser.add_argument("--array", choices=["numpy", "torch"], default="numpy")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()

    rng = np.random.default_rng(0)
    points: Any = rng.random((options.candidates, options.dimension))
    wait: Callable[[], Any] = int  # nothing to wait for
    if options.array == "torch":
        import torch

        points = torch.asarray(points, device=options.device)
        if options.device != "cpu":
            wait = torch.cuda.synchronize

    def seconds(work: Callable[[], Any]) -> float:
        wait()
        start = time.perf_counter()
        work()
        wait()
        return time.perf_counter() - start

    kernel: Kernel = SE(0.2) if options.kernel == "se" else Matern(2.5, 0.2)
    grid = GridPosterior(GP(kernel, noise=1e-2), points, capacity=options.measurements)
    times = []
    for index in rng.integers(options.candidates, size=options.measurements):
        value = float(rng.standard_normal())
        times.append(seconds(lambda i=int(index), y=value: grid.append(i, y)))

    rows = grid._V
    flat = rows.reshape(-1)
    floor = statistics.median(min(seconds(rows.sum), seconds(lambda: flat @ flat)) for _ in range(9))
    last = statistics.median(times[-10:])
    size = options.candidates * options.measurements * 8
    print(f"{options.array} on {options.device}, {kernel}")
    print(f"{options.candidates:,} candidates x {options.measurements} measurements = {size / 1e9:.2f} GB of rows")
    print(f"append  {last * 1e3:8.3f} ms (median of the last ten; all {sum(times):.2f} s)")
    print(f"floor   {floor * 1e3:8.3f} ms to read the rows once, {size / floor / 1e9:.1f} GB/s")
    print(f"ratio   {last / floor:8.2f}")


if __name__ == "__main__":
    main()
