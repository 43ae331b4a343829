"""Surefoot: Bayesian optimization on rough ground.

It decides where to measure next when each measurement is expensive. The smallest use:

>>> import surefoot
>>> result = surefoot.optimize(lambda x: -((x[0] - 0.3) ** 2), surefoot.Box([(0.0, 1.0)]), budget=12, seed=0)
>>> abs(result.x[0] - 0.3) < 0.05
np.True_

and the loop in your own hands:

>>> policy = surefoot.GPUCB(surefoot.Box([(0.0, 1.0)]), seed=0)
>>> query = policy.ask()
>>> policy.tell(query, 0.7)

Names are imported when they are first used, so ``import surefoot`` is fast and needs nothing beyond NumPy and SciPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from surefoot import lazy

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy.names(
    __name__,
    {
        "domain": [
            "Box",
            "Candidates",
            "Choice",
            "Dives",
            "Float",
            "GraphPaths",
            "Int",
            "MoveTable",
            "Paths",
            "Space",
        ],
        "domain.groups": ["Groups"],
        "domain.perturbation": ["Ball", "WeightedBox"],
        "domain.unknown": ["AroundEstimate", "UnknownParameters"],
        "belief.kernels": ["SE", "Linear", "Matern", "RationalQuadratic"],
        "belief.gp": ["GP"],
        "loop.types": ["FAILED", "Advice", "LevelSet", "Outcome", "Query", "Recommendation"],
        "loop.errors": [
            "BudgetSpent",
            "Exhausted",
            "MissingData",
            "MissingExtra",
            "NoData",
            "NotSupported",
            "PendingQuery",
            "SurefootError",
        ],
        "loop.policy": ["Policy"],
        "loop.record": ["load"],
        "loop.journal": ["Journal"],
        "optimizer": ["Result", "optimize"],
        "policy.search": ["RandomSearch", "SobolSearch"],
        "policy.gp_ucb": ["GPUCB"],
        "policy.add_gp_ucb": ["AddGPUCB"],
        "policy.improvement": ["ExpectedImprovement", "ProbabilityOfImprovement"],
        "policy.thompson": ["ThompsonSampling"],
        "policy.batch": ["DBGPUCB", "GPUCBPE"],
        "policy.penalization": ["LocalPenalization"],
        "policy.qei": ["QEI"],
        "policy.level_set": ["GPLSE", "RandomLevelSet", "Straddle", "VarianceSampling"],
        "policy.prices": ["Fidelity"],
        "policy.truvar": ["TruVaR"],
        "policy.entropy": ["MaxValueEntropySearch"],
        "policy.entropy_search": ["EntropySearch", "MinimumRegretSearch"],
        "policy.stable_opt": ["StableOpt"],
        "policy.robust_report": ["RobustReport"],
        "policy.maximin": ["MaxiMinGPUCB"],
        "policy.macro": ["MacroGPO"],
        "policy.meta": ["RMGPUCB"],
        "policy.meta_thompson": ["RMGPTS"],
        "policy.robust_batch": ["RobustBatch"],
        "policy.rgpe": ["RGPE"],
        "policy.taf": ["TAF"],
        "policy.tasks": ["Task"],
        "policy.resetting": ["RGPUCB"],
        "policy.time_varying": ["TVGPUCB"],
        "policy.early_stop": ["BOBOS"],
        "policy.early_stop_transfer": ["RMBOBOS"],
        "serve.client": ["Client"],
        "games.player": ["Player"],
    },
    modules={
        "widths": "surefoot.loop.widths",
        "attack": "surefoot.attack",
        "experimental": "surefoot.experimental",
        "federated": "surefoot.federated",
        "games": "surefoot.games",
        "lab": "surefoot.lab",
        "private": "surefoot.private",
        "report": "surefoot.report",
        "select": "surefoot.select",
        "stopping": "surefoot.stopping",
        "testing": "surefoot.testing",
    },
)
__all__.append("__version__")

if TYPE_CHECKING:
    from surefoot import attack, experimental, federated, games, lab, private, report, select, stopping, testing
    from surefoot.belief.gp import GP
    from surefoot.belief.kernels import SE, Linear, Matern, RationalQuadratic
    from surefoot.domain import Box, Candidates, Choice, Dives, Float, GraphPaths, Int, MoveTable, Paths, Space
    from surefoot.domain.groups import Groups
    from surefoot.domain.perturbation import Ball, WeightedBox
    from surefoot.domain.unknown import AroundEstimate, UnknownParameters
    from surefoot.games.player import Player
    from surefoot.loop import widths
    from surefoot.loop.errors import (
        BudgetSpent,
        Exhausted,
        MissingData,
        MissingExtra,
        NoData,
        NotSupported,
        PendingQuery,
        SurefootError,
    )
    from surefoot.loop.journal import Journal
    from surefoot.loop.policy import Policy
    from surefoot.loop.record import load
    from surefoot.loop.types import FAILED, Advice, LevelSet, Outcome, Query, Recommendation
    from surefoot.optimizer import Result, optimize
    from surefoot.policy.add_gp_ucb import AddGPUCB
    from surefoot.policy.batch import DBGPUCB, GPUCBPE
    from surefoot.policy.early_stop import BOBOS
    from surefoot.policy.early_stop_transfer import RMBOBOS
    from surefoot.policy.entropy import MaxValueEntropySearch
    from surefoot.policy.entropy_search import EntropySearch, MinimumRegretSearch
    from surefoot.policy.gp_ucb import GPUCB
    from surefoot.policy.improvement import ExpectedImprovement, ProbabilityOfImprovement
    from surefoot.policy.level_set import GPLSE, RandomLevelSet, Straddle, VarianceSampling
    from surefoot.policy.macro import MacroGPO
    from surefoot.policy.maximin import MaxiMinGPUCB
    from surefoot.policy.meta import RMGPUCB
    from surefoot.policy.meta_thompson import RMGPTS
    from surefoot.policy.penalization import LocalPenalization
    from surefoot.policy.prices import Fidelity
    from surefoot.policy.qei import QEI
    from surefoot.policy.resetting import RGPUCB
    from surefoot.policy.rgpe import RGPE
    from surefoot.policy.robust_batch import RobustBatch
    from surefoot.policy.robust_report import RobustReport
    from surefoot.policy.search import RandomSearch, SobolSearch
    from surefoot.policy.stable_opt import StableOpt
    from surefoot.policy.taf import TAF
    from surefoot.policy.tasks import Task
    from surefoot.policy.thompson import ThompsonSampling
    from surefoot.policy.time_varying import TVGPUCB
    from surefoot.policy.truvar import TruVaR
    from surefoot.serve.client import Client
