"""Runs of many epochs, some of which are given up."""

from surefoot import lazy

__getattr__, __dir__, __all__ = lazy.names(
    __name__,
    {
        "bo_bos": ["BOBOS"],
        "rm_bo_bos": ["RMBOBOS"],
    },
)
