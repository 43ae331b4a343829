"""RM-GP-UCB: what earlier tasks are worth, and that misleading ones do no lasting harm."""

import math

import numpy as np
import pytest

from surefoot import (
    GP,
    GPUCB,
    RMGPUCB,
    SE,
    Candidates,
    Task,
    widths,
)


def functions(count, gaps, size=200, seed=0):
    """Functions on a line with tasks at these distances, as in the published synthetic study."""
    from surefoot.belief.posterior import factorize

    rng, grid = np.random.default_rng(seed), np.linspace(0.0, 1.0, size)[:, None]
    L, _ = factorize(SE(0.05)(grid), np.full(size, 1e-10))
    for _ in range(count):
        f = L @ rng.standard_normal(size)
        rows = rng.integers(size, size=(len(gaps), 20))
        tasks = [
            Task(grid[r], f[r] + rng.uniform(-d, d, 20) + 0.1 * rng.standard_normal(20))
            for r, d in zip(rows, gaps, strict=True)
        ]
        yield Candidates(grid), f, tasks, 0.1 * rng.standard_normal(60)


def regrets(policy, f, noise, steps):
    best, out = -np.inf, []
    for t in range(steps):
        query = policy.ask()
        policy.tell(query, f[query.index] + noise[t])
        best = max(best, f[query.index])
        out.append(f.max() - best)
    return out


def standard_error(difference):
    return difference.std(ddof=1) / math.sqrt(len(difference))


def test_helpful_tasks_help_from_the_first_queries():
    gp, found = GP(SE(0.05), noise=0.01), {"plain": [], "uniform": [], "learned": []}
    bad = []
    for domain, f, tasks, noise in functions(60, [0.05, 0.05, 4.0, 4.0]):
        plain = GPUCB(domain, gp=gp, width=widths.Logarithmic(0.2), seed=0)
        uniform = RMGPUCB(domain, gp=gp, tasks=tasks, scaling=None, learning_rate=0.0, seed=0)
        learned = RMGPUCB(domain, gp=gp, tasks=tasks, scaling=None, seed=0)
        for name, policy in (("plain", plain), ("uniform", uniform), ("learned", learned)):
            found[name].append(regrets(policy, f, noise, 10 if policy is learned else 5))
        bad.append(learned.weights[2:].sum())
        assert np.allclose(uniform.weights, 0.25)
    plain, uniform, learned = (np.array([r[:5] for r in found[name]]) for name in ("plain", "uniform", "learned"))
    for t in (1, 3, 5):
        assert (plain - learned)[:, t - 1].mean() > 3.0 * standard_error((plain - learned)[:, t - 1])
    for t in (3, 5):
        assert (uniform - learned)[:, t - 1].mean() > 2.0 * standard_error((uniform - learned)[:, t - 1])
        assert (plain - uniform)[:, t - 1].mean() > 2.0 * standard_error((plain - uniform)[:, t - 1])
    assert np.mean(bad) < 0.05  # of four tasks, the two bad ones are forgotten by the tenth query


@pytest.mark.parametrize("kind", ["far", "negated"])
def test_misleading_tasks_do_no_lasting_harm(kind):
    """Nothing but misleading tasks: in the end no worse than GP-UCB, up to one standard error."""
    gp, difference = GP(SE(0.05), noise=0.01), []
    for domain, f, tasks, noise in functions(40, [8.0] * 3 if kind == "far" else [0.05] * 3, seed=1):
        if kind == "negated":
            tasks = [Task(t.X, -t.y) for t in tasks]
        plain = GPUCB(domain, gp=gp, width=widths.Logarithmic(0.2), seed=0)
        robust = RMGPUCB(domain, gp=gp, tasks=tasks, seed=0)
        difference.append(np.subtract(regrets(robust, f, noise, 30), regrets(plain, f, noise, 30)))
    last = np.array(difference)[:, -1]
    assert last.mean() < standard_error(last)
