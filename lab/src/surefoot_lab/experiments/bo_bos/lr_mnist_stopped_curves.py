"""What becomes of stopped runs: logistic regression on MNIST, every stopped run finished off the record.

BO-BOS with its authors' options (schedule b: K₁,ₜ = 100/0.95^(t−1)), and with this library's defaults. The incumbent of
a stopped run is the best run closed before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from surefoot.policy.epochs.bo_bos import BOBOS
from surefoot_lab import Budget, Data, Metric, Order, Replicate, Share, Trace, experiment
from surefoot_lab.curves import drive, summary
from surefoot_lab.experiments.bo_bos._stops import published, wrong_stops
from surefoot_lab.networks import logistic_mnist

METHOD = "published"
LENGTH = Metric("length as a share")

claims = [
    Share(
        "stopped runs that are finished end below the best run of their time: at least 95 % do",
        wrong_stops(METHOD) <= 0.05,
        marks="doubtful",
        note="published: all of them, in one run; here the wrong stops are counted, at most 5 %",
    ),
    Order(
        "stopped runs that are finished have larger errors than the runs that were not stopped",
        Metric("error of stopped")[METHOD] > Metric("error of completed")[METHOD],
    ),
    Order("stopped runs last at most half as long as complete ones, on average", LENGTH[METHOD] <= 0.5),
]


@experiment(
    "bo-bos/lr-mnist-stopped-curves",
    source="Dai 2021 (thesis), appendix A.4.1, Figs A.3 and A.4",
    data=Data("published", "mnist"),
    unit="split of the images",
    quick=Budget(2, runs=12, images=3000, epochs=50, paths=20_000),
    full=Budget(10, minutes=30, runs=40, images=10_000, epochs=50, paths=100_000),
    priority=2,
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """How stopped runs of logistic regression on MNIST would have ended."""
    epochs = replicate["epochs"]
    problem = logistic_mnist(replicate.integer, images=replicate["images"], epochs=epochs)
    policies = {
        METHOD: published(problem, replicate.integer, paths=replicate["paths"], growth=0.95),
        "defaults": BOBOS(problem.domain, epochs=epochs, seed=replicate.integer),
    }
    traces = {}
    for name, policy in policies.items():
        runs, best = drive(policy, problem, replicate["runs"] * epochs, lambda k: replicate.rng("noise", k))
        stopped = [run for run in runs if run.stopped]
        completed = [run for run in runs if run.end == epochs]
        metrics: dict[str, Any] = dict(summary(runs, problem.best - best, epochs).metrics)
        metrics["error of stopped"] = np.mean([1.0 - run.final for run in stopped]) if stopped else np.nan
        metrics["error of completed"] = np.mean([1.0 - run.final for run in completed]) if completed else np.nan
        metrics["length as a share"] = np.mean([run.end / epochs for run in stopped]) if stopped else np.nan
        traces[name] = Trace(**metrics)
    return traces
