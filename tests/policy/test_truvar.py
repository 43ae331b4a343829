"""TruVaR: its score against the printed formula, its epochs, costs, fidelities, batches, and what it refuses."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import surefoot
from surefoot import GP, SE, Box, Candidates, Fidelity, Outcome, PendingQuery, Policy, TruVaR, widths
from surefoot.belief.lookahead import Lookahead
from surefoot.errors import NotSupported

SIDE = np.linspace(0.0, 1.0, 12)
GRID = Candidates(np.stack(np.meshgrid(SIDE, SIDE), axis=-1).reshape(-1, 2))
PRIOR = GP(SE(0.2), noise=1e-4)


def draw(seed: int, gp: GP = PRIOR, points: np.ndarray = GRID.points) -> np.ndarray:
    return gp.condition().sample(points, 1, np.random.default_rng(seed))[0]


def follow(policy: Policy, f: np.ndarray, steps: int) -> list[int]:
    """Ask and tell noise-free values; return the indices."""
    asked = []
    for _ in range(steps):
        query = policy.ask()
        policy.tell(query, float(f[query.index]))
        asked.append(query.index)
    return asked


def printed(policy: TruVaR, level: float, noise: float | np.ndarray = PRIOR.noise) -> np.ndarray:
    """The numerator of the rule, term by term, for every x: no shortcut is shared with the code."""
    X, y, variances = policy.data()
    posterior = policy.gp.condition(X, y, variances)
    P = policy.domain.points
    stage = policy.stages.now()
    cov = posterior.cov(P)
    var = np.diag(cov)
    after = var[:, None] - cov**2 / (var + noise)  # after[x̄, x]
    beta, M = stage.width**2, stage.potential
    return np.maximum(beta * var, level)[M].sum() - np.maximum(beta * after, level)[M].sum(axis=0)


def scores(policy: TruVaR, **options) -> np.ndarray:
    stage = policy.stages.now()
    look = Lookahead(policy.surrogate.believe(), np.flatnonzero(stage.summed))
    return policy.rule.scores(policy.trials, look, stage, policy.ground, np.arange(len(policy.ground)))[0]


# -- the rule ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("goal", [{}, {"goal": "level", "threshold": 0.5}])
def test_the_score_is_the_printed_one_with_eta_squared(goal):
    policy = TruVaR(GRID, gp=PRIOR, seed=0, **goal)
    f = draw(0)
    while policy.epoch == 1 or np.ptp(printed(policy, policy.eta)) > 1e-12:  # with η the epoch would stall here
        follow(policy, f, 1)
        assert len(policy.history) < 100
    expected = printed(policy, policy.eta**2)
    assert policy.eta == pytest.approx(0.1)
    assert np.ptp(expected) > 1e-3
    np.testing.assert_allclose(scores(policy), expected, atol=1e-9)
    best = np.flatnonzero(expected >= expected.max() * (1 - 1e-9))
    assert policy.ask().index in best


def flat_steps(seed: int, steps: int) -> tuple[int, int, int]:
    """Steps without a preference, the epoch and |M| at the end, on the card's toy."""
    side = np.linspace(0.0, 1.0, 20)
    grid = Candidates(np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2))
    gp = GP(SE(0.1), noise=1e-6)
    f = draw(seed, gp, grid.points)
    policy, flat = TruVaR(grid, gp=gp, seed=seed), 0
    for _ in range(steps):
        flat += bool(np.ptp(scores(policy)) < 1e-12)
        query = policy.ask()
        policy.tell(query, float(f[query.index]))
    return flat, policy.epoch, int(policy.potential.sum())


def test_epochs_move_on_without_flat_scores():
    """With η in place of η² a third of the steps have no preference, and the epochs end early."""
    found = np.array([flat_steps(seed, 60) for seed in (0, 1, 3)])
    assert found.tolist() == [[0, 5, 1]] * 3


def test_the_printed_truncation_stalls(monkeypatch):
    right = Lookahead.gains

    def wrong(self, columns=None, noise=None, *, scale=1.0, floor=0.0):
        return right(self, columns, noise, scale=scale, floor=math.sqrt(floor))

    monkeypatch.setattr(Lookahead, "gains", wrong)
    found = np.array([flat_steps(seed, 60) for seed in (0, 1, 3)])
    assert found[:, 0].sum() > 45
    assert (found[:, 1] < 5).all()


