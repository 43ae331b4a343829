"""Earlier tasks, some of which may help."""

from surefoot import lazy

__getattr__, __dir__, __all__ = lazy.names(
    __name__,
    {
        "rm_gp_ucb": ["RMGPUCB"],
        "rm_gp_ts": ["RMGPTS"],
        "rgpe": ["RGPE"],
        "taf": ["TAF"],
        "tasks": ["Task"],
    },
)
