"""What would a measurement tell about the maximum?"""

from surefoot import lazy

__getattr__, __dir__, __all__ = lazy.names(
    __name__,
    {
        "max_value_entropy": ["MaxValueEntropySearch"],
        "entropy_search": ["EntropySearch", "MinimumRegretSearch"],
    },
)
