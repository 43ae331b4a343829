"""What distributed exploration costs an agent, and what the coordinator costs everybody."""

from __future__ import annotations

import time
from collections.abc import Mapping

import numpy as np

from surefoot.federated import Regions, SharedFeatures, best_point
from surefoot_lab import Budget, Data, Metric, Order, Replicate, Trace, experiment, landmine
from surefoot_lab.experiments.dp_fts_de._landmine import COUNT, REGIONS, SOURCE, private, tuned

seconds, share = Metric("seconds"), Metric("share")

claims = [
    Order(
        "time of the broadcast's argmax: P = 4 at most 1.5 times P = 1",
        seconds["P = 4"] / seconds["P = 1"] < 1.5,
        note="published 17.96 s / 14.47 s = 1.24; as many points are tried in all",
    ),
    Order("the coordinator takes less than 1 % of the agents' time", share["coordinator"] < 0.01),
]


@experiment(
    "dp-fts-de/cost",
    source=SOURCE + "C.2.2.5",
    data=Data("published", "landmine"),
    unit="timed run",
    quick=Budget(10, calls=5, horizon=3, fields=10),
    full=Budget(20, minutes=10, calls=25, horizon=5),
    priority=2,
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """Seconds to find the highest point of a broadcast with one and four sub-regions, and shares of a round."""
    features = SharedFeatures(2, COUNT, lengthscale=0.01, noise=1e-6, seed=replicate.integer)
    times: dict[int, list[float]] = {1: [], REGIONS: []}
    for call in range(replicate["calls"]):
        for P in times:
            vectors = replicate.rng("vectors", call).standard_normal((P, COUNT))
            start = time.perf_counter()
            best_point(features, vectors, Regions.split(P, 2), landmine.domain(), rng=replicate.rng("search", call))
            times[P].append(time.perf_counter() - start)
    traces = {f"P = {P}": Trace(seconds=float(np.median(each))) for P, each in times.items()}
    spent = tuned(replicate, **private(0.35, 1.0)).seconds
    traces["coordinator"] = Trace(share=spent["release"] / (spent["ask"] + spent["message"]))
    return traces
