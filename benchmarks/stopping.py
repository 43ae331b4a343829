"""The stopping solver beside the textbook triple loop, on the same simulated curves.

    python benchmarks/stopping.py [--paths 100000] [--reference 2000] [--epochs 50] [--repeats 5]

Prints the seconds of one decision table (backward induction alone, then with the curves drawn and the curve model
fitted) and the throughput of both implementations in simulated epochs per second. The reference is Algorithm A.1 of Dai
et al. 2019 written down loop by loop; it is measured at fewer paths, and nothing is extrapolated. Both must agree on
every decision where they solve the same paths.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from surefoot.stopping import CONTINUE, STOP, ExponentialDecay, OptimalStopping, Plateau, count, induce

LOSSES = {"k1": 100.0, "k2": 99.0, "cost": 1.0}
ERRORS = 0.1 + 0.6 * np.exp(-0.03 * np.arange(1, 9))
THRESHOLD = 0.9


def triple_loop(paths: np.ndarray, wins: np.ndarray, cells: int = 100, minimum: int = 30) -> np.ndarray:
    """Return the decisions (H, cells): for every epoch, for every cell, look at every path."""
    S, H = paths.shape
    states = np.minimum((np.cumsum(paths, axis=1) / np.arange(1, H + 1) * cells).astype(int), cells - 1).tolist()
    decisions = np.zeros((H, cells), dtype=np.int8)
    following = [0.0] * cells
    for j in reversed(range(H)):
        values = [0.0] * cells
        for m in range(cells):
            visits, won, onward = 0, 0, 0.0
            for s in range(S):
                if states[s][j] == m:
                    visits += 1
                    won += bool(wins[s])
                    if j < H - 1:
                        onward += following[states[s][j + 1]]
            if not visits:
                continue
            stop, accept = LOSSES["k1"] * won / visits, LOSSES["k2"] * (1.0 - won / visits)
            go_on = LOSSES["cost"] + onward / visits if j < H - 1 else float("inf")
            values[m] = min(stop, accept, go_on)
            if visits > minimum and min(stop, accept) <= go_on:
                decisions[j, m] = STOP if stop <= accept else 2
        following = values
    return decisions


def seconds(work: Callable[[], Any], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--paths", type=int, default=100_000)
    parser.add_argument("--reference", type=int, default=2_000)
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    H = options.epochs - len(ERRORS)

    def draw(size: int) -> tuple[np.ndarray, np.ndarray]:
        paths = ExponentialDecay().sample(ERRORS, options.epochs, size, np.random.default_rng(0))
        return paths, paths[:, -1] < 1.0 - THRESHOLD

    paths, wins = draw(options.paths)
    few, few_wins = draw(options.reference)
    solve = seconds(lambda: induce(count(paths, wins), **LOSSES), options.repeats)
    start = time.perf_counter()
    slow = triple_loop(few, few_wins)
    loop = time.perf_counter() - start
    same = np.mean(slow == induce(count(few, few_wins), **LOSSES).decisions)

    print(f"{len(paths):,} paths x {H} epochs, median of {options.repeats}")
    print(f"  backward induction          {solve:8.3f} s")
    for model in (ExponentialDecay(), ExponentialDecay(hyper="grid"), Plateau()):
        rule = OptimalStopping(epochs=options.epochs, initial=len(ERRORS), paths=options.paths, model=model)
        whole = seconds(lambda r=rule: r.fit(1.0 - ERRORS, THRESHOLD, np.random.default_rng(0)), options.repeats)
        name = f"{type(model).__name__}({getattr(model, 'hyper', '')})"
        print(f"  whole fit, {name:<24} {whole:.3f} s")
    rates = len(paths) * H / solve, len(few) * H / loop
    print(f"throughput  {rates[0]:,.0f} simulated epochs per second")
    print(f"reference   {rates[1]:,.0f} per second: triple loop, {len(few):,} paths, {loop:.2f} s")
    print(f"ratio       {rates[0] / rates[1]:,.0f}")
    ends = np.count_nonzero(slow != CONTINUE)
    print(f"the same decision in {same:.2%} of the cells, in {ends:,} of them to end the run")


if __name__ == "__main__":
    main()
