"""TV-GP-UCB and R-GP-UCB: reductions, times, memory, learning."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from surefoot import (
    GP,
    GPUCB,
    RGPUCB,
    SE,
    TVGPUCB,
    Box,
    Candidates,
    Choice,
    Float,
    Int,
    Matern,
    Outcome,
    Policy,
    Space,
    widths,
)
from surefoot.belief.drift import simulate_drift
from surefoot.belief.forgetting import Forgetting
from surefoot.belief.protocol import EVERY
from surefoot.errors import NoData, NotSupported
from surefoot.loop.clock import Clock
from surefoot.policy.base import ModelPolicy
from surefoot.policy.drift import fading
from surefoot.policy.drift.r_gp_ucb import block_length
from surefoot.policy.improvement import Improvement, LogImprovement
from surefoot.testing import PolicyContract
from surefoot_lab.baselines.contextual import ContextualGPUCB
from surefoot_lab.baselines.drift import LastValue, RExp3, SlidingWindowGPUCB, genie

AXIS = np.linspace(0.0, 1.0, 40)[:, None]
KERNEL = SE(0.15)
BELIEF = GP(KERNEL, noise=0.01)
WIDTH = widths.LogTime(0.8, 4.0)
DOMAINS = {
    "Candidates": Candidates(AXIS),
    "Box": Box([(0.0, 1.0)]),
    "Space": Space(rate=Float(1e-3, 1.0, log=True), kind=Choice(["a", "b"])),
}


def drifting_values(rate, steps, seed=0):
    factor = np.linalg.cholesky(KERNEL(AXIS) + 1e-9 * np.eye(len(AXIS)))
    return simulate_drift(factor, steps, rate, np.random.default_rng(seed))


def moving(domain, x, t):
    """A value that depends on time, on any domain."""
    unit = (domain.encode(np.asarray(x)[None]) - domain.lower)[0] / domain.extent()
    return float(1.0 - np.sum((unit - 0.5 - 0.3 * math.sin(0.2 * t)) ** 2))


def play(policy, steps, *, times=None, value=moving):
    """The points that a policy asks for."""
    asked = []
    for step in range(steps):
        t = step + 1.0 if times is None else times[step]
        query = policy.ask() if times is None else policy.ask(time=t)
        policy.tell(query, value(policy.domain, query.x, t))
        asked.append(query.x.tobytes())
    return asked


# -- reductions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", DOMAINS)
@pytest.mark.parametrize("gp", ["given", "fitted", "automatic"])
def test_forgetting_nothing_is_gp_ucb(kind, gp):
    domain = DOMAINS[kind]
    automatic = GP.automatic(domain)
    options = {"gp": {"given": GP(automatic.kernel, noise=0.01), "fitted": automatic.refit(4)}.get(gp), "seed": 3}
    steps = 8 if kind != "Candidates" or gp == "automatic" else 60
    expected = play(GPUCB(domain, **options), steps)
    assert play(TVGPUCB(domain, forgetting=0.0, **options), steps) == expected
    assert play(RGPUCB(domain, block=math.inf, **options), steps) == expected
    assert play(RGPUCB(domain, block=1000, **options), steps) == expected


def test_the_drifting_belief_itself_reduces_to_gp_ucb():
    """Without the short cut: a memory that is never full leaves the rule of the drift model, at rate 0."""
    expected = play(GPUCB(DOMAINS["Candidates"], gp=BELIEF, width=WIDTH, seed=1), 50)
    assert (
        play(TVGPUCB(DOMAINS["Candidates"], forgetting=0.0, memory=60, gp=BELIEF, width=WIDTH, seed=1), 50) == expected
    )
    box = DOMAINS["Box"]
    expected = play(GPUCB(box, gp=BELIEF, seed=1), 6)
    found = play(TVGPUCB(box, forgetting=0.0, memory=60, gp=BELIEF, seed=1), 6)
    np.testing.assert_allclose([np.frombuffer(x) for x in found], [np.frombuffer(x) for x in expected], atol=1e-6)


def test_forgetting_everything_leaves_the_prior():
    policy = TVGPUCB(Candidates(AXIS), forgetting=1.0, gp=GP(KERNEL, noise=0.01, mean=2.0), seed=0)
    play(policy, 12)
    policy.clock.speak_of(policy.time + 1.0)
    mean, std = policy.surrogate.believe().predict(EVERY)
    np.testing.assert_array_equal(mean, 2.0)
    np.testing.assert_array_equal(std, 1.0)
    # Every choice is a tie of all candidates, broken by the stream: as for one who resets in every round.
    other = RGPUCB(Candidates(AXIS), block=1, gp=GP(KERNEL, noise=0.01, mean=2.0), seed=0)
    assert play(other, 12) == [query.x.tobytes() for query in policy.queries]


@pytest.mark.parametrize("times", [None, np.cumsum([0.3, 1.0, 2.7, 0.0, 0.5] * 8)])
def test_contextual_gp_ucb_with_the_right_kernel_makes_the_same_choices(times):
    kernel = KERNEL.on([0]) * Forgetting(0.05).on([1])
    domain = Candidates(AXIS)
    twin = ContextualGPUCB(domain, gp=GP(kernel, noise=0.01), width=WIDTH, seed=2)
    policy = TVGPUCB(domain, forgetting=0.05, gp=BELIEF, width=WIDTH, seed=2)
    assert play(policy, 40, times=times) == play(twin, 40, times=times)
    assert policy.recommend().index is not None


def test_a_block_is_gp_ucb_started_anew():
    domain = Candidates(AXIS)
    policy = RGPUCB(domain, block=5, gp=BELIEF, width=widths.Constant(2.0), seed=4)
    asked = play(policy, 20)
    for start in (5, 10, 15):
        fresh = GPUCB(domain, gp=BELIEF, width=widths.Constant(2.0), seed=4)
        for number in range(start, start + 5):
            index = domain.index_of(np.frombuffer(asked[number]))
            if number > start:  # the first choice is a tie of all candidates
                belief = fresh.posterior()
                mean, std = belief.predict(AXIS)
                assert mean[index] + 2 * std[index] == pytest.approx((mean + 2 * std).max(), abs=1e-9)
            fresh.tell(domain.points[index], moving(domain, domain.points[index], number + 1.0))


def test_shifting_all_times_changes_nothing():
    times = np.cumsum(np.random.default_rng(0).uniform(0.5, 2.0, 25))
    for make in (
        lambda: TVGPUCB(Candidates(AXIS), forgetting=0.1, gp=BELIEF, seed=0),
        lambda: RGPUCB(Candidates(AXIS), block=7.0, gp=BELIEF, seed=0),
    ):
        one, two = make(), make()
        for t in times:
            first, second = one.ask(time=t), two.ask(time=t + 1024.0)
            assert first.index == second.index
            for policy, query in ((one, first), (two, second)):
                policy.tell(query, moving(policy.domain, query.x, t))


# -- time --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make", [lambda d: TVGPUCB(d, forgetting=0.1, gp=BELIEF, seed=0), lambda d: RGPUCB(d, block=5, gp=BELIEF, seed=0)]
)
@pytest.mark.parametrize("kind", ["Candidates", "Box"])
def test_time_never_runs_backwards(make, kind):
    policy = make(DOMAINS[kind])
    query = policy.ask(time=10.0)
    policy.tell(query, 1.0)
    waiting = policy.ask(time=12)
    before = json.dumps(policy.state())
    for call, words in [
        (lambda: policy.ask(time=11.0), "backwards: asked for time 11.0 after time 12.0"),
        (lambda: policy.ask(3, time=11.0), "backwards"),
        (lambda: policy.ask(time=math.nan), "finite"),
        (lambda: policy.ask(time=math.inf), "finite"),
        (lambda: policy.tell(waiting, Outcome(1.0, time=11.5)), "backwards"),
        (lambda: policy.tell(query.x, Outcome(1.0, time=5.0)), "backwards"),
    ]:
        with pytest.raises(ValueError, match=words):
            call()
    with pytest.raises(TypeError, match="must be a number"):
        policy.ask(time="noon")
    assert json.dumps(policy.state()) == before
    policy.tell(waiting, Outcome(0.5, time=13.5))
    assert policy.time == 13.5
    assert policy.ask().time == 14.5
    with pytest.raises(ValueError, match="backwards"):
        policy.ask(time=13.0)


def test_measurements_may_come_back_in_any_order():
    """What is believed depends on when things were measured, not on when they were told."""
    domain, rng = Candidates(AXIS), np.random.default_rng(0)
    values, beliefs = rng.standard_normal(6), []
    for order in (range(6), reversed(range(6)), [3, 0, 5, 1, 4, 2]):
        policy = TVGPUCB(domain, forgetting=0.2, gp=BELIEF, seed=0)
        queries = [policy.ask(time=t) for t in (1.0, 2.0, 2.5, 4.0, 4.0, 9.0)]
        for i in order:
            policy.tell(queries[i], values[i])
            assert policy.recommend().x.shape == (1,)  # looking in between changes nothing
        beliefs.append(policy.recommend())
    assert beliefs[0] == beliefs[1] == beliefs[2]


def test_late_measurements_resume_bit_for_bit():
    policy = TVGPUCB(Candidates(AXIS), forgetting=0.1, gp=BELIEF, seed=0)
    for step in range(30):
        queries = policy.ask(3, time=2.0 * step)
        for query in reversed(queries if step % 2 else queries[1:]):
            policy.tell(query, moving(policy.domain, query.x, query.time))
        if step % 3 == 1:
            policy.tell(policy.pending[0], 0.3)
    twin = Policy.from_state(json.loads(json.dumps(policy.state())))
    assert twin.ask(time=70.0) == policy.ask(time=70.0)
    assert twin.recommend() == policy.recommend()


def test_recommend_means_now_or_later():
    policy = TVGPUCB(Candidates(AXIS), forgetting=0.1, gp=BELIEF, seed=0)
    play(policy, 10)
    now, later = policy.recommend(), policy.recommend(time=policy.time + 30.0)
    assert later.upper - later.lower > 2 * (now.upper - now.lower)
    assert abs(later.mean) < abs(now.mean)
    assert policy.recommend() == now
    with pytest.raises(ValueError, match="backwards"):
        policy.recommend(time=0.0)


@pytest.mark.parametrize("kind", ["Candidates", "Box"])
def test_the_belief_can_be_asked_about_a_time(kind):
    policy = TVGPUCB(DOMAINS[kind], forgetting=0.1, gp=BELIEF, seed=0)
    play(policy, 5)
    now, later = (policy.posterior(time=t) for t in (None, policy.time + 3.0))
    E = policy.domain.encode(policy.domain.design(4, np.random.default_rng(0)))
    np.testing.assert_allclose(later.mean(E), 0.9**1.5 * now.mean(E), atol=1e-12)
    with pytest.raises(ValueError, match="backwards"):
        policy.posterior(time=1.0)
    for other in (GPUCB(DOMAINS[kind], gp=BELIEF), RGPUCB(DOMAINS[kind], block=5, gp=BELIEF)):
        assert not other.forecasts
        with pytest.raises(NotSupported, match="cannot be asked about a time"):
            other.posterior(time=9.0)


def test_any_rule_may_follow_a_drift():
    """Expected improvement with a clock and a fading belief: parts, and no class below another."""

    class Improving(ModelPolicy):
        context = ("time",)

        def __init__(self, domain, **options):
            super().__init__(domain, **options)
            self.clock = Clock(self.trials)
            gp = fading.with_time(self.gp, 0.3, domain.encoded_dimension)
            self.surrogate = fading.FadingGrid(self.clock, gp, self.stream, None)
            self.rule = Improvement(LogImprovement, 0.0)

    policy = Improving(Candidates(AXIS), gp=BELIEF, seed=0)
    for t in range(40):
        query = policy.ask()
        policy.tell(query, 1.0 - abs(query.x[0] - (0.2 if t < 20 else 0.8)))
        if t in (19, 39):
            assert query.x[0] == pytest.approx(0.2 if t < 20 else 0.8, abs=0.1)


def test_the_answer_follows_the_function():
    """The maximum jumps from one end to the other; a month later only the new end counts."""
    for policy in (
        TVGPUCB(Candidates(AXIS), forgetting=0.3, gp=BELIEF, seed=0),
        RGPUCB(Candidates(AXIS), block=10, gp=BELIEF, seed=0),
    ):
        for t in range(60):
            query = policy.ask(time=t)
            policy.tell(query, 1.0 - abs(query.x[0] - (0.1 if t < 30 else 0.9)))
        assert abs(policy.recommend().x[0] - 0.9) < 0.1


# -- memory ------------------------------------------------------------------------------------------------------------


def test_a_window_believes_the_latest_measurements_only():
    times = np.arange(1.0, 41.0)
    for kind in ("Candidates", "Box"):
        domain = DOMAINS[kind]
        policy = TVGPUCB(domain, forgetting=0.05, memory=8, gp=BELIEF, seed=0)
        fresh = TVGPUCB(domain, forgetting=0.05, gp=BELIEF, seed=0)
        x = domain.sample(40, np.random.default_rng(0))
        for t, point in zip(times, x, strict=True):
            policy.tell(point, Outcome(moving(domain, point, t), time=t))
        for t, point in list(zip(times, x, strict=True))[24:]:  # 8 to 16 of the latest, by the count alone
            fresh.tell(point, Outcome(moving(domain, point, t), time=t))
        best, other = policy.recommend(), fresh.recommend()
        assert best.mean == pytest.approx(other.mean, abs=1e-10)
        assert best.lower == pytest.approx(other.lower, abs=1e-10)


@pytest.mark.parametrize("kind", ["Candidates", "Box"])
def test_resuming_inside_a_window_is_exact(kind):
    policy = TVGPUCB(DOMAINS[kind], forgetting=0.05, memory=3, gp=BELIEF, seed=0)
    for step in range(14):
        play(policy, 1)
        if step % 3 == 0:
            policy = Policy.from_state(policy.state())
    whole = TVGPUCB(DOMAINS[kind], forgetting=0.05, memory=3, gp=BELIEF, seed=0)
    play(whole, 14, value=lambda domain, x, t: moving(domain, x, 1.0))
    assert [q.x.tobytes() for q in whole.queries] == [q.x.tobytes() for q in policy.queries]


@pytest.mark.parametrize(("kind", "memory"), [("Candidates", None), ("Candidates", 50), ("Box", 20)])
def test_a_stream_is_held_in_bounded_memory(kind, memory):
    domain = DOMAINS[kind]
    policy = TVGPUCB(domain, forgetting=0.1, memory=memory, gp=GP(KERNEL, noise=0.1), seed=0)
    rng, sizes = np.random.default_rng(0), []
    for _ in range(5):
        for x, value in zip(domain.sample(400, rng), rng.standard_normal(400), strict=True):
            policy.tell(x, value)
        policy.cancel(policy.ask())
        belief = policy.surrogate.believe()
        sizes.append(belief.nbytes if kind == "Candidates" else belief.n)
    assert sizes[2] == sizes[3] == sizes[4]


def test_finite_spaces_and_many_candidates_keep_a_window():
    space = Space(depth=Int(1, 6), kind=Choice(["a", "b"]))
    for domain in (space, Candidates(np.linspace(0, 1, 5000))):
        policy = TVGPUCB(domain, forgetting=0.05, gp=GP(Matern(2.5), noise=0.01), seed=0)
        play(policy, 5)
        assert policy.surrogate.memory == fading.MEMORY
        assert policy.posterior().n == 5


def test_the_report_shows_the_belief_of_now(tmp_path):
    pytest.importorskip("matplotlib")
    from surefoot.report import page

    for kind in ("Candidates", "Box"):
        policy = TVGPUCB(DOMAINS[kind], forgetting=0.05, gp=BELIEF, seed=0)
        play(policy, 6)
        page(policy, tmp_path / "run.html")
        assert "svg" in (tmp_path / "run.html").read_text()


def test_failures_fade_too():
    policy = TVGPUCB(Candidates(AXIS), forgetting=0.1, gp=BELIEF, seed=0)
    play(policy, 3)
    for _ in range(200):
        policy.tell(policy.ask(), None)
    assert len(policy.trials.failures) == fading.FAILURES
    assert len(policy.history) == 203


# -- learning ----------------------------------------------------------------------------------------------------------


def test_the_rate_is_learned_while_it_runs():
    found = {}
    for rate in (0.002, 0.3):
        values = drifting_values(rate, 150, seed=1)
        policy = TVGPUCB(Candidates(AXIS), gp=BELIEF, width=WIDTH, seed=0)
        assert policy.forgetting == fading.START
        for t in range(150):
            query = policy.ask()
            policy.tell(query, values[t, query.index] + 0.1 * policy.stream("test", t).standard_normal())
        found[rate] = policy.forgetting
        estimate = policy.estimate()
        assert estimate.covers(rate)
        assert policy.gp.kernel.left.inner == KERNEL  # everything else was used as it is
    assert found[0.002] < 0.01 < 0.1 < found[0.3]


def test_learning_does_not_depend_on_the_unit_of_time():
    values = drifting_values(0.1, 60, seed=2)
    rates = []
    for unit in (1.0, 3600.0):
        policy = TVGPUCB(Candidates(AXIS), gp=BELIEF, width=WIDTH, seed=0)
        for t in range(60):
            query = policy.ask(time=unit * t)
            policy.tell(query, values[t, query.index])
        rates.append(1.0 - (1.0 - policy.forgetting) ** unit)
    assert rates[1] == pytest.approx(rates[0], rel=0.05)


def test_knowing_the_drift_pays():
    """Paired: on drifting functions TV-GP-UCB has less regret than GP-UCB, learned or not."""
    regret = {"true": [], "learned": [], "still": []}
    for seed in range(5):
        values = drifting_values(0.05, 80, seed=10 + seed)
        for name, rate in (("true", 0.05), ("learned", None), ("still", 0.0)):
            policy = TVGPUCB(Candidates(AXIS), forgetting=rate, gp=BELIEF, width=WIDTH, seed=seed)
            total = 0.0
            for t in range(80):
                query = policy.ask()
                total += values[t].max() - values[t, query.index]
                policy.tell(query, values[t, query.index] + 0.1 * policy.stream("test", t).standard_normal())
            regret[name].append(total / 80)
    mean = {name: np.mean(values) for name, values in regret.items()}
    assert mean["true"] < 0.7 * mean["still"]
    assert mean["learned"] < 0.8 * mean["still"]


def test_estimate_needs_data():
    policy = TVGPUCB(Candidates(AXIS), gp=BELIEF, seed=0)
    with pytest.raises(NoData):
        policy.estimate()


# -- options -----------------------------------------------------------------------------------------------------------


def test_bad_options_say_so():
    domain = Candidates(AXIS)
    for rate in (-0.1, 1.5, math.nan):
        with pytest.raises(ValueError, match="forgetting"):
            TVGPUCB(domain, forgetting=rate)
    with pytest.raises(TypeError, match="forgetting"):
        TVGPUCB(domain, forgetting="slow")
    for memory in (0, -3, 2.5, True):
        with pytest.raises(ValueError, match="memory"):
            TVGPUCB(domain, forgetting=0.1, memory=memory)
    for block in (0, -1, True, "day"):
        with pytest.raises(ValueError, match="block"):
            RGPUCB(domain, block=block)
    with pytest.raises(ValueError, match="block="):
        RGPUCB(domain)
    for horizon in (0, "long", 2.5):
        with pytest.raises(ValueError, match="horizon"):
            RGPUCB(domain, forgetting=0.1, horizon=horizon)
    with pytest.raises(NotSupported, match="one set"):
        TVGPUCB(domain, forgetting=0.1, gp=GP.automatic(domain, samples=4))


def test_block_lengths():
    assert [block_length(e, SE(0.2), 2) for e in (0.001, 0.01, 0.03)] == [68, 38, 29]
    assert [block_length(e, Matern(2.5, 0.2), 2) for e in (0.001, 0.01, 0.03)] == [178, 92, 67]
    assert block_length(0.01, SE(), 2, horizon=20) == 20
    assert block_length(0.0, SE(), 2) == math.inf
    assert RGPUCB(Candidates(AXIS), forgetting=0.01, gp=BELIEF).block == 38


# -- baselines ---------------------------------------------------------------------------------------------------------


class AtTimes(PolicyContract):
    def context(self, step):
        return {"time": 20.0 + step}


class TestContextual(AtTimes):
    policy = ContextualGPUCB
    options = {"gp": GP(SE(1.0).on([0, 1]) * Forgetting(0.1).on([2]), noise=0.01)}


class TestSlidingWindow(AtTimes):
    policy = SlidingWindowGPUCB
    options = {"window": 4}


class TestLastValue(AtTimes):
    policy = LastValue


class TestRExp3(AtTimes):
    policy = RExp3
    options = {"bounds": (0.0, 2.0), "horizon": 40, "variation": 4.0}


def test_genie_plays_the_previous_maximum():
    values = drifting_values(0.01, 50)
    chosen = genie(values)
    assert (chosen[1:] == values[:-1].argmax(axis=1)).all()
    regret = values.max(axis=1) - values[np.arange(50), chosen]
    assert 0 <= regret[1:].mean() < 0.1


def test_rexp3_finds_a_good_arm_and_restarts():
    policy = RExp3(Candidates(np.arange(3.0)), bounds=(0.0, 1.0), horizon=600, variation=0.5, seed=0)
    for _ in range(300):
        query = policy.ask()
        policy.tell(query, 0.9 if query.index == 1 else 0.1)
    assert np.mean([q.index == 1 for q in policy.queries[policy.batch // 2 : policy.batch]]) > 0.5
    assert policy._probabilities(policy.batch * 7) == pytest.approx(np.full(3, 1 / 3))
    for bad in ({"bounds": (1.0, 0.0)}, {"horizon": 0}, {"variation": 0.0}):
        with pytest.raises(ValueError):
            RExp3(Candidates([0.0, 1.0]), **{"bounds": (0.0, 1.0), "horizon": 5, "variation": 1.0, **bad})


def test_a_wide_sliding_window_is_gp_ucb():
    expected = play(GPUCB(Candidates(AXIS), gp=BELIEF, seed=1), 25)
    assert play(SlidingWindowGPUCB(Candidates(AXIS), window=100, gp=BELIEF, seed=1), 25) == expected
