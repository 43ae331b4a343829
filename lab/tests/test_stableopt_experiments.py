"""The experiments of StableOpt, small: the polynomial's constants, drivers against the policies, fixed verdicts."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from surefoot import GP, Ball, Box, Candidates, Groups, Linear, MaxiMinGPUCB, StableOpt, WeightedBox
from surefoot.errors import MissingData
from surefoot.loop.widths import Constant
from surefoot_lab import Replicate, find
from surefoot_lab.experiments.stableopt import _movies, lake_regions
from surefoot_lab.experiments.stableopt._polynomial import RADIUS, points, polynomial
from surefoot_lab.experiments.stableopt._robust import STABLE, UCB, methods, race, reach
from surefoot_lab.fields import transect
from surefoot_lab.results import Results

SMALL = {
    "stableopt/polynomial": {"horizon": 100},
    "stableopt/lake-regions": {"horizon": 21},
    "stableopt/robot-pushing": {"horizon": 20, "pushes": 40},
    "stableopt/running-example": {"horizon": 20},
    "stableopt/certificate": {"side": 6, "horizon": 8},
    "stableopt/movies": {"rounds": 6},
}


# -- the polynomial ----------------------------------------------------------------------------------------------------


def test_the_constants_of_the_polynomial():
    """On the inclusive grid, with perturbations that end on grid points, by a search of every pair of points."""
    X = points()
    f = polynomial(X)
    worst = np.full(len(X), np.inf)
    for start in range(0, len(X), 500):
        block = X[start : start + 500]
        inside = ((block[:, None] - X) ** 2).sum(axis=2) <= RADIUS**2 * (1 + 1e-9)
        worst[start : start + 500] = np.where(inside, f, np.inf).min(axis=1)
        if start == 5000:
            assert inside.sum(axis=1).max() == 379
    top, robust = f.argmax(), worst.argmax()
    assert f[top] == pytest.approx(20.82, abs=0.005)
    assert X[top] == pytest.approx([2.82, 4.01], abs=0.005)
    assert worst[robust] == pytest.approx(-4.33, abs=0.005)
    assert X[robust] == pytest.approx([-0.195, 0.285], abs=0.001)
    assert worst[top] == pytest.approx(-22.35, abs=0.005)
    assert worst[robust] - worst[top] == pytest.approx(18.016, abs=0.001)
    assert (f.min(), (f > -15).mean()) == pytest.approx((-67.8, 0.544), abs=0.05)
    assert np.array_equal(worst, reach(Candidates(X), Ball(RADIUS)).minimum(f))


@pytest.mark.slow
def test_stable_opt_wins_on_the_polynomial():
    """Three paired runs: found in all, and GP-UCB ends at the maximizer, 18.02 below."""
    made = find("stableopt/polynomial")
    ends = [made.run(Replicate(i, settings={"horizon": 100})) for i in range(3)]
    assert [float(run[STABLE]["robust_regret"][-1]) <= 0.1 for run in ends] == [True] * 3
    for run in ends:
        assert run[UCB]["robust_regret"][-1] == pytest.approx(18.016, abs=1.0)


# -- claims ------------------------------------------------------------------------------------------------------------


@cache
def planted_taste(clustering=0):
    """Movies in eight clear groups; users that like one direction or another."""
    rng = np.random.default_rng(1)
    centers = rng.uniform(0.0, 2.0, (8, 5))
    movies = np.abs(np.repeat(centers, 12, axis=0) + 0.15 * rng.standard_normal((96, 5)))
    users = np.abs(rng.normal(0.6, 0.3, (60, 5)))
    return _movies.taste(movies, users, 8, np.random.default_rng(clustering))


@pytest.fixture
def small_data(monkeypatch):
    monkeypatch.setattr(lake_regions, "baltic", lambda: transect(np.random.default_rng(0), side=14))
    monkeypatch.setattr("surefoot_lab.experiments.stableopt.movies.tastes", planted_taste)


@pytest.mark.parametrize("id", SMALL)
def test_every_claim_reads_something(id, small_data):
    made = find(id)
    results = Results.fresh(made, "quick")
    results.replicates = {0: dict(made.run(Replicate(0, settings={**made.quick.settings, **SMALL[id]})))}
    for claim in results.judge():
        assert all(test["n"] == 1 for test in claim["tests"]), claim["name"]


@pytest.mark.parametrize(("id", "count"), [("stableopt/running-example", 20), ("stableopt/certificate", 40)])
def test_what_theory_and_construction_promise_holds(id, count):
    made = find(id)
    results = Results.fresh(made, "quick")
    settings = {**made.quick.settings, **({"side": 8, "horizon": 20} if "certificate" in id else {})}
    results.replicates = {i: dict(made.run(Replicate(i, settings=settings))) for i in range(count)}
    assert {claim["verdict"] for claim in results.judge()} == {"holds"}


# -- drivers -----------------------------------------------------------------------------------------------------------


def test_the_race_reports_robust_values_of_every_method():
    designs, box = Candidates(points(12)), WeightedBox([0.5, 0.5])
    sets, values = reach(designs, box), polynomial(points(12))
    gp = GP(noise=0.01)
    traces = race(methods(designs, box, gp, 0), values, sets, 6, Replicate(0), initial=3)
    worst = sets.minimum(values)
    assert len(traces) == 5
    for trace in traces.values():
        assert np.isin(trace["robust_value"], worst).all()
        assert trace["robust_regret"] == pytest.approx(worst.max() - trace["robust_value"])


@pytest.mark.parametrize(("rule", "policy"), [(_movies.STABLE, StableOpt), (_movies.MAXIMIN, MaxiMinGPUCB)])
def test_asking_users_is_stable_opt_on_groups(rule, policy):
    """With a prior mean of zero the 15-dimensional regression and the process with a linear kernel are one."""
    rng = np.random.default_rng(4)
    made = planted_taste()
    taste = _movies.Taste(made.movies, made.users, np.zeros(5), np.eye(5), made.order, made.starts)
    user, noise, rounds = rng.uniform(0.0, 1.0, 5), 0.01, 8
    groups = _movies.ask_user(taste, user, rule, rounds, noise, np.random.default_rng(9))
    labels = [taste.group_of(i) for i in range(len(taste.movies))]
    errors = np.sqrt(noise) * np.random.default_rng(9).standard_normal(rounds)
    one = policy(
        Candidates(taste.movies),
        perturbation=Groups(labels),
        gp=GP(Linear(), noise=noise),
        width=Constant(_movies.WIDTH),
        seed=0,
    )
    names = []
    for error in errors:
        query = one.ask()
        names.append(labels[query.index])
        one.tell(query, float(taste.movies[query.index] @ user + error))
    assert names == groups.tolist()


def test_groups_are_found_on_planted_tastes():
    taste = planted_taste()
    assert len(taste.starts) == 8
    assert np.array_equal(np.sort(taste.order), np.arange(96))
    found = []
    for i, user in enumerate(taste.users[:12]):
        worth = taste.lowest(taste.movies @ user)
        last = _movies.ask_user(taste, user, _movies.STABLE, 20, 0.01, np.random.default_rng(i))[-1]
        found.append(worth.max() - worth[last] < 0.05 * np.ptp(worth))
    assert np.mean(found) >= 0.9


def test_ratings_are_factorized_and_read_from_the_files(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    U, M = rng.uniform(0.2, 1.0, (40, 3)), rng.uniform(0.2, 1.0, (30, 3))
    full = 2.0 * U @ M.T
    ratings = np.where(rng.random(full.shape) < 0.6, full, 0.0)
    users, movies = _movies.factorize_ratings(ratings, 3, 400, np.random.default_rng(1))
    assert (users >= 0).all()
    assert (movies >= 0).all()
    hidden = ratings == 0
    assert np.abs(users @ movies.T - full)[~hidden].mean() < 0.03
    assert np.abs(users @ movies.T - full)[hidden].mean() < 0.1

    folder = tmp_path / "movielens_100k"
    folder.mkdir()
    rows = [f"{u + 1}\t{m + 1}\t{ratings[u, m]:.4f}\t0" for u, m in zip(*np.nonzero(ratings), strict=True)]
    header = "user_id:token\titem_id:token\trating:float\ttimestamp:float"
    (folder / "ml-100k.inter").write_text("\n".join([header, *rows]) + "\n")
    (folder / "ml-100k.item").write_text("item_id:token\n1\n")
    (folder / "ml-100k.user").write_text("user_id:token\n1\n")
    monkeypatch.setenv("SUREFOOT_DATA", str(tmp_path))
    monkeypatch.setattr(_movies, "GROUPS", 4)
    for cached in (_movies._factors, _movies.tastes):
        cached.cache_clear()
    taste = _movies.tastes(0)
    for cached in (_movies._factors, _movies.tastes):
        cached.cache_clear()
    assert taste.movies.shape == (30, _movies.FACTORS)
    assert len(taste.users) == 36  # a tenth of the users gives the prior


def test_without_the_ratings_the_message_says_where_to_get_them(tmp_path, monkeypatch):
    monkeypatch.setenv("SUREFOOT_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for cached in (_movies._factors, _movies.tastes):
        cached.cache_clear()
    with pytest.raises(MissingData, match="movielens_100k"):
        find("stableopt/movies").run(Replicate(0, settings={"rounds": 3}))


def test_what_is_reached_in_a_box_is_not_compared():
    with pytest.raises(TypeError, match="finitely many choices"):
        reach(Box.unit(2), Ball(0.1))
