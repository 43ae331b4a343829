import numpy as np
import pytest

from surefoot import GPUCB, Box, Candidates, Choice, Float, Int, Outcome, RandomSearch, Space, optimize


def test_minimizing_negates_what_goes_in_and_what_comes_out():
    result = optimize(lambda x: 3.0 + (x[0] - 0.4) ** 2, Box([(0.0, 1.0)]), 12, direction="minimize", seed=0)
    best = result.recommendation
    assert abs(result.x[0] - 0.4) < 0.02
    assert best.lower <= best.mean <= best.upper
    assert result.value == pytest.approx(3.0, abs=0.01)
    assert result.policy.history[0].value <= -3.0


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


def test_callback_sees_every_measurement():
    seen = []
    optimize(
        lambda x: x[0], Candidates([1.0, 2.0, 3.0]), 4, seed=0, callback=lambda policy, query: seen.append(query.id)
    )
    assert seen == [0, 1, 2, 3]
