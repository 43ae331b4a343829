"""Which policies there are, by name: the shipped ones, those of installed packages, and what a program defines itself.

What is stored names its policy, and the name is looked up here. It is a word in a table and never a path: a name that
no table has is refused, and nothing is imported for its sake. Packages enter the table through the entry-point group
``surefoot.policies``, where a name stands for a class; whoever installs a package has decided to run its code.

The shipped names are text, so that this room knows where each of them lies and imports none of the rooms above. The
top level offers the same names from the same table.

>>> policy_named("GPUCB")
<class 'surefoot.policy.ucb.gp_ucb.GPUCB'>
>>> policy_names()
['AddGPUCB', 'Agent', 'BOBOS', ...]
"""

from __future__ import annotations

import difflib
import functools
import inspect
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from surefoot.errors import MissingExtra

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from surefoot.loop.policy import Policy
    from surefoot.loop.record import Record

__all__ = ["GROUP", "SHIPPED", "defined", "find", "find_anywhere", "policy_named", "policy_names", "policy_spelled"]

GROUP = "surefoot.policies"
"""The entry-point group of other packages' policies."""

SHIPPED = {
    "games.player": ["Player"],
    "policy.batch.gp_ucb_pe": ["DBGPUCB", "GPUCBPE"],
    "policy.batch.penalization": ["LocalPenalization"],
    "policy.batch.qei": ["QEI"],
    "policy.batch.robust_batch": ["RobustBatch"],
    "policy.drift.r_gp_ucb": ["RGPUCB"],
    "policy.drift.tv_gp_ucb": ["TVGPUCB"],
    "policy.entropy.entropy_search": ["EntropySearch", "MinimumRegretSearch"],
    "policy.entropy.max_value_entropy": ["MaxValueEntropySearch"],
    "policy.epochs.bo_bos": ["BOBOS"],
    "policy.epochs.rm_bo_bos": ["RMBOBOS"],
    "policy.improvement": ["ExpectedImprovement", "ProbabilityOfImprovement"],
    "policy.levels.level_set": ["GPLSE", "RandomLevelSet", "Straddle", "VarianceSampling"],
    "policy.levels.truvar": ["TruVaR"],
    "policy.robust.maximin": ["MaxiMinGPUCB"],
    "policy.robust.robust_report": ["RobustReport"],
    "policy.robust.stable_opt": ["StableOpt"],
    "policy.routes.macro_gpo": ["MacroGPO"],
    "policy.search": ["RandomSearch", "SobolSearch"],
    "policy.thompson": ["ThompsonSampling"],
    "policy.transfer.rgpe": ["RGPE"],
    "policy.transfer.rm_gp_ts": ["RMGPTS"],
    "policy.transfer.rm_gp_ucb": ["RMGPUCB"],
    "policy.transfer.taf": ["TAF"],
    "policy.trust_region": ["TrustRegion"],
    "policy.ucb.add_gp_ucb": ["AddGPUCB"],
    "policy.ucb.gp_ucb": ["GPUCB"],
}
"""The policies at the top level, by module of the package."""

_HOMES = {
    "Agent": "surefoot.federated.agent",  # not at the top level: it is one of several
    **{name: f"surefoot.{module}" for module, names in SHIPPED.items() for name in names},
}

defined: dict[str, type[Record]] = {}
"""What has been defined in this process; each class enters itself."""


def find(name: str) -> type[Record] | None:
    """Return what has a name in this process, or None.

    >>> find("os.system") is None
    True
    """
    return defined.get(name) or find_anywhere(name)


def find_anywhere(name: str) -> type[Record] | None:
    """Return what has a name in every process of this installation: what is shipped, or a package offers.

    >>> find_anywhere("Agent")
    <class 'surefoot.federated.agent.Agent'>
    """
    if name in _HOMES:
        return cast("type[Record]", getattr(import_module(_HOMES[name]), name))
    offers = _installed().get(name, ())
    if len({point.value for point in offers}) > 1:
        both = " and ".join(sorted(f"{point.value} of {_package(point)}" for point in offers))
        raise ValueError(f"several packages offer a policy {name!r}: {both}")
    return _load(offers[0]) if offers else None


def policy_named(name: str) -> type[Policy]:
    """Return the policy that has a name: a shipped one, an installed package's, or one that the program defined.

    Parameters
    ----------
    name
        The name of the class, as it is stored; it is never imported as a path.

    >>> policy_named("GPUCB").__name__
    'GPUCB'
    >>> policy_named("os:system")
    Traceback (most recent call last):
    ...
    ValueError: there is no policy 'os:system'; there are ...
    """
    kind: Any = find(name)
    if kind is None or inspect.isabstract(kind):
        raise ValueError(f"there is no policy {name[:100]!r}; there are {', '.join(policy_names())}")
    return cast("type[Policy]", kind)


def policy_spelled(name: str) -> type[Policy]:
    """Return the policy that a person means by a name, however it is spelled.

    >>> policy_spelled("stable-opt").__name__, policy_spelled("gp_ucb").__name__
    ('StableOpt', 'GPUCB')
    """
    known = policy_names()
    same = [key for key in known if _bare(key) == _bare(name)]
    if not same and find(name) is None:
        close = difflib.get_close_matches(_bare(name), [_bare(key) for key in known], n=1)
        hint = next((f"; did you mean {key!r}?" for key in known if close and _bare(key) == close[0]), "")
        there = f"; there are {', '.join(known)}"
        raise ValueError(f"there is no policy {name[:100]!r}{hint or there}")
    return policy_named(same[0] if same else name)


def _bare(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "").replace(" ", "")


def policy_names() -> list[str]:
    """Return the names of all policies that are shipped or that installed packages offer; nothing is imported.

    >>> "GPUCB" in policy_names()
    True
    """
    return sorted({*_HOMES, *_installed()})


@functools.cache
def _installed() -> dict[str, list[EntryPoint]]:
    from importlib.metadata import entry_points  # slow to import, and needed for few names

    found: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=GROUP):
        if point.name not in _HOMES:  # what is shipped cannot be taken over
            found.setdefault(point.name, []).append(point)
    return found


def _load(point: EntryPoint) -> type[Record]:
    try:
        kind = point.load()
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        raise MissingExtra(f"the policy {point.name!r} of {_package(point)} cannot be imported ({why})") from error
    if kind not in defined.values():
        raise ValueError(f"the policy {point.name!r} of {_package(point)} is none: {point.value} is {kind!r}")
    return cast("type[Record]", kind)


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else "an installed package"
