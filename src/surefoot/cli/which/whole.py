"""Entries whose snippet is written out: no single policy answers them, or another library does.

>>> [entry.use for entry in WHOLE if entry.goal == "subset"]
['surefoot.select.choose']
"""

from __future__ import annotations

from surefoot.cli.which.entry import Entry

__all__ = ["OTHERS", "WHOLE"]

OTHERS = "Optuna, Ax or BoTorch: smooth ground, hundreds of trials or more, conditional parameters, several objectives"

_PLAYER = """\
import numpy as np
from surefoot import Candidates
from surefoot.games import Player, Round

prices = Candidates(np.linspace(1.0, 3.0, 21))


def market(mine, theirs):  # what both earn: your observation of a round
    share = 1.0 / (1.0 + np.exp(3.0 * (mine - theirs)))
    return [float((mine - 0.8) * share), float((theirs - 0.8) * (1.0 - share))]


policy = Player(prices, others=[prices], level=1, initial=3, seed=0)
print("this level must know:", policy.needs)
rng = np.random.default_rng(0)
for _ in range(8):
    query = policy.ask()
    rival = rng.choice(prices.points)  # what the other one chose
    payoffs = market(query.x[0], rival[0])
    policy.tell(query, Round(actions=[query.x, rival], payoffs=payoffs))
print(policy.recommend())
"""

_PRIVATE = """\
import numpy as np
from surefoot.private import Curator, GaussianRelease, Ledger, Modeler

rng = np.random.default_rng(0)
table = np.column_stack([rng.uniform(20, 80, 300), rng.uniform(16, 40, 300)])


def measure(row):  # private and expensive; higher is better
    return float(-(((row[0] - 55) / 20) ** 2) - ((row[1] - 30) / 8) ** 2)


mechanism = GaussianRelease(
    epsilon=3.0,
    delta=1e-5,
    bounds=[(18.0, 90.0), (15.0, 45.0)],  # public limits of each column
    radius=25.0,  # what the limits are scaled to
    neighbor=1.0,  # the protected change of one row, after scaling
)
ledger = Ledger(epsilon=3.0, delta=1e-5)
curator = Curator(table, measure, mechanism, asks=10, ledger=ledger)
release = curator.release()  # all that the other party sees of the table
print(release.guarantee)

modeler = Modeler(release, seed=0)  # the other party
curator.close(modeler.run(curator.answer))
print(table[curator.chosen])  # only the owner can look it up
"""

_FTS = """\
import numpy as np
from surefoot import Box
from surefoot.federated import Agent, SharedFeatures

domain = Box([(0.0, 10.0)])
public = {"lengthscale": 0.1, "noise": 0.01, "seed": 2026}
features = SharedFeatures(1, 100, **public)
others = [Agent(domain, features, agent=n, seed=n) for n in (1, 2)]
for other in others:  # each party measures its own objective, in its own place
    for x in np.linspace(0.5, 9.5, 10):
        other.tell([x], -((x - 3.0 - 0.1 * other.agent) ** 2))

policy = Agent(domain, features, agent=0, seed=0)
for other in others:
    policy.receive(other.message(round=0))  # 100 numbers, and nothing else
for _ in range(8):
    query = policy.ask()
    policy.tell(query, -((query.x[0] - 3.0) ** 2))
print(policy.recommend())
"""

_COORDINATOR = """\
import numpy as np
from surefoot import GP, SE, Candidates
from surefoot.federated import Agent, Coordinator, Decay, SharedFeatures
from surefoot.federated import Weighting
from surefoot.private import Ledger

rounds, parties = 2, 40
features = SharedFeatures(1, 50, lengthscale=0.2, noise=0.01, seed=2026)
coordinator = Coordinator(
    features,
    agents=parties,
    regions=2,
    noise_multiplier=1.5,
    sampling=0.5,
    rounds=rounds,
    weighting=Weighting(hold=1, fall=1),
    ledger=Ledger(epsilon=8.0, delta=1e-3),  # refuses what would exceed it
)
domain = Candidates(np.linspace(0.0, 1.0, 101))
options = {
    "gp": GP(SE(0.2), noise=0.01),
    "initial": 2,
    "regions": 2,
    "schedule": Decay(1.0, first=0.0),
}
agents = [
    Agent(domain, features, agent=n, region=n % 2, **options)
    for n in range(parties)
]


def measure(agent):  # each party's own objective, in its own place
    query = agent.ask()
    agent.tell(query, -((query.x[0] - 0.3) ** 2))


for agent in agents:
    for _ in range(2):
        measure(agent)
for number in range(rounds):
    for agent in agents:
        coordinator.collect(agent.message(number))
    broadcast = coordinator.release(number)  # private: everybody may read it
    for agent in agents:
        agent.receive(broadcast)
        measure(agent)
print(agents[0].recommend(), coordinator.ledger.spent())
"""

