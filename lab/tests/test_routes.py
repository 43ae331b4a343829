"""Routes: what a run is worth, simulated plankton, and the record."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.domain import Dives
from surefoot.errors import MissingData
from surefoot.policy.routes.macro_gpo import MacroGPO
from surefoot_lab import routes
from surefoot_lab.routes import Route, plankton, recorded, travel

# -- what a run is worth -----------------------------------------------------------------------------------------------


def line():
    """Five places in a row with the values 0, 1, 4, 9, 16; the mean is 6, the prior mean 2."""
    points = np.arange(5.0)[:, None]
    gp = routes.GP(routes.SE(1.0), mean=2.0, noise=0.1)
    return Route("line", points, points[:, 0] ** 2, Dives((5,), 2), 1, gp, budget=4)


def test_the_score_by_hand():
    trace = line().score([2, 3])
    assert trace["output"] == pytest.approx([(1 + 4) / 2 - 6, (1 + 4 + 9) / 3 - 6])
    assert trace["simple_regret"] == pytest.approx([12, 7])


def test_the_start_may_be_left_out_and_the_center_be_another():
    route = line()
    without = route.score([0, 3], include_start=False, normalize="prior")
    assert without["output"] == pytest.approx([0 - 2, 9 / 2 - 2])
    assert without["simple_regret"] == pytest.approx([16, 7])
    assert route.score([0, 3], normalize="none")["output"] == pytest.approx([1 / 2, 10 / 3])
    assert route.score([0, 0])["simple_regret"] == pytest.approx([15, 15])  # the start was better
    with pytest.raises(ValueError, match="'median'"):
        route.score([0], normalize="median")


def test_a_run_is_told_the_start_and_whole_moves():
    route = plankton(np.random.default_rng(1), side=30)
    policy = MacroGPO(route.domain(), horizon=1, gp=route.gp, seed=0)
    trace = travel(policy, route, prior=[0])
    X, y, _ = policy.data()
    assert len(y) == 2 + route.budget
    assert X[:2] == pytest.approx(route.points[[0, route.start]])
    stops = trace["stops"].astype(int)
    assert y[2:] == pytest.approx(route.values[stops])
    assert trace["output"][-1] == pytest.approx(route.values[[route.start, *stops]].mean() - route.values.mean())
    assert (trace["seconds"].size, trace["nodes"].tolist()) == (5, [5.0] * 5)
    place = route.start
    for move in stops.reshape(5, 4):
        assert move.tolist() in route.domain().moves(place).tolist()
        place = move[-1]


# -- simulated plankton ------------------------------------------------------------------------------------------------


def test_plankton_is_a_draw_from_the_process_that_is_believed():
    fields = np.stack([plankton(np.random.default_rng(i)).values.reshape(50, 50) for i in range(60)])
    assert fields.var() == pytest.approx(1.0, abs=0.1)
    lag = (fields[:, 5:] * fields[:, :-5]).mean()
    assert lag == pytest.approx(np.exp(-0.5), abs=0.1)  # five cells are one length-scale


def test_twenty_steps_never_reach_the_border():
    route = plankton(np.random.default_rng(0))
    place = route.start
    assert divmod(place, 50) == (25, 25)
    for _ in range(route.stages):
        moves = route.domain().moves(place)
        assert moves.shape == (4, 4)
        place = moves[0, -1]
    assert divmod(int(place), 50) == (25, 45)


def test_the_same_stream_draws_the_same_field():
    one, two = (plankton(np.random.default_rng(7), length=k) for k in (4, 1))
    assert np.array_equal(one.values, two.values)
    assert two.stages == 20


def test_a_grid_too_small_for_its_dives_is_refused():
    with pytest.raises(ValueError, match="at least 9 cells a side, got 8"):
        plankton(np.random.default_rng(0), side=8)


# -- the record --------------------------------------------------------------------------------------------------------


def test_the_record_agrees_with_itself():
    """Places, measurements and sums of the published runs belong together, on the field that is stored."""
    try:
        recorded(0)
    except MissingData as missing:
        pytest.skip(str(missing))
    for index in range(4):
        route, made = recorded(index)
        assert (route.size, route.stages, len(made)) == (2500, 5, 9)
        for one in made.values():
            sums = route.values[one.stops].reshape(5, 4).sum(axis=1).cumsum()
            assert sums == pytest.approx(one.reward, abs=1e-6)
            place = route.start
            for move in one.stops.reshape(5, 4):
                assert move.tolist() in route.domain().moves(place).tolist()
                place = int(move[-1])


def test_without_the_record_the_message_says_where_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setenv("SUREFOOT_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    recorded.cache_clear()
    with pytest.raises(MissingData, match="macro_gpo_plankton"):
        recorded(0)
