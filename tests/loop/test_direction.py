"""A policy knows which way is better, and speaks in the sign of whoever tells it; and points that are pending."""

import json
import time

import numpy as np
import pytest

import surefoot
from surefoot import (
    BOBOS,
    GP,
    GPLSE,
    GPUCB,
    RGPE,
    RMGPUCB,
    SE,
    Ball,
    Box,
    Candidates,
    Choice,
    ExpectedImprovement,
    Float,
    Int,
    Journal,
    MacroGPO,
    NotSupported,
    Outcome,
    Policy,
    RandomSearch,
    RobustReport,
    Space,
    Task,
    TruVaR,
    load,
    optimize,
    report,
)
from surefoot.games import Player
from surefoot.loop.direction import turned, turned_event, turned_words

LINE = Candidates(np.linspace(0.0, 1.0, 21))
FIELD = GP(SE(0.2), noise=1e-4)


def valley(x):
    return 3.0 + (x[0] - 0.4) ** 2


def follow(policy, steps=6, sign=1.0):
    for _ in range(steps):
        query = policy.ask()
        policy.tell(query, sign * valley(query.x))
    return policy


# Finding 13 of the review of 0.1.0
def test_a_minimizing_policy_knows_its_direction_without_a_journal(tmp_path):
    result = optimize(valley, Box([(0.0, 1.0)]), 8, direction="minimize", seed=0)
    policy = result.policy
    assert policy.direction == policy.config()["direction"] == "minimize"
    best = min(run.value for run in policy.history)
    assert best >= 3.0
    assert policy.data()[1].min() == best
    assert policy.recommend() == result.recommendation
    assert [run.value for run in report.runs(policy)] == [run.value for run in policy.history]
    for number, shown in enumerate((policy, result)):
        html = report.page(shown, tmp_path / f"{number}.html").read_text(encoding="utf-8")
        assert f"<dt>best measured value</dt><dd>{best:.4g}"[:45] in html
        assert "-3.0" not in html
        assert "lowest posterior mean" in html
        assert "<td><pre>minimize</pre></td>" in html


# Finding 13 of the review of 0.1.0
def test_the_best_so_far_of_who_minimizes_goes_down():
    policy = RandomSearch(LINE, direction="minimize", seed=0)
    for x, value in ((0.0, 3.0), (0.5, 4.0), (1.0, 1.0)):
        policy.tell([x], value)
    assert report.best_so_far(report.runs(policy), direction=policy.direction).tolist() == [3.0, 3.0, 1.0]
    axes = report.trace(policy).axes[0]
    steps = [line.get_ydata().tolist() for line in axes.lines]
    assert any(drawn[-1] == 1.0 and drawn == sorted(drawn, reverse=True) for drawn in steps if len(drawn) > 1)


# Finding 13 of the review of 0.1.0
@pytest.mark.parametrize("kind", [GPUCB, ExpectedImprovement, RandomSearch])
def test_every_policy_takes_a_direction_and_its_rule_says_so(kind):
    down, up = follow(kind(LINE, direction="minimize", seed=0)), follow(kind(LINE, seed=0), sign=-1.0)
    assert [query.x.tolist() for query in down.queries] == [query.x.tolist() for query in up.queries]
    answer, other = down.recommend(), up.recommend()
    assert answer.mean == -other.mean
    assert (answer.lower, answer.upper) == tuple(None if v is None else -v for v in (other.upper, other.lower))
    assert answer.rule == other.rule.replace("highest", "lowest")
    assert "highest" not in answer.rule
    assert "lowest" not in other.rule


def test_directions_that_are_none_are_refused():
    for wrong in ("down", None, 1):
        with pytest.raises((ValueError, TypeError), match="direction"):
            GPUCB(LINE, direction=wrong)
        with pytest.raises((ValueError, TypeError), match="direction"):
            optimize(valley, LINE, 2, direction=wrong)


def test_what_was_told_is_on_record_as_it_was_told(tmp_path):
    path = tmp_path / "run.jsonl"
    with GPUCB(LINE, direction="minimize", seed=0, journal=path) as policy:
        query = policy.ask()
        policy.tell(query, Outcome(2.5, noise=0.1, cost=1.0))
        policy.tell(query, Outcome(2.5, noise=0.1, cost=1.0))
        with pytest.raises(ValueError, match=r"already told Outcome\(value=2.5"):
            policy.tell(query, 3.0)
        policy.tell([0.5], 0.0)
        assert [str(run.value) for run in policy.history] == ["2.5", "0.0"]
    header, *events = map(json.loads, path.read_text().splitlines())
    assert header["direction"] == header["config"]["direction"] == "minimize"
    assert [event.get("value") for event in events] == [None, 2.5, 0.0]
    assert Task.from_journal(path).y.tolist() == [2.5, 0.0]
    with load(path) as again:
        assert again.direction == "minimize"
        assert again.history == policy.history
    with pytest.raises(ValueError, match="direction was 'minimize' and is 'maximize'"):
        GPUCB(LINE, seed=0, journal=path)
    with pytest.raises(ValueError, match="give direction='minimize' to the policy"):
        GPUCB(LINE, seed=0, journal=Journal(tmp_path / "new.jsonl", direction="minimize"))


