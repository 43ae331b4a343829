"""Where is there more chlorophyll than a threshold? Five rules, unit cost, no noise.

A repetition is a random first point. The field is a satellite image in place of the lake; with ``transect`` in the
budget a simulated lake, another one in each repetition, is mapped as well.
"""

from __future__ import annotations

from collections.abc import Mapping

from surefoot.domain import Candidates
from surefoot.loop.policy import Policy
from surefoot.policy.levels.level_set import GPLSE, RandomLevelSet, Straddle, VarianceSampling
from surefoot.policy.levels.truvar import TruVaR
from surefoot_lab import Budget, Data, Equal, Metric, Number, Order, Replicate, Trace, Unit, experiment
from surefoot_lab.experiments.truvar._levels import GCHK, RANDOM, STRADDLE, TRUVAR, VARIANCE, survey
from surefoot_lab.fields import Field, baltic, transect

METHODS = (TRUVAR, GCHK, STRADDLE, VARIANCE, RANDOM)
area = Metric("area")  # mean F1 over the rounds

claims = [
    Equal(
        "area under F1: TruVaR within 0.02 of GP-LSE and of straddle",
        [(area[TRUVAR], area[GCHK]), (area[TRUVAR], area[STRADDLE])],
        margin=0.02,
    ),
    Order(
        "TruVaR, GP-LSE and straddle each above maximum variance",
        [area[name] > area[VARIANCE] for name in (TRUVAR, GCHK, STRADDLE)],
    ),
    Number(
        "the threshold is 1.5 on the original field",
        {Metric("threshold")["field"]: 1.5},
        marks=("needs-original",),
        note="here: the 80 % quantile of the logarithm",
    ),
]


def policies(field: Field, seed: int) -> dict[str, Policy]:
    """The five rules on a field."""
    domain, h, gp = Candidates(field.points), field.threshold, field.gp
    return {
        TRUVAR: TruVaR(domain, goal="level", threshold=h, gp=gp, among="potential", seed=seed),
        GCHK: GPLSE(domain, threshold=h, gp=gp, seed=seed),
        STRADDLE: Straddle(domain, threshold=h, gp=gp, seed=seed),
        VARIANCE: VarianceSampling(domain, threshold=h, gp=gp, seed=seed),
        RANDOM: RandomLevelSet(domain, threshold=h, gp=gp, seed=seed),
    }


@experiment(
    "truvar/lake-level-set",
    source="Bogunovic 2019 (thesis), section 3.7.1, Fig. 3.3a, d; Bogunovic, Scarlett, Krause, Cevher 2016",
    data=Data("substitute", "baltic_chlorophyll", instead_of="the Lake Zurich transect"),
    unit=Unit.single("lake"),
    quick=Budget(5, horizon=60, transect=False),
    full=Budget(100, minutes=60, horizon=120, transect=True),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """Five rules that map where chlorophyll exceeds a threshold."""
    horizon, traces = replicate["horizon"], {}
    lakes = {"": baltic()}
    if replicate["transect"]:
        lakes[", transect"] = transect(replicate.rng("transect"))
    for suffix, field in lakes.items():
        start = int(replicate.rng("start").integers(len(field.points)))
        for name, policy in policies(field, replicate.integer).items():
            found = survey(policy, field.gp, field.values, field.threshold, start, rounds=horizon)
            f1 = found.over(horizon)
            traces[name + suffix] = Trace(f1=f1, area=f1.mean())
    if replicate.index == 0:
        traces["field"] = Trace(threshold=baltic().threshold)
    return traces
