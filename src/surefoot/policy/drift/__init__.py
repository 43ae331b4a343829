"""Functions that change with time."""

from surefoot import lazy

__getattr__, __dir__, __all__ = lazy.names(
    __name__,
    {
        "tv_gp_ucb": ["TVGPUCB"],
        "r_gp_ucb": ["RGPUCB"],
    },
)
