"""Surefoot inside Ax: any policy as a node of a generation strategy.

>>> from ax.api.client import Client
>>> from ax.api.configs import RangeParameterConfig
>>> from ax.generation_strategy.generation_strategy import GenerationStrategy
>>> from surefoot.bridge.ax import SurefootNode
>>> client = Client()
>>> client.configure_experiment([RangeParameterConfig("x", (0.0, 1.0), "float")])
>>> client.configure_optimization("-loss")
>>> client.set_generation_strategy(GenerationStrategy(nodes=[SurefootNode(seed=0)]))
>>> for _ in range(8):
...     for index, parameters in client.get_next_trials(1).items():
...         _ = client.complete_trial(index, {"loss": (parameters["x"] - 0.3) ** 2})
>>> abs(client.get_best_parameterization(use_model_predictions=False)[0]["x"] - 0.3) < 0.05
True

:class:`SurefootNode` has no memory of its own: what it says follows from the trials of the experiment, so that an
experiment that was stored goes on where it was.
"""

from __future__ import annotations

import importlib.util

if importlib.util.find_spec("ax") is None:
    from surefoot.errors import MissingExtra

    raise MissingExtra("the Ax bridge needs Ax: pip install 'surefoot[ax]'")

from surefoot.bridge.ax.node import SurefootNode

__all__ = ["SurefootNode"]
