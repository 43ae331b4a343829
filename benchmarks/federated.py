"""How long does a large federation take in the batched simulator, and how much memory?

    OMP_NUM_THREADS=2 python benchmarks/federated.py                        # 1,000 agents, 50 rounds
    OMP_NUM_THREADS=2 python benchmarks/federated.py --agents 29 --rounds 3 # the size of the research code's figure
    python benchmarks/federated.py --device cuda                            # the stacked algebra on a GPU

Hyper-parameters are fixed; 1,000 candidates, M = 50, 10 initial points, P = 2, q = 0.25, z = 1. The research code,
which handles one agent after the other, takes about 85 s for 29 agents and 3 iterations on a machine like the one of
the figures in README.md: 0.98 s for each agent and iteration. Its agents fit their hyper-parameters, every fifth
iteration. ``--fitted`` runs agents of ours that do so too, one by one, on smooth objectives in place of landmine
fields.
"""

from __future__ import annotations

import argparse
import resource
import time
import warnings

import numpy as np

from surefoot.federated import Decay, SharedFeatures, simulate, synthetic_family
from surefoot.federated.in_process import federate
from surefoot_lab import landmine

RESEARCH = 85.0 / (29 * 3)  # seconds for each agent and iteration
COLUMNS = ["method", "agents", "rounds", "seconds", "ms per agent and iteration", "research code / ours", "peak MiB"]
METHODS = {
    "TS": None,
    "FTS-DE": {"regions": 2},
    "DP-FTS-DE": {"regions": 2, "sampling": 0.25, "noise_multiplier": 1.0},
}


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def row(name: str, agents: int, rounds: int, seconds: float) -> str:
    each = seconds / (agents * rounds)
    cells = [name, agents, rounds, f"{seconds:.2f}", f"{1e3 * each:.3f}", f"{RESEARCH / each:.0f}", f"{peak():.0f}"]
    return f"| {' | '.join(map(str, cells))} |"


def batched(options: argparse.Namespace) -> None:
    family = synthetic_family(runs=1, agents=options.agents, seed=0)
    features = SharedFeatures(1, 50, lengthscale=0.03, noise=0.01, seed=0)
    for name, federation in METHODS.items():
        start = time.perf_counter()
        simulate(
            family, features, rounds=options.rounds, federation=federation, schedule=Decay(0.5, first=0.0), seed=0,
            device=options.device, block=options.block,
        )  # fmt: skip
        print(row(name, options.agents, options.rounds, time.perf_counter() - start), flush=True)


def fitted(options: argparse.Namespace) -> None:
    agents = min(options.agents, landmine.FIELDS)
    centers = np.random.default_rng(0).uniform(0.3, 0.7, (agents, 2))
    objectives = [lambda x, c=c: 0.8 - 0.3 * float(((x - c) ** 2).sum()) for c in centers]
    features = SharedFeatures(2, 100, lengthscale=0.01, noise=1e-6, seed=0)
    start = time.perf_counter()
    run = federate(
        objectives, landmine.domain(), features, rounds=options.rounds, initial=10, schedule=Decay(1.0, first=0.0),
        federation={"regions": 4, "sampling": 0.35, "noise_multiplier": 1.0}, seed=0,
    )  # fmt: skip
    print(row("DP-FTS-DE, fitted beliefs", agents, options.rounds, time.perf_counter() - start))
    print("\nof which " + ", ".join(f"{name} {seconds:.2f} s" for name, seconds in run.seconds.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--block", type=int, default=None, help="agents in one stack; less takes less memory")
    parser.add_argument("--device", default=None, help="a torch device")
    parser.add_argument("--fitted", action="store_true", help="real agents with fitted beliefs, up to 29 of them")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"| {' | '.join(COLUMNS)} |\n" + "|---" * len(COLUMNS) + "|")
    (fitted if options.fitted else batched)(options)


if __name__ == "__main__":
    main()
