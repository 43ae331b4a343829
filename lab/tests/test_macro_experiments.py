"""The experiments of Macro-GPO, small: every claim reads something, and what theory promises holds."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from surefoot import GP, SE
from surefoot.domain import Dives, GraphPaths
from surefoot.policy.routes.macro_gpo import MacroGPO
from surefoot_lab import Replicate, find, roads
from surefoot_lab.experiments.macro_gpo import (
    _graphs,
    _methods,
    node_counts,
    recorded_runs,
    taxi_beta,
    taxi_downsampling,
    temperature,
)
from surefoot_lab.experiments.macro_gpo import taxi as taxi_experiment
from surefoot_lab.results import Results
from surefoot_lab.roads import lasting
from surefoot_lab.routes import Recording, Route, plankton, travel

FEW = {"samples": 10, "iterations": 6, "deepest": 4}
SMALL = {
    "macro-gpo/plankton": {"samples": 6, "deepest": 4},
    "macro-gpo/plankton-beta": {"samples": 5},
    "macro-gpo/plankton-runtime": {},
    "macro-gpo/look-ahead-example": {},
    "macro-gpo/rollout": {"samples": 3},
    "macro-gpo/node-counts": {"outcomes": 10, "samples": 8, "iterations": 10, "horizons": (1, 2, 3), "deepest": 4},
    "macro-gpo/taxi": FEW,
    "macro-gpo/taxi-beta": FEW | {"horizons": (2, 3), "betas": (0.0, 0.2, 0.5, 1.0, 2.0, 4.0, 10.0)},
    "macro-gpo/taxi-downsampling": FEW,
    "macro-gpo/temperature": FEW,
    "macro-gpo/temperature-beta": FEW | {"horizons": (2, 3)},
    "macro-gpo/temperature-downsampling": FEW,
    "macro-gpo/recorded-runs": {"draws": 2, "anytime": 1, "iterations": 5},
}
SIDE = 9


def streets():
    """Where the roads of a small town lead: a grid with diagonals missing, and one dead end."""
    row, col = np.divmod(np.arange(SIDE**2), SIDE)
    near = (np.abs(row[:, None] - row) + np.abs(col[:, None] - col)) == 1
    leads = [tuple(np.flatnonzero(line).tolist()) for line in near]
    return (*leads[:-1], ())


def _few(make, rng, *, most=20, **options):
    return make(rng, most=None if most is None else 5, **options)


@pytest.fixture
def small_data(monkeypatch):
    """A town and a laboratory of 81 places, and a record that our own planners have made."""
    points = np.stack(np.divmod(np.arange(SIDE**2), SIDE), axis=1).astype(float)
    gp = GP(SE(1.5), mean=0.5, noise=0.01)
    values = np.sin(points[:, 0]) + np.cos(points[:, 1] / 2)
    monkeypatch.setattr(roads, "_city", lambda: (points, values, streets(), gp))
    monkeypatch.setattr(roads, "_laboratory", lambda: (points, streets()))
    for town in ("taxi", "corridor"):  # five moves per place keep the trees small
        monkeypatch.setattr(node_counts, town, partial(_few, getattr(roads, town)))
        for user in (taxi_experiment, taxi_beta, taxi_downsampling) if town == "taxi" else (temperature,):
            monkeypatch.setattr(user, town, partial(_few, getattr(roads, town)))
    sea = plankton(np.random.default_rng(0))
    stops = travel(MacroGPO(sea.domain(), horizon=1, gp=sea.gp, seed=3), sea)["stops"].astype(int)
    reward = sea.values[stops].reshape(5, 4).sum(axis=1).cumsum()
    names = ("h1", "h2", "h3", "anytime_h4", "mle_h4", "bucb", "pe", "qEI", "lp")
    made = {name: Recording(name, stops, reward) for name in names}
    monkeypatch.setattr(recorded_runs, "recorded", lambda index: (sea, made))


@pytest.mark.parametrize("id", SMALL)
def test_every_claim_reads_something(id, small_data):
    made = find(id)
    results = Results.fresh(made, "quick")
    settings = {**made.quick.settings, **SMALL[id]}
    results.replicates = {0: dict(made.run(Replicate(0, settings=settings)))}
    for claim in results.judge():
        assert all(test["n"] >= 1 for test in claim["tests"]) or "part after" in claim["name"], claim["name"]


def test_every_experiment_of_the_family_is_registered():
    from surefoot_lab import names

    assert {id for id in names() if id.startswith("macro-gpo/")} == set(SMALL)


def test_methods_of_a_repetition_share_field_start_and_moves(small_data):
    replicate = Replicate(3, settings=FEW)
    route = roads.taxi(replicate.rng("route"))
    assert set(_graphs.compared(route, replicate)) == set(_methods.NINE)
    traces = _methods.race(route, _methods.baselines(route), 0, stops=True)
    domain = route.domain()
    for trace in traces.values():
        place = route.start
        for move in trace["stops"].reshape(4, 5).astype(int):
            assert move.tolist() in domain.moves(place).tolist()
            place = int(move[-1])


def test_looking_further_ahead_pays_on_average():
    """On 24 paired fields three dives ahead collect more than one, and come nearer to the maximum."""
    gains = []
    for i in range(24):
        route = plankton(np.random.default_rng(100 + i))
        one, three = (
            travel(MacroGPO(route.domain(), horizon=h, samples=40, gp=route.gp, seed=i), route) for h in (1, 3)
        )
        gains.append([three["output"][-1] - one["output"][-1], one["simple_regret"][-1] - three["simple_regret"][-1]])
    assert (np.mean(gains, axis=0) > 0).all()


def test_the_search_counts_its_nodes_by_the_formula():
    """A town in which every place has exactly four moves: c_h + I c_(h−1) nodes a stage, 1 + A for the last."""
    ring = [[(i + step) % 40 for step in (1, 2, 3, 4)] for i in range(40)]
    moves = lasting(GraphPaths(ring, 1, most=None), 40)
    points = np.arange(40.0)[:, None]
    route = Route("ring", points, np.sin(points[:, 0]), moves, 0, GP(SE(2.0), noise=0.01), budget=4)
    replicate = Replicate(0, settings={"samples": 30, "iterations": 50})
    small = [0, 5, 21]  # c_1 = 1 + A, c_2 = 1 + A c_1
    two = 3 * (small[2] + 50 * small[1]) + small[1]
    assert node_counts.search(route, 1, replicate)["nodes"] == 4 * small[1]
    assert node_counts.search(route, 2, replicate)["nodes"] == two


def test_the_full_tree_counts_its_nodes_by_the_formula():
    """h_1 = A, h_k = A N + A N h_(k−1); a call has 1 + h_k nodes, a run those of its five stages: Table I."""
    route = plankton(np.random.default_rng(0))
    found = []
    for horizon, samples in ((1, 100), (2, 100), (3, 100), (4, 7)):
        policy = MacroGPO(route.domain(), horizon=horizon, samples=samples, gp=route.gp, seed=0)
        found.append(travel(policy, route)["nodes"].sum())
    assert found[:3] == [25, 8_009, 2_403_209]
    h = [4]
    for _ in range(3):
        h.append(28 + 28 * h[-1])
    assert found[3] == sum(1 + h[k - 1] for k in (4, 4, 3, 2, 1))


def test_following_a_record_finds_agreement_and_disagreement():
    sea = plankton(np.random.default_rng(2))

    def make(domain, seed):
        return MacroGPO(domain, horizon=1, gp=sea.gp, seed=seed)

    stops = travel(make(sea.domain(), 5), sea)["stops"].astype(int)
    reward = sea.values[stops].reshape(5, 4).sum(axis=1).cumsum()
    same = recorded_runs.follow(sea, Recording("h1", stops, reward), make)
    assert same["agree"].tolist() == [1] * 5  # ties at the first stage included
    assert same["gap"] < 1e-12
    # From the third stage on the record goes where no sum of means would send it: away from the best direction.
    place, wrong = int(stops[7]), stops.copy()
    options = Dives((50, 50), 4).table(np.array([place]))[0]
    policy = make(sea.begin(place).domain(), 0)
    for known in (sea.start, *stops[:8]):
        policy.tell(sea.points[known], sea.values[known])
    policy.ask()
    wrong[8:12] = options[policy.values.argmin()]
    changed = recorded_runs.follow(sea, Recording("h1", wrong[:12], reward[:3]), make)
    assert changed["agree"].tolist() == [1, 1, 0]
