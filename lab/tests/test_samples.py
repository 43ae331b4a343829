from __future__ import annotations

import numpy as np
import pytest

from surefoot.belief.kernels import SE, Matern
from surefoot.domain import Box
from surefoot_lab.problems import grid
from surefoot_lab.samples import gp_sample_continuous, gp_sample_grid, gp_sample_lattice


def covariance(draw, count):
    values = np.array([draw(np.random.default_rng(i)) for i in range(count)])
    return values.T @ values / count


def test_grid_draws_have_the_kernel_as_covariance():
    X, kernel = np.linspace(0, 1, 6)[:, None], Matern(1.5, 0.3, variance=2.0)
    C = covariance(lambda rng: gp_sample_grid(kernel, X, rng)(X), 1500)
    assert np.abs(C - kernel(X)).max() < 5 * 2.0 * np.sqrt(2 / 1500)


def test_lattice_draws_have_the_kernel_as_covariance():
    axes, kernel = [np.linspace(0, 1, 3), np.linspace(0, 2, 2)], SE([0.5, 1.5], variance=0.5)
    X = grid([(0, 1), (0, 2)], (3, 2))
    problem = gp_sample_lattice(kernel, axes, np.random.default_rng(0))
    assert np.array_equal(problem.domain.points, X)
    C = covariance(lambda rng: gp_sample_lattice(kernel, axes, rng)(X), 1500)
    assert np.abs(C - kernel(X)).max() < 5 * 0.5 * np.sqrt(2 / 1500)


def test_smooth_kernels_on_fine_grids_do_not_break():
    X = grid([(0, 1)] * 2, 25)
    assert np.isfinite(gp_sample_grid(SE(1.0), X, np.random.default_rng(0))(X)).all()


def test_continuous_sample():
    problem = gp_sample_continuous(SE(0.2), Box.unit(2), np.random.default_rng(3), mean=5.0, features=512)
    X = grid([(0, 1)] * 2, 100)
    assert problem.regret(X).min() > -1e-9  # nothing on a fine grid beats the optimum found
    assert problem.regret(X).min() < 1e-2
    assert problem.regret(problem.optimizers)[0] == pytest.approx(0.0, abs=1e-12)
    again = gp_sample_continuous(SE(0.2), Box.unit(2), np.random.default_rng(3), mean=5.0, features=512)
    assert np.array_equal(problem(X), again(X))


def test_continuous_draws_have_the_kernel_as_covariance():
    X, kernel = np.linspace(0, 1, 4)[:, None], SE(0.4)
    box = Box.unit(1)
    C = covariance(lambda rng: gp_sample_continuous(kernel, box, rng, features=64, raw=8)(X), 500)
    assert np.abs(C - kernel(X)).max() < 5 * np.sqrt(2 / 300)


def test_only_the_squared_exponential_factors():
    with pytest.raises(TypeError, match="factors"):
        gp_sample_lattice(Matern(2.5), [np.arange(3.0)], np.random.default_rng(0))
