"""Every policy, on every domain that it declares, and a short run of each: what ``make.py`` saves.

The tests use the same domains, and the code that cannot be stored and is passed again.
"""

from __future__ import annotations

import math

import numpy as np

import surefoot
from surefoot import (
    FAILED,
    GP,
    AroundEstimate,
    Ball,
    Box,
    Candidates,
    Choice,
    Float,
    Groups,
    Int,
    Matern,
    Outcome,
    Paths,
    Space,
    Task,
    UnknownParameters,
    WeightedBox,
    widths,
)
from surefoot.domain import Dives, GraphPaths, MoveTable
from surefoot.domain.product import WithValues
from surefoot.federated import Agent, Broadcast, Decay, Fixed, Message, Regions, SharedFeatures
from surefoot.games import (
    EXP3,
    EXP3P,
    GPMW,
    Hedge,
    Player,
    PolicyStrategy,
    PublishedWidth,
    RandomStrategy,
    Round,
    SamplerStrategy,
)
from surefoot.stopping import OptimalStopping

# -- what the policies search -----------------------------------------------------------------------------------------

GRID = np.stack(np.meshgrid(np.linspace(-1, 2, 6), np.linspace(0, 5, 5)), axis=-1).reshape(-1, 2)
DOMAINS = {
    "Box": Box([(-1.0, 2.0), (0.0, 5.0)]),
    "Candidates": Candidates(GRID),
    "Space": Space(rate=Float(1e-4, 1.0, log=True), depth=Int(1, 6), kind=Choice(["a", "b", "c"])),
    "Paths": Paths(GRID, Dives((5, 6), 2), start=14),
}
KINDS = {name: type(domain) for name, domain in DOMAINS.items()}
RIVAL = Candidates(np.linspace(0.0, 1.0, 4))
GIVEN = GP(Matern(2.5), noise=0.01, mean=1.5)
LARGE = Candidates(np.random.default_rng(7).random((5100, 2)))


def value(domain, x):
    """What is measured at a point, or at each stop of a move: higher is better."""
    if np.ndim(x) == 2:
        return [value(domain, stop) for stop in x]
    unit = (domain.encode(np.asarray(x)[None]) - domain.lower)[0] / domain.extent()
    return float(2.0 - np.sum((unit - 0.4) ** 2))


def steep(step, **_):
    """A width that is code."""
    return 1.0 + 1.0 / (1.0 + step)


def city(X, Z):
    """A distance that is code."""
    return np.abs(X[:, None, :] - Z[None, :, :]).sum(axis=-1)


def price(X):
    """A cost that is code."""
    return 1.0 + np.abs(np.asarray(X)).sum(axis=-1)


def fare(place, stops):
    """The cost of a move that is code."""
    return float(len(stops) + 0.1 * place)


def copycat(rounds, count, rng):
    """A strategy that is code."""
    return rounds[-1].actions[1] if rounds else RIVAL.points[0]


def matching(X, actions):
    """A payoff that is code."""
    return (np.asarray(X)[:, 0] > actions[0][0]).astype(float)


FARES = Paths(GRID, Dives((5, 6), 2), start=14, cost=fare)
AGAIN = {  # what cannot be stored and is passed again, by the name of the case
    "GPUCB with a width that is code": {"width": steep},
    "StableOpt with a distance that is code": {"perturbation": Ball(0.6, city)},
    "TruVaR with a cost that is code": {"cost": price},
    "GPUCB with fares that are code": {"domain": FARES},
    "RandomSearch on many candidates": {"domain": LARGE},
    "Player against Hedge": {"strategies": [RandomStrategy(), Hedge(matching, eta=1.0)]},
    "Player against a sampler": {"strategies": [RandomStrategy(), SamplerStrategy(copycat)]},
}

# -- every policy -----------------------------------------------------------------------------------------------------

ALL = ("Box", "Candidates", "Space")
LEVEL = {"threshold": 1.8, "points": 64}


def tasks(domain):
    """Two earlier tasks: one like the target, one unlike it."""
    X = domain.sample(7, np.random.default_rng(5))
    y = np.array([value(domain, x) for x in X])
    return [Task(X, y + 0.1, name="alike"), Task(X, -y)]


def plain(name, kinds=None, case=None, **options):
    """Cases of one policy, one for each kind of domain."""
    kind = getattr(surefoot, name)
    declared = kinds or [which for which, cls in KINDS.items() if any(issubclass(cls, one) for one in kind.domains)]
    for which in declared:
        yield case or name, which, lambda domain, **more: kind(domain, **options, **more)


