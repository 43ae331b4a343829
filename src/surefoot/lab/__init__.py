"""Evidence: problems, data sets, experiments, claims and the runner that judges them.

An experiment file needs one import line::

    from surefoot.lab import Budget, Metric, Order, Trace, compare, experiment

``surefoot reproduce ID`` runs it (:mod:`surefoot.lab.command`, :mod:`surefoot.lab.runner`). Test functions are in
:mod:`surefoot.lab.problems`, Gaussian process draws in :mod:`surefoot.lab.samples`, data in
:mod:`surefoot.lab.datasets`.
"""

from surefoot.lab import datasets, problems, samples
from surefoot.lab.claims import Equal, Exact, Number, Order, Share, Trend, falls, one_standard_error, rises
from surefoot.lab.comparison import compare
from surefoot.lab.experiment import Budget, Data, Experiment, Replicate, Trace, experiment, find, names
from surefoot.lab.problems import Problem
from surefoot.lab.readings import Metric, across, ascending, derived, event, highest, lowest, slope

__all__ = [
    "Budget",
    "Data",
    "Equal",
    "Exact",
    "Experiment",
    "Metric",
    "Number",
    "Order",
    "Problem",
    "Replicate",
    "Share",
    "Trace",
    "Trend",
    "across",
    "ascending",
    "compare",
    "datasets",
    "derived",
    "event",
    "experiment",
    "falls",
    "find",
    "highest",
    "lowest",
    "names",
    "one_standard_error",
    "problems",
    "rises",
    "samples",
    "slope",
]
