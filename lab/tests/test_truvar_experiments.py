"""The experiments of TruVaR, small: drivers against hand-made runs, and verdicts that theorems fix."""

from __future__ import annotations

import gzip
import os
from functools import cache

import numpy as np
import pytest

from surefoot import GP, SE, Box, Candidates, ExpectedImprovement
from surefoot.errors import MissingData
from surefoot.policy.search import RandomSearch
from surefoot_lab import Replicate, datasets, find
from surefoot_lab.baselines.improvement_per_cost import ImprovementPerCost
from surefoot_lab.experiments.truvar import _svm, lake_level_set, lake_travel_cost, noise_levels
from surefoot_lab.experiments.truvar._levels import Survey, survey
from surefoot_lab.experiments.truvar._printed import flat_rounds
from surefoot_lab.experiments.truvar._synthetic import Landscape, peak, race
from surefoot_lab.fields import transect
from surefoot_lab.problems import grid
from surefoot_lab.results import Results
from surefoot_lab.samples import gp_sample_grid

SMALL = {
    "truvar/lake-level-set": {"horizon": 6, "transect": False},
    "truvar/lake-travel-cost": {"horizon": 8, "budget": 600.0},
    "truvar/noise-levels": {"side": 18, "budget": 150.0},
    "truvar/synthetic-bo": {"side": 12, "horizon": 100, "searched": 1},
    "truvar/svm-on-grid": {"horizon": 8},
    "truvar/svm-on-grid-cost": {"horizon": 10, "seconds": 500.0},
    "truvar/properties": {"side": 8, "horizon": 40},
}


@cache
def lake():
    return transect(np.random.default_rng(0), side=14)


@pytest.fixture
def small_data(tmp_path, monkeypatch):
    """A simulated lake, and a table in the form of the published one."""
    monkeypatch.setattr(lake_level_set, "baltic", lake)
    monkeypatch.setattr(lake_travel_cost, "baltic", lake)
    (tmp_path / "svm_grid").mkdir()
    lines = ["C,alpha,epsilon,validation_error,run_time_s"]
    for C in (0.1, 1.0, 10.0, 100.0):
        for alpha in (0.1, 0.5, 1.0):
            for epsilon in (1e-4, 1e-2):
                error = 0.24 + 0.02 * abs(np.log10(C) - 1) + 0.05 * abs(alpha - 0.5) + 0.002 * np.log10(epsilon) ** 2
                lines.append(f"{C},{alpha},{epsilon},{error - 0.008:.6f},{10 + 40 * alpha:.3f}")
    with gzip.open(tmp_path / "svm_grid" / "svm_on_grid.csv.gz", "wt") as file:
        file.write("\n".join(lines) + "\n")
    monkeypatch.setenv("SUREFOOT_DATA", str(tmp_path))
    _svm.table.cache_clear()
    yield
    _svm.table.cache_clear()


@pytest.mark.parametrize("id", SMALL)
def test_every_claim_reads_something(id, small_data):
    made = find(id)
    results = Results.fresh(made, "quick")
    results.replicates = {0: dict(made.run(Replicate(0, settings={**made.quick.settings, **SMALL[id]})))}
    for claim in results.judge():
        assert all(test["n"] == 1 for test in claim["tests"]), claim["name"]


def test_repetitions_differ_and_repeat(small_data):
    made = find("truvar/noise-levels")
    runs = [made.run(Replicate(i, settings=SMALL["truvar/noise-levels"])) for i in (1, 1, 2)]
    curves = [run["TruVaR"]["f1"].tolist() for run in runs]
    assert curves[0] == curves[1] != curves[2]


@pytest.mark.slow
def test_the_guarantees_hold_and_the_printed_statements_do_not():
    made = find("truvar/properties")
    results = Results.fresh(made, "quick")
    settings = {"side": 8, "horizon": 30}
    results.replicates = {i: dict(made.run(Replicate(i, settings=settings))) for i in range(45)}
    verdicts = {claim["code"]: claim["verdict"] for claim in results.judge()}
    assert verdicts == {"C1": "holds", "C2": "holds", "C3": "fails", "C4": "fails"}
    runs = results.replicates.values()
    assert all(run["greedy variances"]["variance"] <= run["greedy variances"]["bound"] + 1e-9 for run in runs)
    assert np.mean([run["general RKHS width"]["covered"] for run in runs]) >= 0.9
    assert max(float(run["maximize"]["epoch"]) for run in runs) > 1  # the second claim is about something


def test_the_score_is_flat_as_printed_and_never_otherwise():
    points = grid([(0.0, 1.0)] * 2, 14)
    flat = []
    for seed in range(3):
        values = gp_sample_grid(SE(0.1), points, np.random.default_rng(seed))(points)
        gp, rng = GP(SE(0.1), noise=1e-6), np.random.default_rng(0)
        flat.append([flat_rounds(gp, points, values, 40, printed, rng) for printed in (True, False)])
    printed, correct = np.array(flat).T
    assert (printed > 2).all()
    assert not correct.any()


# -- the drivers -------------------------------------------------------------------------------------------------------


