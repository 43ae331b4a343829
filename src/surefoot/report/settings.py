"""What determines a run, and what it ran on, as short texts.

>>> from surefoot import Box, RandomSearch
>>> settings(RandomSearch(Box.unit(1), seed=7))["policy"]
'RandomSearch'
"""

from __future__ import annotations

import json
import platform
from importlib.metadata import version

import surefoot
from surefoot.loop.policy import Policy
from surefoot.report.run import direction_of
from surefoot.report.view import short

__all__ = ["environment", "settings"]

_LONGEST = 2000  # characters of one setting


def settings(policy: Policy, *, direction: str | None = None) -> dict[str, str]:
    """Return everything that determines the run, as short texts.

    >>> from surefoot import Box, RandomSearch
    >>> settings(RandomSearch(Box.unit(1), seed=7))["seed"]
    '7'
    """
    config = {key: value for key, value in policy.config().items() if key not in ("domain", "direction")}
    stored = {key: value if isinstance(value, str) else json.dumps(value) for key, value in config.items()}
    return {
        "policy": type(policy).__name__,
        "domain": short(repr(policy.domain), _LONGEST),
        "direction": direction_of(policy, direction),
        "seed": str(policy.seed),
        **{key: short("default" if text == "null" else text, _LONGEST) for key, text in stored.items()},
    }


def environment() -> dict[str, str]:
    """Return the versions a run depends on.

    >>> sorted(environment())
    ['numpy', 'python', 'scipy', 'surefoot', 'system']
    """
    return {
        "surefoot": surefoot.__version__,
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "scipy": version("scipy"),
        "system": f"{platform.system()} {platform.machine()}",
    }
