"""Does a model help at all? GP-UCB beside random and Sobol search on draws from a Gaussian process.

A control that every later comparison relies on: with the right prior and two standard deviations, GP-UCB must be below
both searches by a wide margin, and fitting the hyper-parameters must not lose that.
"""

from __future__ import annotations

from collections.abc import Mapping

from surefoot.belief.gp import GP
from surefoot.belief.kernels import SE
from surefoot.domain import Box
from surefoot.loop.widths import Constant
from surefoot.policy.search import RandomSearch, SobolSearch
from surefoot.policy.ucb.gp_ucb import GPUCB
from surefoot_lab import Budget, Metric, Order, Replicate, Trace, compare, experiment, lowest
from surefoot_lab.samples import gp_sample_continuous

KERNEL, NOISE = SE(lengthscale=0.2), 1e-4
S = Metric("simple_regret")

claims = [
    Order(
        "with the true prior, GP-UCB is below random and Sobol search",
        lowest(S["GP-UCB, true prior"], [S["random"], S["Sobol"]]),
    ),
    Order(
        "with fitted hyper-parameters, GP-UCB is below random and Sobol search",
        lowest(S["GP-UCB, fitted"], [S["random"], S["Sobol"]]),
    ),
    Order("already at half of the budget", S["GP-UCB, true prior"].part(0.5) < S["random"]),
]


@experiment(
    "gp-ucb/against-random",
    source="control; Srinivas, Krause, Kakade, Seeger 2010, Algorithm 1",
    unit="drawn function",
    quick=Budget(20, horizon=30),
    full=Budget(200, minutes=30, horizon=60),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """GP-UCB beside random search on draws from the prior in two dimensions."""
    box = Box.unit(2)
    problem = gp_sample_continuous(KERNEL, box, replicate.rng("function"), noise=NOISE)
    policies = {
        "GP-UCB, true prior": lambda d, seed: GPUCB(d, gp=GP(KERNEL, noise=NOISE), width=Constant(2.0), seed=seed),
        "GP-UCB, fitted": lambda d, seed: GPUCB(d, seed=seed),
        "random": lambda d, seed: RandomSearch(d, seed=seed),
        "Sobol": lambda d, seed: SobolSearch(d, seed=seed),
    }
    return compare(policies, problem, replicate["horizon"], replicate)
