"""Several points at once."""

from surefoot import lazy

__getattr__, __dir__, __all__ = lazy.names(
    __name__,
    {
        "gp_ucb_pe": ["DBGPUCB", "GPUCBPE"],
        "penalization": ["LocalPenalization"],
        "qei": ["QEI"],
        "robust_batch": ["RobustBatch"],
    },
)
