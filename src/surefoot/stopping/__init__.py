"""When to abandon a run: Bayesian optimal stopping of learning curves, as a stand-alone object.

A run emits a score after each epoch. After its first few epochs a *curve model* simulates how it may go on; backward
induction over the simulated curves then weighs the epochs that stopping saves against the risk of stopping a run that
would have ended above a threshold. The answer is a :class:`Table`, which is looked up after each further epoch.

>>> import numpy as np
>>> from surefoot.stopping import OptimalStopping
>>> rule = OptimalStopping(epochs=50, initial=8, paths=5_000)
>>> curve = 1.0 - 0.5 * np.exp(-0.02 * np.arange(1, 12))   # scores, higher is better: hardly learning
>>> table = rule.fit(curve[:8], threshold=0.95, rng=np.random.default_rng(0))
>>> table.follow(curve).action
'stop'

Nothing here knows about policies: randomness comes in as a generator, scores as plain arrays.

References: Müller, Berry, Grieve, Smith & Krams 2007 (the simulation-based solver); Dai, Yu, Low & Jaillet 2019 (its
use inside Bayesian optimization); Swersky, Snoek & Adams 2014 (the exponential-decay kernel).
"""

from __future__ import annotations

from surefoot import lazy

__getattr__, __dir__, __all__ = lazy.names(
    __name__,
    {
        "curves": ["CurveModel", "ExponentialDecay", "LearningModel", "PathModel", "model_from_dict", "register"],
        "plateau": ["Plateau"],
        "powers": ["Powers"],
        "induction": ["ACCEPT", "CONTINUE", "STOP", "Counts", "Solution", "count", "induce"],
        "table": ["Decision", "Table"],
        "solver": ["OptimalStopping", "Watch"],
    },
)