def test_thresholds_are_in_the_sign_of_the_values():
    def cost(x):
        return float(np.cos(4.0 * x[0]))

    for kind, options in ((GPLSE, {}), (TruVaR, {"goal": "level"})):
        policies = [
            kind(LINE, threshold=0.3, direction=way, gp=FIELD, seed=0, **options) for way in ("maximize", "minimize")
        ]
        for policy in policies:
            for _ in range(12):
                query = policy.ask()
                policy.tell(query, cost(query.x))
            answer = policy.recommend()
            truth = np.array([cost(x) > 0.3 for x in LINE.points])
            assert answer.threshold == 0.3
            assert not (answer.above & ~truth).any()
            assert not (answer.below & truth).any()
            assert answer.above.sum() + answer.below.sum() >= 19


def test_a_prior_mean_and_the_mean_of_what_was_measured_are_in_the_sign_of_the_values():
    policy = GPUCB(LINE, direction="minimize", gp=GP(SE(0.05), noise=1e-6, mean=5.0), seed=0)
    policy.tell([0.0], 4.0)
    assert policy.ask().index in (0, 1, 2, *range(3, 21))
    assert policy.config()["gp"]["value"]["mean"] == 5.0
    far = policy.posterior().predict(np.array([[1.0]]))[0]
    assert far == pytest.approx(-5.0)  # the belief is about what is maximized
    paths = surefoot.Paths(np.arange(9.0)[:, None], surefoot.Dives((9, 1), 2), start=4)
    walk = MacroGPO(paths, horizon=1, samples=4, gp=GP(SE(2.0), noise=1e-4), direction="minimize", normalize=1.0)
    walk.tell(walk.ask(), [3.0, 5.0])
    assert walk.average_output == 3.0


def test_earlier_tasks_are_in_the_sign_of_the_values():
    X = np.linspace(0.0, 1.0, 12)[:, None]
    y = (X[:, 0] - 0.7) ** 2
    low = RMGPUCB(LINE, tasks=[Task(X, y)], direction="minimize", seed=0).ask().x
    assert abs(low[0] - 0.7) < 0.15
    surrogate = GP(SE(0.2), noise=1e-4).condition(X, y)
    for task in (Task(X, y), surrogate):
        down = RGPE(LINE, tasks=[task], direction="minimize", samples=50, seed=0)
        up = RGPE(LINE, tasks=[turned(task) if isinstance(task, Task) else _Below(task)], samples=50, seed=0)
        for _ in range(4):
            one, other = down.ask(), up.ask()
            assert one.x.tolist() == other.x.tolist()
            down.tell(one, valley(one.x))
            up.tell(other, -valley(other.x))


class _Below:
    """The negative of a surrogate, written by hand."""

    def __init__(self, surrogate):
        self.surrogate = surrogate

    def predict(self, E):
        mean, std = self.surrogate.predict(E)
        return -mean, std

    def sample(self, E, count, rng):
        return -self.surrogate.sample(E, count, rng)

    def gradient(self, E):
        mean, std, mean_gradient, std_gradient = self.surrogate.gradient(E)
        return -mean, std, -mean_gradient, std_gradient


def test_runs_that_are_followed_are_judged_and_shown_in_the_sign_of_the_values():
    down = BOBOS(Box([(0.0, 1.0)]), epochs=10, direction="minimize", bounds=(0.0, 2.0), complete=1, seed=0)
    query = down.ask()
    for epoch in range(1, 11):
        down.report(query, epoch, 0.1 + 0.5**epoch)
    down.tell(query)
    hopeless = down.ask()
    for epoch in range(1, 11):
        advice = down.report(hopeless, epoch, 1.5 + 0.5**epoch)
        if advice.stop:
            break
    assert advice.stop
    assert "will not beat 0.10" in advice.reason
    assert down.scores(query)[0] == 0.6
    with pytest.raises(ValueError, match=r"smaller one first, got \(2.0, 1.0\)"):
        BOBOS(Box([(0.0, 1.0)]), epochs=10, direction="minimize", bounds=(2.0, 1.0))
    low = down.ask()
    for epoch in range(1, 9):
        advice = down.report(low, epoch, 9.0)
    assert "outside bounds=(0.0, 2.0)" in advice.reason