def transfer(name, case=None, kinds=ALL, **options):
    """Cases of a policy that learns from earlier tasks."""
    kind = getattr(surefoot, name)
    for which in kinds:
        yield case or name, which, lambda domain, **more: kind(domain, tasks=tasks(domain), **options, **more)


def reported(name, case, kinds=ALL, own=False, **options):
    """Cases of a policy inside another one."""
    kind = getattr(surefoot, name)

    def build(domain, *, seed, journal=None):
        belief = {"gp": GP.automatic(domain)} if own else {}
        return surefoot.RobustReport(kind(domain, seed=seed, **options), Ball(0.6), journal=journal, **belief)

    for which in kinds:
        yield case, which, build


def federated(case, kinds=ALL, **options):
    """Cases of an agent of a federation."""

    def build(domain, **more):
        features = SharedFeatures(domain.encoded_dimension, 12, lengthscale=0.4, noise=0.01, seed=5)
        return Agent(domain, features=features, initial=2, draw_features=64, **options, **more)

    for which in kinds:
        yield case, which, build


def playing(case, kinds=ALL, seats=2, **options):
    """Cases of a player of a game."""
    for which in kinds:
        yield (
            case,
            which,
            lambda domain, **more: Player(domain, others=[RIVAL] * (seats - 1), initial=2, **options, **more),
        )


