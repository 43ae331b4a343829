"""What is known: kernels, Gaussian processes and their posteriors.

>>> from surefoot.belief import GP, SE
>>> GP(SE(lengthscale=0.2), noise=0.01).condition().n
0
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "additive": ["Additive", "Parts"],
    "decomposition": ["Decompositions", "learn", "partition", "refine"],
    "kernels": ["SE", "Constant", "Kernel", "Linear", "Matern", "RationalQuadratic", "Stationary", "kernel_from_dict"],
    "noisy_inputs": ["NoisyInputs"],
    "priors": ["Fixed", "LogNormal", "TwoPiece"],
    "gp": ["GP"],
    "posterior": ["Posterior"],
    "mixture": ["MixturePosterior"],
    "grid": ["GridPosterior"],
    "lookahead": ["Lookahead"],
    "fourier": ["FourierFeatures", "WeightPosterior"],
    "paths": ["Path", "PathSamples", "sample_paths"],
    "drift": ["DriftingGrid", "DriftingPosterior"],
    "forgetting": ["Forgetting", "Panel", "drifting", "estimate_forgetting"],
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
