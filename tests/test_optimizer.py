import numpy as np
import pytest

from surefoot import (
    BOBOS,
    GPUCB,
    Advice,
    Box,
    BudgetSpent,
    Candidates,
    Choice,
    Float,
    Int,
    MoveTable,
    NoData,
    Outcome,
    Paths,
    RandomSearch,
    Space,
    optimize,
)
from surefoot.loop.events import timeless


def test_minimizing_speaks_in_the_sign_of_the_objective():
    result = optimize(lambda x: 3.0 + (x[0] - 0.4) ** 2, Box([(0.0, 1.0)]), 12, direction="minimize", seed=0)
    best = result.recommendation
    assert abs(result.x[0] - 0.4) < 0.02
    assert best.lower <= best.mean <= best.upper
    assert result.value == pytest.approx(3.0, abs=0.01)
    assert result.policy.history[0].value >= 3.0


def test_spaces_pass_parameters_and_any_policy_serves():
    space = Space(rate=Float(1e-4, 1.0, log=True), depth=Int(1, 5), kind=Choice(["a", "b"]))

    def objective(params):
        return -((np.log10(params["rate"]) + 2) ** 2) - (params["depth"] - 3) ** 2 + (params["kind"] == "b")

    result = optimize(objective, space, 25, seed=0)
    assert result.params["depth"] == 3
    assert result.params["kind"] == "b"
    assert optimize(objective, space, 5, policy=RandomSearch, seed=0).value <= result.value
    assert optimize(objective, space, 8, policy=GPUCB, initial=4, seed=0).policy.initial == 4


def test_resuming_a_journal_finishes_as_if_uninterrupted(tmp_path):
    def run(objective, path=None):
        return optimize(objective, Box([(0.0, 1.0)]), 9, seed=4, journal=path, direction="minimize").policy

    whole = run(lambda x: x[0] ** 2)
    calls = []

    def broken(x):
        calls.append(x)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return x[0] ** 2

    with pytest.raises(KeyboardInterrupt):
        run(broken, tmp_path / "run.jsonl")
    resumed = run(lambda x: x[0] ** 2, tmp_path / "run.jsonl")
    assert resumed.history == whole.history


def test_caught_exceptions_are_failed_runs():
    def objective(x):
        if x[0] > 0.5:
            raise ArithmeticError("diverged")
        return Outcome(x[0], cost=2.0)

    result = optimize(objective, Box([(0.0, 1.0)]), 12, seed=0, catch=(ArithmeticError,))
    assert result.x[0] <= 0.5
    assert any(o.failed for o in result.policy.history)
    with pytest.raises(ArithmeticError):
        optimize(objective, Box([(0.0, 1.0)]), 12, seed=0)


def test_arguments_are_checked():
    for bad in (0, -1, 2.5, True):
        with pytest.raises(ValueError, match="budget"):
            optimize(lambda x: 0.0, Candidates([1.0, 2.0]), bad)
    with pytest.raises(ValueError, match="direction"):
        optimize(lambda x: 0.0, Candidates([1.0, 2.0]), 3, direction="up")
    with pytest.raises(TypeError, match="policy must be a class such as GPUCB, or its name, got 7"):
        optimize(lambda x: 0.0, Candidates([1.0, 2.0]), 3, policy=7)
    with pytest.raises(TypeError, match="the objective must be a function, got 5"):
        optimize(5, Candidates([1.0, 2.0]), 3)
    with pytest.raises(TypeError, match="callback"):
        optimize(lambda x: 0.0, Candidates([1.0, 2.0]), 3, callback=7)


def test_one_exception_to_catch_needs_no_tuple():
    def training(x):
        yield x[0]
        if x[0] > 0.5:
            raise ArithmeticError("diverged")

    result = optimize(training, Box([(0.0, 1.0)]), 8, seed=0, catch=ArithmeticError)
    assert {o.failed for o in result.policy.history} == {True, False}


def test_an_objective_may_use_its_parameters_up():
    def objective(params):
        return params.pop("depth") + params.pop("rate")

    result = optimize(objective, Space(rate=Float(0.0, 1.0), depth=Int(1, 3)), 5, seed=0)
    assert all(sorted(query.params) == ["depth", "rate"] for query in result.policy.queries)