def cases():
    """Yield name, kind of domain, and the function that makes the policy."""
    for name in ("RandomSearch", "SobolSearch", "GPUCB", "ExpectedImprovement"):
        yield from plain(name)
    yield from plain("RandomSearch", ["Candidates"], "RandomSearch without repeats", repeats=False)
    mixed = WithValues([(0.0, 1.0)], [[3.0], [4.0]])
    yield "GPUCB with values", "values", lambda _, **more: surefoot.GPUCB(mixed, **more)
    yield "RandomSearch on many candidates", "large", lambda _, **more: surefoot.RandomSearch(LARGE, **more)
    for width in (
        widths.Constant(1.5),
        widths.Continuous(),
        widths.Finite(),
        widths.Logarithmic(),
        widths.LogTime(),
        widths.RKHS(),
    ):
        yield from plain("GPUCB", ["Candidates"], f"GPUCB with {type(width).__name__}", width=width, gp=GIVEN)
    yield from plain("GPUCB", ["Box", "Paths"], "GPUCB with a given belief", gp=GIVEN.refit(every=3))
    yield from plain("GPUCB", ["Box"], "GPUCB with a width that is code", width=steep)
    kernels = {
        "SE": surefoot.SE(0.7) + surefoot.Linear(),
        "RQ": surefoot.RationalQuadratic(0.7) * surefoot.Matern(1.5, lengthscale=2.0),
    }
    for short, kernel in kernels.items():
        yield from plain("GPUCB", ["Box"], f"GPUCB with {short}", gp=GP(kernel, noise=0.01))
    yield "GPUCB with fares that are code", "fares", lambda _, **more: surefoot.GPUCB(FARES, gp=GIVEN, **more)
    table = MoveTable({0: [[1, 2], [6, 7]], 2: [[1, 0], [8, 9]], 7: [[6, 0]], 9: [[8, 2]]})
    graph = GraphPaths([[(i + 1) % 30, (i + 7) % 30] for i in range(30)], 2)
    for short, moves in (("a table", table), ("a graph", graph)):
        yield (
            f"ExpectedImprovement with {short} of moves",
            short,
            lambda _, moves=moves, **more: surefoot.ExpectedImprovement(
                Paths(GRID, moves, start=0, budget=20, include_start=True, cost=2.0), gp=GIVEN, **more
            ),
        )
    yield from plain("AddGPUCB", groups=2, candidates=100)
    yield from plain("ProbabilityOfImprovement", margin=0.01)
    yield from plain("ThompsonSampling", features=64)
    yield from plain("MaxValueEntropySearch")
    yield from plain("EntropySearch", samples=32)
    yield from plain("MinimumRegretSearch", samples=32)
    yield from plain("StableOpt", perturbation=Ball(0.6))
    yield from plain(
        "StableOpt", ["Candidates"], "StableOpt with a distance that is code", perturbation=Ball(0.6, city)
    )
    yield from plain("StableOpt", ["Candidates"], "StableOpt with accuracy", perturbation=Ball(0.6), accuracy=0.2)
    yield from plain("StableOpt", ["Space"], "StableOpt of a part", perturbation=Ball(0.6, over=["rate"]))
    groups = Groups([f"g{i // 5}" for i in range(30)])
    yield from plain("StableOpt", ["Candidates"], "StableOpt over groups", perturbation=groups)
    swapped = Groups({"kind": {"ab": ["a", "b"]}})
    yield from plain("StableOpt", ["Space"], "StableOpt over swapped choices", perturbation=swapped)
    unknown = UnknownParameters([0.0, 0.5, 1.0])
    yield from plain("StableOpt", ["Box", "Candidates"], "StableOpt over unknown values", perturbation=unknown)
    around = AroundEstimate(0.5, 0.4, [0.0, 0.5, 1.0])
    yield from plain("StableOpt", ["Box", "Candidates"], "StableOpt around an estimate", perturbation=around)
    yield from plain(
        "StableOpt", ["Box"], "StableOpt over unknown ranges", perturbation=UnknownParameters(box=[(0.4, 1.0)])
    )
    yield from plain("MaxiMinGPUCB", ["Box", "Candidates"], perturbation=WeightedBox([0.6, 1.3]))
    yield from plain("MaxiMinGPUCB", ["Space"], perturbation=WeightedBox({"rate": 0.2, "depth": 1.3}))
    yield from reported("GPUCB", "RobustReport of GPUCB")
    yield from reported("RandomSearch", "RobustReport of RandomSearch", own=True)
    yield from reported("ExpectedImprovement", "RobustReport of ExpectedImprovement", ["Box"], gp=GIVEN)
    for name, options in (
        ("RMGPUCB", {}),
        ("RMGPTS", {"features": 64}),
        ("RGPE", {"samples": 20}),
        ("TAF", {}),
        ("RMBOBOS", {"epochs": 12}),
    ):
        yield from transfer(name, **options)
    yield from plain("BOBOS", epochs=12)
    rule = OptimalStopping(epochs=12, initial=4, paths=2000, k1=math.inf)
    yield from plain("BOBOS", ["Box"], "BOBOS with a given rule", epochs=12, stopping=rule)
    yield from plain("TruVaR", points=64)
    fidelities = [surefoot.Fidelity(1e-6, 3.0), surefoot.Fidelity(0.1, 1.0)]
    yield from plain("TruVaR", case="TruVaR of a level", goal="level", monotone=True, fidelities=fidelities, **LEVEL)
    yield from plain("TruVaR", ["Candidates"], "TruVaR with a cost that is code", cost=price, points=64)
    for name in ("GPLSE", "Straddle", "VarianceSampling", "RandomLevelSet"):
        yield from plain(name, **LEVEL)
    yield from plain("Straddle", ["Candidates"], "Straddle of a fraction", fraction=0.9, points=64)
    yield from plain("TVGPUCB", forgetting=0.05)
    yield from plain("TVGPUCB", ["Box"], "TVGPUCB that learns")
    yield from plain("RGPUCB", block=4)
    yield from plain("RobustBatch", tau=2, beta=1.0, pool=60)
    yield from plain("DBGPUCB")
    yield from plain("GPUCBPE")
    yield from plain("LocalPenalization")
    yield from plain("QEI", samples=16, sweeps=1)
    yield from plain("MacroGPO", horizon=2, samples=8)
    yield from plain("MacroGPO", ["Paths"], "MacroGPO anytime", planner="anytime", horizon=3, samples=6, iterations=5)
    yield from federated("Agent", schedule=Decay(0.5, first=0.0))
    yield from federated("Agent in a region", ["Box"], schedule=Decay(0.5, first=0.0), regions=2, region=0)
    yield from federated("Agent in given regions", ["Box"], regions=Regions((2, 1)), outputs="rank", reuse="always")
    yield from federated("Agent on a fixed schedule", ["Candidates"], schedule=Fixed(0.5))
    yield from playing("Player", level=1, samples=4)
    width = PublishedWidth(30)
    yield from playing("Player with the published width", ["Candidates"], level=1, width=width, gp=GIVEN)
    guess = [RandomStrategy(), Hedge(matching, eta=1.0)]
    yield from playing("Player against Hedge", ["Candidates"], level=1, strategies=guess, gp=GIVEN)
    yield from playing("Player with a given belief", ["Box"], level=1, lite=True, gp=GIVEN)
    yield from playing("Player at random", ["Candidates"], level=0, strategies=RandomStrategy(), gp=GIVEN)
    inner = PolicyStrategy(surefoot.GPUCB(RIVAL, gp=GP(surefoot.SE(), mean=0.5), seed=3))
    yield from playing("Player above a policy", ["Candidates"], level=1, strategies=[RandomStrategy(), inner], gp=GIVEN)
    yield from playing(
        "Player against a sampler",
        ["Candidates"],
        level=1,
        gp=GIVEN,
        strategies=[RandomStrategy(), SamplerStrategy(copycat)],
    )
    three = [RandomStrategy(), RandomStrategy(), EXP3()]
    yield from playing(
        "Player among three",
        ["Candidates"],
        3,
        level=2,
        profile=[None, 1, 0],
        gp=GIVEN,
        strategies=three,
        samples=8,
    )
    for strategy in (
        GPMW(payoff_range=(0.0, 3.0)),
        EXP3(),
        EXP3P(horizon=50, payoff_range=(0.0, 3.0)),
    ):
        name = f"Player by {type(strategy).__name__}"
        yield from playing(name, ["Candidates"], level=0, strategies=strategy, gp=GIVEN)


