"""Is it better to look far among few cruises, or less far among all of them? And what do single steps give?"""

from __future__ import annotations

from collections.abc import Mapping

from surefoot_lab import Budget, Data, Equal, Number, Order, Replicate, Trace, experiment
from surefoot_lab.experiments.macro_gpo._graphs import ALL, EI, FAR, FEW, thinned
from surefoot_lab.experiments.macro_gpo._methods import SOURCE, O, S
from surefoot_lab.experiments.macro_gpo.taxi import SIGMA
from surefoot_lab.roads import taxi

claims = [
    Number(
        "output and simple regret of H = 2 with all moves and of EI, Table XI",
        {
            O[ALL]: (0.2631, 0.0918),
            S[ALL]: (1.6427, 0.0792),
            O[EI]: (0.1469, 0.1084),
            S[EI]: (1.6094, 0.0946),
        },
    ),
    Order(
        "H = 2: 20 instead of all moves cost output (0.032 σ) and simple regret (0.112 σ)",
        [O[FEW] < O[ALL], S[FEW] > S[ALL]],
        marks=("doubtful",),
    ),
    Equal("H = 4 (20) has the output of H = 2 (all)", (O[FAR], O[ALL]), margin=0.05 * SIGMA),
    Order("simple regret: H = 4 (20) below H = 2 (all) (published −0.116 σ)", S[FAR] < S[ALL], marks=("doubtful",)),
    Order("EI has less output and more simple regret than H = 4 (20)", [O[EI] < O[FAR], S[EI] > S[FAR]]),
]


@experiment(
    "macro-gpo/taxi-downsampling",
    source=SOURCE + "Table XI, Fig. 9; thesis Table B.5",
    data=Data("published", "taxi"),
    unit="start in the published field",
    quick=Budget(6, samples=100, iterations=200, deepest=20),
    full=Budget(35, minutes=110, samples=300, iterations=1500, deepest=500),
    priority=2,
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """A taxi with few cruises, all cruises, or single steps."""
    few, every, steps = (
        taxi(replicate.rng("route"), most=most, length=length) for most, length in ((20, 5), (None, 5), (None, 1))
    )
    return thinned(few, every.begin(few.start), steps.begin(few.start), replicate)
