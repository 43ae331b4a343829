from __future__ import annotations

import numpy as np
import pytest

from surefoot_lab import Metric, Trace, across, derived, event, slope

V = Metric("value")
DATA = [
    {"a": Trace(value=[1.0, 2.0, 4.0], other=7.0), "b": Trace(value=[0.0, 8.0])},
    {"a": Trace(value=[3.0, 5.0, 6.0])},
]


def test_series():
    a = V["a"]
    assert a.values(DATA).tolist() == [4.0, 6.0]
    assert a.at(1).values(DATA).tolist() == [1.0, 3.0]
    assert a.part(0.5).values(DATA).tolist() == [2.0, 5.0]
    assert a.over(2, 3).values(DATA).tolist() == [3.0, 5.5]
    assert a.over(2).values(DATA).tolist() == [3.0, 5.5]
    assert a.reduced(np.max, "max").of("b").values(DATA)[0] == 8.0
    assert Metric("other")["a"].values(DATA)[0] == 7.0


def test_what_is_not_there_is_nan():
    for reading in (V["a"].at(4), V["a"].over(2, 9), V["nobody"], Metric("nothing")["a"], V["a"] / (V["a"] - V["a"])):
        assert np.isnan(reading.values(DATA)).all()
    assert np.isnan(V["b"].values(DATA)).tolist() == [False, True]
    small, large = (V["a"] < V["b"]).paired(DATA)
    assert (small.tolist(), large.tolist()) == ([4.0], [8.0])


def test_arithmetic_and_labels():
    reading = 2 * (V["a"] - V["b"]) / 4 + 1
    assert reading.values(DATA)[0] == pytest.approx(-1.0)
    assert (2 * (V["a"] - V["b"])).label == "2 · (value[a] − value[b])"
    assert abs(1 - V["a"]).values(DATA).tolist() == [3.0, 5.0]
    assert (8 / V["a"]).values(DATA)[0] == 2.0
    assert (1 + V["a"]).named("more").label == "more"


def test_chained_comparison_is_refused():
    with pytest.raises(TypeError, match="ascending"):
        _ = V["a"] < V["b"] < V["c"]


def test_events_and_derived():
    assert event(V["a"] < V["b"]).values(DATA)[0] == 1.0
    assert np.isnan(event(V["a"] < V["b"]).values(DATA)[1])
    assert event(V["a"] >= 6).values(DATA).tolist() == [0.0, 1.0]
    assert derived(lambda traces: len(traces), "count").values(DATA).tolist() == [2.0, 1.0]
    assert across(lambda replicates: np.ones(5), "per target").values(DATA).shape == (5,)


def test_slope():
    readings = [V["a"].at(t) for t in (1, 2, 3)]
    expected = [np.polyfit([10, 20, 40], row, 1)[0] for row in ([1, 2, 4], [3, 5, 6])]
    assert slope(readings, [10, 20, 40]).values(DATA) == pytest.approx(expected)
    with pytest.raises(ValueError, match="not all equal"):
        slope(readings, [1, 1, 1])
    with pytest.raises(ValueError, match="two or more"):
        slope(readings[:1])


def test_bad_steps():
    for bad in (lambda: V["a"].at(0), lambda: V["a"].part(0.0), lambda: V["a"].over(3, 2)):
        with pytest.raises(ValueError):
            bad()
