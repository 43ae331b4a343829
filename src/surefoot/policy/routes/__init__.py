"""The moves of a vehicle, planned ahead."""

from surefoot import lazy

__getattr__, __dir__, __all__ = lazy.names(
    __name__,
    {
        "macro_gpo": ["MacroGPO"],
    },
)
