"""BO-BOS: reductions, the two conditions, schedules, runs in parallel, and resuming in the middle of a run."""

import json
import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot import BOBOS, GP, GPUCB, SE, Box, Candidates, Matern, NoData, Policy, load, widths
from surefoot.policy.epochs.abandon import score_range
from surefoot.policy.epochs.bo_bos import default_rule, incumbent_offset
from surefoot.policy.epochs.runs import EpochPolicy, automatic_over_epochs, intermediate_epochs
from surefoot.stopping import ExponentialDecay, OptimalStopping

N = 20
UNIT = Box.unit(2)
LINE = Candidates(np.linspace(0.0, 1.0, 41))


def rule(**options):
    chosen = {"epochs": N, "initial": 4, "paths": 2_000, "cells": 50, "model": ExponentialDecay(), **options}
    return OptimalStopping(**chosen)


def make(domain=UNIT, **options):
    return BOBOS(domain, **{"epochs": N, "stopping": rule(), "seed": 3, "bounds": (0.0, 1.0), **options})


def curve(x, epochs=N):
    """Errors that decay to a limit which depends on x."""
    limit = 0.05 + 0.8 * float(np.mean((np.asarray(x) - 0.3) ** 2))
    return 1.0 - limit - (0.95 - limit) * np.exp(-0.35 * np.arange(1, epochs + 1))


def hopeless(level=0.3, epochs=N):
    return level - 0.2 * np.exp(-0.5 * np.arange(1, epochs + 1))


def follow(policy, query, scores):
    """Report a run until it is stopped; return all advice."""
    given = []
    for epoch, score in enumerate(scores, start=1):
        given.append(policy.report(query, epoch, None if np.isnan(score) else float(score)))
        if given[-1].stop:
            break
    policy.tell(query)
    return given


def run(policy, count):
    for _ in range(count):
        query = policy.ask()
        follow(policy, query, curve(query.x, policy.epochs))
    return policy


# -- reductions


@pytest.mark.parametrize("off", [{"stopping": rule(k1=math.inf)}, {"stop_until": 0}])
@pytest.mark.parametrize("domain", [LINE, UNIT], ids=["candidates", "box"])
def test_without_stopping_it_is_gp_ucb(domain, off):
    """K1 = inf, no intermediate points, one epoch coordinate: the queries of GP-UCB on x alone."""
    gp, width = GP(Matern(2.5, lengthscale=0.3), noise=1e-4), widths.Constant(2.0)
    policy = make(domain, gp=gp, width=width, initial=3, intermediate=(), **off)
    plain = GPUCB(domain, gp=gp, width=width, initial=3, seed=3)
    for _ in range(8):
        query, other = policy.ask(), plain.ask()
        assert np.allclose(query.x, other.x, rtol=0, atol=0 if domain is LINE else 1e-5)
        advice = follow(policy, query, curve(query.x))
        assert len(advice) == N
        assert not any(a.stop for a in advice)
        plain.tell(other, float(curve(query.x)[-1]))
    assert policy.epochs_saved == 0
    assert np.allclose(policy.recommend().x, plain.recommend().x, atol=1e-5)


def test_runs_too_short_to_judge_are_never_stopped():
    policy = BOBOS(UNIT, epochs=4, stopping=OptimalStopping(epochs=4, initial=4, paths=500), complete=0, seed=0)
    policy.tell([0.5, 0.5], 0.9)
    query = policy.ask()
    assert not any(policy.report(query, n, 0.1).stop for n in range(1, 5))


# -- C1, C2, and what is told to the rule


def test_hopeless_runs_are_stopped_and_the_reason_says_why():
    policy = make(complete=0)
    policy.tell([0.3, 0.3], 0.95)
    query = policy.ask()
    advice = follow(policy, query, hopeless())
    assert 4 < len(advice) < N
    assert [a.stop for a in advice] == [False] * (len(advice) - 1) + [True]
    last = advice[-1]
    assert last.saved == N - len(advice)
    assert last.probability < 0.5
    assert policy.stopped == {0: last.reason}
    assert "0.95" in last.reason
    assert (policy.epochs_used, policy.epochs_saved) == (len(advice), N - len(advice))


