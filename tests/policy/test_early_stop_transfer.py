"""BO-BOS with earlier tasks: exact reductions to both parts, tasks of abandoned runs, use of good tasks."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot import BOBOS, GP, RMBOBOS, RMGPUCB, Box, Candidates, Float, Matern, Space, Task, widths

N = 12
BOX = Box([(0.0, 1.0), (0.0, 1.0)])
OVER_EPOCHS = GP(Matern(2.5, lengthscale=[0.3, 0.4, 0.8], variance=0.05), noise=1e-4, mean=0.7)
OVER_POINTS = GP(Matern(2.5, lengthscale=[0.3, 0.4], variance=0.05), noise=1e-4, mean=0.7)


def final(x):
    return 0.95 - 0.8 * (x[..., 0] - 0.7) ** 2 - 0.5 * (x[..., 1] - 0.2) ** 2


def score(x, epoch):
    return final(x) * (1.0 - 0.75**epoch)


def tasks(rng=0):
    X = np.random.default_rng(rng).random((15, 2))
    return [Task(X, final(X) - 0.01, name="alike"), Task(X, 0.3 + 0.5 * X[:, 1], name="unlike")]


def drive(policy, runs, *, stop=True):
    """Run a policy and return what it asked for."""
    asked = []
    for _ in range(runs):
        query = policy.ask()
        for epoch in range(1, N + 1):
            if policy.report(query, epoch, float(score(query.x, epoch))).stop and stop:
                break
        policy.tell(query)
        asked.append(query.x)
    return np.array(asked)


@pytest.mark.parametrize("domain", [BOX, Candidates(np.random.default_rng(3).random((40, 2)))])
def test_without_influence_it_is_bo_bos(domain):
    common = {"epochs": N, "gp": OVER_EPOCHS, "initial": 0, "width": widths.Constant(2.0), "seed": 4}
    plain = BOBOS(domain, **common)
    remembering = RMBOBOS(domain, tasks=tasks(), influence=0.0, **common)
    assert np.array_equal(drive(plain, 8), drive(remembering, 8))
    assert plain.stopped == remembering.stopped
    assert plain.stopped  # the comparison covers abandoned runs


@pytest.mark.parametrize("domain", [BOX, Candidates(np.random.default_rng(3).random((40, 2)))])
def test_without_stopping_it_is_rm_gp_ucb(domain):
    """All rows of all runs then lie at the last epoch, where the epoch of a stationary kernel plays no part."""
    common = {"tasks": tasks(), "width": widths.Constant(2.0), "seed": 4}
    followed = RMBOBOS(domain, epochs=N, stop_until=0, gp=OVER_EPOCHS, **common)
    plain = RMGPUCB(domain, gp=OVER_POINTS, **common)
    drive(followed, 8)
    for query in followed.queries:
        own = plain.ask()
        assert np.allclose(own.x, query.x, atol=1e-7)
        plain.tell(own, float(score(query.x, N)))
    assert np.allclose(plain.weights, followed.weights, atol=1e-6)
    assert plain.nu == pytest.approx(followed.nu)
    assert not followed.stopped


def test_good_tasks_save_the_first_runs_and_bad_ones_lose_their_weight():
    policy = RMBOBOS(BOX, epochs=N, tasks=tasks(), seed=1)
    asked = drive(policy, 10)
    blind = BOBOS(BOX, epochs=N, seed=1)
    regret = 0.95 - final(asked)
    assert regret[:3].min() < 0.25 * (0.95 - final(drive(blind, 10)))[:3].min()
    assert policy.weights[0] > 0.9
    assert policy.weight_history.shape == (sum("initial" not in query.note for query in policy.queries), 2)
    assert policy.epochs_used + policy.epochs_saved == 10 * N


def test_abandoned_runs_of_a_task_are_compared_at_their_own_epoch():
    """A task of half-finished runs of the very same function is no worse a task than one of complete runs."""
    X = np.random.default_rng(0).random((20, 2))
    lasted = np.where(np.arange(20) % 2, 3, N)
    half = np.array([score(x, n) for x, n in zip(X, lasted, strict=True)])
    known = Task(X, half, name="epochs known", epochs=lasted)
    blind = Task(X, half, name="epochs unknown")
    policy = RMBOBOS(BOX, epochs=N, tasks=[known, blind], intermediate=(1, 3, 6), seed=0)
    drive(policy, 8, stop=False)
    assert policy.gaps[0] < 0.5 * policy.gaps[1]
    assert policy.weights[0] > 0.8
    model, confused = policy.models.model(0), policy.models.model(1)
    at = BOX.encode(X[1::2])
    error = np.abs(model.predict(at)[0] - score(X[1::2], N))
    assert error.mean() < 0.5 * np.abs(confused.predict(at)[0] - score(X[1::2], N)).mean()


def test_a_journal_of_bo_bos_is_a_task_with_its_epochs(tmp_path):
    path = tmp_path / "old.jsonl"
    with BOBOS(BOX, epochs=N, seed=2, journal=path) as policy:
        drive(policy, 9)
        policy.tell([0.5, 0.5], 0.9)
        lengths = [policy.length(query) for query in policy.queries]
        assert policy.stopped
    task = Task.from_journal(path)
    assert task.epochs is not None
    assert np.array_equal(task.epochs[:9], lengths)
    assert np.isnan(task.epochs[9])
    again = Task.from_dict(task.to_dict())
    assert again == task
    assert again != Task(task.X, task.y, task.name)
    assert np.array_equal(task.within(Box([(0.0, 0.6), (0.0, 1.0)])).epochs, task.epochs[task.X[:, 0] <= 0.6], True)
    seen = RMBOBOS(BOX, epochs=5, tasks=[task], seed=0).models.inputs(0)
    assert seen.shape == (10, 3)
    assert seen[:, 2].max() == 1.0  # epochs beyond the last one, and unknown ones, count as complete


def test_a_state_continues_bit_for_bit():
    space = Space(a=Float(0.0, 1.0), b=Float(0.0, 1.0))
    policy = RMBOBOS(space, epochs=N, tasks=tasks(), seed=3)
    drive(policy, 5)
    again = RMBOBOS.from_state(policy.state())
    assert again.ask() == policy.ask()
    assert again.stopped == policy.stopped


def test_what_is_wrong_is_said():
    with pytest.raises(ValueError, match="at least one earlier task"):
        RMBOBOS(BOX, epochs=N, tasks=[])
    with pytest.raises(ValueError, match="epochs are counted from 1"):
        Task([[0.5, 0.5]], [1.0], epochs=[0])
    with pytest.raises(ValueError, match="growth"):
        RMBOBOS(BOX, epochs=N, tasks=tasks(), growth=2.0)
