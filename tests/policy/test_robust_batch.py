"""RobustBatch: batches are the selector's, single asks continue them, and what is lost hurts less."""

import numpy as np
import pytest

from surefoot import GP, SE, Box, Candidates, Choice, Float, Matern, NoData, Policy, RobustBatch, Space, widths
from surefoot.select import VarianceReduction, greedy, greedy_min, heuristics, local_search, oblivious_greedy, pro

POINTS = np.random.default_rng(0).random((50, 2))
BELIEF = GP(SE(lengthscale=0.3), noise=0.05)


def make(**options):
    return RobustBatch(Candidates(POINTS), **{"tau": 3, "gp": BELIEF, "seed": 0, "interest": "all", **options})


def measure(policy, queries):
    for query in queries:
        policy.tell(query, float(np.sin(5.0 * query.x[0]) + query.x[1]))


def objective(policy, targets=None):
    return VarianceReduction.from_posterior(policy.posterior(), POINTS, targets)


@pytest.mark.parametrize("measured", [0, 6])
@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0, 1.7])
def test_a_batch_is_the_selection_of_oblivious_greedy(beta, measured):
    policy = make(beta=beta)
    measure(policy, policy.ask(6)[:measured])
    for query in policy.pending:
        policy.cancel(query)
    expected = oblivious_greedy(objective(policy), 9, 3, beta=beta)
    assert tuple(query.index for query in policy.ask(9)) == expected.order
    assert policy.reduction() == pytest.approx(expected.value)


def test_a_batch_is_the_selection_of_pro():
    policy = make(tau=2, method="pro", eta=2)
    expected = pro(objective(policy), 11, 2, eta=2)
    queries = policy.ask(11)
    assert tuple(query.index for query in queries) == expected.order
    for number, bucket in enumerate([*expected.buckets, expected.rest]):
        assert tuple(query.index for query in queries if query.note["bucket"] == number) == bucket


def test_no_loss_is_greedy_variance_reduction():
    policy = make(tau=0)
    assert tuple(query.index for query in policy.ask(7)) == greedy(objective(policy), 7).order
    assert policy.exposure().value == pytest.approx(policy.reduction())


@pytest.mark.parametrize("k", [12, 16, 30])
def test_auto_keeps_as_much_as_the_best_plan(k):
    domain = rows_of_a_process(1, 0.2)
    kept = {}
    for method, beta, planned in (
        ("auto", 0.5, 10),
        ("oblivious-greedy", 0.5, 10),
        ("oblivious-greedy", 1.0, 10),
        ("oblivious-greedy", 0.0, 10),
    ):
        policy = RobustBatch(
            domain, tau=planned, method=method, beta=beta, gp=GP(Matern(1.5), noise=1.0), interest="all", seed=0
        )
        order = [query.index for query in policy.ask(k)]
        function = VarianceReduction.from_posterior(policy.posterior(), domain.points)
        kept[method, beta] = local_search(function, order, greedy_min(function, order, 10)).value
    assert kept["auto", 0.5] >= max(kept.values()) - 1e-9


def test_auto_goes_on_with_its_plan():
    policy = make(method="auto", tau=4)
    first = policy.ask(6)
    plan = first[0].note["buckets"]
    twin = Policy.from_state(policy.state())
    assert twin.ask(3) == policy.ask(3)
    assert all(query.note["buckets"] == plan for query in policy.pending)
    measure(policy, policy.pending)
    assert policy.ask().note["buckets"] == policy.buckets  # a single point cannot lose four


def test_single_asks_are_the_points_of_one_batch():
    together, apart = make(), make()
    assert [query.index for query in together.ask(8)] == [apart.ask().index for _ in range(8)]
    resumed = Policy.from_state(apart.state())
    assert resumed.ask() == apart.ask()


def test_free_places_are_filled_first():
    policy = make(beta=1.0)
    queries = policy.ask(6)
    assert [query.note["bucket"] for query in queries] == [0, 1, 2, 3, 3, 3]
    policy.cancel(queries[1])
    again = policy.ask()
    assert (again.index, again.note["bucket"]) == (queries[1].index, 1)
    measure(policy, [queries[0], queries[4]])
    assert [query.note["bucket"] for query in policy.ask(2)] == [0, 3]


def test_the_points_of_interest_are_those_that_may_be_the_maximum():
    policy = make(interest="potential", width=widths.Constant(1.0), initial=0)
    measure(policy, policy.ask(20))
    mean, std = policy.posterior().predict(POINTS)
    potential = mean + std >= (mean - std).max()
    assert 0 < potential.sum() < 40
    expected = oblivious_greedy(objective(policy, POINTS[potential]), 6, 3, beta=0.5)
    assert tuple(query.index for query in policy.ask(6)) == expected.order


