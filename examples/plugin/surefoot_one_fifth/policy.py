"""One-fifth rule: mutate the best point so far, with a reach that adapts.

Question: where does a function of many coordinates grow from here, when evaluations are too cheap for a model?
Reference: Rechenberg 1973; the (1+1)-ES with the 1/5th success rule of Kern et al. 2004.
Guarantee: none. Differences: mutations that leave the domain go to its border.
Cost of one ask: linear in the measurements.
"""

import numpy as np

from surefoot import Box, Policy, Space
from surefoot.loop.types import Proposal


class OneFifth(Policy):
    """Mutate the best point so far; ``reach``, in widths of the domain, grows with success and shrinks without."""

    domains = (Box, Space)

    def __init__(self, domain, *, reach=0.3, **options):
        super().__init__(domain, **options)
        if not 0.0 < reach <= 1.0:
            raise ValueError(f"reach must lie in (0, 1], got {reach!r}")
        self.reach = float(reach)

    def _choose(self, step, context):
        rng = self.stream("mutation", step)
        measured, values, _ = self.trials.data()  # higher is better here, whatever the direction
        if not len(values):
            return Proposal(self.domain.sample(1, rng)[0])
        best = np.maximum.accumulate(values)
        better = int((best[1:] > best[:-1]).sum())
        worse = len(values) - 1 - better
        spread = min(self.reach * 1.5 ** (better - worse / 4), 1.0) * self.domain.extent()
        parent = self.domain.encode(measured[[np.argmax(values)]])
        return Proposal(self.domain.decode(parent + spread * rng.standard_normal(parent.shape))[0])

    def _recommend(self):
        return self._best_measured()
