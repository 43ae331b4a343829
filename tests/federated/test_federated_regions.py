"""Sub-regions, weights and schedules."""

import numpy as np
import pytest

from surefoot import Box, Choice, Float, Int, Space
from surefoot.federated import Decay, FixedProbability, Regions, Weighting, effective_multiplier, expected_uses
from surefoot.loop.state import pack, unpack


@pytest.mark.parametrize(
    ("count", "dimension", "parts"),
    [(1, 2, (1, 1)), (2, 1, (2,)), (3, 1, (3,)), (4, 2, (2, 2)), (4, 3, (2, 2, 1)), (4, 1, (4,)), (12, 2, (4, 3))],
)
def test_cuts(count, dimension, parts):
    assert sorted(Regions.split(count, dimension).parts) == sorted(parts)
    assert Regions.split(count, dimension).count == count
    if count < 12:
        assert Regions.split(count, dimension).parts == parts


def test_choices_stay_whole():
    space = Space(kind=Choice(["a", "b"]), depth=Int(1, 4), rate=Float(0.0, 1.0))
    assert Regions.of(space, 4).parts == (1, 1, 2, 2)
    assert Regions.of(Box([(0.0, 0.0), (0.0, 1.0)]), 2).parts == (1, 2)  # a fixed coordinate cannot be cut
    with pytest.raises(ValueError, match="no coordinate"):
        Regions.of(Box([(1.0, 1.0)]), 2)


@pytest.mark.parametrize("parts", [(), 3, (2, 0), (1.5,), "22"])
def test_parts_are_whole_numbers(parts):
    with pytest.raises(ValueError, match="parts is a list of whole numbers from 1 on"):
        Regions(parts)


@pytest.mark.parametrize("points", [np.zeros(2), np.zeros((3, 1)), np.zeros((3, 3))])
def test_points_have_as_many_coordinates_as_the_cube(points):
    with pytest.raises(ValueError, match=r"points must have shape \(n, 2\)"):
        Regions((2, 2)).index(points)


@pytest.mark.parametrize("count", [0, -1, 1.5, True])
def test_counts_out_of_range(count):
    with pytest.raises(ValueError, match="sub-regions"):
        Regions.split(count, 2)


def test_options_are_stored():
    for value in (Regions((2, 3)), Weighting(3.0, 2, None), Decay(1.0, first=0.0), FixedProbability(0.25)):
        assert unpack(pack(value)) == value
    assert pack(FixedProbability(0.25)) == {"$type": "Fixed", "value": {"probability": 0.25}}  # its name of 0.1


def test_the_published_weight_schedules():
    """Synthetic: 16 for 5 rounds, then 16, 12.25, 8.5, 4.75, 1, then 1; real: 10 rounds, then linspace(16, 1, 30)."""
    synthetic = [Weighting(hold=5, fall=5)(t) + 1.0 for t in range(12)]
    assert synthetic == [16.0] * 5 + [16.0, 12.25, 8.5, 4.75, 1.0] + [1.0] * 2
    real = [Weighting(hold=10, fall=30)(t) + 1.0 for t in range(45)]
    assert np.allclose(real, [16.0] * 10 + np.linspace(16.0, 1.0, 30).tolist() + [1.0] * 5)
    assert Weighting(fall=None)(1000) == 15.0


def test_the_published_effective_multipliers():
    """Landmine, P = 4, N = 29: 2 z to about round 30, 1.88 z at 36, 1.39 z at 38, z from 39 on."""
    weighting, assigned = Weighting(hold=10, fall=30), np.arange(29) % 4
    found = [effective_multiplier(1.0, weighting.weights(t, assigned, 4)) for t in (0, 30, 36, 38, 39, 59)]
    assert np.allclose(found, [2.0, 2.0, 1.88, 1.39, 1.0, 1.0], atol=0.006)


@pytest.mark.parametrize("bad", [{"high": -1.0}, {"high": np.inf}, {"hold": -1}, {"fall": 2.5}])
def test_bad_weightings(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        Weighting(**bad)


def test_the_published_use_of_messages():
    """The card's table: 0.875 uses and 38 % of runs that never listen; about 11; and those of p₁ = 0."""
    assert np.allclose(expected_uses(Decay(2.0), 50), (0.875, 0.3825), atol=1e-3)
    assert abs(expected_uses(Decay(0.5), 40)[0] - 11.0) < 0.1
    assert abs(expected_uses(Decay(1.0, first=0.0), 60)[0] - 4.68) < 0.01
    assert abs(expected_uses(Decay(0.5, first=0.0), 40)[0] - 11.3) < 0.05
    assert expected_uses(Decay(1.0, first=0.0), 60)[1] == 0.0


def test_published_values_of_p():
    assert abs(Decay(0.5)(1) - 0.2929) < 5e-5
    assert Decay(2.0)(1) == Decay(2.0)(2) == 0.75
    assert all(Decay(power)(t) <= Decay(power)(t + 1) < 1.0 for power in (0.5, 1.0, 2.0) for t in range(1, 50))


@pytest.mark.parametrize(
    "make", [lambda: Decay(0.0), lambda: Decay(np.inf), lambda: Decay(1.0, first=1.5), lambda: FixedProbability(-0.1)]
)
def test_bad_schedules(make):
    with pytest.raises(ValueError):
        make()
    with pytest.raises(ValueError, match="from 1"):
        Decay()(0)
