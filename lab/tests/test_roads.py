"""Roads and corridors: moves that last, graphs read from files of the published form, and the published ones."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.domain import GraphPaths
from surefoot.errors import MissingData
from surefoot_lab import roads
from surefoot_lab.roads import corridor, lasting, published_graph, taxi

CACHED = (roads._city, roads._laboratory)


@pytest.fixture
def fresh():
    for cached in CACHED:
        cached.cache_clear()
    yield
    for cached in CACHED:
        cached.cache_clear()


def here(route):
    """The published data, or a skip."""
    try:
        return published_graph(route)
    except MissingData as missing:
        pytest.skip(str(missing))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.integers(0, 6), max_size=3), min_size=7, max_size=7), st.integers(1, 2))
def test_moves_that_last(leads, length):
    """What is kept can be continued for ever; what is dropped cannot: as many moves as there are places decide it."""
    graph = GraphPaths(leads, length, most=None)
    every = [graph.every(place) for place in range(7)]
    alive = np.ones(7, dtype=bool)
    for _ in range(8):
        alive = np.array([alive[rows[:, -1]].any() if len(rows) else False for rows in every])
    if not alive.any():
        with pytest.raises(ValueError, match="same number of stops"):
            lasting(graph, 7)
        return
    table = lasting(graph, 7).table(np.arange(7))
    for place, rows in enumerate(table):
        kept = rows[rows[:, 0] >= 0].tolist()
        expected = [row.tolist() for row in every[place] if alive[row[-1]]]
        assert kept == (expected if alive[place] else [])


def a_city(folder):
    """A grid of 4 by 6 regions, two of them without roads, in the form of the published file."""
    row, col = (part.ravel() for part in np.mgrid[:4, :6])
    accessible = np.ones(24, dtype=bool)
    accessible[[0, 7]] = False
    cells = np.flatnonzero(accessible)
    near = np.abs(row[cells, None] - row[cells]) + np.abs(col[cells, None] - col[cells]) == 1
    edges = np.stack(np.nonzero(near | np.eye(len(cells), dtype=bool)), axis=1)
    value = np.where(accessible, np.arange(24.0) / 10, np.nan)
    names = {"row": row, "col": col, "accessible": accessible, "edges": cells[edges], "value_slot18": value}
    (folder / "taxi").mkdir()
    np.savez(folder / "taxi" / "taxi_demand.npz", **names)
    stored = {
        "mean": 1.0,
        "lengthscale_row": 0.5,
        "lengthscale_col": 0.6,
        "signal_variance": 0.7,
        "noise_variance": 0.01,
    }
    (folder / "taxi" / "hyperparameters.json").write_text(json.dumps({"slot18": stored}))
    return cells


def test_a_city_is_read_from_its_files(tmp_path, monkeypatch, fresh):
    cells = a_city(tmp_path)
    monkeypatch.setenv("SUREFOOT_DATA", str(tmp_path))
    route = taxi(np.random.default_rng(0), most=3)
    assert route.size == 22
    assert route.points[0].tolist() == [0, 1]  # region 0 has no road
    assert route.values == pytest.approx(cells / 10)
    assert (route.gp.mean, route.gp.noise) == (1.0, 0.01)
    moves = route.domain().moves(route.start)
    assert 1 <= len(moves) <= 3
    for path in moves:
        way = np.concatenate([[route.start], path])
        assert len(set(way.tolist())) == 6
        assert np.abs(np.diff(route.points[way], axis=0)).sum(axis=1) == pytest.approx(1.0)
    assert taxi(np.random.default_rng(0), most=3).start == route.start
    whole, facts = taxi(np.random.default_rng(1), most=None), published_graph("taxi")
    assert facts["places"] == 22
    assert facts["degree"] == 5  # the self-loop counts
    counts = [len(whole.domain().moves(place)) for place in range(22)]
    assert facts["mean_paths"] == pytest.approx(np.mean(counts))


def test_without_the_data_the_message_says_where_to_get_them(tmp_path, monkeypatch, fresh):
    monkeypatch.setenv("SUREFOOT_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for made in (lambda: taxi(np.random.default_rng(0)), lambda: corridor(np.random.default_rng(0))):
        with pytest.raises(MissingData, match=r"taxi|intel_lab"):
            made()


def test_the_published_city():
    facts = here("taxi")
    assert (facts["places"], facts["edges"], facts["degree"]) == (2506, 10370, 8)
    assert (facts["most_paths"], facts["without_paths"]) == (1193, 7)
    assert facts["mean_paths"] == pytest.approx(177.5, abs=0.05)
    assert (facts["mean"], facts["maximum"]) == pytest.approx((0.7402, 4.04305), abs=5e-5)


def test_the_published_corridors():
    facts = here("corridor")
    assert [facts[k] for k in ("places", "edges", "degree", "most_paths", "fewest_paths")] == [145, 364, 6, 114, 1]
    assert facts["mean_paths"] == pytest.approx(27.06, abs=0.005)
    one, two = (corridor(np.random.default_rng(i), field=np.random.default_rng(5)) for i in range(2))
    assert np.array_equal(one.values, two.values)  # the same field from another start
    assert one.start != two.start
    assert one.domain().moves(one.start).shape[1] == 5
