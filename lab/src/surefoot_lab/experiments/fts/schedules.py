"""How often to listen, and to what: schedules, the scale of the values, and the length-scale of the features."""

from __future__ import annotations

from collections.abc import Mapping

from surefoot.federated import Decay
from surefoot_lab import Budget, Data, Metric, Order, Replicate, Trace, Trend, Unit, experiment, falls
from surefoot_lab.experiments.fts._landmine import SOURCE, TS, Target, averaged

POWERS = {"1/t²": 2.0, "1/t": 1.0, "1/√t": 0.5}
WANDER = "random queries, 1/√t"
LENGTHSCALE = 0.05
SCALES = (0.01, 0.2)

S = Metric("simple_regret")


def raw(schedule: str) -> str:
    """What FTS on values as they are is called."""
    return f"{schedule}, raw values"


claims = [
    Trend(
        "the gain over TS grows with the number of message uses (1/t², 1/t, 1/√t)",
        falls(*[S[name] for name in POWERS]),
        marks=("card",),
    ),
    Order(
        "standardized values beat raw ones at equal schedule",
        S["1/√t"] < S[raw("1/√t")],
        marks=("card",),
    ),
    Order("FTS (1/√t) beats random queries as often", S["1/√t"] < S[WANDER], marks=("card",)),
]


@experiment(
    "fts/schedules",
    source=SOURCE + "companion",
    data=Data("published", "landmine"),
    unit=Unit.single("set of landmine fields"),
    quick=Budget(3, targets=1, horizon=12, length=10, scales=()),
    full=Budget(20, minutes=110, targets=6, horizon=50, scales=SCALES),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """FTS on landmine fields with three schedules, raw or standardized values, and three length-scales."""
    return averaged([_methods(Target(replicate, field), replicate["scales"]) for field in range(replicate["targets"])])


def _methods(target: Target, scales: tuple[float, ...]) -> dict[str, Trace]:
    traces = {TS: target.alone(), WANDER: target.wandering(Decay(0.5))}
    for name, power in POWERS.items():
        traces[name] = target.helped(schedule=Decay(power), lengthscale=LENGTHSCALE, outputs="standardize")
    traces[raw("1/√t")] = target.helped(schedule=Decay(0.5), lengthscale=LENGTHSCALE)
    for scale in scales:
        name = f"1/√t, l = {scale:g}"
        traces[name] = target.helped(schedule=Decay(0.5), lengthscale=scale, outputs="standardize")
    return traces
