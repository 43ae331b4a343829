"""Rollout against a plain recursion over beliefs, one future after the other."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from surefoot import (
    GP,
    SE,
    BudgetSpent,
    Candidates,
    Dives,
    ExpectedImprovement,
    GraphPaths,
    MoveTable,
    NotSupported,
    Paths,
    Policy,
)
from surefoot.testing import PolicyContract
from surefoot_lab.baselines.rollout import Rollout

POINTS = np.stack(np.meshgrid(np.arange(6.0), np.arange(6.0), indexing="ij"), axis=-1).reshape(-1, 2)
PRIOR = GP(SE([1.5, 2.0]), noise=0.03)


def sea(**options):
    return Paths(POINTS, Dives((6, 6), 1), start=14, **options)


def started(domain, seed=0, **options):
    policy = Rollout(domain, gp=PRIOR, seed=0, **options)
    rng = np.random.default_rng(seed)
    for place in (domain.start, 3, 20):
        policy.tell(domain.points[place], float(rng.standard_normal()))
    return policy


def improvement(posterior, x, best):
    mean, std = posterior.mean(x[None])[0], math.sqrt(posterior.var(x[None])[0] + PRIOR.noise)
    z = (mean - best) / std
    return std * (norm.pdf(z) + z * norm.cdf(z)), mean, std


def gained(domain, posterior, place, best, left, discount, nodes):
    """H_i by plain recursion: what the base policy gains from a place with so many steps left."""
    options = domain.moves(place)[:, 0]
    if not left or not len(options):
        return 0.0
    scored = [improvement(posterior, domain.points[row], best) for row in options]
    rank = int(np.argmax([mean if left == 1 else ei for ei, mean, _ in scored]))
    return value(domain, posterior, int(options[rank]), best, left, discount, nodes)


def value(domain, posterior, place, best, left, discount, nodes):
    ei, mean, std = improvement(posterior, domain.points[place], best)
    if left == 1:
        return ei
    z, weights = np.polynomial.hermite_e.hermegauss(nodes)
    total = 0.0
    for node, weight in zip(z, weights / math.sqrt(2.0 * math.pi), strict=True):
        y = mean + std * node
        after = posterior.copy()
        after.append(domain.points[place], y)
        total += weight * gained(domain, after, place, max(best, y), left - 1, discount, nodes)
    return ei + discount * total


@pytest.mark.parametrize(
    ("horizon", "discount", "nodes"), [(1, 1.0, 3), (2, 1.0, 3), (3, 0.7, 3), (4, 1.0, 2), (4, 1.0, 1)]
)
def test_values_are_those_of_the_plain_recursion(horizon, discount, nodes):
    domain = sea()
    policy = started(domain, horizon=horizon, discount=discount, nodes=nodes)
    posterior, best = policy.posterior(), policy.data()[1].max()
    steps = domain.moves(domain.start)[:, 0]
    expected = [value(domain, posterior, int(row), best, horizon, discount, nodes) for row in steps]
    query = policy.ask()
    np.testing.assert_allclose(policy.values, expected, rtol=1e-7)
    assert query.note["stops"] == [int(steps[np.argmax(expected)])]


def test_dead_ends_gain_nothing_more():
    """0 leads to 1, a dead end, and to 2, from which 3 can be reached."""
    domain = Paths([[0.0], [1.0], [-1.0], [-2.0]], MoveTable({0: [[1], [2]], 2: [[3]]}), start=0)
    policy = Rollout(domain, gp=PRIOR.__class__(SE(2.0), noise=0.03), horizon=3, seed=0)
    policy.tell([0.0], 0.5)
    policy.ask()
    assert policy.values[0] < policy.values[1]
    short = Rollout(domain, gp=policy.gp, horizon=1, seed=0)
    short.tell([0.0], 0.5)
    short.ask()
    assert policy.values[0] == pytest.approx(short.values[0])


def test_the_last_step_is_expected_improvement():
    domain = sea(budget=3)
    policy = started(domain)
    for _ in range(2):
        policy.tell(policy.ask(), [0.1])
    posterior, best = policy.posterior(), policy.data()[1].max()
    policy.ask()
    steps = domain.moves(policy.journey.place)[:, 0]
    np.testing.assert_allclose(
        policy.values, [improvement(posterior, POINTS[row], best)[0] for row in steps], rtol=1e-8
    )
    policy.tell(2, [0.0])
    with pytest.raises(BudgetSpent):
        policy.ask()


def test_one_step_agrees_with_the_policy_of_that_name():
    domain = sea()
    one, other = started(domain, horizon=1), ExpectedImprovement(domain, gp=PRIOR, seed=0)
    for observation in one.history:
        other.tell(observation.x, observation.value)
    assert one.ask().note["stops"] == other.ask().note["stops"]


def test_more_nodes_converge():
    """The sums settle: the kinks of the improvement make it slow, not wrong."""
    values = []
    for nodes in (3, 31, 41):
        policy = started(sea(), horizon=3, nodes=nodes)
        policy.ask()
        values.append(policy.values)
    assert np.abs(values[1] - values[2]).max() < 5e-3 < 10.0 * np.abs(values[0] - values[2]).max()


def test_on_a_graph_and_resumed():
    ring = GraphPaths([[(i + 1) % 12, (i - 1) % 12] for i in range(12)], 1)
    angle = 2.0 * np.pi * np.arange(12) / 12
    domain = Paths(np.column_stack([np.cos(angle), np.sin(angle)]), ring, start=0, budget=8)
    policy = Rollout(domain, gp=GP(SE(0.8), noise=0.01), seed=4)
    policy.tell(domain.points[0], 0.0)
    for _ in range(4):
        query = policy.ask()
        policy.tell(query, [float(query.x[0, 1])])
    twin = Policy.from_state(policy.state())
    assert twin.ask() == policy.ask()


def test_bad_use():
    with pytest.raises(NotSupported, match="one step"):
        Rollout(Paths(POINTS, Dives((6, 6), 2), start=14))
    with pytest.raises(NotSupported, match="works on"):
        Rollout(Candidates(POINTS))
    for options in ({"horizon": 0}, {"nodes": 0}, {"discount": 1.5}):
        with pytest.raises(ValueError, match=next(iter(options))):
            Rollout(sea(), **options)


class TestRollout(PolicyContract):
    policy = Rollout
    options = {"horizon": 3}

    def domain(self, kind):
        return sea() if kind == "Paths" else super().domain(kind)

    def test_missed_stops(self):
        pytest.skip("a move of one stop has no part that could be missed")

    def test_a_budget_of_stops(self):
        pytest.skip("the suite's moves have two stops; budgets are tested above")
