"""A policy that goes the way its host wants to.

>>> from surefoot import Box, RandomSearch
>>> made(RandomSearch, Box([(0.0, 1.0)]), "minimize", seed=0).direction
'minimize'
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from surefoot.domain import Domain
from surefoot.loop.policy import Policy

__all__ = ["made"]


def made(make: Callable[..., Policy], domain: Domain, direction: str, **options: Any) -> Policy:
    """Call a policy class, or a function that makes a policy, and return a policy of the given direction.

    A function need not take ``direction``: the policy that it gives is then made again with it.

    >>> from surefoot import Box, GPUCB
    >>> made(lambda domain, seed: GPUCB(domain, seed=seed), Box([(0.0, 1.0)]), "minimize", seed=3)
    GPUCB(Box([(0.0, 1.0)]), asked=0, measured=0)
    """
    known = inspect.signature(make).parameters
    takes = "direction" in known or any(one.kind is one.VAR_KEYWORD for one in known.values())
    policy = make(domain, **({"direction": direction} if takes and direction == "minimize" else {}), **options)
    if not isinstance(policy, Policy):
        raise TypeError(f"policy must return a policy, got {policy!r}")
    if policy.direction != direction:
        policy = policy.fresh(direction=direction)
    return policy
