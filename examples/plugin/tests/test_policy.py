import numpy as np
from surefoot_one_fifth.policy import OneFifth

from surefoot import Box
from surefoot.testing import PolicyContract


class TestOneFifth(PolicyContract):
    """What every policy promises."""

    policy = OneFifth


def test_it_climbs():
    policy = OneFifth(Box([(-5.0, 5.0)] * 3), seed=0)
    for _ in range(200):
        query = policy.ask()
        policy.tell(query, -np.sum(query.x**2))
    assert policy.recommend().mean > -1e-3
