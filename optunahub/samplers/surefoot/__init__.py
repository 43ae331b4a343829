"""Surefoot's policies as an Optuna sampler; the code is that of the installed package."""

from surefoot.bridge.optuna import SurefootSampler

__all__ = ["SurefootSampler"]
