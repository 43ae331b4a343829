"""The anytime planner beside the full tree of the same imagined outcomes: what is known after how many iterations.

    python benchmarks/anytime.py                                       # plankton, H = 3 and 4
    python benchmarks/anytime.py --place taxi --horizons 2 3 4         # twenty moves of five stops; wants SUREFOOT_DATA
    python benchmarks/anytime.py --batch 8 --iterations 0 100 1500

One stage, from the start and its neighbors' values. ``gap`` is the certificate, what the chosen move can lose against
the best one of the full tree; ``lost`` is what it does lose, where the full tree is small enough to be searched.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

from surefoot.policy.routes.anytime import AnytimePlanner
from surefoot.policy.routes.bellman import Shared, full_nodes, sampled
from surefoot.policy.routes.path_tree import PathTree
from surefoot_lab.roads import taxi
from surefoot_lab.routes import plankton

COLUMNS = ["place", "H", "N", "iterations", "s", "iterations/s", "nodes", "gap", "lost", "memory, MB"]
PLACES = {"plankton": plankton, "taxi": taxi}
LARGEST = 10**9  # nodes of a full tree that is searched for comparison


def row(*cells: object) -> None:
    """Print one line of the table."""
    print(f"| {' | '.join(str(cell) for cell in cells)} |", flush=True)


def measure(place: str, horizon: int, samples: int, iterations: list[int], batch: int) -> None:
    """Print one line for each number of iterations, and one for the full tree."""
    route = PLACES[place](np.random.default_rng(0))
    domain = route.domain()
    known = [route.start, *domain.moves(route.start)[0].tolist()]
    belief = route.gp.condition(route.points[known], route.values[known])
    tree = PathTree.grow(belief, domain, route.start, horizon)
    outcomes = Shared.draw(tree, samples, np.random.default_rng(1))
    nodes, exact = full_nodes(tree, samples), None
    if nodes <= LARGEST:
        start = time.perf_counter()
        exact = sampled(tree, outcomes)
        seconds = time.perf_counter() - start
        row(place, horizon, samples, "full tree", f"{seconds:.3g}", "", f"{nodes:.3g}", 0, 0, "")
    start, done = time.perf_counter(), 0
    planner = AnytimePlanner(tree, outcomes, batch=batch)
    for count in iterations:
        plan = planner.run(iterations=count - done)
        done = count
        seconds = time.perf_counter() - start
        lost = "" if exact is None else f"{exact.max() - exact[plan.values.argmax()]:.3g}"
        rate = f"{planner.iterations / seconds:.3g}" if planner.iterations else ""
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        cells = [f"{seconds:.3g}", rate, f"{plan.nodes:.3g}", f"{planner.certificate:.3g}", lost, memory]
        row(place, horizon, samples, planner.iterations, *cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--place", choices=PLACES, default="plankton")
    parser.add_argument("--horizons", nargs="+", type=int, default=[3, 4])
    parser.add_argument("--samples", type=int, default=None, help="50 for plankton, 300 for the taxi")
    parser.add_argument("--iterations", nargs="+", type=int, default=[0, 10, 100, 1500])
    parser.add_argument("--batch", type=int, default=1)
    chosen = parser.parse_args()
    samples = chosen.samples or {"plankton": 50, "taxi": 300}[chosen.place]
    row(*COLUMNS)
    row(*["---"] * len(COLUMNS))
    for horizon in chosen.horizons:
        measure(chosen.place, horizon, samples, sorted(chosen.iterations), chosen.batch)


if __name__ == "__main__":
    main()
