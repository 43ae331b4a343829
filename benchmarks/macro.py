"""Planning ahead: one stage of the plankton problem, by horizon and number of imagined outcomes.

    python benchmarks/macro.py                                     # NumPy
    python benchmarks/macro.py --device cuda --samples 50 100 200  # torch
    python benchmarks/macro.py --sampling iid --horizons 4 --samples 50

A grid of 50 x 50 cells, a length-scale of 5 cells, four dives of 4 cells, as in Kharkovskii, Ling & Low 2020; 8 moves
were made before, so that the belief holds 33 measurements. A stage is all that ``ask`` does: the tree of paths, the
imagined outcomes, the constants behind the certificate, the choice. Nodes are those of the full tree of outcomes, the
leaves included. Memory is the most that one stage holds, by a run of its own under ``tracemalloc``; on a device that of
torch. The paper reports 2,085 s for a stage with H = 4 and N = 50, on the authors' machine.
"""

from __future__ import annotations

import argparse
import statistics
import time
import tracemalloc
from typing import Any

from surefoot import MacroGPO
from surefoot_lab.bench_parts import on_its_way

COLUMNS = ["device", "sampling", "H", "N", "nodes", "stage, s", "nodes/s", "memory, MB"]
PUBLISHED = 2085.37  # seconds of one stage with H = 4, N = 50


def stage(policy: MacroGPO, repeats: int) -> tuple[float, float]:
    """Return the seconds of one ask, and the memory in MB that it took at its peak."""
    cuda = _cuda(policy.device)
    times = []
    for _ in range(repeats + 1):  # the first one warms up
        if cuda:
            cuda.synchronize()
        start = time.perf_counter()
        query = policy.ask()
        if cuda:
            cuda.synchronize()
        times.append(time.perf_counter() - start)
        policy.cancel(query)
    if cuda:
        return statistics.median(times[1:]), cuda.max_memory_allocated() / 2**20
    tracemalloc.start()
    policy.cancel(policy.ask())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return statistics.median(times[1:]), peak / 2**20


def _cuda(device: str | None) -> Any:
    if device is None or not device.startswith("cuda"):
        return None
    import torch

    torch.cuda.reset_peak_memory_stats()
    return torch.cuda


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default=None, help="a torch device; by default NumPy")
    parser.add_argument("--sampling", nargs="+", default=["shared"], choices=["shared", "iid", "sobol"])
    parser.add_argument("--horizons", nargs="+", type=int, default=[2, 3, 4])
    parser.add_argument("--samples", nargs="+", type=int, default=[50])
    parser.add_argument("--repeats", type=int, default=3)
    chosen = parser.parse_args()
    print(f"| {' | '.join(COLUMNS)} |\n|{' --- |' * len(COLUMNS)}")
    for sampling in chosen.sampling:
        for horizon in chosen.horizons:
            for samples in chosen.samples:
                policy = on_its_way(horizon=horizon, samples=samples, sampling=sampling, device=chosen.device)
                seconds, memory = stage(policy, chosen.repeats)
                nodes = policy.queries[-1].note["nodes"]
                cells = [chosen.device or "numpy", sampling, str(horizon), str(samples), f"{nodes:,}"]
                cells += [f"{seconds:.3g}", f"{nodes / seconds:.2g}", f"{memory:.0f}"]
                print(f"| {' | '.join(cells)} |")
                if (horizon, samples) == (4, 50):
                    print(f"\nH = 4, N = 50: {PUBLISHED / seconds:,.0f} times less than published.\n")


if __name__ == "__main__":
    main()
