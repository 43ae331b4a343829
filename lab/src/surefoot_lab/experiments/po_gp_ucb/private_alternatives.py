"""What a guarantee that holds costs: rows with Gaussian noise beside the published projection, on the same functions.

The modeler knows how much noise the rows carry, or believes that there is none. Two more are shown and not judged: the
noise that the sampler in use certifies, about a tenth more than the analytic mechanism needs, if OpenDP is installed;
and lifted projections searched by a modeler that fits its length-scale, which undoes the lift on a square grid.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Mapping

from surefoot_lab import Budget, Equal, Metric, Number, Order, Replicate, Trace, experiment
from surefoot_lab.experiments.po_gp_ucb._outsourced import RANDOM, UCB
from surefoot_lab.experiments.po_gp_ucb._synthetic import HORIZON, race

R = 10
EXPONENTS = (0.0, 0.9, 1.1, 1.5)

S = Metric("simple_regret")
aware = {e: f"Gaussian, ε = e^{e}" for e in EXPONENTS}
naive = {e: f"Gaussian, naive, ε = e^{e}" for e in EXPONENTS}
published = {e: f"projection, ε = e^{e}" for e in EXPONENTS}

claims = [
    Number(
        "S_50 of the noise-aware Gaussian release: 0.120, 0.049, 0.041, 0.018 at e^0.0, e^0.9, e^1.1, e^1.5",
        {
            S[aware[0.0]]: (0.120, 0.014),
            S[aware[0.9]]: (0.049, 0.008),
            S[aware[1.1]]: (0.041, 0.005),
            S[aware[1.5]]: (0.018, 0.003),
        },
        marks=("card",),
    ),
    Order(
        "knowing of the noise helps at every ε",
        [S[aware[e]] < S[naive[e]] for e in EXPONENTS],
        marks=("card",),
    ),
    Order(
        "the projection is better at its threshold e^1.1, the Gaussian release at e^0.9",
        [S[published[1.1]] < S[aware[1.1]], S[aware[0.9]] < S[published[0.9]]],
        marks=("card",),
    ),
    Equal(
        "the two are equal within 0.03 at e^0.0 and e^1.5",
        [(S[aware[e]], S[published[e]]) for e in (0.0, 1.5)],
        margin=0.03,
        marks=("card",),
    ),
    Number(
        "GP-UCB 0.002, random search 0.296",
        {S[UCB]: (0.002, 0.001), S[RANDOM]: (0.296, 0.024)},
        marks=("card",),
    ),
]


@experiment(
    "po-gp-ucb/private-alternatives",
    source="companion: what an (ε, δ) guarantee that holds costs, beside Kharkovskii, Dai, Low 2020, Fig. 2a",
    unit="drawn function",
    quick=Budget(100, side=100, horizon=HORIZON),
    full=Budget(1000, minutes=60, side=100, horizon=HORIZON),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """Gaussian release and published projection on the same draws of a Gaussian process."""
    drawn = race(replicate)
    traces = drawn.baselines()
    certified = importlib.util.find_spec("opendp") is not None
    for exponent in EXPONENTS:
        epsilon = math.exp(exponent)
        traces[published[exponent]] = drawn.projection(R, epsilon)
        traces[aware[exponent]] = drawn.gaussian(epsilon)
        traces[naive[exponent]] = drawn.gaussian(epsilon, aware=False)
        if certified:
            traces[f"Gaussian, certified, ε = e^{exponent}"] = drawn.gaussian(epsilon, certified=True)
        if exponent < 1.1:  # lifted
            traces[f"projection, fitted length-scale, ε = e^{exponent}"] = drawn.projection(R, epsilon, refit=True)
    return traces
