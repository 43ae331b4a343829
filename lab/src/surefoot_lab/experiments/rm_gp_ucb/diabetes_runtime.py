"""How long one iteration takes, with four tasks of 50 measurements and a fit in every iteration."""

from __future__ import annotations

from collections.abc import Mapping

from surefoot_lab import Budget, Data, Metric, Order, Replicate, Trace, experiment
from surefoot_lab.experiments.rm_gp_ucb._diabetes import SIZES, problem, tasks
from surefoot_lab.experiments.rm_gp_ucb._methods import DISCORDANT, ONE, RANKED, RM, UCB, ask_seconds, methods

INITIAL = 5

seconds = Metric("seconds")

claims = [
    Order(
        "MTBO takes at least 5 times as long as RM-GP-UCB, RGPE and TAF",
        [seconds[ONE].over(2) >= 5 * seconds[name].over(2) for name in (RM, RANKED, DISCORDANT)],
        note="mean over the iterations but the first, which also fits the models of the tasks; paired by iteration",
    ),
    Order("RM-GP-UCB is no slower than RGPE", seconds[RM].over(2) <= seconds[RANKED].over(2), marks=("card",)),
]


@experiment(
    "rm-gp-ucb/diabetes-runtime",
    source="Dai 2021 (thesis), Fig. D.6",
    data=Data("published", "pima_diabetes"),
    unit="run on the published data",
    quick=Budget(4, horizon=10),
    full=Budget(10, minutes=60, horizon=30),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """Seconds per iteration of each method on the diabetes tasks."""
    target = problem(SIZES[-1], replicate.root)
    points = target.domain.sample(INITIAL, replicate.rng("initial"))
    values = target(target.domain.sample(INITIAL + replicate["horizon"], replicate.rng("values")))
    policies = methods(tasks(replicate.root), (UCB, RM, RANKED, DISCORDANT, ONE), every=1)
    return {
        name: Trace(seconds=ask_seconds(make(target.domain, replicate.integer), points, values))
        for name, make in policies.items()
    }
