"""Surefoot and BoTorch: each one's model inside the other, and two of Surefoot's rules as acquisition functions.

>>> import torch
>>> from botorch.optim import optimize_acqf
>>> from surefoot import GP, SE, Ball
>>> from surefoot.bridge.botorch import GPModel, RobustUpperBound
>>> model = GPModel(GP(SE(lengthscale=0.2), noise=1e-4).condition([[0.2], [0.5], [0.9]], [1.0, 0.0, 0.5]))
>>> bounds = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
>>> rule = RobustUpperBound(model, Ball(0.1), bounds)
>>> x, value = optimize_acqf(rule, bounds, q=1, num_restarts=4, raw_samples=32)
>>> rule.sample(x).shape  # where to measure: what the adversary would do to x
torch.Size([1, 1])

:class:`GPModel` is a Surefoot posterior as a model of BoTorch. :func:`to_gp` and :func:`to_posterior` translate an
exact Gaussian process of BoTorch into Surefoot's terms, :class:`BotorchGP` is a belief whose hyper-parameters BoTorch
fits, and :class:`ModelBelief` lets a policy ask a model that has no translation. :class:`RobustUpperBound` is
StableOpt's rule and :class:`TruncatedVarianceReduction` TruVaR's, for any model of BoTorch.
"""

from __future__ import annotations

import importlib.util

if importlib.util.find_spec("botorch") is None:
    from surefoot.errors import MissingExtra

    raise MissingExtra("the BoTorch bridge needs BoTorch: pip install 'surefoot[botorch]'")

from surefoot.bridge.botorch.acquisition import RobustUpperBound, TruncatedVarianceReduction
from surefoot.bridge.botorch.belief import BotorchGP, ModelBelief, ModelPosterior
from surefoot.bridge.botorch.model import GPModel
from surefoot.bridge.botorch.translate import to_gp, to_posterior

__all__ = [
    "BotorchGP",
    "GPModel",
    "ModelBelief",
    "ModelPosterior",
    "RobustUpperBound",
    "TruncatedVarianceReduction",
    "to_gp",
    "to_posterior",
]