def test_no_truncation_is_pure_variance_reduction():
    policy = TruVaR(GRID, gp=PRIOR, target=0.0, monotone=False, seed=0)
    follow(policy, draw(1), 5)
    np.testing.assert_allclose(scores(policy), printed(policy, 0.0), atol=1e-9)
    assert policy.epoch == 1


def test_a_single_point_that_matters_is_learnt_through_its_most_correlated_neighbor():
    points = Candidates(np.array([[0.0], [0.3], [2.0]]))
    gp = GP(SE(1.0), noise=1e-3)
    policy = TruVaR(points, gp=gp, target=0.0, noise=np.array([10.0, 1e-3, 1e-3]), seed=0)
    look = Lookahead(policy.surrogate.believe(), [0])
    gains = look.gains(noise=policy.noise[None])[0]
    k = gp.kernel(points.points)[0]
    np.testing.assert_allclose(gains, k**2 / (1.0 + policy.noise))
    assert gains.argmax() == 1  # not the point itself, whose measurement is noisy


def test_pure_variance_sampling_of_the_restricted_argmax():
    f = draw(2)
    policy = TruVaR(GRID, gp=PRIOR, among="potential", seed=0)
    follow(policy, f, 12)
    M = policy.potential
    assert M.sum() < GRID.size
    assert M[policy.ask().index]
    few = TruVaR(GRID, gp=PRIOR, among=3, seed=0)
    follow(few, f, 6)
    stage = few.stages.now()
    mean, std = few.stages.ground.predict(few.surrogate.believe())
    top = np.argsort(-(mean + stage.width * std))[:3]
    assert few.ask().index in top


def test_anticipation_drops_the_points_that_a_measurement_would_decide():
    for goal in ({}, {"goal": "level", "threshold": 0.3}):
        policy = TruVaR(GRID, gp=PRIOR, anticipate=True, seed=0, **goal)
        follow(policy, draw(3), 8)
        belief = policy.surrogate.believe()
        stage = policy.stages.now()
        M, level = np.flatnonzero(stage.potential), policy.eta**2
        mean, var = belief.mean[M], stage.beta * belief.var[M]
        expected = np.empty(GRID.size)
        for x in range(GRID.size):
            after = stage.beta * belief.lookahead([x])[0][M]
            half = np.sqrt(after)
            if policy.goal == "level":
                kept = (mean + half >= 0.3) & (mean - half <= 0.3)
            else:
                kept = mean + half >= (mean - half).max()
            expected[x] = np.maximum(var, level).sum() - np.maximum(after, level)[kept].sum()
        np.testing.assert_allclose(scores(policy), expected, atol=1e-9)


def test_the_implicit_threshold_sums_over_possible_maximizers_too():
    policy = TruVaR(GRID, goal="level", fraction=0.5, gp=PRIOR, seed=0)
    f = draw(4)
    follow(policy, f, 25)
    stage = policy.stages.now()
    mean, std = policy.stages.ground.predict(policy.surrogate.believe())
    lower, upper = mean - stage.width * std, mean + stage.width * std
    assert np.array_equal(stage.above, lower > 0.5 * upper.max())
    assert np.array_equal(stage.below, upper < 0.5 * lower.max())
    assert np.array_equal(stage.summed, stage.potential | (upper >= lower.max()))
    answer = policy.recommend()
    h = 0.5 * f.max()
    assert (f[answer.above] > h).all()
    assert (f[answer.below] < h).all()
    assert abs(answer.threshold - h) < 0.1


# -- costs, noise, fidelities ----------------------------------------------------------------------------------------


def test_costs_divide_the_score():
    cost = 1.0 + 5.0 * GRID.points[:, 0]
    plain, priced = TruVaR(GRID, gp=PRIOR, seed=0), TruVaR(GRID, gp=PRIOR, cost=cost, seed=0)
    by_function = TruVaR(GRID, gp=PRIOR, cost=lambda X: 1.0 + 5.0 * X[:, 0], seed=0)
    np.testing.assert_allclose(scores(priced), scores(plain) / cost)
    f = draw(5)
    assert follow(priced, f, 10) == follow(by_function, f, 10)
    assert priced.spent == pytest.approx(cost[[query.index for query in priced.queries]].sum())
    assert priced.queries[3].cost == pytest.approx(cost[priced.queries[3].index])
    assert follow(plain, f, 10)
    assert plain.spent == 10.0