def test_f1_along_a_money_axis():
    done = Survey(f1=[0.2, 0.5, 0.95], spent=[10.0, 25.0, 40.0], visited=[3, 1, 2], fidelity=[0, 0, 0])
    assert done.along(np.array([5.0, 10.0, 24.0, 25.0, 99.0])).tolist() == [0.0, 0.2, 0.2, 0.5, 0.95]
    assert done.cost_of(0.9, 100.0) == 40.0
    assert done.cost_of(0.99, 100.0) == 100.0
    assert done.over(5).tolist() == [0.2, 0.5, 0.95, 0.95, 0.95]


def test_a_survey_pays_for_every_measurement_and_stops_when_the_money_is_gone():
    field, paid = lake(), []

    def price(previous, query):
        paid.append((previous, query.index))
        return 30.0

    policy = RandomSearch(Candidates(field.points), seed=0)
    done = survey(policy, field.gp, field.values, field.threshold, 7, rounds=50, budget=100.0, price=price)
    assert done.spent == [30.0, 60.0, 90.0]
    assert [pair[0] for pair in paid] == [7, *done.visited]  # each price is counted from the point before
    assert len(policy.history) == 4  # the first point is free


def test_a_survey_that_measures_everything_maps_everything():
    field = lake()
    policy = RandomSearch(Candidates(field.points), seed=0, repeats=False)
    done = survey(policy, field.gp, field.values, field.threshold, 0, rounds=195)
    assert done.f1[-1] > 0.98
    assert np.mean(done.f1[-20:]) > np.mean(done.f1[:20]) + 0.1


def test_the_boat_pays_for_travel_and_depth():
    X = np.array([[100.0, 0.0], [0.0, 3.0]])
    assert lake_travel_cost.boat(np.array([0.0, 9.0]), X).tolist() == [29.0, 16.0]
    assert lake_travel_cost.boat(None, X).tolist() == [4.0, 16.0]


def test_functions_exceed_the_threshold():
    for i in range(5):
        assert noise_levels.draw(Replicate(i), 20).optimum > noise_levels.THRESHOLD


def test_the_refined_maximum_is_above_the_grid():
    land = Landscape.draw(Replicate(0), 20)
    fine = land.surface.mean(grid([(0.0, 1.0)] * 2, 200))
    assert land.values.max() <= land.maximum
    assert land.maximum >= fine.max() - 1e-9
    top = peak(land.surface, land.points[[land.values.argmax()]])
    assert land.surface.mean(top[None])[0] >= land.values.max()


def test_improvement_per_cost_prefers_the_cheap_and_equals_improvement_at_equal_costs():
    points = Candidates(np.linspace(0.0, 1.0, 21))
    make = {"gp": GP(SE(0.2), noise=1e-6), "seed": 3}
    equal, plain = ImprovementPerCost(points, cost=np.full(21, 7.0), **make), ExpectedImprovement(points, **make)
    dear = ImprovementPerCost(points, cost=np.where(np.arange(21) < 10, 1.0, 50.0), **make)
    spent = []
    for _ in range(6):
        for policy in (equal, plain, dear):
            query = policy.ask()
            policy.tell(query, float(np.sin(5 * query.x[0])))
        spent.append(dear.queries[-1].index < 10)
    assert [q.index for q in equal.queries] == [q.index for q in plain.queries]
    assert np.mean(spent[:4]) == 1.0
    with pytest.raises(ValueError, match="21 positive"):
        ImprovementPerCost(points, cost=[1.0])


def test_the_published_table(monkeypatch):
    try:
        datasets.locate("svm_grid")
    except MissingData:
        pytest.skip(f"the table is not on this machine (SUREFOOT_DATA={os.environ.get('SUREFOOT_DATA')})")
    _svm.table.cache_clear()
    made = find("truvar/svm-on-grid")
    results = Results.fresh(made, "quick")
    results.replicates = {0: dict(made.run(Replicate(0, settings={"horizon": 5})))}
    verdicts = {claim["code"]: claim["verdict"] for claim in results.judge()}
    assert (verdicts["C3"], verdicts["C4"]) == ("holds", "fails")


def test_a_table_is_not_searched_in_a_box(small_data):
    box = Box.unit(3)
    with pytest.raises(TypeError, match="the table has candidates, not Box"):
        _svm.tune(RandomSearch(box, seed=0), np.array([0]), 5)
    with pytest.raises(TypeError, match="a survey is made on Candidates, not on Box"):
        survey(RandomSearch(box, seed=0), GP(SE(), noise=0.01), np.zeros(3), 0.0, 0, rounds=2)


def test_a_race_is_not_run_in_a_box():
    points = grid([(0.0, 1.0)] * 2, 3)
    land = Landscape(GP(SE()).condition(), points, np.zeros(9), 0.0)
    with pytest.raises(TypeError, match="on candidates"):
        race(RandomSearch(Box.unit(2), seed=0), land, 0, 2, np.random.default_rng(0))


def test_a_table_is_searched_to_its_end(small_data):
    where = _svm.domain()
    rows = _svm.tune(RandomSearch(where, repeats=False, seed=0), np.array([3, 5]), 1000)
    assert sorted(rows) == list(range(where.size))
