"""Tuning a convolutional network given its tuning on three other image data sets; fitted processes replace training."""

from __future__ import annotations

from collections.abc import Mapping

from surefoot_lab import (
    Budget,
    Data,
    Equal,
    Metric,
    Order,
    Replicate,
    Trace,
    Unit,
    compare,
    experiment,
    highest,
    lowest,
)
from surefoot_lab.experiments.rm_gp_ucb._methods import (
    DISCORDANT,
    ONE,
    POOLED,
    RANDOM,
    RANKED,
    RM,
    SCALED,
    UCB,
    methods,
    weights,
)
from surefoot_lab.experiments.rm_gp_ucb._surrogate import TARGETS, problem, tasks
from surefoot_lab.readings import Comparison

INITIAL = 5


def on(target: str, method: str) -> str:
    """One method on one target."""
    return f"{target}: {method}"


S = Metric("simple_regret")
MNIST = "MNIST"


def heavier(method: str, task: str, *, over: bool) -> list[Comparison]:
    """That a method on MNIST gives one task more weight than each other: at the end, or over all iterations."""
    read = {name: Metric(f"weight_{name}")[on(MNIST, method)] for name in TARGETS if name != MNIST}
    mean = {name: reading.over(1) if over else reading for name, reading in read.items()}
    return highest(mean[task], [reading for name, reading in mean.items() if name != task])


claims = [
    Order(
        "MNIST: RM-GP-UCB below GP-UCB, RGPE and TAF",
        lowest(S[on(MNIST, RM)], [S[on(MNIST, name)] for name in (UCB, RANKED, DISCORDANT, SCALED)]),
    ),
    Equal(
        "CIFAR-10, CIFAR-100, SVHN: RM-GP-UCB equals RGPE",
        [(S[on(target, RM)], S[on(target, RANKED)]) for target in TARGETS if target != MNIST],
        margin=0.01,
        note="within one point of accuracy: the default margin would compare across targets",
    ),
    Order(
        "all four targets: RM-GP-UCB below GP-UCB at iteration 10",
        [S[on(target, RM)].at(10) < S[on(target, UCB)].at(10) for target in TARGETS],
    ),
    Order(
        "MNIST: RM-GP-UCB gives SVHN the largest weight",
        heavier(RM, "SVHN", over=False),
        note="which of three is the largest, judged as two orders",
    ),
    Order(
        "MNIST: RGPE gives CIFAR-10 the largest weight",
        heavier(RANKED, "CIFAR-10", over=True),
        note="mean over the iterations; which of three is the largest, judged as two orders",
    ),
]


@experiment(
    "rm-gp-ucb/cnn-surrogate",
    source="companion to Dai 2021 (thesis), Figs 7.2a-b and D.3",
    data=Data("substitute", "cnn_meta_tasks", instead_of="training the network"),
    unit=Unit.single("set of four image data sets"),
    quick=Budget(6, horizon=10, multitask=False),
    full=Budget(30, minutes=110, horizon=25, multitask=True),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """A network tuned with the help of three other data sets, four targets."""
    names = [UCB, RM, POOLED, RANKED, DISCORDANT, SCALED, RANDOM, *([ONE] if replicate["multitask"] else [])]
    traces: dict[str, Trace] = {}
    for target in TARGETS:
        others = [task for name, task in tasks().items() if name != target]
        policies = {on(target, name): make for name, make in methods(others, names).items()}
        traces |= compare(policies, problem(target), replicate["horizon"], replicate, initial=INITIAL, watch=weights)
    return traces
