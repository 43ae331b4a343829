from __future__ import annotations

import numpy as np
import pytest

from surefoot.policy.search import RandomSearch, SobolSearch
from surefoot_lab import Replicate, compare
from surefoot_lab.problems import branin, sphere

POLICIES = {
    "random": lambda domain, seed: RandomSearch(domain, seed=seed),
    "again": lambda domain, seed: RandomSearch(domain, seed=seed),
    "Sobol": lambda domain, seed: SobolSearch(domain, seed=seed),
}


def test_regrets_are_consistent():
    traces = compare(POLICIES, branin().noisy(1.0), 12, Replicate(1), initial=3, recommend=True)
    for trace in traces.values():
        regret = trace["regret"]
        assert regret.shape == (12,)
        assert (regret >= 0).all()
        assert np.array_equal(trace["cumulative_regret"], np.cumsum(regret))
        assert (np.diff(trace["simple_regret"]) <= 0).all()
        assert (trace["simple_regret"] <= np.minimum.accumulate(regret)).all()
        assert trace["reported_regret"].shape == (12,)


def test_methods_share_seed_start_and_noise():
    traces = compare(POLICIES, branin().noisy(1.0), 6, Replicate(2), initial=2, recommend=True)
    assert traces["random"].to_json() == traces["again"].to_json()
    assert traces["random"].to_json() != traces["Sobol"].to_json()
    other = compare(POLICIES, branin().noisy(1.0), 6, Replicate(3), initial=2)
    assert not np.array_equal(other["random"]["regret"], traces["random"]["regret"])


def test_noise_is_the_same_error_at_the_same_step():
    told = {}

    class Recorder(RandomSearch):
        def tell(self, query, value):
            told.setdefault(self.name, []).append((np.array(query.x), value))
            super().tell(query, value)

    def make(name):
        def policy(domain, seed):
            made = Recorder(domain, seed=seed if name == "a" else seed + 1)
            made.name = name
            return made

        return policy

    problem = sphere(2)
    compare({"a": make("a"), "b": make("b")}, problem.noisy(0.25), 5, Replicate(0))
    errors = [[value - problem(x)[0] for x, value in told[name]] for name in "ab"]
    assert errors[0] == pytest.approx(errors[1], abs=1e-9)
    assert not np.allclose(told["a"][0][0], told["b"][0][0])


def test_bad_budget():
    with pytest.raises(ValueError, match="at least one"):
        compare(POLICIES, branin(), 0, Replicate(0))