def test_a_run_above_the_bar_is_never_stopped():
    policy = make(complete=0)
    policy.tell([0.3, 0.3], 0.5)
    falling = np.concatenate([[0.2, 0.55], np.linspace(0.3, 0.1, N - 2)])
    assert not any(a.stop for a in follow(policy, policy.ask(), falling))


def test_nothing_is_stopped_before_there_is_something_to_beat():
    policy = make(complete=0)
    assert not any(a.stop for a in follow(policy, policy.ask(), hopeless()))
    assert policy.stopped == {}


def test_the_first_runs_are_completed():
    policy = make(initial=3)
    policy.tell([0.3, 0.3], 0.95)
    lengths = [len(follow(policy, policy.ask(), hopeless(0.3 - 0.01 * i))) for i in range(5)]
    assert lengths[:3] == [N] * 3
    assert max(lengths[3:]) < N


def crossing(kappa, **options):
    """A belief that knows early epochs well and the last one badly, and a hopeless run."""
    gp = GP(SE(lengthscale=[2.0, 2.0, 0.3], variance=0.04), noise=1e-6)
    policy = make(gp=gp, scale="linear", complete=0, kappa=kappa, intermediate=(), **options)
    for level in (0.95, *np.linspace(0.1, 0.2, 8)):  # runs that ended early teach about early epochs only
        query = policy.ask()
        for epoch in range(1, 9):
            policy.report(query, epoch, level)
        policy.tell(query)
    return policy


def test_c2_compares_the_latent_standard_deviations_before_the_run():
    policy = crossing(1.5)
    before = policy.posterior()
    query = policy.ask()
    rows = np.column_stack([np.broadcast_to(query.x, (N, 2)), np.arange(1, N + 1) / N])
    std = before.std(rows)
    expected = [n for n in range(5, N + 1) if std[-1] > 1.5 * std[n - 1]]
    assert query.note["unsure"] == expected
    assert expected
    assert N not in expected
    advice = follow(policy, query, hopeless())
    stops = len(advice)
    assert stops not in expected
    held = [n for n, a in enumerate(advice, 1) if "C2" in a.reason]
    assert held
    assert set(held) <= set(expected)


def test_a_larger_kappa_never_stops_later():
    lengths = []
    for kappa in (1.0, 1.2, 1.5, 2.0, 4.0, math.inf):
        policy = crossing(kappa)
        lengths.append(len(follow(policy, policy.ask(), hopeless())))
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] > lengths[-1]
    assert "unsure" not in crossing(math.inf).ask().note


def test_the_myopic_rule_stops_by_probability_alone():
    far, near = make(complete=0, myopic=1e-6, seed=1), make(complete=0, myopic=0.99, seed=1)
    for policy in (far, near):
        policy.tell([0.3, 0.3], 0.95)
    lengths = {}
    for name, policy in {"far": far, "near": near}.items():
        advice = follow(policy, policy.ask(), 0.9 - 0.8 * np.exp(-0.2 * np.arange(1, N + 1)))
        assert all(a.probability >= policy.myopic for a in advice if a.probability is not None and not a.stop)
        lengths[name] = len(advice)
    assert lengths["near"] < lengths["far"]


# -- schedules


def test_schedules_of_k1():
    """Card 3.10: the values of the published schedules in runs 10, 30 and 50."""
    policy, rounded = make(gp=GP(), width=widths.Constant(0.0)), {}
    policy.ask(50)
    for label, growth in {"a": 0.89, "b": 0.95, "c": 0.99, "d": 1.0}.items():
        policy.adviser.growth = growth
        rounded[label] = [round(policy.k1(t - 1)) for t in (10, 30, 50)]
    assert rounded["a"] == [285, 2936, 30192]
    assert rounded["b"] == [159, 443, 1235]
    assert rounded["c"] == [109, 134, 164]  # the first is 109.5, printed as 110
    assert rounded["d"] == [100, 100, 100]