_SELECT = """\
import numpy as np
from surefoot.select import FacilityLocation, choose

points = np.random.default_rng(0).normal(size=(100, 2))  # your items
objective = FacilityLocation(points)  # how near every item is to a chosen one
best = choose(objective, k=8, tau=2)  # 8 of them, any 2 of which may be lost
print(best.selection.order, best.worst.value)
print(best.certificate)
"""

_ATTACK = """\
import numpy as np
from surefoot.attack import NormBall, BlackBox, bos2


def scores(images):  # your model: images (k, H, W) to probabilities
    bright = 1 / (1 + np.exp(-40 * (images.mean(axis=(1, 2)) - 0.5)))
    return np.column_stack([1 - bright, bright])


model = BlackBox(scores, budget=400)  # never exceeded
image = np.full((20, 20), 0.45)
options = {"ball": NormBall(0.1), "sizes": (4, 6, 8), "budget": 300, "seed": 0}
result = bos2(model, image, target=1, **options)
print(result.success, result.queries)
"""

_CONDITIONAL = """\
import optuna
from surefoot.bridge.optuna import SurefootSampler

optuna.logging.set_verbosity(optuna.logging.WARNING)


def objective(trial):  # lower is better, as Optuna has it
    if trial.suggest_categorical("model", ["ridge", "trees"]) == "ridge":
        return abs(trial.suggest_float("penalty", 1e-3, 10.0, log=True) - 0.1)
    return 0.2 + abs(trial.suggest_int("depth", 1, 12) - 6) / 12


study = optuna.create_study(sampler=SurefootSampler(seed=0))
study.optimize(objective, n_trials=15)
print(study.best_params)
"""

_TRADEOFF = """\
import optuna

optuna.logging.set_verbosity(optuna.logging.WARNING)


def objective(trial):  # accuracy lost, and seconds
    size = trial.suggest_float("size", 0.0, 1.0)
    return (1.0 - size) ** 2, size


study = optuna.create_study(directions=["minimize", "minimize"])
study.optimize(objective, n_trials=30)
print([trial.values for trial in study.best_trials])
"""

_SCALE = """\
import optuna

optuna.logging.set_verbosity(optuna.logging.WARNING)


def objective(trial):  # lower is better
    rate = trial.suggest_float("rate", 1e-4, 1.0, log=True)
    layers = trial.suggest_int("layers", 1, 8)
    return abs(rate - 0.01) + 0.1 * abs(layers - 3)


study = optuna.create_study()  # storage="sqlite:///study.db" for many processes
study.optimize(objective, n_trials=100)
print(study.best_params)
"""


def _special(*words: str) -> frozenset[str]:
    return frozenset(words)


