"""BO-BOS on the learning curves of LCBench: a stand-in, without a GPU, for tuning convolutional networks.

Networks with seven hyper-parameters, 52 epochs, on up to 34 data sets; the curves are the predictions of a model fitted
to real training runs. Repetition r uses data set r mod ``tasks`` and a seed of its own. Every method spends the same
total number of epochs, and every stopped run is finished outside the budget.

"BO-BOS" has this library's defaults, "BO-BOS, published" the options of its authors; GP-UCB is the same search without
stopping. A regret is the distance of the best accuracy reached to the best that a wide search found.
"""

from __future__ import annotations

from collections.abc import Mapping

from surefoot.policy.epochs.bo_bos import BOBOS
from surefoot.policy.search import RandomSearch
from surefoot.policy.ucb.gp_ucb import GPUCB
from surefoot_lab import Budget, Data, Equal, Metric, Order, Replicate, Share, Trace, Unit, experiment
from surefoot_lab.baselines.boca import BOCA
from surefoot_lab.baselines.curve_extrapolation import CurveExtrapolation
from surefoot_lab.baselines.hyperband import Hyperband
from surefoot_lab.curves import compare_curves
from surefoot_lab.experiments.bo_bos._stops import wrong_stops
from surefoot_lab.lcbench import EPOCHS, TASKS, lcbench

S = Metric("simple_regret")

claims = [
    Order("at equal epochs the error of BO-BOS is below that of GP-UCB", S["BO-BOS"] < S["GP-UCB"]),
    Order(
        "Hyperband is ahead of GP-UCB in the first tenth of the epochs, and behind BO-BOS at the end",
        [S["Hyperband"].part(0.1) < S["GP-UCB"].part(0.1), S["BO-BOS"] < S["Hyperband"]],
    ),
    Equal("learning-curve prediction equals GP-UCB", (S["LC prediction"], S["GP-UCB"])),
    Share("fewer than one stop in ten is wrong", wrong_stops("BO-BOS") < 0.1, marks="card"),
]


@experiment(
    "bo-bos/lcbench",
    source="companion, stand-in for Fig. 4.2 of Dai 2021 (thesis); Dai, Yu, Low, Jaillet 2019, section 5.2",
    data=Data("substitute", "lcbench", instead_of="CNN training"),
    unit=Unit("data set", lambda index, settings: index % settings["tasks"]),
    quick=Budget(9, runs=15, tasks=3),
    full=Budget(170, minutes=110, runs=30, tasks=34),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """BO-BOS on the learning curves of LCBench."""
    spread = len(TASKS) // replicate["tasks"]  # few data sets are taken from all over the list
    problem = lcbench(TASKS[replicate.index % replicate["tasks"] * spread])
    policies = {
        "GP-UCB": lambda p, seed: GPUCB(p.domain, seed=seed),
        "BO-BOS": lambda p, seed: BOBOS(p.domain, epochs=EPOCHS, seed=seed),
        "BO-BOS, published": lambda p, seed: BOBOS.published(p.domain, epochs=EPOCHS, seed=seed),
        "Hyperband": lambda p, seed: Hyperband(p.domain, epochs=EPOCHS, seed=seed),
        "BOCA": lambda p, seed: BOCA(p.domain, epochs=EPOCHS, seed=seed),
        "LC prediction": lambda p, seed: CurveExtrapolation(p.domain, epochs=EPOCHS, seed=seed),
        "random": lambda p, seed: RandomSearch(p.domain, seed=seed),
    }
    return compare_curves(policies, problem, replicate["runs"] * EPOCHS, replicate)
