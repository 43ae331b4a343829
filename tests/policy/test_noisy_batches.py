"""Points under way where measurements are noisy: counted, and chosen again where the rule says so.

Finding 19 of the review of 0.1.0.
"""

import numpy as np
import pytest

from surefoot import (
    DBGPUCB,
    GP,
    GPLSE,
    GPUCB,
    QEI,
    RMGPUCB,
    SE,
    Candidates,
    Exhausted,
    Fidelity,
    Float,
    Int,
    Matern,
    RandomSearch,
    RobustBatch,
    SobolSearch,
    Space,
    Task,
    TruVaR,
    widths,
)

FEW = Candidates([0.0, 0.5, 1.0])


def hallucinated_ucb(x, gp, rows, values, pending, width):
    """The scores of GP-BUCB, from the textbook's formulas alone."""
    K = gp.kernel(x[:, None], x[:, None])
    S = K[np.ix_(rows, rows)] + gp.noise * np.eye(len(rows))
    mean = K[:, rows] @ np.linalg.solve(S, values) if rows else np.zeros(len(x))
    seen = [*rows, *pending]
    T = K[np.ix_(seen, seen)] + gp.noise * np.eye(len(seen))
    var = np.diag(K) - np.einsum("ij,ji->i", K[:, seen], np.linalg.solve(T, K[seen]))
    return mean + width * np.sqrt(np.maximum(var, 0.0))


def test_finding_19_more_asks_than_noisy_candidates():
    policy = GPUCB(FEW, gp=GP(SE(0.2), noise=1.0), seed=0)
    queries = policy.ask(4)
    assert len(policy.pending) == 4
    assert {query.index for query in queries} == {0, 1, 2}


@pytest.mark.parametrize("noise", [0.03, 1.0])
@pytest.mark.parametrize("seed", range(6))
def test_finding_19_the_choice_beside_a_pending_point_is_that_of_hallucinated_ucb(seed, noise):
    x, rng = np.sort(np.random.default_rng(seed).random(9)), np.random.default_rng(seed)
    gp, repeated = GP(SE(0.25), noise=noise), 0
    policy = GPUCB(Candidates(x), gp=gp, width=widths.Constant(1.5), seed=seed)
    rows, values = [], []
    for _ in range(10):
        waiting = policy.ask()
        query = policy.ask()
        scores = hallucinated_ucb(x, gp, rows, values, [waiting.index], 1.5)
        assert scores[query.index] == pytest.approx(scores.max(), abs=1e-9)
        repeated += query.index == waiting.index
        policy.cancel(query)
        rows.append(waiting.index)
        values.append(float(np.sin(6.0 * x[waiting.index]) + noise**0.5 * rng.standard_normal()))
        policy.tell(waiting, values[-1])
    assert repeated or noise < 1.0  # it does happen


def test_exact_measurements_are_not_repeated():
    for noise in (0.0, 1e-7):
        policy = GPUCB(FEW, gp=GP(SE(0.2), noise=noise), seed=0)
        assert policy.spares_pending
        assert sorted(query.index for query in policy.ask(3)) == [0, 1, 2]
        with pytest.raises(Exhausted, match="all 3 points are pending"):
            policy.ask()


def test_repeats_false_forbids_them_under_noise_too():
    policy = GPUCB(FEW, gp=GP(SE(0.2), noise=1.0), repeats=False, seed=0)
    policy.tell(policy.ask(), 1.0)
    policy.ask(2)
    with pytest.raises(Exhausted, match="pending or measured"):
        policy.ask()


def test_a_fitted_belief_learns_whether_measurements_are_exact():
    x = np.linspace(0.0, 1.0, 25)
    for sigma, exact in ((0.0, True), (0.4, False)):
        policy, rng = GPUCB(Candidates(x), seed=0), np.random.default_rng(1)
        assert policy.spares_pending  # nothing is known of the noise yet
        for row in list(range(25)) * 2:
            policy.tell([x[row]], float(np.sin(5.0 * x[row]) + sigma * rng.standard_normal()))
        assert policy.spares_pending == exact


def test_noise_that_differs_from_point_to_point_or_is_bought():
    gp = GP(Matern(2.5, 0.3), noise=0.0)
    assert GPLSE(FEW, threshold=0.5, gp=gp).spares_pending
    assert not GPLSE(FEW, threshold=0.5, gp=gp, noise=np.array([0.0, 0.0, 0.5])).spares_pending
    levels = [Fidelity(1e-13, 3.0), Fidelity(0.1, 1.0)]
    assert TruVaR(FEW, gp=gp, fidelities=levels[:1]).spares_pending
    assert not TruVaR(FEW, gp=gp, fidelities=levels).spares_pending


@pytest.mark.parametrize("kind", [RandomSearch, SobolSearch])
def test_a_search_without_a_belief_spares_pending_points(kind):
    policy = kind(Candidates(np.arange(5.0)), seed=0)
    assert sorted(query.index for query in policy.ask(5)) == [0, 1, 2, 3, 4]
    with pytest.raises(Exhausted):
        policy.ask()


def test_failed_points_are_still_not_asked_again_at_once():
    policy = GPUCB(FEW, gp=GP(SE(0.2), noise=1.0), seed=0)
    query = policy.ask()
    policy.tell(query, None)
    assert query.index not in {other.index for other in policy.ask(4)}


def test_rules_that_know_nothing_of_pending_points_spread_first():
    """Earlier tasks, or a set that is worth nothing twice: other points first, then again."""
    gp = GP(SE(0.2), noise=1.0)
    task = Task([[0.0], [0.5], [1.0]], [0.0, 1.0, 0.0])
    sets = [kind(FEW, gp=gp, seed=0) for kind in (DBGPUCB, QEI)]
    for policy in (RMGPUCB(FEW, tasks=[task], gp=gp, seed=0), RobustBatch(FEW, tau=1, gp=gp, seed=0), *sets):
        assert {query.index for query in policy.ask(3)} == {0, 1, 2}
        policy.ask(2)
        assert len(policy.pending) == 5


def test_joint_batches_hold_a_point_twice_where_no_other_is_left():
    for kind in (DBGPUCB, QEI):
        for domain in (FEW, Space(n=Int(1, 3))):
            policy = kind(domain, gp=GP(SE(0.2), noise=1.0), seed=0)
            batch = policy.ask(5)
            assert (len(batch), len({query.x.tobytes() for query in batch})) == (5, 3)
    exact = DBGPUCB(FEW, gp=GP(SE(0.2), noise=0.0), seed=0)
    with pytest.raises(Exhausted):
        exact.ask(4)
    assert not exact.events


def test_a_small_space_of_whole_numbers():
    policy = GPUCB(Space(n=Int(1, 5)), gp=GP(SE(0.3), noise=0.5), seed=0)
    assert len(policy.ask(8)) == 8
    assert GPUCB(Space(x=Float(0.0, 1.0)), gp=GP(SE(0.3), noise=0.5), seed=0).ask(2)