# -- a run of each ----------------------------------------------------------------------------------------------------


def rivals(policy, x):
    """What the other players do."""
    step = int(abs(np.asarray(x)).sum() * 1000)
    return [RIVAL.points[(step + seat) % 4] for seat in range(len(policy.config()["others"]))]


def told(policy, x, failed=False):
    """The outcome at a point, in the form that the policy takes."""
    if isinstance(policy, Player):
        others = rivals(policy, x)
        number = None if failed else value(policy.domain, x)
        return Round([x, *others], [number] + [None if failed else 1.0 - number] * len(others))
    return FAILED if failed else value(policy.domain, x)


def context(policy):
    """What the next ask takes."""
    return {"time": 20.0 + 1.3 * len(policy.queries)} if "time" in policy.context else {}


def ask(policy):
    """The next query; agents hear of the others on the way."""
    number = len(policy.queries)
    if isinstance(policy, Agent) and number in (1, 2, 4):
        vectors = np.random.default_rng(number).standard_normal((policy.regions.count, 12))
        if number == 1:
            policy.receive(Message(7, 0, policy.shared.hash, vectors[0]))
        else:
            policy.receive(Broadcast(number, policy.shared.hash, policy.regions.parts, vectors))
    return policy.ask(**context(policy))


def lived(policy):
    """A handful of events; return the state in which nothing is pending."""
    x = policy.domain.sample(1, np.random.default_rng(1))[0]
    if isinstance(policy, Player):
        policy.tell(told(policy, x))
    else:
        policy.tell(x, value(policy.domain, x))
    for number in range(5):
        query = ask(policy)
        if number == 1:
            policy.tell(query, told(policy, query.x, failed=True))
        elif number == 2 and not isinstance(policy, Player) and query.x.ndim == 1:
            policy.tell(query, Outcome(value(policy.domain, query.x), noise=0.01, cost=2.0))
        elif number == 3:
            policy.cancel(query)
        elif policy.steps:
            for step in range(1, 1 + min(4, query.fidelity or 4)):
                policy.report(query, step, value(policy.domain, query.x) * (1.0 - 0.6**step))
            policy.tell(query)
        else:
            policy.tell(query, told(policy, query.x))
    settled = policy.state()
    for _ in range(2 if crowd(policy) else 1):
        query = ask(policy)
        if policy.steps:
            policy.report(query, 1, 0.5 * value(policy.domain, query.x))
    return settled


def crowd(policy):
    """Whether it asks again while a query is pending."""
    return policy.parallel and not isinstance(policy.domain, Paths)


def point(query):
    """A query as JSON."""
    return {"id": query.id, "x": query.x.tolist(), "index": query.index, "params": query.params}


def answer(policy):
    """A recommendation as JSON, without its words."""
    found = policy.recommend()
    if isinstance(found, surefoot.Recommendation):
        numbers = {name: getattr(found, name) for name in ("mean", "lower", "upper")}
        return {"x": found.x.tolist(), "index": found.index, **numbers}
    return {name: np.asarray(getattr(found, name)).tolist() for name in ("above", "below", "undecided")}
