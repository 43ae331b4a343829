"""Hyperband, ASHA, the median rule, BOCA, curve extrapolation; synthetic learning curves and their runner."""

from itertools import pairwise

import numpy as np
import pytest

from surefoot import BOBOS, GP, GPUCB, SE, Box, Policy, RandomSearch
from surefoot.testing import PolicyContract
from surefoot_lab import Replicate, find
from surefoot_lab.baselines.boca import BOCA
from surefoot_lab.baselines.curve_extrapolation import CurveExtrapolation, forecast
from surefoot_lab.baselines.hyperband import ASHA, Hyperband, brackets
from surefoot_lab.baselines.median import MedianRule
from surefoot_lab.curves import SHAPES, CurveProblem, Run, compare_curves, drive, summary, synthetic_curves
from surefoot_lab.problems import ackley
from surefoot_lab.results import Results

LINE = Box([(0.0, 1.0)])
N = 27


class TestHyperbandContract(PolicyContract):
    policy = Hyperband
    options = {"epochs": 9}


class TestCurveExtrapolationContract(PolicyContract):
    policy = CurveExtrapolation
    options = {"epochs": 9}
    length = 5


@pytest.mark.slow
class TestASHAContract(PolicyContract):
    policy = ASHA
    options = {"epochs": 9}


@pytest.mark.slow
class TestMedianRuleContract(PolicyContract):
    policy = MedianRule
    options = {"epochs": 9}


@pytest.mark.slow
class TestBOCAContract(PolicyContract):
    policy = BOCA
    options = {"epochs": 9}


# -- Hyperband and ASHA


def test_brackets_of_the_card():
    plan = brackets(80)
    assert [(n, round(r, 1)) for n, r in (bracket[0] for bracket in plan)] == [(27, 3.0), (12, 8.9), (6, 26.7), (4, 80)]
    assert [n for n, _ in plan[0]] == [27, 9, 3, 1]
    assert [round(r) for _, r in plan[0]] == [3, 9, 27, 80]
    assert brackets(81)[0][0] == (81, 1.0)
    assert brackets(1) == [[(1, 1.0)]]


def score(query):
    return float(-abs(query.x[0] - 0.3) * (1 + 1 / query.fidelity))


def test_hyperband_keeps_the_best_third():
    policy = Hyperband(LINE, epochs=N, seed=0)
    told = {}
    rungs = brackets(N)[0]
    for _ in range(sum(n for n, _ in rungs)):
        query = policy.ask()
        told[query.id] = score(query)
        policy.tell(query, told[query.id])
    by_rung = [[q for q in policy.queries if q.note["rung"] == i] for i in range(len(rungs))]
    assert [(len(members), members[0].fidelity) for members in by_rung] == [(27, 1), (9, 3), (3, 9), (1, 27)]
    for lower, upper in pairwise(by_rung):
        best = sorted((q.id for q in lower), key=lambda id: -told[id])[: len(upper)]
        assert [q.note["resume"] for q in upper] == best
        assert all(np.array_equal(policy.queries[q.note["resume"]].x, q.x) for q in upper)
    assert policy.ask().note == {"bracket": 1, "rung": 0}
    assert policy.epochs_used == 27 * 1 + 9 * 2 + 3 * 6 + 1 * 18
    winner = by_rung[-1][0]
    assert policy.recommend().x == winner.x


def test_hyperband_does_not_wait_and_replaces_what_is_cancelled():
    policy = Hyperband(LINE, epochs=9, seed=0)
    waiting = policy.ask(9)
    assert policy.ask().note["bracket"] == 1  # the first bracket waits for its nine runs
    for query in waiting[1:]:
        policy.tell(query, score(query))
    policy.cancel(waiting[0])
    replaced = policy.ask()
    assert replaced.note == {"bracket": 0, "rung": 0}
    policy.tell(replaced, None)  # failed: the worst of all
    promoted = [policy.ask() for _ in range(3)]
    assert {q.note["rung"] for q in promoted} == {1}
    assert replaced.id not in [q.note["resume"] for q in promoted]