def test_stopping_ends_after_the_given_run():
    policy = make(initial=2, complete=0, stop_until=3)
    policy.tell([0.3, 0.3], 0.95)
    lengths = [len(follow(policy, policy.ask(), hopeless(0.3 - 0.01 * i))) for i in range(6)]
    by_rule = [length for query, length in zip(policy.queries, lengths, strict=True) if "initial" not in query.note]
    assert max(by_rule[:3]) < N
    assert by_rule[3:] == [N] * len(by_rule[3:])
    assert math.isinf(policy.k1(5))


def test_offset_of_the_incumbent():
    assert [round(incumbent_offset(t, 1.0, 0.9), 2) for t in (2, 10, 50)] == [2.89, 4.38, 5.39]
    policy = make(gp=GP(SE(0.3), noise=0.01), offset="theorem", confidence=0.9)
    for _ in range(3):
        policy.tell(policy.ask(), 0.5)
    assert [round(q.note["offset"], 9) for q in policy.queries] == [
        round(incumbent_offset(t, 0.01, 0.9), 9) for t in (1, 2, 3)
    ]


def test_the_offset_counts_all_scores():
    """The luckiest score may be one of the initial design, or one told unasked."""
    policy = make(gp=GP(SE(0.3), noise=0.01), offset="theorem", confidence=0.9, initial=2)
    policy.tell([0.5, 0.5], 0.4)
    for _ in range(3):
        policy.tell(policy.ask(), 0.5)
    assert ["offset" in query.note for query in policy.queries] == [False, True, True]
    assert [query.note["offset"] for query in policy.queries[1:]] == pytest.approx(
        [incumbent_offset(t, 0.01, 0.9) for t in (3, 4)]
    )


def test_lemma_a7_coverage():
    """P(exists t: y*_{t-1} - xi_t > f*_{t-1}) <= delta, with equal true scores: the worst case."""
    rng, noise, delta, horizon = np.random.default_rng(0), 0.04, 0.1, 40
    y = np.sqrt(noise) * rng.standard_normal((4000, horizon))
    best = np.maximum.accumulate(y, axis=1)
    xi = np.array([incumbent_offset(t, noise, 1 - delta) for t in range(2, horizon + 2)])
    broken = (best - xi > 0).any(axis=1).mean()
    assert broken <= delta
    naive = (best > 0).any(axis=1).mean()
    assert naive > 0.99  # without the offset the luckiest score is above the best for sure


# -- the belief


def test_intermediate_epochs_of_the_paper():
    assert intermediate_epochs(50) == (1, 10, 20, 30, 40)
    assert intermediate_epochs(100) == (1, 20, 40, 60, 80)
    assert intermediate_epochs(3) == (1, 2)
    assert intermediate_epochs(1) == ()


def test_the_belief_learns_the_last_score_and_a_few_on_the_way():
    policy = make(scale="linear", intermediate=(1, 5, 10), gp=GP(SE(0.5), noise=1e-4), complete=0)
    policy.tell([0.1, 0.9], 0.7)
    query = policy.ask()
    for epoch in range(1, 8):
        policy.report(query, epoch, 0.1 * epoch)
    policy.tell(query)
    belief = policy.posterior()
    assert np.allclose(belief.X[:, -1] * N, [N, 1, 5, 7])
    assert np.allclose(belief.y, [0.7, 0.1, 0.5, 0.7])
    assert np.allclose(belief.X[1:, :2], query.x)
    assert EpochPolicy(UNIT, epochs=50, scale="log", seed=0).coordinate(np.array([1, 50])).tolist() == [0.0, 1.0]


def test_failed_and_pending_runs_are_hallucinated_at_the_last_epoch():
    policy = run(make(initial=2), 3)
    first = policy.ask()
    with policy.surrogate.hallucinated() as belief:
        assert np.allclose(belief.posterior.X[-1], [*policy.domain.encode(first.x[None])[0], 1.0])
    second = policy.ask()
    assert np.linalg.norm(first.x - second.x) > 1e-6


def test_the_recommendation_is_a_completed_run():
    policy = make(complete=0)
    policy.tell([0.3, 0.3], 0.95)
    follow(policy, policy.ask(), hopeless())
    answer = policy.recommend()
    assert answer.x.tolist() == [0.3, 0.3]
    assert "completed" in answer.rule


