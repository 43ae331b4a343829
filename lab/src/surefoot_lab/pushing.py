"""A robot hand pushes a disc on a table: where does it come to rest?

The hand starts at (x, y), faces the origin, where a disc of radius 1 lies, and moves towards it at constant speed for a
while. The motion is *quasi-static*: friction with the table is so large that nothing moves unless it is pushed, which
gives the resting place in closed form and needs no physics engine. With the distance d = ‖(x, y)‖, half the thickness
h of the hand and the radius R of the disc, the hand touches the disc after d − h − R, and then carries it straight on:

    rest = −(x, y)/d · max(0, speed · duration − max(0, d − h − R)).

A hand that starts within the disc pushes it out first, by R + h − d. A hand of this width meets the disc with the
middle of its face, so that the disc neither slides nor turns.

It stands for the deterministic 3-dimensional robot pushing task of Wang & Jegelka 2017, which simulates masses, joints
and friction; geometry, speed and time steps are theirs, inertia is left out. Rewards are 5 minus the distance of the
resting place to a target.

>>> push(np.array([[3.0, 0.0, 10.0]]))  # 5 units of travel, contact after 1.7
array([[-3.3,  0. ]])
>>> reward(np.array([[3.0, 0.0, 10.0]]), [-3.0, 0.0]).round(3)
array([4.7])
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.domain import Box

__all__ = ["DOMAIN", "push", "reward", "targets"]

Array = NDArray[np.float64]

RADIUS, THICKNESS = 1.0, 0.3  # of the disc; half of the hand's
SPEED, STEPS_PER_SECOND, STEPS_PER_UNIT = 5.0, 100.0, 10.0
REACH = 5.0
DOMAIN = Box([(-REACH, REACH), (-REACH, REACH), (1.0, 30.0)])  # x, y, duration


def push(R: ArrayLike) -> Array:
    """Return where the disc rests, shape (n, 2), after pushes (n, 3): start of the hand and duration.

    >>> push([[0.0, 4.0, 1.0]])  # too short to reach the disc
    array([[0., 0.]])
    """
    pushes = np.atleast_2d(np.asarray(R, dtype=np.float64))
    if pushes.ndim != 2 or pushes.shape[1] != 3 or not np.isfinite(pushes).all():
        raise ValueError(f"pushes are finite rows (x, y, duration), got {R!r}")
    start, duration = pushes[:, :2], pushes[:, 2]
    distance = np.hypot(*start.T)
    # From the very center every direction is as good: the hand faces along the first axis.
    direction = np.where(distance[:, None] > 0, -start / np.where(distance > 0, distance, 1.0)[:, None], [-1.0, 0.0])
    travel = SPEED * np.floor(STEPS_PER_UNIT * duration) / STEPS_PER_SECOND
    carried = np.maximum(travel - (distance - THICKNESS - RADIUS), 0.0)
    return direction * carried[:, None] + 0.0


def reward(R: ArrayLike, target: ArrayLike) -> Array:
    """Return 5 minus the distance between resting place and target, shape (n,).

    >>> reward([[0.0, 4.0, 1.0]], [3.0, 4.0])
    array([0.])
    """
    goal = np.asarray(target, dtype=np.float64)
    if goal.shape != (2,):
        raise ValueError(f"a target has two coordinates, got {target!r}")
    return REACH - np.linalg.norm(push(R) - goal, axis=1)


def targets(rng: np.random.Generator, *, apart: float = 2.0) -> Array:
    """Draw two targets (2, 2): the first uniform on the table, the second uniform in the ℓ₁ ball around it.

    The second is drawn again until it lies on the table.

    >>> pair = targets(np.random.default_rng(0))
    >>> bool(np.abs(pair[0] - pair[1]).sum() <= 2.0)
    True
    """
    first = rng.uniform(-REACH, REACH, 2)
    while True:
        # The ℓ₁ ball is a square turned by 45 degrees.
        u, v = rng.uniform(-apart, apart, 2)
        second = first + 0.5 * np.array([u + v, u - v])
        if (np.abs(second) <= REACH).all():
            return np.stack([first, second])
