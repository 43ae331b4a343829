"""Costs of points, of the way, and of precision."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from surefoot import Box, Candidates, Fidelity
from surefoot.loop.state import pack, unpack
from surefoot.policy.levels.prices import Prices, numbers_at

LINE = Candidates([0.0, 1.0, 3.0])


def test_prices_add_up():
    levels = [Fidelity(1e-3, 5.0), Fidelity(0.1, 1.0)]
    prices = Prices(LINE, cost=[1.0, 2.0, 3.0], fidelities=levels)
    assert prices.at(LINE.points[[2, 0]], np.array([2, 0])).tolist() == [[8.0, 6.0], [4.0, 2.0]]
    assert not prices.unit
    assert Prices(LINE).at(LINE.points, None).tolist() == [[1.0, 1.0, 1.0]]
    assert Prices(LINE).unit


def test_a_function_is_called_with_what_it_asks_for():
    def way(previous, X, speed=2.0):
        return 1.0 + (0.0 if previous is None else np.abs(X - previous)[:, 0] / speed)

    assert Prices(LINE, cost=way).travels
    assert Prices(LINE, cost=functools.partial(way, np.zeros(1))).travels is False
    assert Prices(LINE, cost=way).at(LINE.points, None, np.array([3.0])).tolist() == [[2.5, 2.0, 1.0]]
    assert Prices(LINE, cost=lambda X: 2.0).at(LINE.points, None).tolist() == [[2.0, 2.0, 2.0]]  # one for all
    assert Prices(Box.unit(1), cost=lambda X: 1.0 + X[:, 0]).at(np.array([[0.5]]), None).tolist() == [[1.5]]
    assert Prices(LINE, cost=max).travels is False  # a built-in function without a signature


@pytest.mark.parametrize("cost", [lambda: 1.0, lambda a, b, c: 1.0])
def test_other_functions_are_refused(cost):
    with pytest.raises(TypeError, match="cost must take"):
        Prices(LINE, cost=cost)


def test_fidelities_are_checked_and_stored():
    with pytest.raises(ValueError, match="noise of a fidelity"):
        Fidelity(-1.0)
    with pytest.raises(ValueError, match="cost of a fidelity"):
        Fidelity(1.0, cost=0.0)
    assert unpack(pack((Fidelity(0.1, 2.0),))) == [Fidelity(0.1, 2.0)]


def test_numbers_are_checked():
    with pytest.raises(ValueError, match=r"cost must be positive and finite, got -1.0 at \[3.0\]"):
        numbers_at([1.0, 1.0, -1.0], "cost", LINE.points, None, positive=True)
    assert numbers_at([0.0, 1.0, 2.0], "noise", LINE.points[[0]], np.array([0]), positive=False).tolist() == [0.0]
