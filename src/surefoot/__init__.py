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

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0.dev0"

_HOMES = {
    "surefoot.domain": [
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
    "surefoot.domain.perturbation": ["AroundEstimate", "Ball", "Groups", "UnknownParameters", "WeightedBox"],
    "surefoot.belief.kernels": ["SE", "Linear", "Matern", "RationalQuadratic"],
    "surefoot.belief.gp": ["GP"],
    "surefoot.loop.types": ["FAILED", "Advice", "LevelSet", "Outcome", "Query", "Recommendation"],
    "surefoot.loop.errors": [
        "BudgetSpent",
        "Exhausted",
        "MissingData",
        "MissingExtra",
        "NoData",
        "NotSupported",
        "PendingQuery",
        "SurefootError",
    ],
    "surefoot.loop.policy": ["Policy"],
    "surefoot.loop.record": ["load"],
    "surefoot.loop.journal": ["Journal"],
    "surefoot.optimizer": ["Result", "optimize"],
    "surefoot.policy.search": ["RandomSearch", "SobolSearch"],
    "surefoot.policy.gp_ucb": ["GPUCB"],
    "surefoot.policy.improvement": ["ExpectedImprovement", "ProbabilityOfImprovement"],
    "surefoot.policy.thompson": ["ThompsonSampling"],
    "surefoot.policy.batch": ["DBGPUCB", "GPUCBPE"],
    "surefoot.policy.penalization": ["LocalPenalization"],
    "surefoot.policy.qei": ["QEI"],
    "surefoot.policy.level_set": ["GPLSE", "RandomLevelSet", "Straddle", "VarianceSampling"],
    "surefoot.policy.prices": ["Fidelity"],
    "surefoot.policy.truvar": ["TruVaR"],
    "surefoot.policy.entropy": ["MaxValueEntropySearch"],
    "surefoot.policy.entropy_search": ["EntropySearch", "MinimumRegretSearch"],
    "surefoot.policy.stable_opt": ["StableOpt"],
    "surefoot.policy.robust_report": ["RobustReport"],
    "surefoot.policy.maximin": ["MaxiMinGPUCB"],
    "surefoot.policy.macro": ["MacroGPO"],
    "surefoot.policy.meta": ["RMGPUCB"],
    "surefoot.policy.meta_thompson": ["RMGPTS"],
    "surefoot.policy.robust_batch": ["RobustBatch"],
    "surefoot.policy.rgpe": ["RGPE"],
    "surefoot.policy.taf": ["TAF"],
    "surefoot.policy.tasks": ["Task"],
    "surefoot.policy.resetting": ["RGPUCB"],
    "surefoot.policy.time_varying": ["TVGPUCB"],
    "surefoot.policy.early_stop": ["BOBOS"],
    "surefoot.policy.early_stop_transfer": ["RMBOBOS"],
}
_MODULES = {
    "widths": "surefoot.loop.widths",
    "lab": "surefoot.lab",
    "report": "surefoot.report",
    "select": "surefoot.select",
    "stopping": "surefoot.stopping",
    "testing": "surefoot.testing",
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = sorted([*_HOME, *_MODULES, "__version__"])

if TYPE_CHECKING:
    from surefoot import lab, report, select, stopping, testing
    from surefoot.belief.gp import GP
    from surefoot.belief.kernels import SE, Linear, Matern, RationalQuadratic
    from surefoot.domain import Box, Candidates, Choice, Dives, Float, GraphPaths, Int, MoveTable, Paths, Space
    from surefoot.domain.perturbation import AroundEstimate, Ball, Groups, UnknownParameters, WeightedBox
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


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(_MODULES[name])
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'surefoot' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
