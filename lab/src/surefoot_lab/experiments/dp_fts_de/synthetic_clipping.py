"""How far should vectors be clipped? The clip changes the noise too."""

from __future__ import annotations

from collections.abc import Mapping

from surefoot_lab import Budget, Metric, Number, Order, Replicate, Trace, experiment, lowest
from surefoot_lab.experiments.dp_fts_de._synthetic import SOURCE, played, private

CLIPS = (2, 4, 8, 11, 16, 30)

S, clipped = Metric("simple_regret"), Metric("clipped")


def named(clip: float) -> str:
    """What a clip is called."""
    return f"S = {clip:g}"


claims = [
    Number(
        "0.8 % of the vectors are clipped at S = 11",
        {clipped[named(11)]: 0.008},
        repetitions=5,
        marks=("not-reproduced",),
        note="the card found 3.2 %",
    ),
    Order(
        "S = 30 worse than S = 11",
        [S[named(30)].at(10) > S[named(11)].at(10)],
        marks=("reproduced",),
    ),
    Order(
        "too small an S (4) is worse than S = 11",
        [S[named(4)].at(10) > S[named(11)].at(10)],
        marks=("not-reproduced",),
        note="once every vector is clipped the law of the chosen point does not depend on S",
    ),
    Order(
        "S = 11 is the best of the grid",
        lowest(S[named(11)].at(10), [S[named(c)].at(10) for c in CLIPS if c != 11]),
        marks=("doubtful",),
    ),
]


@experiment(
    "dp-fts-de/synthetic-clipping",
    source=SOURCE + "Fig. 1b (6.3b)",
    unit="drawn function",
    quick=Budget(6, size=1000, agents=100, horizon=20, clips=(4, 11, 30)),
    full=Budget(50, minutes=80, size=1000, agents=200, horizon=40, clips=CLIPS),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """DP-FTS-DE with two sub-regions, q = 0.25 and z = 1, clipped at 2 to 30."""
    return played(replicate, {named(clip): private(clip=float(clip)) for clip in replicate["clips"]})