def test_what_was_measured_is_the_answer_when_nothing_is_left():
    result = optimize(lambda x: -x[0], Candidates([3.0, 1.0, 2.0]), 10, seed=0, repeats=False)
    assert len(result.policy.history) == 3
    assert result.x == 1.0
    line = Paths([0.0, 1.0, 2.0], MoveTable({0: [[1]], 1: [[2]]}), start=0)
    assert optimize(lambda X: X[:, 0], line, 5, seed=0).x == 2.0
    short = Paths([0.0, 1.0], MoveTable({0: [[1]], 1: [[0]]}), start=0, budget=2)
    assert len(optimize(lambda X: X[:, 0], short, 5, seed=0).policy.history) == 2


class Poor(RandomSearch):
    """It cannot afford the first measurement."""

    def _choose(self, step, context):
        raise BudgetSpent("0 of 0 queries used")


def test_no_answer_where_nothing_was_measured():
    with pytest.raises(BudgetSpent, match="0 of 0"):
        optimize(lambda x: pytest.fail("not to be measured"), Candidates([1.0, 2.0]), 5, policy=Poor)


def test_callback_sees_every_measurement():
    seen = []
    optimize(
        lambda x: x[0], Candidates([1.0, 2.0, 3.0]), 4, seed=0, callback=lambda policy, query: seen.append(query.id)
    )
    assert seen == [0, 1, 2, 3]


# -- objectives that are generators ----------------------------------------------------------------------------------

EPOCHS = 6


class Patient(RandomSearch):
    """Random search that ends a run after its third epoch unless it is better than one half by then."""

    steps = True

    def __init__(self, domain, *, epochs=EPOCHS, **options):
        super().__init__(domain, **options)
        self.epochs = epochs

    def _advise(self, query, step, value):
        return Advice(stop=value is None or (step == 3 and value < 0.5))

    @property
    def epochs_saved(self):
        return sum(self.epochs - max(steps) for steps in self.reports().values())


class Training:
    """A generator objective that counts what is done with it."""

    def __init__(self, epochs=EPOCHS, sign=1.0):
        self.epochs, self.sign, self.started, self.closed, self.trained = epochs, sign, 0, 0, 0

    def __call__(self, x):
        self.started += 1
        try:
            for epoch in range(1, self.epochs + 1):
                self.trained += 1
                yield self.sign * x[0] * epoch / self.epochs
        finally:
            self.closed += 1


LINE = Box([(0.0, 2.0)])


def told(policy):
    return [(event["id"], event["value"]) for event in policy.events if event["event"] == "told"]


def test_policies_without_steps_are_told_the_last_value():
    objective = Training()
    result = optimize(objective, LINE, 5, policy=RandomSearch, seed=0)
    assert [o.value for o in result.policy.history] == [o.x[0] for o in result.policy.history]
    assert objective.closed == objective.started == 5
    assert result.policy.reports() == {}
    assert (result.epochs, result.saved) == (None, None)


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_runs_are_reported_stopped_and_closed(direction):
    sign = 1.0 if direction == "maximize" else -1.0
    objective = Training(sign=sign)
    result = optimize(objective, LINE, 12, policy=Patient, seed=0, direction=direction)
    reports, history = result.policy.reports(), result.policy.history
    for o in history:
        length = 3 if o.x[0] / 2 < 0.5 else EPOCHS
        assert list(reports[o.id]) == list(range(1, length + 1))
        assert o.value == reports[o.id][length] == pytest.approx(sign * o.x[0] * length / EPOCHS)
    lengths = [len(steps) for steps in reports.values()]
    assert {3, EPOCHS} == set(lengths), "the test needs both kinds"
    assert objective.closed == objective.started == 12
    assert objective.trained == result.epochs == sum(lengths)
    assert result.saved == 12 * EPOCHS - sum(lengths)


def test_runs_longer_than_the_policy_expects_are_cut_and_shorter_ones_count():
    longer = Training(epochs=5)
    result = optimize(longer, LINE, 4, policy=Patient, epochs=4, seed=0)
    assert max(max(steps) for steps in result.policy.reports().values()) == 4
    assert longer.closed == 4
    shorter = optimize(Training(epochs=2), LINE, 4, policy=Patient, seed=0)
    assert all(list(steps) == [1, 2] for steps in shorter.policy.reports().values())
    assert not any(o.failed for o in shorter.policy.history)