def test_automatic_belief_has_one_more_coordinate():
    gp = automatic_over_epochs(UNIT)
    assert gp.kernel.lengthscale.size == 3
    assert gp.prior("lengthscale[2]").mode > gp.prior("lengthscale[0]").mode
    assert gp.every == 1


# -- scores


def test_diverged_runs_are_stopped_and_failed():
    policy = make()
    policy.report(query := policy.ask(), 1, 0.3)
    advice = policy.report(query, 2, float("nan"))
    assert advice.stop
    assert "diverged" in advice.reason
    policy.tell(query)
    assert policy.history[-1].failed
    assert list(policy.stopped) == [0]
    with pytest.raises(NoData):
        policy.recommend()
    assert not np.array_equal(policy.ask().x, query.x)


def test_epochs_that_were_not_reported_are_interpolated():
    policy = make(complete=0)
    query = policy.ask()
    for epoch in (2, 6):
        policy.report(query, epoch, 0.1 * epoch)
    assert np.allclose(policy.scores(query), [0.2, 0.2, 0.3, 0.4, 0.5, 0.6])
    assert policy.scores(query, until=3).tolist() == [0.2, 0.2]
    assert policy.length(query) == 6


@settings(max_examples=10, deadline=None)
@given(shift=st.floats(-100, 100), factor=st.floats(0.01, 100))
def test_without_bounds_the_unit_of_the_scores_does_not_matter(shift, factor):
    lengths = []
    for a, b in ((1.0, 0.0), (factor, shift)):
        policy = make(bounds=None, complete=0, initial=4)
        policy.tell([0.3, 0.3], a * 0.8 + b)
        lengths.append([len(follow(policy, policy.ask(), a * hopeless(level) + b)) for level in (0.3, 0.5, 0.7)])
    assert lengths[0] == lengths[1]
    assert min(lengths[0]) < N


def test_a_range_for_scores_without_bounds():
    scores = np.array([-1e9, *np.linspace(-2.0, -0.5, 40)])
    low, high = score_range(scores)
    assert -10 < low <= -2.0
    assert -0.5 < high < 0.0 + 1.0
    assert score_range(np.array([3.0, 3.0])) == (2.0, 3.1)


def test_scores_outside_given_bounds_are_not_judged():
    policy = make(complete=0)
    policy.tell([0.3, 0.3], 0.9)
    advice = follow(policy, policy.ask(), hopeless() - 2.0)
    assert len(advice) == N
    assert "bounds" in advice[10].reason


# -- several runs at once, and after a crash


def test_runs_in_parallel_are_judged_by_what_was_known_at_their_report():
    policy = make(complete=0, initial=4)
    policy.tell([0.9, 0.9], 0.35)
    slow, fast = policy.ask(2)
    scores = hopeless(0.5)
    early = [policy.report(slow, n, float(scores[n - 1])) for n in range(1, 7)]
    assert not early[-1].stop  # 0.35 is within reach
    follow(policy, fast, np.full(N, 0.97))
    late = policy.report(slow, 7, float(scores[6]))
    assert late.stop  # 0.97 is not
    assert policy.report(slow, 6, float(scores[5])) == early[-1]
    twin = Policy.from_state(policy.state())
    assert twin.report(slow, 7, float(scores[6])) == late
    assert twin.report(slow, 6, float(scores[5])) == early[-1]


CONTINUE = """
import json, sys, surefoot
for path, scores in json.loads(sys.stdin.read()):
    policy = surefoot.load(path)
    query, out = policy.pending[0], []
    for epoch, score in scores:
        advice = policy.report(query, epoch, score)
        out.append([advice.stop, advice.reason, advice.probability, advice.saved])
    policy.tell(query)
    print(json.dumps([out, [v.hex() for v in policy.ask().x], sorted(policy.stopped)]))
"""


