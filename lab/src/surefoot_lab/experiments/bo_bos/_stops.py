"""What the experiments with real curves share: the published rule, GP-UCB with the same belief, and counted stops."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from surefoot.belief.gp import GP
from surefoot.belief.kernels import Matern
from surefoot.belief.priors import Fixed
from surefoot.loop.widths import Logarithmic
from surefoot.policy.epochs.bo_bos import BOBOS
from surefoot.policy.ucb.gp_ucb import GPUCB
from surefoot_lab import Trace, derived
from surefoot_lab.curves import Curves
from surefoot_lab.readings import Reading

INITIAL = 6  # complete runs at the start, as published


def wrong_stops(method: str) -> Reading:
    """The share of a repetition's stopped runs that would have beaten the best run of their time."""

    def share(traces: Mapping[str, Trace]) -> float:
        if method not in traces or not (stopped := float(traces[method]["stopped"])):
            return math.nan
        return float(traces[method]["false_stops"]) / stopped

    return derived(share, f"wrong stops of {method}")


def published(problem: Curves, seed: int, *, paths: int, growth: float) -> BOBOS:
    """BO-BOS with its authors' options, and ``paths`` simulated curves."""
    rule = replace(BOBOS.published(problem.domain, epochs=problem.epochs).stopping, paths=paths)
    return BOBOS.published(problem.domain, epochs=problem.epochs, stopping=rule, growth=growth, seed=seed)


def plain(problem: Curves, seed: int) -> GPUCB:
    """GP-UCB on complete runs, with the belief and the width that the authors of BO-BOS used for both."""
    gp = GP(Matern(2.5, lengthscale=0.5), noise=1e-3, priors={"mean": Fixed(0.0)}).refit(every=10)
    width = Logarithmic(0.2, extra=1, root=False)
    return GPUCB(problem.domain, gp=gp, initial=INITIAL, width=width, seed=seed)
