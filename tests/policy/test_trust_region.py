"""The trust region: its length and its runs follow from the events, and points lie in its box."""

import json

import numpy as np
import pytest

from surefoot import GP, SE, Box, Policy, SobolSearch, TrustRegion
from surefoot.belief import Linear, Matern
from surefoot.errors import NotSupported


def driven(values, **options):
    """A policy that was told these values, one ask after the other."""
    policy = TrustRegion(Box.unit(2), seed=0, **{"initial": 2, "successes": 2, "failures": 3, **options})
    for value in values:
        policy.tell(policy.ask(), value)
    return policy


@pytest.mark.parametrize(
    ("values", "length"),
    [
        ([], 0.8),
        ([0.0, 1.0], 0.8),  # a design is no batch
        ([0.0, 1.0, 2.0], 0.8),
        ([0.0, 1.0, 2.0, 3.0], 1.6),  # two in a row
        ([0.0, 1.0, 2.0, 0.0, 3.0], 0.8),  # not in a row
        ([0.0, 1.0, 2.0, 3.0, 4.0, 5.0], 1.6),  # no longer than the longest
        ([0.0, 1.0, 0.0, 0.0], 0.8),
        ([0.0, 1.0, 0.0, 0.0, 0.0], 0.4),
        ([0.0, 1.0, 0.0, None, 1.0 + 1e-9], 0.4),  # failed, and too small to count
        ([0.0, 1.0, *[0.0] * 6], 0.2),
    ],
)
def test_the_length_follows_luck(values, length):
    assert driven(values).length == length
    assert driven([None if v is None else 10.0 * v - 1e6 for v in values]).length == length  # whatever the offset


def test_a_batch_is_judged_once_when_its_last_point_is_answered():
    policy = driven([0.0, 1.0], successes=1)
    batch = policy.ask(3)
    policy.tell(batch[2], 5.0)
    policy.tell(batch[0], 0.0)
    assert policy.length == 0.8
    policy.cancel(batch[1])
    assert policy.length == 1.6
    batch = policy.ask(3)
    for query in batch:
        policy.tell(query, 0.0)
    assert policy.length == 0.8  # three measurements failed, τ_fail = 3
    lost = policy.ask(2)
    for query in lost:
        policy.cancel(query)
    assert policy.length == 0.8  # nothing was learnt


def test_a_tiny_region_is_given_up_and_forgotten():
    policy = driven([0.0, 1.0, *[0.0] * 3], shortest=0.8)
    assert (policy.run, policy.length) == (1, 0.8)
    assert policy.surrogate.believe().n == 0
    first = policy.ask(2)
    assert [query.note["run"] for query in first] == [1, 1]
    assert all("initial" in query.note for query in first)
    for query in first:
        policy.tell(query, -1.0)
    assert policy.surrogate.believe().n == 2
    assert "initial" not in policy.ask().note
    assert policy.recommend().mean == 1.0  # the best of all runs
    designs = [query.x.tolist() for query in policy.trials.queries if "initial" in query.note]
    assert len({str(x) for x in designs}) == 4


def test_what_arrives_from_a_run_that_was_given_up_is_not_believed():
    policy = driven([0.0, 1.0], shortest=0.8)
    late, *batch = policy.ask(1) + policy.ask(3)
    for query in batch:
        policy.tell(query, 0.0)
    assert policy.run == 1
    policy.tell(late, 7.0)
    assert policy.length == 0.8
    assert policy.surrogate.believe().n == 0
    assert policy.recommend().mean == 7.0
    policy.tell([0.5, 0.5], 3.0)  # unasked: of the present run
    assert policy.surrogate.believe().n == 1


def test_sides_are_shaped_by_lengthscales_and_keep_the_volume():
    domain = Box([(0.0, 1.0), (-5.0, 5.0), (2.0, 2.0)])
    region = TrustRegion(domain, seed=0)._region
    sides = region.sides(Matern(2.5, lengthscale=[0.2, 8.0, 1.0]), domain.upper - domain.lower)
    assert sides[2] == 0.0
    np.testing.assert_allclose(sides[:2], [0.4, 16.0])  # 0.8 · (0.2, 0.8)/0.4 of widths 1 and 10
    assert np.prod(sides[:2] / [1.0, 10.0]) == pytest.approx(0.8**2)


def test_points_lie_in_the_box_around_the_best_and_few_coordinates_move():
    domain, rng = Box.unit(60), np.random.default_rng(0)
    gp = GP(SE(lengthscale=2.0), noise=1e-6)
    policy = TrustRegion(domain, gp=gp, seed=0, candidates=200)
    for x in rng.random((30, 60)):
        policy.tell(x, -float(((x - 0.3) ** 2).sum()))
    X, y, _ = policy.data()
    away = np.array([query.x for query in policy.ask(20)]) - X[np.argmax(y)]
    assert abs(away).max() <= 0.4
    moved = (away != 0.0).sum(axis=1)
    assert moved.min() >= 1
    assert 10 < moved.mean() < 30  # 20 on average
    assert len({query.x.tobytes() for query in policy.trials.pending.values()}) == 20


def test_the_same_after_any_event():
    policy = driven([0.0, 1.0, *[0.0] * 3, 2.0], shortest=0.5, failures=2)
    states = []
    for value in (1.0, 0.5, 3.0, 0.0, 0.0, 0.0, 0.0):
        batch = policy.ask(2)
        policy.tell(batch[1], value)
        states.append(json.loads(json.dumps(policy.state())))
        policy.tell(batch[0], -value)
        again = Policy.from_state(states[-1])
        again.tell(batch[0].id, -value)
        assert (again.length, again.run) == (policy.length, policy.run)
        asked = again.ask(2)
        assert [q.x.tolist() for q in asked] == [q.x.tolist() for q in Policy.from_state(policy.state()).ask(2)]
    assert policy.run >= 2


def test_it_climbs_where_a_design_does_not():
    def regret(policy):
        for _ in range(6):
            for query in policy.ask(10):
                policy.tell(query, -float(((query.x - 0.3) ** 2).sum()))
        return -policy.recommend().mean

    domain = Box.unit(10)
    assert regret(TrustRegion(domain, seed=0)) < 0.3 * regret(SobolSearch(domain, seed=0))


def test_bad_options_are_refused():
    for options in ({"length": 2.0}, {"shortest": 0.0}, {"longest": 0.5}, {"successes": 0}, {"candidates": 0}):
        with pytest.raises(ValueError, match=next(iter(options))):
            TrustRegion(Box.unit(2), **options)
    with pytest.raises(NotSupported, match="spectral density"):
        TrustRegion(Box.unit(2), gp=GP(Linear()))
