"""What is known: kernels, Gaussian processes and their posteriors.

>>> from surefoot.belief import GP, SE
>>> GP(SE(lengthscale=0.2), noise=0.01).condition().n
0
"""

from __future__ import annotations

from surefoot import lazy

__getattr__, __dir__, __all__ = lazy.names(
    __name__,
    {
        "additive": ["Additive", "Parts"],
        "decomposition": ["Decompositions", "learn", "partition", "refine"],
        "kernels": [
            "SE",
            "ConstantKernel",
            "Kernel",
            "Linear",
            "Matern",
            "RationalQuadratic",
            "Stationary",
            "kernel_from_dict",
        ],
        "noisy_inputs": ["NoisyInputs"],
        "priors": ["Fixed", "LogNormal", "TwoPiece"],
        "gp": ["GP"],
        "posterior": ["Posterior"],
        "mixture": ["MixturePosterior"],
        "free_mean": ["FreeMean"],
        "average": ["Averaged", "averaged"],
        "grid": ["GridPosterior"],
        "listed": ["ListedPosterior"],
        "protocol": ["EVERY", "Belief"],
        "lookahead": ["Lookahead"],
        "fourier": ["FourierFeatures", "WeightPosterior"],
        "paths": ["Path", "PathSamples", "sample_paths"],
        "drift": ["DriftingGrid", "DriftingPosterior"],
        "forgetting": ["Forgetting", "Panel", "drifting", "estimate_forgetting"],
    },
    renamed={"Constant": "ConstantKernel"},
)