WHOLE = (
    Entry(
        "surefoot.Player",
        "respond",
        "answering what the others are believed to do",
        "It learns what everybody earns, thinks about how the others choose, and answers one level higher.",
        "docs/policies/r2b2.md",
        special=_special("players"),
        snippet=_PLAYER,
        needs=("after each round, what everybody chose and earned: Round(actions, payoffs)",),
        instead=(
            "surefoot.StableOpt: the other one only ever harms you (special=perturbation)",
            "surefoot.TVGPUCB: the world moves by itself and does not answer (special=drift)",
        ),
        holds=("points=candidates",),
    ),
    Entry(
        "surefoot.private.Curator",
        "release",
        "a private table, and an optimizer elsewhere",
        "The owner (Curator) releases a differentially private copy of the rows once; the optimizer (Modeler) looks for"
        " the best row on it and asks for measurements by number.",
        "docs/privacy/private.md",
        special=_special("private"),
        snippet=_PRIVATE,
        needs=(
            "a finite table of rows with public limits for every column",
            "a privacy budget: epsilon, delta, and the change of a row that is protected",
        ),
        extra="private",
        instead=(
            "surefoot.private.Modeler with policy=: the release explored by another policy, such as TruVaR",
            "any other policy: the owner of the data can run it, and nothing has to leave",
        ),
        holds=("points=candidates",),
    ),
    Entry(
        "surefoot.federated.Agent",
        "draws",
        "parties that send one draw of their belief",
        "Each party optimizes its own objective and now and then follows a function drawn by another one (FTS). Raw"
        " measurements stay, but a draw is no formal privacy.",
        "docs/federated/fts.md",
        special=_special("owners"),
        snippet=_FTS,
        needs=("features that all parties share, fixed without looking at anybody's data",),
        instead=(
            "surefoot.federated.Coordinator: with differential privacy (special=owners,private)",
            "surefoot.bridge.flower: real parties on real machines",
            "surefoot.RMGPUCB: nobody minds showing data (special=tasks)",
        ),
    ),
    Entry(
        "surefoot.federated.Coordinator",
        "broadcast",
        "many parties, and readers whom they do not trust",
        "A coordinator that all parties trust clips, samples and sums their draws, adds noise and broadcasts the sums"
        " with differential privacy (DP-FTS-DE).",
        "docs/federated/dp-fts-de.md",
        special=_special("owners", "private"),
        snippet=_COORDINATOR,
        needs=(
            "at least about fifty parties, or noise drowns what they have in common",
            "a privacy budget: epsilon and delta",
        ),
        extra="private",
        instead=("surefoot.bridge.flower: real parties on real machines",),
    ),
    Entry(
        "surefoot.select.choose",
        "choose",
        "items that serve although some are lost",
        "It tries several robust selectors, attacks each choice, keeps the one that loses least, and certifies how near"
        " the best it is. Nothing is measured: the worth of a set is known.",
        "docs/selection.md",
        goal="subset",
        snippet=_SELECT,
        needs=("a worth of sets (facility location, coverage, variance, R², or your own), k, and tau",),
        instead=(
            "surefoot select FILE.csv --k 8 --tau 2: the same from a terminal",
            "surefoot.RobustBatch: the items are measurements of an unknown function (special=losses)",
        ),
        holds=("special=losses", "points=candidates"),
    ),
    Entry(
        "surefoot.attack.bos2",
        "mislead-model",
        "few queries to a black box",
        "It optimizes a perturbation, its resolution and when to give a resolution up, from the scores alone. Only for"
        " models that you are entitled to test.",
        "docs/attack.md",
        goal="classifier",
        snippet=_ATTACK,
        needs=("a function from images to scores, a ball that perturbations stay in, and a budget of queries",),
        instead=("Foolbox or ART: gradients of the model are known, or queries cost nothing",),
        holds=("special=perturbation",),
    ),
    Entry(
        "surefoot.bridge.optuna.SurefootSampler",
        "groups",
        "parameters that exist only with others",
        "A Space has no conditional parameters. In an Optuna study a policy chooses each group of parameters that occur"
        " together.",
        "docs/bridges/optuna.md",
        special=_special("conditional"),
        snippet=_CONDITIONAL,
        needs=("an Optuna study",),
        extra="optuna",
        instead=("Optuna's own TPESampler: deep trees of conditions and hundreds of trials",),
        holds=("points=space",),
    ),
    Entry(
        "optuna.create_study",
        "front",
        "a front of compromises, or limits on other outcomes",
        "Surefoot has no multi-objective search and no constraint but a failed run. Optuna finds fronts in plain"
        " Python; Ax and BoTorch model objectives and constraints.",
        "docs/which.md",
        special=_special("tradeoff"),
        snippet=_TRADEOFF,
        needs=("an Optuna study",),
        extra="optuna",
        instead=(
            "Ax or BoTorch: few, dear measurements with several outcomes, or constraints on them",
            "surefoot.StableOpt with UnknownParameters.objectives(m): the worst of m objectives has to be good",
        ),
    ),
    Entry(
        "optuna.samplers.TPESampler",
        "scale",
        "hundreds of trials or more on many machines, and nothing rough about them",
        "On smooth ground and at scale Optuna serves better: fast samplers, storages, a dashboard, and a large"
        " community.",
        "docs/which.md",
        special=_special(),
        snippet=_SCALE,
        needs=("an Optuna study",),
        extra="optuna",
        instead=(
            "Ax: experiments of many people, kept and analyzed in one place",
            "BoTorch: acquisition functions of your own, on a GPU",
            "surefoot.ExpectedImprovement: tens of expensive runs",
        ),
    ),
)
