"""The choice whose worst case is best."""

from surefoot import lazy

__getattr__, __dir__, __all__ = lazy.names(
    __name__,
    {
        "stable_opt": ["StableOpt"],
        "robust_report": ["RobustReport"],
        "maximin": ["MaxiMinGPUCB"],
    },
)
