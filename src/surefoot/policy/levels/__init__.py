"""Level sets, and points that are followed until they are decided."""

from surefoot import lazy

__getattr__, __dir__, __all__ = lazy.names(
    __name__,
    {
        "level_set": ["GPLSE", "RandomLevelSet", "Straddle", "VarianceSampling"],
        "truvar": ["TruVaR"],
        "prices": ["Fidelity"],
    },
)