def test_a_robust_report_has_the_direction_of_the_policy_inside():
    def cost(x):
        return float(-2.0 * np.exp(-(((x - 0.2) / 0.03) ** 2)) - np.exp(-(((x - 0.7) / 0.2) ** 2)))

    for gp in (None, FIELD):
        policy = RobustReport(RandomSearch(LINE, direction="minimize", repeats=False, seed=0), Ball(0.1), gp=gp)
        assert policy.direction == "minimize"
        for _ in range(20):
            query = policy.ask()
            policy.tell(query, cost(query.x[0]))
        answer = policy.recommend()
        assert abs(answer.x[0] - 0.7) < 0.12
        assert answer.mean < 0.0
        assert answer.rule == "best worst-case upper bound now, among measured points"
    with pytest.raises(ValueError, match="direction must be that of the policy inside, 'maximize'"):
        RobustReport(GPUCB(LINE), Ball(0.1), direction="minimize")


def test_a_player_does_not_minimize_and_says_what_to_do():
    with pytest.raises(NotSupported, match="tell a player the negated ones"):
        Player(LINE, others=[LINE], direction="minimize")


def test_optimize_notices_a_policy_that_goes_the_other_way(tmp_path):
    with pytest.raises(ValueError, match="optimize would minimize, and the policy it was given would maximize"):
        optimize(valley, LINE, 2, policy=lambda domain, **_: GPUCB(domain, seed=0), direction="minimize")


def test_turning_twice_changes_nothing():
    task = Task([[0.1], [0.2]], [0.0, 2.0], "t", noise=0.1)
    for value in (1.5, None, "prior", (0.0, 1.0), Outcome(values=[1.0, None]), GP(mean=2.0), task):
        assert turned(turned(value)) == value
    event = {"event": "told", "id": 1, "value": 2.0, "values": [1.0, 3.0, None], "at": 1.0}
    assert turned_event(turned_event(event)) == event
    assert turned_event({"event": "answered", "value": 2.0})["value"] == 2.0  # not a policy's
    words = "highest last value; every point lies above the maximum of lower bounds"
    assert turned_words(words) == "lowest last value; every point lies below the minimum of upper bounds"


# Finding 14 of the review of 0.1.0
def test_telling_an_asked_point_by_its_parameters_closes_its_query():
    space = Space(depth=Int(1, 5))
    policy = RandomSearch(space, seed=0)
    for _ in range(6):
        query = policy.ask()
        policy.tell(dict(query.params), 1.0 / query.params["depth"])
        assert not policy.pending
        assert policy.history[-1].id == query.id


# Finding 14 of the review of 0.1.0
def test_of_several_queries_at_a_point_the_oldest_is_closed():
    policy = RandomSearch(Box([(0.0, 1.0)]), seed=0)
    policy.replay([{"event": "asked", "id": id, "x": [0.25]} for id in range(3)])
    policy.tell([0.25], 1.0)
    policy.cancel(1)
    policy.tell([0.25], 2.0)
    assert [run.id for run in policy.history] == [0, 2]
    policy.tell([0.25], 3.0)  # nothing waits there any more
    policy.tell([np.nextafter(0.25, 1.0)], 4.0)
    assert [run.id for run in policy.history] == [0, 2, None, None]


# Finding 14 of the review of 0.1.0
def test_a_pending_point_is_found_in_the_units_of_its_space():
    space = Space(rate=Float(1e-4, 1.0, log=True), depth=Int(1, 5), kind=Choice(["a", "b"]))
    policy = GPUCB(space, seed=0)
    first, second, third = policy.ask(3)
    policy.tell(json.loads(json.dumps(second.params)), 1.0)
    policy.tell(third.x, Outcome(2.0, cost=3.0))
    assert [query.id for query in policy.pending] == [first.id]
    policy.tell({**first.params, "depth": first.params["depth"] % 5 + 1}, 1.0)
    assert [query.id for query in policy.pending] == [first.id]
    with pytest.raises(ValueError, match="needs a value"):
        policy.tell(first.params)
    twin = Policy.from_state(policy.state())
    assert twin.pending == policy.pending
    assert twin.history == policy.history


# Finding 8 of the review of 0.1.0 (the time in events)
def test_every_event_says_when_it_was_written(tmp_path):
    before = time.time() - 0.01
    path = tmp_path / "run.jsonl"
    with GPUCB(LINE, seed=0, journal=path) as policy:
        for _ in range(2):
            policy.tell(policy.ask(), 1.0)
        policy.cancel(policy.ask())
        events = policy.events
    times = [event["at"] for event in events]
    assert times == sorted(times)
    assert before <= times[0] <= times[-1] <= time.time() + 0.01
    with load(path) as again:
        assert again.events == events  # a record that is read again keeps its times
    assert Policy.from_state(policy.state()).events == events
