"""Bayesian optimal stopping as an Optuna pruner; the code is that of the installed package."""

from surefoot.bridge.optuna import BosPruner

__all__ = ["BosPruner"]
