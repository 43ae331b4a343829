from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from surefoot.domain import Candidates
from surefoot_lab import problems

NAMES = [name for name in problems.__all__ if name not in ("Problem", "grid", "tabulated")]
PUBLISHED = {  # negated minima of the literature
    "branin": -0.397887,
    "hartmann3": 3.86278,
    "hartmann6": 3.32237,
    "goldstein_price": -3.0,
    "six_hump_camel": 1.0316,
    "shekel": 10.5364,
    "forrester": 6.02074,
    "michalewicz": 1.8013,
    "styblinski_tang": 78.33233,
}


@pytest.mark.parametrize("name", NAMES)
def test_the_optimum_is_the_optimum(name):
    problem = getattr(problems, name)()
    assert problem.optimum == pytest.approx(PUBLISHED.get(name, 0.0), abs=1e-4)
    assert problem.domain.contains(problem.optimizers).all()
    assert problem(problem.optimizers) == pytest.approx(problem.optimum, abs=1e-8)
    rng = np.random.default_rng(0)
    X = problem.domain.sample(20000, rng)
    values = problem(X)
    assert values.shape == (20000,)
    assert values.max() <= problem.optimum + 1e-9
    # A local search from the stated optimizer and from the best random point finds nothing better.
    for start in (problem.optimizers[0], X[values.argmax()]):
        found = minimize(lambda x: -problem(x)[0], start, bounds=problem.domain.bounds, method="L-BFGS-B")
        assert -found.fun <= problem.optimum + 1e-7


@pytest.mark.parametrize("name", ["ackley", "levy", "rosenbrock", "griewank", "rastrigin", "sphere", "dixon_price"])
@pytest.mark.parametrize("d", [2, 5, 30])
def test_other_dimensions(name, d):
    problem = getattr(problems, name)(d)
    assert problem.domain.dimension == d
    assert problem.optimum == pytest.approx(0.0, abs=1e-12)
    assert (problem.regret(problem.domain.sample(100, np.random.default_rng(0))) > 0).all()


def test_michalewicz_optima():
    assert [problems.michalewicz(d).optimum for d in (2, 5, 10)] == pytest.approx([1.80130, 4.68766, 9.66015], abs=1e-5)


def test_values_of_single_points():
    assert problems.branin()([[0.0, 0.0]])[0] == pytest.approx(-55.602113, abs=1e-6)
    assert problems.rosenbrock(2)([[-1.0, 2.0]])[0] == pytest.approx(-104.0)
    assert problems.goldstein_price()([[1.0, 1.0]])[0] == pytest.approx(-1876.0)


def test_noise():
    problem = problems.sphere(1).noisy(4.0)
    draws = [problem.measure([1.0], np.random.default_rng(i)) for i in range(2000)]
    assert np.mean(draws) == pytest.approx(-1.0, abs=0.15)
    assert np.var(draws) == pytest.approx(4.0, rel=0.12)
    uneven = problem.noisy(lambda X: X[:, 0] ** 2)
    assert uneven.measure([0.0], np.random.default_rng(0)) == 0.0
    # The same generator gives the same standardized error whatever the noise: methods stay paired.
    quiet = problem.noisy(0.0)
    assert quiet.measure([1.0], np.random.default_rng(1)) == -1.0
    with pytest.raises(ValueError, match="variance"):
        problem.noisy(-1.0)


def test_grids_and_tables():
    problem = problems.branin().on_grid((16, 31))
    assert isinstance(problem.domain, Candidates)
    assert problem.domain.size == 16 * 31
    assert problem.optimum == problem(problem.domain.points).max() <= problems.branin().optimum
    assert problem.regret(problem.optimizers).tolist() == [0.0]
    with pytest.raises(ValueError, match="one finite value"):
        problems.tabulated("", [[0.0], [1.0]], [1.0])
    with pytest.raises(TypeError, match="Box"):
        problem.on_grid(3)
    with pytest.raises(ValueError, match="one count"):
        problems.grid([(0, 1)], (2, 2))
    with pytest.raises(ValueError, match="at least 2"):
        problems.rosenbrock(1)
