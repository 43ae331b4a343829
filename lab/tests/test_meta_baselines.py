"""MTBO, PEM-BO and warm starts: the contract, and what each of them is supposed to compute."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot import Box, Candidates
from surefoot.belief import GP, SE, Matern
from surefoot.policy.transfer.tasks import Task
from surefoot.policy.ucb.gp_ucb import GPUCB
from surefoot.testing import PolicyContract
from surefoot_lab.baselines.multitask import MTBO, Coregionalization
from surefoot_lab.baselines.pem import PEMBO
from surefoot_lab.baselines.warm_start import WarmStart, tell_all

POINTS = np.linspace(0.0, 1.0, 41)[:, None]


class WithTasks(PolicyContract):
    """Tasks that suit the domain: shifted copies of the value that is measured."""

    tasks = 2
    options = {"tasks": [Task([[0.0, 1.0]], [1.0])]}

    def make(self, kind, **options):
        domain = options.get("domain") or self.domain(kind)
        drawn = [domain.sample(6, np.random.default_rng(i)) for i in range(self.tasks)]
        tasks = [Task(X, [self.value(domain, x) + 0.1 * i for x in X]) for i, X in enumerate(drawn)]
        return super().make(kind, **{"tasks": tasks, **options})


@pytest.mark.slow
class TestMTBO(WithTasks):
    policy = MTBO
    length = 4


class TestPEMBO(WithTasks):
    policy = PEMBO
    tasks = 6
    length = 4


class TestWarmStart(WithTasks):
    policy = WarmStart
    length = 4


def parabola(X, best, sign=1.0, level=0.0):
    return level - sign * 5.0 * (np.atleast_2d(X)[:, 0] - best) ** 2


# -- one process over all tasks ---------------------------------------------------------------------------------------


def test_coregionalization_is_the_product_of_its_factor():
    rng = np.random.default_rng(0)
    L = np.tril(rng.standard_normal((3, 3)))
    np.fill_diagonal(L, np.abs(L.diagonal()) + 0.1)
    kernel, rows = Coregionalization(L), np.array([[0.0], [2.0], [2.0], [1.0]])
    at = rows[:, 0].astype(int)
    np.testing.assert_allclose(kernel(rows), (L @ L.T)[np.ix_(at, at)])
    np.testing.assert_allclose(kernel.diag(rows), (L @ L.T)[at, at])
    np.testing.assert_allclose(kernel.with_theta(kernel.theta).factor, L, rtol=1e-12)
    np.testing.assert_allclose(kernel.scaled(4.0)(rows), 4.0 * kernel(rows))
    assert len(kernel.names) == len(kernel.theta) == 6


@pytest.mark.parametrize("bad", [[[1.0, 0.0], [0.5, -1.0]], [[1.0, 0.0]], [[np.nan]]])
def test_coregionalization_refuses_other_factors(bad):
    with pytest.raises(ValueError, match="square with a positive diagonal"):
        Coregionalization(bad)


def test_unknown_tasks_are_refused():
    with pytest.raises(ValueError, match=r"0\.\.1"):
        Coregionalization.start(2)(np.array([[2.0]]))


def test_gradient_of_the_joint_likelihood():
    rng = np.random.default_rng(1)
    kernel = Coregionalization.start(3).on([2]) * Matern(2.5, lengthscale=[0.3, 0.5]).on([0, 1])
    X = np.column_stack([rng.random((12, 2)), rng.integers(0, 3, 12)])
    y, gp = rng.standard_normal(12), GP(kernel, noise=0.1)
    _, slope = gp.log_likelihood(X, y, gradient=True)
    steps = 1e-6 * np.eye(len(gp.theta))
    up, down = ([gp.with_theta(gp.theta + s * step).log_likelihood(X, y) for step in steps] for s in (1, -1))
    np.testing.assert_allclose(slope, (np.array(up) - down) / 2e-6, atol=1e-5)


def test_one_task_without_others_is_the_plain_posterior():
    """With B the identity between tasks, the other tasks say nothing."""
    X, y = POINTS[::8], parabola(POINTS[::8], 0.4)
    both = Coregionalization(np.eye(2)).on([1]) * SE(0.2).on([0])
    data = np.vstack([np.column_stack([X, np.zeros(len(X))]), np.column_stack([X, np.ones(len(X))])])
    joint = GP(both, noise=0.01).condition(data, np.concatenate([100.0 * y, y]))
    plain = GP(SE(0.2), noise=0.01).condition(X, y)
    np.testing.assert_allclose(joint.mean(np.column_stack([POINTS, np.ones(41)])), plain.mean(POINTS), atol=1e-9)


def test_mtbo_learns_the_sign_of_a_task():
    tasks = [Task(POINTS[::4], parabola(POINTS[::4], 0.45)), Task(POINTS[::4], parabola(POINTS[::4], 0.45, sign=-1.0))]
    policy = MTBO(Box([(0.0, 1.0)]), tasks=tasks, seed=0)
    for _ in range(4):
        query = policy.ask()
        policy.tell(query, float(parabola(query.x, 0.5)[0]))
    B = policy.covariance
    correlation = B / np.sqrt(np.outer(B.diagonal(), B.diagonal()))
    assert correlation[2, 0] > 0.5 > -0.5 > correlation[2, 1]
    assert abs(policy.recommend().x[0] - 0.5) < 0.1


def test_mtbo_with_a_given_process_never_fits():
    policy = MTBO(Box([(0.0, 1.0)]), tasks=[Task([[0.5]], [1.0])], gp=GP(SE(0.3), noise=0.1), seed=0)
    policy.tell(policy.ask(), 2.0)
    policy.ask()
    np.testing.assert_allclose(policy.covariance, [[1.0, 0.5], [0.5, 1.0]])


# -- a prior estimated from the tasks ---------------------------------------------------------------------------------


def test_pem_posterior_is_that_of_the_paper():
    """Against the formulas written out, with tasks measured everywhere and a nugget too small to matter."""
    rng = np.random.default_rng(3)
    Y = rng.standard_normal((9, 12)).cumsum(axis=1)
    X = np.arange(12.0)[:, None]
    gp = GP(SE(0.3), noise=1e-10)  # interpolates: the table is the data
    policy = PEMBO(Candidates(X), tasks=[Task(X, row) for row in Y], gp=gp, nugget=1e-10, seed=0)
    np.testing.assert_allclose(policy.table, Y, atol=1e-6)
    rows, values = np.array([2, 7, 10]), np.array([1.0, -1.0, 0.5])
    for row, value in zip(rows, values, strict=True):
        policy.tell(X[row], value)
    mean, K = Y.mean(axis=0), np.cov(Y, rowvar=False)
    cross, own = K[:, rows], K[np.ix_(rows, rows)]
    expected = mean + cross @ np.linalg.solve(own, values - mean[rows])
    spread = (K.diagonal() - np.einsum("ct,tc->c", cross, np.linalg.solve(own, cross.T))) * 8 / (9 - 3 - 1)
    found, std = policy.rule.posterior(rows, values)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    np.testing.assert_allclose(std**2, np.maximum(spread, 0.0), atol=1e-5)
    assert policy.ask().index == int(np.argmax(expected + 2.0 * np.sqrt(np.maximum(spread, 0.0))))


def test_pem_keeps_working_when_there_are_more_points_than_tasks():
    tasks = [Task(POINTS, parabola(POINTS, best)) for best in (0.2, 0.4, 0.5, 0.6, 0.7)]
    policy = PEMBO(Candidates(POINTS), tasks=tasks, seed=0)
    for _ in range(12):
        query = policy.ask()
        policy.tell(query, float(parabola(query.x, 0.55)[0]))
    assert abs(policy.recommend().x[0] - 0.55) < 0.05


def test_pem_needs_some_tasks():
    with pytest.raises(ValueError, match="4 tasks or more, got 2"):
        PEMBO(Candidates(POINTS), tasks=[Task([[0.5]], [1.0])] * 2)
    with pytest.raises(ValueError, match="nugget"):
        PEMBO(Candidates(POINTS), tasks=[Task([[0.5]], [1.0])] * 4, nugget=0.0)


# -- warm starts ------------------------------------------------------------------------------------------------------


def test_the_portfolio_covers_the_tasks():
    """Two tasks share a maximum: it comes first; the third one's comes next; nothing else is left."""
    tasks = [Task(POINTS, parabola(POINTS, best)) for best in (0.3, 0.8, 0.3)]
    policy = WarmStart(Box([(0.0, 1.0)]), tasks=tasks, initial=5, seed=0)
    np.testing.assert_allclose(policy.portfolio(), [[0.3], [0.8]])
    assert [round(float(policy.ask().x[0]), 6) for _ in range(2)] == [0.3, 0.8]
    assert policy.ask().note["initial"]  # then the design


def test_a_portfolio_of_candidates():
    domain = Candidates(POINTS[::10])  # 0, 0.25, 0.5, 0.75, 1
    policy = WarmStart(domain, tasks=[Task(POINTS, parabola(POINTS, 0.3))], seed=0)
    assert policy.ask().x[0] == 0.25


def test_telling_all():
    tasks = [Task(POINTS[::10], parabola(POINTS[::10], 0.3)), Task(POINTS[::20], parabola(POINTS[::20], 0.6))]
    policy = tell_all(GPUCB(Box([(0.0, 1.0)]), seed=0), tasks)
    assert len(policy.history) == 5 + 3
    np.testing.assert_allclose(policy.data()[1], np.concatenate([task.y for task in tasks]))