def test_advice_ends_a_rung():
    policy = Hyperband(LINE, epochs=9, seed=0)
    for _ in range(9):
        query = policy.ask()
        assert policy.report(query, 1, score(query)).stop
        policy.tell(query)
    query = policy.ask()
    assert [policy.report(query, n, 0.5).stop for n in (2, 3)] == [False, True]
    with pytest.raises(ValueError, match="last epoch"):
        policy.report(query, 10, 0.5)


def test_asha_promotes_exactly_the_best_of_each_rung():
    policy = ASHA(LINE, epochs=N, seed=0)
    scores, rng = {}, np.random.default_rng(1)
    for _ in range(60):
        before = {id: (policy.queries[id].note["rung"], value) for id, value in scores.items()}
        promoted = {q.note.get("resume") for q in policy.queries}
        query = policy.ask()
        expected = None
        for rung in (2, 1, 0):
            here = sorted((id for id, (k, _) in before.items() if k == rung), key=lambda id: -before[id][1])
            free = [id for id in here[: len(here) // 3] if id not in promoted]
            if free:
                expected = free[0]
                break
        assert query.note.get("resume") == expected
        assert query.fidelity == 3 ** query.note["rung"]
        scores[query.id] = float(rng.random())
        policy.tell(query, scores[query.id])
    assert any(q.fidelity == N for q in policy.queries)


def test_halving_options():
    for options in ({"eta": 1}, {"eta": 2.5}, {"epochs": 0}):
        with pytest.raises(ValueError, match=next(iter(options))):
            Hyperband(LINE, **{"epochs": 9, **options})
    with pytest.raises(ValueError, match="shortest"):
        ASHA(LINE, epochs=9, shortest=10)
    assert ASHA(LINE, epochs=50, shortest=2, seed=0).ask().fidelity == 2


# -- the median rule


def test_the_median_rule_is_the_published_comparison():
    rng = np.random.default_rng(0)
    policy = MedianRule(LINE, epochs=6, startup=3, warmup=1, seed=0)
    curves, stops = [], 0
    for _ in range(12):
        query, scores = policy.ask(), np.sort(rng.random(6)) * rng.random()
        for n in range(1, 7):
            advice = policy.report(query, n, float(scores[n - 1]))
            averages = [c[:n].mean() for c in curves if len(c) == 6]
            expected = 1 < n < 6 and len(averages) >= 3 and scores[:n].max() < np.median(averages)
            assert advice.stop == expected
            if advice.stop:
                stops += 1
                break
        curves.append(scores[:n])
        policy.tell(query)
    assert 0 < stops < 12


# -- curve extrapolation


@pytest.mark.parametrize("shape", list(SHAPES))
def test_forecasts_of_the_ensemble_cover_the_truth(shape):
    """From 20 of 50 epochs: the 90 % interval of the last score covers it, and the mean is close."""
    problem = synthetic_curves(shape, noise=0.003**2)
    X = problem.domain.sample(60, np.random.default_rng(1))
    truth = problem.curves(X)
    covered, off = 0, []
    for i, x in enumerate(X):
        draws = forecast(problem.curve(x, np.random.default_rng(i))[:20], 50, np.random.default_rng(i), upper=1.0)
        low, high = np.quantile(draws, [0.05, 0.95])
        covered += low - 0.01 <= truth[i, -1] <= high + 0.01
        off.append(abs(draws.mean() - truth[i, -1]))
    assert covered >= (38 if shape == "slow start" else 54)
    assert np.median(off) < 0.03


def test_forecasts_refuse_what_is_no_curve():
    for bad in ([0.5], np.full(51, 0.5), [0.1, np.nan], [[0.1, 0.2]]):
        with pytest.raises(ValueError, match="scores"):
            forecast(np.array(bad), 50, np.random.default_rng(0))
    assert np.allclose(forecast(np.full(9, 0.5), 50, np.random.default_rng(0)).mean(), 0.5, atol=1e-3)


def test_stopped_runs_are_told_with_their_predicted_score():
    policy = CurveExtrapolation(LINE, epochs=30, complete=0, gp=GP(SE(0.3), noise=1e-4), seed=0)
    policy.tell([0.5], 0.9)
    query = policy.ask()
    curve = 0.5 - 0.4 * np.exp(-0.25 * np.arange(1, 31))
    last = next(n for n in range(1, 31) if policy.report(query, n, float(curve[n - 1])).stop)
    policy.tell(query)
    assert 5 < last < 25
    y = policy.posterior().y
    assert y[0] == 0.9
    assert abs(y[1] - curve[-1]) < abs(curve[last - 1] - curve[-1])
    assert Policy.from_state(policy.state()).posterior().y[1] == y[1]


# -- BOCA


def test_boca_takes_the_cheapest_fidelity_that_teaches():
    gp = GP(SE(lengthscale=[0.3, 0.5]), noise=1e-4)
    policy = BOCA(LINE, epochs=20, gp=gp, seed=0)
    seen = set()
    for _ in range(12):
        belief = policy.posterior()
        query = policy.ask()
        z = np.arange(1, 21) / 20
        rows = np.column_stack([np.full(20, query.x[0]), z])
        xi = np.sqrt(1 - np.exp(-0.5 * ((z - 1) / 0.5) ** 2) ** 2)
        gamma = xi * z ** (1 / 4)
        width = np.sqrt(0.2 * 2 * np.log(2 * (len(policy.history) + 1)))
        good = (belief.std(rows) > gamma) & (xi > xi.max() / width)
        good[-1] = True
        assert query.fidelity == np.flatnonzero(good)[0] + 1
        seen.add(query.fidelity)
        policy.tell(query, float(np.sin(5 * query.x[0]) * query.fidelity / 20))
    assert len(seen) > 1


def test_boca_begins_with_complete_runs():
    policy = BOCA(LINE, epochs=20, seed=0)
    assert [policy.ask().fidelity for _ in range(3)] == [20, 20, 20]


# -- synthetic curves and the runner


@pytest.mark.parametrize("shape", list(SHAPES))
def test_synthetic_curves_rise_to_a_known_best(shape):
    problem = synthetic_curves(shape, surface=ackley(3))
    X = problem.domain.sample(3000, np.random.default_rng(2))
    curves = problem.curves(X)
    assert curves.shape == (3000, 50)
    assert (np.diff(curves) > 0).all()
    assert ((curves >= 0) & (curves <= 1)).all()
    assert problem.best >= curves[:, -1].max()
    assert problem.best < 0.951  # the limit at the best point is 0.95
    # Curves cross: the order after 8 epochs is not the order at the end.
    half = len(X) // 2
    crossed = (curves[:half, 7] > curves[half:, 7]) != (curves[:half, -1] > curves[half:, -1])
    assert 0.02 < crossed.mean() < 0.6
    noisy = problem.curve(X[0], np.random.default_rng(0)) - curves[0]
    assert 0.003 < noisy.std() < 0.008
    with pytest.raises(ValueError, match="shape"):
        synthetic_curves("linear")


class Stopper(RandomSearch):
    """Stops every other run after three epochs."""

    steps = True

    def _advise(self, query, step, value):
        from surefoot import Advice

        return Advice(stop=query.id % 2 == 1 and step == 3)


def ramp():
    """The last score is x; after three of five epochs every run has 0.6 x."""
    return CurveProblem("ramp", LINE, 5, lambda X: X * np.arange(1, 6) / 5, 1.0)


def test_the_runner_spends_exactly_its_budget_and_finishes_stopped_runs():
    policy = Stopper(LINE, seed=4)
    runs, best = drive(policy, ramp(), 22, np.random.default_rng)
    assert [run.end for run in runs] == [5, 3, 5, 3, 5, 1]
    assert [run.stopped for run in runs] == [False, True, False, True, False, False]
    assert best.shape == (22,)
    assert (np.diff(best) >= 0).all()
    x = [float(run.x[0]) for run in runs]
    assert [run.incumbent for run in runs] == [None, x[0], *(_incumbents(x)[1:])]
    assert [run.false_stop for run in runs] == [s and x[i] > i_best for i, (s, i_best) in enumerate(_stops(x))]
    assert len(policy.pending) == 0
    assert len(policy.history) == 5  # the run that was cut off is cancelled
    trace = summary(runs, 1.0 - best, 5)
    assert (float(trace["stopped"]), float(trace["saved"])) == (2, 4)


def _incumbents(x):
    """Best told value before each of runs 1..5; stopped runs were told 0.6 x."""
    told = [v * (0.6 if i % 2 else 1.0) for i, v in enumerate(x)]
    return np.maximum.accumulate(told)[:5].tolist()


def _stops(x):
    return [(bool(i % 2) and i < 5, ([0.0, *_incumbents(x)])[i]) for i in range(len(x))]


def test_a_stopped_run_that_would_have_won_is_a_false_stop():
    assert Run(1, np.zeros(1), 0, 3, True, 0.5, 0.4, 0.6).false_stop
    assert not Run(1, np.zeros(1), 0, 3, True, 0.7, 0.4, 0.6).false_stop
    assert not Run(1, np.zeros(1), 0, 5, False, 0.5, 0.6, 0.6).false_stop
    assert not Run(0, np.zeros(1), 0, 3, True, None, 0.4, 0.6).false_stop


def test_resumed_runs_pay_for_further_epochs_only():
    problem = synthetic_curves(epochs=9, noise=0.01)
    policy = Hyperband(problem.domain, epochs=9, seed=0)
    runs, _ = drive(policy, problem, 9 + 3 * 2 + 6, np.random.default_rng)
    assert [(run.start, run.end) for run in runs] == [(0, 1)] * 9 + [(1, 3)] * 3 + [(3, 9)]
    assert policy.epochs_used == 21
    assert not any(run.stopped for run in runs)
    first = policy.queries[9].note["resume"]
    assert runs[9].final == runs[first].final  # the same run, with the same noise


def test_policies_without_steps_get_complete_runs_and_pairs_share_their_noise():
    problem = synthetic_curves(epochs=10, noise=0.01)
    policies = {name: lambda p, seed: GPUCB(p.domain, seed=seed) for name in "ab"}
    traces = compare_curves(policies, problem, 35, Replicate(1))
    assert np.array_equal(traces["a"]["simple_regret"], traces["b"]["simple_regret"])
    assert float(traces["a"]["runs"]) == 4
    assert np.isnan(traces["a"]["false_share"])
    with pytest.raises(ValueError, match="budget"):
        compare_curves(policies, problem, 0, Replicate(1))


def test_every_claim_of_the_experiment_reads_something():
    made = find("bo-bos/synthetic-curves")
    results = Results.fresh(made, "quick")
    results.replicates = {0: dict(made.run(Replicate(0, settings={"runs": 4, "paths": 500})))}
    tests = [test for claim in results.judge() for test in claim["tests"]]
    assert len(tests) == 8
    # With four runs nothing may have been stopped yet, and then there is no share of false stops.
    assert all(test["n"] == 1 for test in tests if "false_share" not in test["label"])
    forecast, spread = (test["estimate"] for test in tests if "published model" in test["label"])
    assert (round(forecast, 1), round(spread, 1)) == (0.1, 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["power", "plateau"])
def test_bo_bos_reaches_gp_ucb_with_fewer_epochs(shape):
    """Paired over seeds: with 70 % of the epochs BO-BOS is about as good as GP-UCB with all; few stops are false."""
    plain, early, stopped, false = [], [], 0, 0
    policies = {
        "GP-UCB": lambda p, seed: GPUCB(p.domain, seed=seed),
        "BO-BOS": lambda p, seed: BOBOS(p.domain, epochs=p.epochs, seed=seed),
    }
    for r in range(8):
        replicate = Replicate(r, root=9)
        traces = compare_curves(policies, synthetic_curves(shape, rng=replicate.rng("rates")), 1000, replicate)
        plain.append(traces["GP-UCB"]["simple_regret"])
        early.append(traces["BO-BOS"]["simple_regret"])
        stopped += int(traces["BO-BOS"]["stopped"])
        false += int(traces["BO-BOS"]["false_stops"])
    part = 699
    assert np.mean(early, axis=0)[part] < 0.5 * np.mean(plain, axis=0)[part]
    assert np.median(early, axis=0)[part] < np.median(plain, axis=0)[-1] + 0.003
    assert stopped > 60
    assert false <= 0.05 * stopped
