"""Others that have little to do with the target: how much do they cost?"""

from __future__ import annotations

from collections.abc import Mapping

from surefoot.federated import Decay
from surefoot_lab import Budget, Equal, Metric, Order, Replicate, Trace, experiment
from surefoot_lab.experiments.fts._synthetic import SOURCE, TS, Target

SLOW, FAST = "FTS, 1/√t", "FTS, 1/t²"
CHECKED = (5, 10, 20, 30, 40)

S = Metric("simple_regret")

claims = [
    Equal("simple regret at the end equals that of TS within 0.01", (S[SLOW], S[TS]), margin=0.01),
    Order("with 1 − p_t = 1/√t, FTS slightly behind TS at 10", S[SLOW].at(10) > S[TS].at(10)),
    Equal(
        "with 1/t², FTS equals TS at every t within 0.01",
        [(S[FAST].at(t), S[TS].at(t)) for t in CHECKED],
        margin=0.01,
        note=f"judged at t = {', '.join(map(str, CHECKED))}; the faster schedule is unpublished",
    ),
]


@experiment(
    "fts/synthetic-heterogeneous",
    source=SOURCE + "Fig. 1c (5.1c)",
    unit="drawn function",
    quick=Budget(10, size=1000, starts=2, horizon=40),
    full=Budget(200, minutes=20, size=1000, starts=2, horizon=40),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """50 parties whose objectives differ from the target's by ± 1.2 at every point send one draw each."""
    target = Target(replicate, 1.2)
    return {
        TS: target.alone(),
        SLOW: target.helped(100, 100, Decay(0.5)),
        FAST: target.helped(100, 100, Decay(2.0)),
    }
