"""Surefoot inside Ray Tune: any policy as a searcher, optimal stopping as a scheduler.

>>> from ray import tune
>>> searcher = SurefootSearch({"x": tune.uniform(0.0, 1.0)}, metric="loss", mode="min", seed=0)
>>> for trial in "abcdefghij":
...     x = searcher.suggest(trial)["x"]
...     searcher.on_trial_complete(trial, {"loss": (x - 0.3) ** 2})
>>> abs(searcher.policy.recommend().params["x"] - 0.3) < 0.1
True

Ray saves a searcher and restores it; :class:`SurefootSearch` is then its policy's events again. Ray does not save a
scheduler; :class:`SurefootStopping` rebuilds itself from the results of the trials.
"""

from __future__ import annotations

import importlib.util

if importlib.util.find_spec("ray") is None:
    from surefoot.errors import MissingExtra

    raise MissingExtra("the Ray Tune bridge needs Ray: pip install 'surefoot[ray]'")

from surefoot.bridge.ray_tune.scheduler import SurefootStopping
from surefoot.bridge.ray_tune.searcher import SurefootSearch

__all__ = ["SurefootSearch", "SurefootStopping"]
