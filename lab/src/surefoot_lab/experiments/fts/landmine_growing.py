"""Others that go on measuring and send again before every iteration."""

from __future__ import annotations

from collections.abc import Mapping

from surefoot_lab import Budget, Data, Equal, Metric, Order, Replicate, Trace, Unit, experiment
from surefoot_lab.experiments.fts._landmine import SOURCE, TS, Target

ONCE, GROWING = "FTS, one message", "FTS, growing"

S = Metric("simple_regret")

claims = [
    Order("both below TS at the end (50)", [S[ONCE] < S[TS], S[GROWING] < S[TS]], marks=("doubtful",)),
    Equal("growing equals one message", (S[GROWING], S[ONCE]), margin=0.003),
]


@experiment(
    "fts/landmine-growing",
    source=SOURCE + "Fig. B.1a",
    data=Data("published", "landmine"),
    unit=Unit.single("set of landmine fields"),
    quick=Budget(3, horizon=8, length=8),
    full=Budget(50, minutes=60, horizon=50),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """FTS with messages sent once, or refreshed in every iteration, and TS; first target."""
    target = Target(replicate, 0)
    return {TS: target.alone(), ONCE: target.helped(), GROWING: target.helped(growing=True)}
