"""Upper confidence bounds."""

from surefoot import lazy

__getattr__, __dir__, __all__ = lazy.names(
    __name__,
    {
        "gp_ucb": ["GPUCB"],
        "add_gp_ucb": ["AddGPUCB"],
    },
)
