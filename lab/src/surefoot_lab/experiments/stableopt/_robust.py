"""The five methods of the comparisons, and the robust regret of what each reports after every round.

All of them believe in the same process, use the same width of two standard deviations, and are told the same random
points first. GP-UCB and MaxiMin-GP-UCB report what they choose; the other three report by StableOpt's rule, the highest
worst-case lower bound now. Robust values are minima over the perturbation set of every choice, by brute force.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.belief.gp import GP
from surefoot.domain import Candidates
from surefoot.domain.perturbation import Perturbation
from surefoot.domain.sets import Sets
from surefoot.loop.policy import Policy
from surefoot.loop.widths import Constant
from surefoot.policy.robust.maximin import MaxiMinGPUCB
from surefoot.policy.robust.robust_report import RobustReport
from surefoot.policy.robust.stable_opt import StableOpt
from surefoot.policy.search import RandomSearch
from surefoot.policy.ucb.gp_ucb import GPUCB
from surefoot_lab.registry import Replicate, Trace

Array = NDArray[np.float64]

STABLE, UCB, MAXIMIN = "StableOpt", "GP-UCB", "MaxiMin-GP-UCB"
STABLE_RANDOM, STABLE_UCB = "Stable-GP-random", "Stable-GP-UCB"
BASELINES = (STABLE_RANDOM, STABLE_UCB, MAXIMIN, UCB)
WIDTH = Constant(2.0)


def methods(designs: Candidates, perturbation: Perturbation, gp: GP, seed: int) -> dict[str, Policy]:
    """The five methods; over unknown parameters the searches are made over pairs."""
    joined = perturbation.join(designs)
    known: dict[str, Any] = {"gp": gp, "initial": 0, "seed": seed}
    return {
        STABLE: StableOpt(designs, perturbation=perturbation, width=WIDTH, **known),
        STABLE_RANDOM: RobustReport(RandomSearch(joined, seed=seed), perturbation, gp=gp, width=WIDTH),
        STABLE_UCB: RobustReport(GPUCB(joined, width=WIDTH, **known), perturbation),
        MAXIMIN: MaxiMinGPUCB(designs, perturbation=perturbation, width=WIDTH, **known),
        UCB: GPUCB(joined, width=WIDTH, **known),
    }


def reach(designs: Candidates, perturbation: Perturbation) -> Sets:
    """What an adversary reaches from each choice."""
    sets = perturbation.on(perturbation.join(designs))
    if not isinstance(sets, Sets):
        raise TypeError(f"the comparison is made on finitely many choices, not on {sets!r}")
    return sets


def race(
    policies: dict[str, Policy],
    values: Array,
    sets: Sets,
    rounds: int,
    replicate: Replicate,
    *,
    initial: int | NDArray[np.intp] = 10,
    noise: float = 0.0,
) -> dict[str, Trace]:
    """Drive each policy and return the robust value, and the robust regret, of what it reports in every round.

    Parameters
    ----------
    policies : dict of Policy
        Fresh policies on the same measured candidates.
    values : array of shape (n,)
        The truth at the measured candidates.
    sets : Sets
        What an adversary reaches from each choice.
    rounds : int
        Measurements after the initial ones.
    replicate : Replicate
        Gives initial points and errors: the t-th error is the same for all.
    initial : int or array
        How many random candidates are told first, or which.
    noise : float
        Variance of a measurement.
    """
    worst = sets.minimum(values)
    rows = replicate.rng("initial").integers(len(values), size=initial) if isinstance(initial, int) else initial
    centers = Candidates(sets.points)
    traces = {}
    for name, policy in policies.items():
        errors, reported = np.sqrt(noise) * replicate.rng("noise").standard_normal(len(rows) + rounds), []
        for row, error in zip(rows, errors[: len(rows)], strict=True):
            policy.tell(policy.domain.enumerate()[row], float(values[row] + error))
        for error in errors[len(rows) :]:
            query = policy.ask()
            row = int(policy.domain.index_of(query.x)) if query.index is None else query.index  # type: ignore[attr-defined]
            policy.tell(query, float(values[row] + error))
            if name == UCB:
                reported.append(int(sets.center_of(np.array([row]))[0]))
            else:
                answer = policy.recommend()
                reported.append(int(answer.index if answer.index is not None else centers.index_of(answer.x)))
        robust = worst[reported]
        traces[name] = Trace(robust_value=robust, robust_regret=worst.max() - robust)
    return traces
