"""Evidence: problems, data sets, experiments, claims and the runner that judges them.

An experiment file needs one import line::

    from surefoot_lab import Budget, Metric, Order, Trace, compare, experiment

``surefoot reproduce ID`` runs it (:mod:`surefoot_lab.command`, :mod:`surefoot_lab.runner`). Test functions are in
:mod:`surefoot_lab.problems`, Gaussian process draws in :mod:`surefoot_lab.samples`, data in
:mod:`surefoot_lab.datasets`.
"""

from typing import TYPE_CHECKING

from surefoot import lazy

if TYPE_CHECKING:
    from surefoot_lab.registry import experiment as experiment

__version__ = "0.2.0.dev0"

__getattr__, __dir__, __all__ = lazy.names(
    __name__,
    {
        "claims": ["Equal", "Exact", "Number", "Order", "Share", "Trend", "falls", "one_standard_error", "rises"],
        "comparison": ["compare"],
        "registry": ["Budget", "Data", "Experiment", "Replicate", "Trace", "Unit", "experiment", "find", "names"],
        "problems": ["Problem"],
        "readings": ["Metric", "across", "ascending", "derived", "event", "highest", "lowest", "slope"],
    },
    modules={name: f"surefoot_lab.{name}" for name in ("datasets", "problems", "samples")},
)
