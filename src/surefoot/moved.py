"""Where the modules and classes of version 0.1 went: their old names work until 0.3, with a warning.

The laboratory became a distribution of its own, :mod:`surefoot_lab`, and policies stand in folders by family. Names at
the top level (``surefoot.GPUCB``) have not moved.

>>> import warnings
>>> with warnings.catch_warnings(record=True) as said:
...     warnings.simplefilter("always")
...     from surefoot.policy.meta import RMGPUCB
>>> str(said[0].message)
'surefoot.policy.meta is surefoot.policy.transfer.rm_gp_ucb now; the old name goes with version 0.3'
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__all__ = ["MOVED", "install", "renamed"]

MOVED = {
    "loop.climb": "domain.climb",
    "loop.errors": "errors",
    "loop.maximize": "domain.search",
    "loop.model": "policy.base",
    "loop.worst_case": "policy.robust.worst_case",
    "policy.add_gp_ucb": "policy.ucb.add_gp_ucb",
    "policy.anytime": "policy.routes.anytime",
    "policy.bounds": "policy.routes.lipschitz",
    "policy.clock": "loop.clock",
    "policy.early_stop": "policy.epochs.bo_bos",
    "policy.early_stop_transfer": "policy.epochs.rm_bo_bos",
    "policy.entropy_search": "policy.entropy.entropy_search",
    "policy.gp_ucb": "policy.ucb.gp_ucb",
    "policy.joint": "policy.batch.joint",
    "policy.level_set": "policy.levels.level_set",
    "policy.macro": "policy.routes.macro_gpo",
    "policy.maximin": "policy.robust.maximin",
    "policy.meta": "policy.transfer.rm_gp_ucb",
    "policy.meta_thompson": "policy.transfer.rm_gp_ts",
    "policy.orthants": "policy.batch.orthants",
    "policy.path_constants": "policy.routes.lipschitz",
    "policy.path_tree": "policy.routes.path_tree",
    "policy.penalization": "policy.batch.penalization",
    "policy.plan": "policy.routes.bellman",
    "policy.prices": "policy.levels.prices",
    "policy.qei": "policy.batch.qei",
    "policy.resetting": "policy.drift.r_gp_ucb",
    "policy.rgpe": "policy.transfer.rgpe",
    "policy.robust_batch": "policy.batch.robust_batch",
    "policy.robust_report": "policy.robust.robust_report",
    "policy.sets": "policy.levels.sets",
    "policy.stable_opt": "policy.robust.stable_opt",
    "policy.subtrees": "policy.routes.minimal_subtrees",
    "policy.taf": "policy.transfer.taf",
    "policy.tasks": "policy.transfer.tasks",
    "policy.time_varying": "policy.drift.tv_gp_ucb",
    "policy.truvar": "policy.levels.truvar",
    "lab.attack_command": "cli.attack",
    "lab.attack_images": "cli.attack_images",
    "lab.attack_report": "cli.attack_report",
    "lab.audit": "cli.audit",
    "lab.baselines.bayesopt_attack": "attack.bayesopt_attack",
    "lab.baselines.federated_controls": "federated.controls",
    "lab.baselines.genattack": "attack.genattack",
    "lab.baselines.latent_search": "attack.latent_search",
    "lab.baselines.square_attack": "attack.square_attack",
    "lab.curate": "cli.curate",
    "lab.demo": "cli.demo",
    "lab.federate": "cli.federate",
    "lab.federation": "federated.in_process",
    "lab.federation_plan": "federated.plan",
    "lab.federation_plot": "report.federation",
    "lab.intervals": "intervals",
    "lab.records": "cli.records",
    "lab.robustness": "attack.robustness",
    "lab.select": "cli.select",
    "lab.selection_plot": "report.selection",
    "lab.show": "cli.show",
    "lab.storage": "cli.storage",
    "lab.target": "cli.target",
    "lab.terminal": "cli.terminal",
    "lab.tune": "cli.tune",
    "lab.watch": "cli.watch",
    "lab.which": "cli.which",
}
"""Old and new names of modules, without the package; what else was in the laboratory is in ``surefoot_lab``."""


def _home(name: str) -> str | None:
    """Where a module is now, if it moved."""
    head, _, rest = name.partition(".")
    if head != "surefoot" or not rest:
        return None
    for old, new in MOVED.items():
        if rest == old or rest.startswith(f"{old}."):
            return f"surefoot.{new}{rest[len(old) :]}"
    if rest == "lab.experiment":  # a function has this name now
        return "surefoot_lab.registry"
    if rest == "lab" or rest.startswith("lab."):
        return f"surefoot_lab{rest[len('lab') :]}"
    return None


class _Moved(MetaPathFinder, Loader):
    """Finds a module under its old name: the very same module, not a copy."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return None if _home(fullname) is None else ModuleSpec(fullname, self)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        home = str(_home(spec.name))
        try:
            module = import_module(home)
        except ModuleNotFoundError as error:
            if error.name != "surefoot_lab":
                raise
            raise ModuleNotFoundError(f"{spec.name} is {home} now: pip install surefoot-lab", name=spec.name) from None
        warnings.warn(
            f"{spec.name} is {home} now; the old name goes with version 0.3", DeprecationWarning, stacklevel=2
        )
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # importlib has just replaced it


def renamed(module: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a module in which some names, the keys, are others now.

    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     found = renamed("surefoot.attack", {"Ball": "NormBall"})("Ball")
    >>> found.__name__, str(said[0].message)
    ('NormBall', 'surefoot.attack.Ball is NormBall now; the old name goes with version 0.3')
    """

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        new = names[name]
        warnings.warn(
            f"{module}.{name} is {new} now; the old name goes with version 0.3", DeprecationWarning, stacklevel=2
        )
        return getattr(import_module(module), new)

    return find


def install() -> None:
    """Let old names be found; called once, by the package itself.

    >>> install()
    >>> sum(isinstance(finder, _Moved) for finder in sys.meta_path)
    1
    """
    if not any(isinstance(finder, _Moved) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Moved())