@pytest.mark.parametrize("stepped", [Patient, RandomSearch])
def test_a_generator_that_raises_yields_nothing_or_diverges_is_a_failed_run(stepped):
    def raising(x):
        yield 0.9
        raise ArithmeticError("diverged")

    def silent(x):
        yield from ()

    def diverging(x):
        yield 0.9
        yield float("nan")

    policies = []
    for objective in (raising, silent, diverging):
        with pytest.raises(NoData):  # every run failed
            optimize(
                objective,
                LINE,
                2,
                policy=stepped,
                seed=0,
                catch=(ArithmeticError,),
                callback=lambda policy, query: policies.append(policy),
            )
        assert [o.failed for o in policies[-1].history] == [True, True]
    with pytest.raises(ArithmeticError):
        optimize(raising, LINE, 2, policy=stepped, seed=0)


def test_an_error_of_the_policy_is_not_a_failed_run():
    class Broken(Patient):
        def _advise(self, query, step, value):
            raise ArithmeticError("a bug")

    objective = Training()
    with pytest.raises(ArithmeticError, match="a bug"):
        optimize(objective, LINE, 2, policy=Broken, seed=0, catch=(ArithmeticError,))
    assert objective.closed == 1


def test_errors_while_closing_count_only_if_they_are_not_caught():
    def untidy(x):
        try:
            for _ in range(EPOCHS):
                yield 0.1
        finally:
            raise ArithmeticError("cannot clean up")

    result = optimize(untidy, LINE, 2, policy=Patient, seed=0, catch=(ArithmeticError,))
    assert [o.value for o in result.policy.history] == [0.1, 0.1]
    with pytest.raises(ArithmeticError):
        optimize(untidy, LINE, 2, policy=Patient, seed=0)


@pytest.mark.parametrize("stepped", [Patient, RandomSearch])
@pytest.mark.parametrize("lines", range(2, 26, 3))
def test_resumed_anywhere_a_run_goes_on_and_reports_nothing_twice(stepped, lines, tmp_path):
    """The journal is cut after any line, as a crash there would leave it."""
    path = tmp_path / "run.jsonl"

    def run():
        objective = Training()
        return objective, optimize(objective, LINE, 5, policy=stepped, seed=2, journal=path)

    _, whole = run()
    content = path.read_text().splitlines(keepends=True)
    path.write_text("".join(content[:lines]))
    objective, resumed = run()
    assert resumed.policy.events[: lines - 1] == whole.policy.events[: lines - 1]  # their times, too
    assert timeless(resumed.policy.events) == timeless(whole.policy.events)
    assert objective.closed == objective.started


def test_a_run_at_its_end_is_not_made_again(tmp_path):
    """Stopped by advice, or complete, but the crash came before that was told."""
    path = tmp_path / "run.jsonl"
    optimize(Training(), LINE, 6, policy=Patient, seed=0, journal=path)
    content = path.read_text().splitlines(keepends=True)
    ends = [i for i, line in enumerate(content) if '"told"' in line]
    lengths = set()
    for end in ends:
        path.write_text("".join(content[:end]))
        objective = Training()
        resumed = optimize(objective, LINE, len([e for e in ends if e <= end]), policy=Patient, seed=0, journal=path)
        assert objective.started == 0
        lengths.add(len(resumed.policy.reports()[resumed.policy.history[-1].id]))
    assert lengths == {3, EPOCHS}


def test_a_run_that_differs_when_made_again_keeps_what_is_on_record(tmp_path):
    path = tmp_path / "run.jsonl"

    def broken(x):
        yield 0.9
        yield 0.8
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        optimize(broken, LINE, 1, policy=Patient, seed=0, journal=path)
    again = optimize(Training(epochs=1), LINE, 1, policy=Patient, seed=0, journal=path)
    assert again.policy.reports() == {0: {1: 0.9, 2: 0.8}}
    assert told(again.policy) == [(0, 0.8)]


def test_bobos_follows_generators():
    space = Space(rate=Float(1e-3, 1.0, log=True))

    def train(params):
        for epoch in range(1, 21):
            yield (1.0 - (np.log10(params["rate"]) + 1.5) ** 2 / 3.0) * (1.0 - 0.7**epoch)

    result = optimize(train, space, 12, policy=BOBOS, epochs=20, initial=8, complete=2, seed=0)  # some runs are bad
    assert result.epochs + result.saved == 12 * 20
    assert result.saved > 0
    assert abs(np.log10(result.params["rate"]) + 1.5) < 0.3
