"""The pushed disc: closed form against a simulation in small steps, and the geometry of targets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot_lab.pushing import DOMAIN, RADIUS, SPEED, THICKNESS, push, reward, targets

coordinate = st.floats(-5, 5)


def simulate(x, y, duration):
    """Move the hand in its hundred steps a second and push the disc out of the way after each."""
    hand, disc = np.array([x, y]), np.zeros(2)
    ahead = -hand / np.linalg.norm(hand)
    reach = THICKNESS + RADIUS
    for _ in range(int(np.floor(10 * duration)) + 1):
        gap = (disc - hand) @ ahead
        if gap < reach:
            disc = disc + (reach - gap) * ahead
        hand = hand + SPEED / 100 * ahead
    return disc


@settings(max_examples=50, deadline=None)
@given(coordinate, coordinate, st.floats(1, 30))
def test_the_closed_form_is_the_simulation(x, y, duration):
    if np.hypot(x, y) < 1e-6:
        return
    assert push([[x, y, duration]])[0] == pytest.approx(simulate(x, y, duration), abs=1e-9)


def test_a_push_from_the_far_side_reaches_the_target():
    """Behind the disc as seen from the target, with the right duration, the reward is at its highest, 5."""
    goal = np.array([3.0, -1.0])
    far = np.linalg.norm(goal)
    start = -2.0 * goal / far
    duration = (far + 2.0 - THICKNESS - RADIUS) / 0.5
    assert reward([[*start, duration]], goal)[0] == pytest.approx(5.0, abs=0.05)
    assert (reward(DOMAIN.sample(500, np.random.default_rng(0)), goal) < 5).all()


def test_pairs_of_targets():
    pairs = np.stack([targets(np.random.default_rng(i)) for i in range(400)])
    assert (np.abs(pairs) <= 5).all()
    apart = np.abs(pairs[:, 0] - pairs[:, 1]).sum(axis=1)
    assert apart.max() <= 2
    assert apart.mean() == pytest.approx(4 / 3, abs=0.06)  # of a uniform point of the ball: 2/3 of the radius


def test_bad_pushes():
    with pytest.raises(ValueError, match="rows"):
        push([[1.0, 2.0]])
    with pytest.raises(ValueError, match="two coordinates"):
        reward([[1.0, 2.0, 3.0]], [1.0])