def test_saved_after_every_report_and_resumed_in_a_new_process(tmp_path):
    """The rest of the advice, the next query and the stopped runs are those of the uninterrupted run, bit for bit."""
    policy = run(make(stopping=default_rule(N), bounds=None, initial=3), 4)
    query = policy.ask()
    scores = curve(query.x)
    scores = 0.8 * scores + 0.01 * np.random.default_rng(0).standard_normal(N)
    tasks, advice = [], []
    for epoch in range(1, N + 1):
        path = tmp_path / f"{epoch}.json"
        policy.save(path)
        tasks.append([str(path), [[n, float(scores[n - 1])] for n in range(epoch, N + 1)]])
        a = policy.report(query, epoch, float(scores[epoch - 1]))
        advice.append([a.stop, a.reason, a.probability, a.saved])
    assert any(a[2] is not None for a in advice)
    policy.tell(query)
    following, stopped = [float(v).hex() for v in policy.ask().x], sorted(policy.stopped)
    done = subprocess.run(
        [sys.executable, "-c", CONTINUE], input=json.dumps(tasks), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for epoch, line in enumerate(done.stdout.splitlines(), start=1):
        assert json.loads(line) == [advice[epoch - 1 :], following, stopped], f"resumed before epoch {epoch}"


def test_a_journal_alone_knows_what_was_stopped(tmp_path):
    path = tmp_path / "runs.jsonl"
    policy = make(journal=path, initial=2)
    policy.tell([0.3, 0.3], 0.95)
    for i in range(4):
        follow(policy, policy.ask(), hopeless(0.3 - 0.02 * i))
    query = policy.ask()
    policy.report(query, 1, 0.2)
    stopped, saved = policy.stopped, policy.epochs_saved
    assert stopped
    policy.close()
    with load(path) as again:
        assert again.pending == [query]
        assert again.stopped == stopped
        assert again.epochs_saved == saved


# -- options


def test_published_options():
    policy = BOBOS.published(UNIT, epochs=50, seed=0)
    assert (policy.stopping.initial, policy.stopping.paths, policy.stopping.cells) == (8, 100_000, 100)
    assert (policy.stopping.k1, policy.stopping.k2, policy.stopping.cost) == (100.0, 99.0, 1.0)
    assert isinstance(policy.stopping.model, ExponentialDecay)
    assert policy.stopping.unvisited == "continue"
    assert (policy.growth, policy.kappa, policy.bounds, policy.initial) == (0.95, 2.0, (0.0, 1.0), 6)
    assert policy.intermediate == (1, 10, 20, 30, 40)
    assert policy.gp.mean == 0.0
    assert policy.width(5, dimension=2) == pytest.approx(0.2 * 3 * math.log(10))
    assert BOBOS.published(UNIT, epochs=50, growth=1.0).growth == 1.0
    assert Policy.from_state(policy.state()).state() == policy.state()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epochs": 0}, "epochs"),
        ({"epochs": 2.5}, "epochs"),
        ({"epochs": 30}, "runs of 20 epochs, not 30"),
        ({"growth": 1.1}, "growth"),
        ({"growth": 0.0}, "growth"),
        ({"kappa": 0.9}, "kappa"),
        ({"kappa": math.nan}, "kappa"),
        ({"kappa": "two"}, "kappa"),
        ({"growth": "slow"}, "growth"),
        ({"bounds": 1.0}, "bounds"),
        ({"bounds": ("low", "high")}, "bounds"),
        ({"offset": math.nan}, "offset"),
        ({"offset": None}, "offset"),
        ({"bounds": (1.0, 0.0)}, "bounds"),
        ({"bounds": (0.0, math.inf)}, "bounds"),
        ({"offset": "lemma"}, "offset"),
        ({"myopic": 1.0}, "myopic"),
        ({"stop_until": -1}, "stop_until"),
        ({"complete": 1.5}, "complete"),
        ({"scale": "sqrt"}, "scale"),
        ({"intermediate": (1, 21)}, "intermediate"),
        ({"intermediate": (0,)}, "intermediate"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        make(**options)


def test_options_of_another_kind():
    with pytest.raises(TypeError, match="OptimalStopping"):
        BOBOS(UNIT, epochs=N, stopping="early")
    with pytest.raises(TypeError, match="sequence of epochs"):
        make(intermediate=2)


def test_bad_reports_change_nothing():
    policy = make()
    query = policy.ask()
    before = policy.state()
    for step, value in ((21, 0.5), (1, math.inf), (-1, 0.5), (1.5, 0.5)):
        with pytest.raises((ValueError, TypeError)):
            policy.report(query, step, value)
    assert policy.state() == before