def test_pending_points_of_the_design_are_taken_into_account():
    policy = RobustBatch(Candidates(POINTS), tau=1, initial=4, seed=0, interest="all", gp=BELIEF)
    first, *design = policy.ask(4)
    measure(policy, [first])
    query = policy.ask()
    gains = objective(policy).state([q.index for q in design]).gains()
    gains[[q.index for q in design]] = -1.0
    assert query.note == {"bucket": 0}
    assert query.index == int(np.argmax(gains))


def test_exposure_is_the_worst_loss_of_pending_queries():
    policy = make(tau=2)
    queries = policy.ask(7)
    found = policy.exposure()
    function = objective(policy)
    left = {
        (a.id, b.id): function.value([q.index for q in queries if q.id not in (a.id, b.id)])
        for i, a in enumerate(queries)
        for b in queries[i + 1 :]
    }
    assert found.proved
    assert found.value == pytest.approx(min(left.values()))
    assert left[found.removed] == pytest.approx(found.value)
    for query in queries:
        policy.cancel(query)
    with pytest.raises(NoData, match="ask for a batch"):
        policy.exposure()


def rows_of_a_process(seed, alpha, n=120, d=20):
    rng = np.random.default_rng(seed)
    X = np.empty((n, d))
    X[:, 0] = rng.normal(size=n)
    for t in range(1, d):
        X[:, t] = np.sqrt(1.0 - alpha**2) * X[:, t - 1] + alpha * rng.normal(size=n)
    return Candidates(X)


@pytest.mark.parametrize("alpha", [0.1, 0.2])
def test_a_robust_batch_keeps_more_where_most_of_it_is_lost(alpha):
    """12 points of which 10 are lost: the advantage is largest where k is little more than τ."""
    kept = np.empty((5, 2))
    for seed in range(5):
        domain = rows_of_a_process(seed, alpha)
        for column, planned in enumerate((0, 10)):
            policy = RobustBatch(domain, tau=planned, gp=GP(Matern(1.5), noise=1.0), interest="all", seed=0)
            order = [query.index for query in policy.ask(12)]
            function = VarianceReduction.from_posterior(policy.posterior(), domain.points)
            kept[seed, column] = heuristics(function, order, 10, restarts=3).value
    assert (kept[:, 1] > kept[:, 0]).all()
    assert kept[:, 1].mean() > 1.1 * kept[:, 0].mean()


def test_it_finds_the_maximum_although_a_third_is_lost():
    rng = np.random.default_rng(3)
    policy = RobustBatch(Box([(0.0, 1.0)]), tau=2, gp=GP(SE(lengthscale=0.2), noise=1e-4), seed=1)
    for _ in range(4):
        queries = policy.ask(6)
        lost = rng.choice(6, 2, replace=False)
        for number, query in enumerate(queries):
            if number in lost:
                policy.cancel(query)
            else:
                policy.tell(query, float(-((query.x[0] - 0.37) ** 2)))
    assert abs(policy.recommend().x[0] - 0.37) < 0.02


def test_a_long_list_and_a_box_are_cut_to_a_pool():
    many = Candidates(np.random.default_rng(1).random((3000, 3)))
    policy = RobustBatch(many, tau=2, pool=100, gp=BELIEF, seed=0)
    measure(policy, policy.ask(8))
    assert policy.rule.selection(policy.view())[0].size <= 108
    box = RobustBatch(Box([(0.0, 1.0), (0.0, 2.0)]), tau=2, pool=100, gp=BELIEF, seed=0)
    measure(box, box.ask(8))
    queries = box.ask(3)
    assert box.rule.selection(box.view())[0].size <= 111
    assert len({query.x.tobytes() for query in queries}) == 3


def test_a_finite_space_is_its_own_pool():
    space = Space(kind=Choice(["a", "b"]), size=Choice([1, 2, 3]))
    policy = RobustBatch(space, tau=1, initial=0, gp=GP(noise=0.1), seed=0)
    assert len({query.x.tobytes() for query in policy.ask(6)}) == 6
    assert RobustBatch(Space(rate=Float(0.1, 1.0)), tau=1, seed=0).ask(5)[4].params is not None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tau": -1}, "tau must be a whole number from 0 on, got -1"),
        ({"tau": 1.5}, "tau must be a whole number"),
        ({"beta": -0.1}, "beta must be finite"),
        ({"beta": np.nan}, "beta must be finite"),
        ({"eta": 0}, "eta must be a whole number from 1 on"),
        ({"pool": 1}, "pool must be a whole number from 2 on"),
        ({"method": "osu"}, "method must be"),
        ({"interest": "some"}, "interest must be"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        make(**options)
