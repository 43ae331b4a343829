"""Factors of covariances: what is rounding, and what is no covariance; and moves that are equally good."""

import numpy as np
import pytest

from surefoot import DBGPUCB, GP, GPUCB, GPUCBPE, SE, Dives, MacroGPO, Paths
from surefoot.policy.moves import best_moves, factors


def squares(L):
    return L @ np.swapaxes(L, 1, 2)


@pytest.mark.parametrize("noise", [0.0, 1e-6, 0.01])
@pytest.mark.parametrize("c", [1.1, 1.5, 2.0, -3.0])
def test_what_is_clearly_indefinite_is_refused(c, noise):
    with pytest.raises(ValueError, match="not positive semi-definite"):
        factors([np.eye(2), [[1.0, c], [c, 1.0]]], noise)


def test_rounding_is_made_up_for_and_only_where_it_is():
    rough = np.array([[1.0, 1.0 + 1e-9], [1.0 + 1e-9, 1.0]])
    both = np.stack([rough, np.eye(2)])
    made = squares(factors(both, 0.0))
    assert made[0] == pytest.approx(rough, abs=1e-7)
    assert made[1] == pytest.approx(np.eye(2), abs=1e-11)  # the neighbor keeps its noise


def test_rounding_is_a_share_of_the_prior():
    """What is left of a variance of 1 where all is known: nothing but rounding."""
    left = np.array([[[1e-17, 3e-17], [3e-17, 1e-17]]])
    assert np.abs(squares(factors(left, 0.0, 1.0))).max() < 1e-9
    with pytest.raises(ValueError, match="semi-definite"):
        factors(left, 0.0)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_must_be_finite(bad):
    with pytest.raises(ValueError, match="not finite"):
        factors([[[1.0, 0.0], [0.0, bad]]], 0.1)


def test_shapes():
    assert factors(np.empty((0, 3, 3)), 0.1).shape == (0, 3, 3)
    for wrong in (np.eye(2), np.ones((1, 2, 3)), 1.0):
        with pytest.raises(ValueError, match=r"\(m, q, q\)"):
            factors(wrong, 0.1)


def test_scores_are_compared_above_their_level():
    scores = np.array([1e8, 1e8 + 0.5, 1e8 + 0.5])
    assert best_moves(scores).tolist() == [True, True, True]
    assert best_moves(scores, 1e8).tolist() == [False, True, True]
    assert best_moves([[1e8, 2.0], [1e8 + 0.5, 1.0]], [1e8, 0.0]).tolist() == [False, True]
    assert best_moves([-np.inf, 1e8], 1e8).tolist() == [False, True]


@pytest.mark.parametrize("rule", [MacroGPO, GPUCB, GPUCBPE, DBGPUCB])
def test_a_constant_changes_no_move(rule):
    """Values around 10⁸ that differ by hundredths are not all alike."""
    line = Paths(np.arange(41.0)[:, None], Dives((41,), 2), start=20, budget=2)
    for seed in range(6):
        moves = []
        for level in (0.0, 2.0**27):
            policy = rule(line, gp=GP(SE(3.0, variance=0.04), noise=1e-4, mean=level), seed=seed)
            policy.tell([19.0], level + 0.25)
            policy.tell([21.0], level - 0.25)
            moves.append(policy.ask().note["stops"])
        assert moves[0] == moves[1] == [19, 18]
