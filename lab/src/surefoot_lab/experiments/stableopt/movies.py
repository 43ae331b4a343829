"""Which group of movies does a user like throughout? The groups are given, the user's taste is learnt by asking.

A repetition is one test user with one clustering of the movies. Noise (standard deviation 0.1) and rounds (30) are
choices made here; the document does not give them.
"""

from __future__ import annotations

from collections.abc import Mapping

from surefoot_lab import Budget, Data, Metric, Order, Replicate, Share, Trace, Trend, Unit, experiment, falls, lowest
from surefoot_lab.experiments.stableopt._movies import MAXIMIN, RULES, STABLE, UCB, ask_user, tastes

NOISE, USERS = 0.01, 500

R, found = Metric("robust_regret"), Metric("found")

claims = [
    Order("ε-regret at the end: StableOpt below GP-UCB and MaxiMin-GP-UCB", lowest(R[STABLE], [R[UCB], R[MAXIMIN]])),
    Share(
        "StableOpt reports the best group for at least 95 % of the users, the others for clearly fewer",
        [found[STABLE] >= 0.95, found[UCB] <= 0.9, found[MAXIMIN] <= 0.9],
        note="clearly fewer: at most 90 %",
    ),
    Trend(
        "ε-regret falls quickly: to half of its start within 5 rounds",
        [falls(*[R[STABLE].at(t) for t in range(1, 6)]), falls(0.5 * R[STABLE].at(1), R[STABLE].at(5))],
        note="the second test asks for less than half",
    ),
]


@experiment(
    "stableopt/movies",
    source="Bogunovic 2019 (thesis), Fig. 4.5 right; Bogunovic, Scarlett, Jegelka, Cevher 2018",
    data=Data("published", "movielens_100k"),
    unit=Unit("user", lambda index, settings: index % USERS),
    quick=Budget(50, rounds=30),
    full=Budget(5 * USERS, minutes=20, rounds=30),
    limit=5 * USERS,
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """The group of movies that one user likes throughout."""
    taste = tastes(replicate.index // USERS)
    user = taste.users[replicate.index % USERS % len(taste.users)]
    worth = taste.lowest(taste.movies @ user)
    traces = {}
    for rule in RULES:
        groups = ask_user(taste, user, rule, replicate["rounds"], NOISE, replicate.rng("noise"))
        regret = worth.max() - worth[groups]
        traces[rule] = Trace(robust_regret=regret, found=regret[-1] <= 1e-12)
    return traces
