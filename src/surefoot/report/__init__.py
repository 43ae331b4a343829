"""Pictures of a run, and the page that shows them.

The pictures are Matplotlib figures (extra ``plot``), the page is one HTML file that needs nothing else.

>>> import surefoot
>>> policy = surefoot.RandomSearch(surefoot.Box([(0.0, 1.0)]), seed=0)
>>> policy.tell([0.25], 3.0)
>>> [run.status for run in surefoot.report.runs(policy)]
['measured']

Importing this package does not import Matplotlib; drawing does.
"""

from surefoot.report.learning_curves import curves, task_weights
from surefoot.report.levels import level_set
from surefoot.report.plots import map2d, parallel, slices, trace
from surefoot.report.run import Run, best_so_far, runs
from surefoot.report.run_page import page

__all__ = [
    "Run",
    "best_so_far",
    "curves",
    "level_set",
    "map2d",
    "page",
    "parallel",
    "runs",
    "slices",
    "task_weights",
    "trace",
]
