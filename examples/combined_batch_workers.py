"""Robust batches under parallel workers, some of which never come back.

One policy in the main process, six workers; a worker that is late is given up, and its place in the batch is filled.
python examples/combined_batch_workers.py
"""

import multiprocessing as mp
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait

import numpy as np

from surefoot import Box, RobustBatch

WORKERS, BUDGET = 6, 30


def measure(number: int, x: np.ndarray) -> float | None:
    """An experiment in a process of its own; every fifth one comes to nothing."""
    if number % 5 == 4:
        return None
    return float(-((x[0] - 0.7) ** 2) - (x[1] - 0.2) ** 2 + 0.1 * np.cos(9.0 * x[0]))


def main() -> None:
    policy = RobustBatch(Box([(0.0, 1.0)] * 2), tau=2, seed=0)  # any two of those under way may be lost
    with ProcessPoolExecutor(WORKERS, mp_context=mp.get_context("spawn")) as pool:
        running = {pool.submit(measure, query.id, query.x): query for query in policy.ask(WORKERS)}
        while running:
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                query, value = running.pop(future), future.result()
                if value is None:
                    policy.cancel(query)  # the worker is gone: nothing is learnt, the point may be asked again
                else:
                    policy.tell(query, value)
            while len(running) < WORKERS and len(policy.queries) < BUDGET:
                query = policy.ask()  # fills a free place of the batch under way
                running[pool.submit(measure, query.id, query.x)] = query
    best = policy.recommend()
    lost = len(policy.queries) - len(policy.history)
    print(f"{len(policy.queries)} asked, {lost} lost; use {best.x.round(2)}, expect {best.mean:.3f}")


if __name__ == "__main__":
    main()
