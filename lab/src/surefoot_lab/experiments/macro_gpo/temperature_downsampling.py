"""A robot that looks far among few drives, less far among all of them, or one step ahead."""

from __future__ import annotations

from collections.abc import Mapping

from surefoot_lab import Budget, Equal, Number, Order, Replicate, Trace, Unit, experiment
from surefoot_lab.experiments.macro_gpo._graphs import ALL, EI, FAR, FEW, thinned
from surefoot_lab.experiments.macro_gpo._methods import SOURCE, O, S
from surefoot_lab.experiments.macro_gpo.temperature import DATA, STARTS, laboratory

SIGMA = 0.7723  # signal standard deviation

claims = [
    Number(
        "output and simple regret of H = 2 with all moves and of EI, Table XIV",
        {
            O[ALL]: (0.6265, 0.0861),
            S[ALL]: (0.5119, 0.0807),
            O[EI]: (0.4565, 0.1051),
            S[EI]: (0.8754, 0.0941),
        },
        marks=("needs-original",),
    ),
    Order(
        "H = 2: 20 instead of all moves cost output (0.106 σ) and simple regret (0.064 σ)",
        [O[FEW] < O[ALL], S[FEW] > S[ALL]],
        marks=("doubtful",),
    ),
    Equal("H = 4 (20) has the output of H = 2 (all)", (O[FAR], O[ALL]), margin=0.05 * SIGMA),
    Order("simple regret: H = 4 (20) below H = 2 (all) (published −0.136 σ)", S[FAR] < S[ALL], marks=("doubtful",)),
    Order("EI has less output and more simple regret than H = 4 (20)", [O[EI] < O[FAR], S[EI] > S[FAR]]),
]


@experiment(
    "macro-gpo/temperature-downsampling",
    source=SOURCE + "Table XIV, Fig. 12; thesis Table B.8",
    data=DATA,
    unit=Unit("drawn field", lambda index, settings: index // STARTS),
    quick=Budget(20, samples=100, iterations=200, deepest=20),
    full=Budget(5 * STARTS, minutes=110, samples=300, iterations=1500, deepest=300),
    priority=2,
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """A robot with few drives, all drives, or single steps."""
    few, every, steps = (
        laboratory(replicate, most=most, length=length) for most, length in ((20, 5), (None, 5), (None, 1))
    )
    return thinned(few, every.begin(few.start), steps.begin(few.start), replicate)
