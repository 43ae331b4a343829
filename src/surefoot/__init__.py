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

from surefoot import lazy, moved
from surefoot.loop import registry

__version__ = "0.2.0.dev0"

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
        "loop.types": ["FAILED", "Advice", "LevelSet", "Outcome", "Prediction", "Query", "Recommendation"],
        "errors": [
            "BudgetSpent",
            "Exhausted",
            "Interrupted",
            "MissingData",
            "MissingExtra",
            "NoData",
            "NotSupported",
            "PendingQuery",
            "SurefootError",
        ],
        "loop.policy": ["Policy"],
        "loop.record": ["load"],
        "loop.registry": ["policy_named", "policy_names"],
        "loop.journal": ["Journal"],
        "optimizer": ["Result", "optimize"],
        "policy.levels.prices": ["Fidelity"],
        "policy.transfer.tasks": ["Task"],
        "serve.client": ["Client"],
        **registry.SHIPPED,
    },
    modules={
        "widths": "surefoot.loop.widths",
        "attack": "surefoot.attack",
        "experimental": "surefoot.experimental",
        "federated": "surefoot.federated",
        "games": "surefoot.games",
        "private": "surefoot.private",
        "report": "surefoot.report",
        "select": "surefoot.select",
        "stopping": "surefoot.stopping",
        "testing": "surefoot.testing",
    },
)
__all__.append("__version__")
moved.install()

if TYPE_CHECKING:
    from surefoot import attack, experimental, federated, games, private, report, select, stopping, testing
    from surefoot.belief.gp import GP
    from surefoot.belief.kernels import SE, Linear, Matern, RationalQuadratic
    from surefoot.domain import Box, Candidates, Choice, Dives, Float, GraphPaths, Int, MoveTable, Paths, Space
    from surefoot.domain.groups import Groups
    from surefoot.domain.perturbation import Ball, WeightedBox
    from surefoot.domain.unknown import AroundEstimate, UnknownParameters
    from surefoot.errors import (
        BudgetSpent,
        Exhausted,
        Interrupted,
        MissingData,
        MissingExtra,
        NoData,
        NotSupported,
        PendingQuery,
        SurefootError,
    )
    from surefoot.games.player import Player
    from surefoot.loop import widths
    from surefoot.loop.journal import Journal
    from surefoot.loop.policy import Policy
    from surefoot.loop.record import load
    from surefoot.loop.registry import policy_named, policy_names
    from surefoot.loop.types import FAILED, Advice, LevelSet, Outcome, Prediction, Query, Recommendation
    from surefoot.optimizer import Result, optimize
    from surefoot.policy.batch.gp_ucb_pe import DBGPUCB, GPUCBPE
    from surefoot.policy.batch.penalization import LocalPenalization
    from surefoot.policy.batch.qei import QEI
    from surefoot.policy.batch.robust_batch import RobustBatch
    from surefoot.policy.drift.r_gp_ucb import RGPUCB
    from surefoot.policy.drift.tv_gp_ucb import TVGPUCB
    from surefoot.policy.entropy.entropy_search import EntropySearch, MinimumRegretSearch
    from surefoot.policy.entropy.max_value_entropy import MaxValueEntropySearch
    from surefoot.policy.epochs.bo_bos import BOBOS
    from surefoot.policy.epochs.rm_bo_bos import RMBOBOS
    from surefoot.policy.improvement import ExpectedImprovement, ProbabilityOfImprovement
    from surefoot.policy.levels.level_set import GPLSE, RandomLevelSet, Straddle, VarianceSampling
    from surefoot.policy.levels.prices import Fidelity
    from surefoot.policy.levels.truvar import TruVaR
    from surefoot.policy.robust.maximin import MaxiMinGPUCB
    from surefoot.policy.robust.robust_report import RobustReport
    from surefoot.policy.robust.stable_opt import StableOpt
    from surefoot.policy.routes.macro_gpo import MacroGPO
    from surefoot.policy.search import RandomSearch, SobolSearch
    from surefoot.policy.thompson import ThompsonSampling
    from surefoot.policy.transfer.rgpe import RGPE
    from surefoot.policy.transfer.rm_gp_ts import RMGPTS
    from surefoot.policy.transfer.rm_gp_ucb import RMGPUCB
    from surefoot.policy.transfer.taf import TAF
    from surefoot.policy.transfer.tasks import Task
    from surefoot.policy.trust_region import TrustRegion
    from surefoot.policy.ucb.add_gp_ucb import AddGPUCB
    from surefoot.policy.ucb.gp_ucb import GPUCB
    from surefoot.serve.client import Client
