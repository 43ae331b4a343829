"""How many draws level 1 needs: 2v1 on MNIST with 200, 500 and 1,000, each player's own or the same for both."""

from __future__ import annotations

from collections.abc import Mapping

from surefoot_lab import Budget, Metric, Order, Replicate, Trace, Trend, Unit, experiment
from surefoot_lab.claims import rises
from surefoot_lab.experiments.r2b2._images import contest, ordinary, trace_of
from surefoot_lab.registry import Data

SAMPLES = (200, 500, 1000)
score, wins = Metric("score"), Metric("successes")


def method(samples: int, shared: bool) -> str:
    """Name of a number of draws, of their own or shared."""
    return f"S = {samples}{', shared' if shared else ''}"


claims = [
    Trend(
        "the attacker at level 2 wins more rounds with more draws (published 2.6, 3.0, 3.3)",
        rises(*[wins[method(samples, False)] for samples in SAMPLES]),
        marks="doubtful",
    ),
    Order(
        "draws that both share serve the attacker at least as well",
        [score[method(samples, True)] >= score[method(samples, False)] for samples in SAMPLES],
        marks="card",
    ),
]


@experiment(
    "r2b2/sample-size",
    source="Dai 2021 (thesis), appendix E.6.2.1, Fig. E.8",
    data=Data("published", "mnist"),
    unit=Unit.single("image"),
    quick=Budget(3, horizon=40, architecture="small"),
    full=Budget(30, minutes=60, horizon=150, architecture="published"),
    priority=2,
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """2v1 with several numbers of draws."""
    duel = ordinary(replicate["architecture"])
    return {
        method(samples, shared): trace_of(
            duel, contest(duel, "2v1", "random", replicate, samples=samples, shared=shared)
        )
        for samples in SAMPLES
        for shared in (False, True)
    }