def test_costs_of_travel_depend_on_the_last_point_and_forbid_batches():
    seen = []

    def cost(previous, X):
        seen.append(previous)
        return 0.1 + (0.0 if previous is None else np.abs(X[:, 0] - previous[0]))

    policy = TruVaR(GRID, gp=PRIOR, cost=cost, seed=0)
    far = TruVaR(GRID, gp=PRIOR, seed=0)
    f = draw(6)
    moves = [np.abs(np.diff(GRID.points[follow(p, f, 25), 0])).sum() for p in (policy, far)]
    assert moves[0] < 0.5 * moves[1]
    assert seen[0] is None
    assert any(np.array_equal(policy.queries[-2].x, p) for p in seen if p is not None)
    assert not policy.parallel
    assert TruVaR.parallel
    query = policy.ask()
    before = policy.state()
    for n in (None, 2):
        with pytest.raises(PendingQuery):
            policy.ask(n)
    assert policy.state() == before
    policy.tell(query, Outcome(0.0, cost=7.0))
    assert policy.spent > 7.0
    twin = Policy.from_state(json.loads(json.dumps(policy.state())), cost=cost)
    assert twin.ask() == policy.ask()
    with pytest.raises(ValueError, match="pass it again: cost="):
        Policy.from_state(policy.state())


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_bad_costs_are_refused_and_nothing_is_lost(bad):
    array = np.ones(GRID.size)
    array[7] = bad
    with pytest.raises(ValueError, match="cost must be positive and finite"):
        TruVaR(GRID, cost=array)
    policy = TruVaR(GRID, gp=PRIOR, cost=lambda X: np.where(X[:, 0] > 0.5, bad, 1.0), seed=0)
    policy.tell(GRID.points[0], 1.0)
    before = policy.state()
    with pytest.raises(ValueError, match="cost must be positive and finite"):
        policy.ask()
    assert policy.state() == before
    with pytest.raises(ValueError, match="cost of a fidelity"):
        Fidelity(0.1, cost=bad)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"goal": "level"}, "either threshold or fraction"),
        ({"goal": "level", "threshold": math.nan}, "threshold must be finite"),
        ({"goal": "level", "threshold": math.inf}, "threshold must be finite"),
        ({"goal": "level", "threshold": 1.0, "fraction": 0.5}, "either threshold or fraction"),
        ({"goal": "level", "fraction": 1.5}, "fraction must lie strictly"),
        ({"goal": "find"}, "goal must be"),
        ({"threshold": 1.0}, "belong to goal"),
        ({"scale": 0.0}, "scale must be positive and finite"),
        ({"scale": 1.0, "width": widths.Constant(2.0)}, "either scale or width"),
        ({"ratio": 1.0}, "ratio must lie"),
        ({"target": -1.0}, "target must be"),
        ({"slack": math.nan}, "slack must be"),
        ({"accuracy": 0.0}, "accuracy must be positive and finite"),
        ({"among": "some"}, "among must be"),
        ({"among": 0}, "among must be"),
        ({"among": True}, "among must be"),
        ({"goal": "level", "fraction": 0.5, "anticipate": True}, "known threshold"),
        ({"cost": np.ones(3)}, "one number for each of 144"),
        ({"noise": -np.ones(144)}, "noise must be finite and not negative"),
        ({"noise": np.ones(144), "fidelities": [Fidelity(1.0)]}, "either noise"),
        ({"monotone": "yes"}, "monotone must be"),
        ({"points": 1}, "points must be"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        TruVaR(GRID, **options)


def test_prices_that_are_none_are_named():
    with pytest.raises(TypeError, match="sequence of Fidelity"):
        TruVaR(GRID, fidelities=Fidelity(0.1))
    policy = TruVaR(GRID, gp=PRIOR, cost=lambda X: "dear", seed=0)
    with pytest.raises(ValueError, match="cost must return one number for each point, got 'dear'"):
        policy.ask()
    assert policy.events == []


def test_a_number_of_points_may_come_from_numpy():
    one, two = (TruVaR(GRID, gp=PRIOR, among=count, seed=0) for count in (3, np.int64(3)))
    assert one.ask() == two.ask() == Policy.from_state(json.loads(json.dumps(two.state()))).queries[0]


def test_options_of_the_wrong_kind():
    for options in ({"width": 2.0}, {"fidelities": []}, {"fidelities": [0.1]}, {"cost": lambda: 1.0}, {"cost": "dear"}):
        with pytest.raises(TypeError):
            TruVaR(GRID, **options)
    with pytest.raises(ValueError, match="pass a function"):
        TruVaR(Box.unit(1), cost=[1.0])
    with pytest.raises(NotSupported, match="mixture"):
        TruVaR(GRID, gp=GP.automatic(GRID, samples=4))
    with pytest.raises(NotSupported, match="device"):
        TruVaR(Box.unit(1), device="cpu")
    policy = TruVaR(GRID, gp=PRIOR, cost=lambda X: np.ones(3), seed=0)
    with pytest.raises(ValueError, match="one number for each"):
        policy.ask()


def test_unequal_noise_enters_the_look_ahead_and_the_belief():
    noise = np.where(GRID.points[:, 0] < 0.5, 1e-4, 4.0)
    policy = TruVaR(GRID, gp=PRIOR, noise=noise, seed=0)
    assert GRID.points[policy.ask().index, 0] < 0.5
    policy.cancel(0)
    right = int(np.flatnonzero(noise == 4.0)[0])
    policy.tell(GRID.points[right], 1.0)
    policy.tell(GRID.points[0], Outcome(1.0, noise=0.5))  # a measurement's own noise counts
    assert policy.data()[2].tolist() == [4.0, 0.5]
    assert policy.surrogate.believe().var[right] == pytest.approx(0.8, abs=0.01)
    np.testing.assert_allclose(scores(policy), printed(policy, 1.0, noise), atol=1e-9)


def test_fidelities_are_chosen_by_worth_and_remembered_as_noise():
    levels = [Fidelity(1e-6, 15.0), Fidelity(1e-3, 10.0), Fidelity(0.05, 2.0)]
    policy = TruVaR(GRID, goal="level", threshold=0.5, gp=PRIOR, fidelities=levels, seed=0)
    f = draw(7)
    while policy.ask().fidelity == 2:  # cheap and noisy first, precise later
        policy.tell(policy.queries[-1], float(f[policy.queries[-1].index]))
        assert len(policy.history) < 300
    policy.tell(policy.queries[-1], float(f[policy.queries[-1].index]))
    follow(policy, f, 5)
    chosen = [query.fidelity for query in policy.queries]
    assert chosen.count(2) > 20
    assert policy.spent == sum(levels[k].cost for k in chosen)
    assert policy.data()[2].tolist() == [levels[k].noise for k in chosen]
    twin = Policy.from_state(json.loads(json.dumps(policy.state())))
    assert twin.ask() == policy.ask()


def test_one_fidelity_is_the_plain_rule_and_a_dominated_one_changes_nothing():
    f = draw(8)
    plain = follow(TruVaR(GRID, gp=PRIOR, seed=0), f, 15)
    one = TruVaR(GRID, gp=PRIOR, fidelities=[Fidelity(PRIOR.noise, 1.0)], seed=0)
    assert follow(one, f, 15) == plain
    worse = TruVaR(GRID, gp=PRIOR, fidelities=[Fidelity(PRIOR.noise, 1.0), Fidelity(0.5, 1.0)], seed=0)
    assert follow(worse, f, 15) == plain
    assert {query.fidelity for query in worse.queries} == {0}
    dear = TruVaR(GRID, gp=PRIOR, cost=np.full(GRID.size, 37.0), seed=0)
    assert follow(dear, f, 15) == plain


# -- sets, epochs, stopping --------------------------------------------------------------------------------------------


def test_monotone_is_the_default_only_where_the_bounds_are_those_of_the_theory():
    def default(**options):
        return TruVaR(GRID, **options).monotone

    assert not default(gp=PRIOR)
    assert default(gp=PRIOR, scale=2.0)
    assert default(gp=PRIOR, width=widths.Finite(0.9))
    assert default(gp=PRIOR, width=widths.RKHS(1.0))
    assert not default(gp=PRIOR, width=widths.Constant(2.0))
    assert not default(scale=2.0)  # refitted


def test_monotone_sets_shrink_and_survive_a_rebuild():
    f = draw(9)
    policy = TruVaR(GRID, gp=PRIOR, goal="level", threshold=0.2, scale=2.0, seed=0)
    open_before = np.ones(GRID.size, dtype=bool)
    for _ in range(20):
        follow(policy, f, 1)
        answer = policy.recommend()
        assert (answer.above.astype(int) + answer.below + answer.undecided == 1).all()
        assert not (answer.undecided & ~open_before).any()
        open_before = answer.undecided
    assert 0 < open_before.sum() < GRID.size
    twin = Policy.from_state(json.loads(json.dumps(policy.state())))
    assert twin.recommend() == policy.recommend()
    assert (twin.epoch, twin.eta) == (policy.epoch, policy.eta)
    assert twin.ask() == policy.ask()


def test_an_excluded_point_returns_unless_sets_are_monotone():
    points = Candidates([[0.0], [5.0]])
    gp = GP(SE(1.0), noise=0.25)
    for monotone in (False, True):
        policy = TruVaR(points, gp=gp, scale=0.5, monotone=monotone, seed=0)
        for _ in range(3):
            policy.tell([0.0], 3.0)
            policy.tell([5.0], -3.0)
        policy.cancel(policy.ask())  # the sets are brought up to date by an ask
        assert policy.potential.tolist() == [True, False]
        for _ in range(60):
            policy.tell([5.0], 6.0)
        assert policy.potential.tolist() == ([True, False] if monotone else [False, True])


def test_an_ask_that_is_taken_back_leaves_no_memory():
    """A batch that cannot be filled is undone whole, together with what its queries had decided."""
    three = Candidates([[0.0], [1.0], [2.0]])
    policy = TruVaR(three, gp=GP(SE(0.5), noise=1e-6), scale=2.0, goal="level", threshold=0.0, seed=0)
    twin = TruVaR(three, gp=GP(SE(0.5), noise=1e-6), scale=2.0, goal="level", threshold=0.0, seed=0)
    for p in (policy, twin):
        p.tell([0.0], 1.0)
    with pytest.raises(surefoot.Exhausted):
        policy.ask(4)
    assert policy.state() == twin.state()
    assert policy.ask(2) == twin.ask(2)


def test_a_batch_is_greedy_with_virtual_measurements_and_the_sets_as_they_are():
    f = draw(10)
    policy = TruVaR(GRID, gp=PRIOR, seed=0)
    follow(policy, f, 10)
    belief = policy.surrogate.believe().copy()
    stage = policy.stages.now()
    rows, expected, eta = np.flatnonzero(stage.summed), [], stage.eta
    for _ in range(5):
        while (stage.width * belief.std[rows]).max() <= eta * (1 + 1e-9):
            eta *= policy.ratio
        gain = Lookahead(belief, rows).gains(scale=stage.beta, floor=eta**2)[0]
        gain[expected] = -np.inf
        expected.append(int(gain.argmax()))
        belief.hallucinate(expected[-1])
    batch = policy.ask(5)
    assert [query.index for query in batch] == expected
    assert {query.note["epoch"] for query in batch} == {stage.epoch}


def test_a_large_batch_lowers_the_target_and_goes_on():
    few = Candidates(np.linspace(0.0, 1.0, 30))
    policy = TruVaR(few, gp=GP(SE(0.3), noise=1e-6), seed=0)
    assert len({query.index for query in policy.ask(30)}) == 30
    assert policy.epoch == 1


def test_accuracy_decides_when_it_is_finished():
    f = draw(11)
    loose, strict = (TruVaR(GRID, gp=PRIOR, scale=2.0, accuracy=a, seed=0) for a in (2.0, 0.05))
    steps = {}
    for policy in (loose, strict):
        while not policy.finished:
            follow(policy, f, 1)
            assert len(policy.history) < 144
        steps[policy.accuracy] = len(policy.history)
        M = policy.potential
        assert (f.max() - f[M] <= policy.accuracy).all()
        assert M[f.argmax()]
    assert steps[2.0] < steps[0.05]


def test_optimize_stops_when_the_accuracy_is_reached():
    f = draw(11)
    result = surefoot.optimize(
        lambda x: float(f[GRID.index_of(x)]), GRID, 144, policy=TruVaR, gp=PRIOR, scale=2.0, accuracy=1.0, seed=0
    )
    assert len(result.policy.history) < 100
    assert f.max() - f[result.recommendation.index] <= 1.0


@pytest.mark.parametrize(("threshold", "side"), [(50.0, "below"), (-50.0, "above")])
def test_a_threshold_out_of_reach_is_said_clearly(threshold, side):
    policy = TruVaR(GRID, goal="level", threshold=threshold, gp=PRIOR, seed=0)
    follow(policy, draw(12), 2)
    answer = policy.recommend()
    assert policy.finished
    assert f"every point lies {side} the threshold" in answer.rule
    assert answer.counts()[side] == GRID.size
    policy.ask()  # goes on where most is unknown


def test_the_first_target_is_in_units_of_the_prior():
    f = draw(13)
    unit = follow(TruVaR(GRID, gp=PRIOR, seed=0), f, 12)
    large = GP(SE(0.2, variance=1e6), noise=1e2, mean=500.0)
    policy = TruVaR(GRID, gp=large, seed=0)
    assert follow(policy, 500.0 + 1e3 * f, 12) == unit
    assert policy.eta in (1e3, pytest.approx(1e2))


def test_the_width_is_evaluated_in_every_round():
    calls = []

    def width(step, *, size=None, dimension=None, gain=0.0):
        calls.append((step, size, dimension, gain > 0))
        return 2.0

    policy = TruVaR(GRID, gp=PRIOR, width=width, seed=0)
    follow(policy, draw(14), 3)
    assert {call[0] for call in calls} == {1, 2, 3}
    assert calls[0][1:] == (144, 2, False)
    assert calls[-1][1:] == (144, 2, True)


# -- domains, devices ------------------------------------------------------------------------------------------------


def test_a_box_is_refined_between_the_points_that_stand_for_it():
    box = Box([(0.0, 1.0), (0.0, 2.0)])
    policy = TruVaR(box, gp=GP(SE([0.4, 0.8]), noise=1e-6), points=64, seed=0)
    for _ in range(30):
        query = policy.ask()
        policy.tell(query, float(-5.0 * (query.x[0] - 0.371) ** 2 - 1.25 * (query.x[1] - 1.137) ** 2))
    assert policy.ground.shape == (64, 2)
    assert not Candidates(policy.ground).contains(np.array([q.x for q in policy.queries])).any()
    np.testing.assert_allclose(policy.recommend().x, [0.371, 1.137], atol=0.03)


def test_a_box_with_a_threshold_and_a_cost():
    box = Box([(0.0, 1.0)])
    policy = TruVaR(
        box, goal="level", threshold=0.5, gp=GP(SE(0.2), noise=1e-6), points=128, cost=lambda X: 1.0 + X[:, 0], seed=0
    )
    for _ in range(14):
        query = policy.ask()
        policy.tell(query, float(np.sin(3.0 * query.x[0])))
        assert query.cost == pytest.approx(1.0 + query.x[0])
    answer = policy.recommend()
    truth = np.sin(3.0 * answer.points[:, 0]) > 0.5
    assert not (answer.above & ~truth).any()
    assert not (answer.below & truth).any()
    assert answer.undecided.sum() <= 3
    assert np.array_equal(answer.predicted, truth)


def test_tensors_ask_the_same():
    pytest.importorskip("torch")
    f = draw(15)
    for options in (
        {},
        {"goal": "level", "threshold": 0.4, "anticipate": True},
        {"fidelities": [Fidelity(0.1), Fidelity(1e-4, 4.0)]},
    ):
        plain = TruVaR(GRID, gp=PRIOR, seed=0, **options)
        tensor = TruVaR(GRID, gp=PRIOR, seed=0, device="cpu", **options)
        assert follow(plain, f, 12) == follow(tensor, f, 12)
        assert np.array_equal(plain.potential, tensor.potential)
