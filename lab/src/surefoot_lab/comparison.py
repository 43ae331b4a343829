"""Policies side by side on one problem: the usual body of an experiment.

>>> from surefoot_lab.registry import Replicate
>>> from surefoot_lab.problems import branin
>>> from surefoot.policy.search import RandomSearch, SobolSearch
>>> policies = {
...     "random": lambda domain, seed: RandomSearch(domain, seed=seed),
...     "Sobol": lambda domain, seed: SobolSearch(domain, seed=seed),
... }
>>> traces = compare(policies, branin().noisy(0.1), 5, Replicate(0))
>>> traces["Sobol"]
Trace(regret[5], simple_regret[5], cumulative_regret[5])
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from surefoot.domain import Domain
from surefoot.loop.policy import Policy
from surefoot_lab.problems import Problem
from surefoot_lab.registry import Replicate, Trace

__all__ = ["compare"]


def compare(
    policies: Mapping[str, Callable[[Domain, int], Policy]],
    problem: Problem,
    budget: int,
    replicate: Replicate,
    *,
    initial: int = 0,
    recommend: bool = False,
    watch: Callable[[Policy], Mapping[str, float]] | None = None,
) -> dict[str, Trace]:
    """Run each policy for a budget of measurements and return its regrets.

    All policies share the seed, the ``initial`` points told before the first ask, and the noise: the t-th measurement
    of each has the same error.

    Parameters
    ----------
    policies : mapping of name to function
        ``f(domain, seed)`` makes the policy.
    problem : Problem
        What is measured.
    budget : int
        Measurements after the initial ones.
    replicate : Replicate
        Gives the random streams.
    initial : int
        Uniform points that every policy is told first.
    recommend : bool
        Also ask for a recommendation after each measurement.
    watch : callable, optional
        Called with the policy after each measurement; the numbers it returns become series of the trace.

    Returns
    -------
    dict of Trace
        Noise-free series over the measurements: ``regret`` of the measured point, ``simple_regret`` of the best point
        so far (initial ones included), ``cumulative_regret``, and ``reported_regret`` of the recommended point.

    >>> from surefoot_lab.problems import branin
    >>> from surefoot.policy.search import RandomSearch
    >>> traces = compare({"random": lambda d, s: RandomSearch(d, seed=s)}, branin(), 3, Replicate(0))
    >>> traces["random"]["simple_regret"].shape
    (3,)
    """
    if budget < 1:
        raise ValueError(f"the budget is at least one measurement, got {budget}")
    start = problem.domain.sample(initial, replicate.rng("initial")) if initial else None
    return {
        name: _trace(make(problem.domain, replicate.integer), problem, budget, replicate, start, recommend, watch)
        for name, make in policies.items()
    }


def _trace(
    policy: Policy,
    problem: Problem,
    budget: int,
    replicate: Replicate,
    start: np.ndarray | None,
    recommend: bool,
    watch: Callable[[Policy], Mapping[str, float]] | None,
) -> Trace:
    noise = replicate.rng("noise")
    best = np.inf
    if start is not None:
        for x in start:
            policy.tell(x, problem.measure(x, noise))
        best = float(problem.regret(start).min())
    points, reported = [], []
    watched: list[Mapping[str, float]] = []
    for _ in range(budget):
        query = policy.ask()
        policy.tell(query, problem.measure(query.x, noise))
        points.append(query.x)
        if recommend:
            reported.append(policy.recommend().x)
        if watch is not None:
            watched.append(watch(policy))
    regret = problem.regret(np.array(points))
    series = {
        "regret": regret,
        "simple_regret": np.minimum(np.minimum.accumulate(regret), best),
        "cumulative_regret": np.cumsum(regret),
    }
    if recommend:
        series["reported_regret"] = problem.regret(np.array(reported))
    return Trace(**series, **{key: np.array([seen[key] for seen in watched]) for key in (watched or [{}])[0]})
