"""One full ask (fit included) and the regret it buys, beside BoTorch in the same run.

    python benchmarks/against_botorch.py [--seeds 10] [--latency-only]

Both sides run in this process with one BLAS and one torch thread. BoTorch is used as its documentation recommends:
SingleTaskGP (its default priors, standardized outputs, inputs normalized to the unit cube), LogExpectedImprovement,
``optimize_acqf`` with 10 restarts from 512 raw samples. Surefoot is ``ExpectedImprovement(domain)`` with its defaults.
Initial designs, of size d + 1 and at least 3, are shared; the simple regret is that of the best measured point,
noise-free.
"""

from __future__ import annotations

import os

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import argparse
import time
import warnings

import numpy as np
import torch
from botorch.acquisition.analytic import LogExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from botorch.optim import optimize_acqf
from gpytorch.mlls import ExactMarginalLogLikelihood
from scipy.stats import t as student

from surefoot import Box, ExpectedImprovement
from surefoot.lab import problems

torch.set_num_threads(1)
SECONDS = [0.0]  # of the last surefoot ask; telling is not part of it
warnings.filterwarnings("ignore")


def botorch_ask(box: Box, X: np.ndarray, y: np.ndarray, seed: int) -> np.ndarray:
    torch.manual_seed(seed)
    train, values = torch.tensor(X), torch.tensor(y)[:, None]
    bounds = torch.tensor(box.bounds.T.copy())
    model = SingleTaskGP(
        train, values, outcome_transform=Standardize(1), input_transform=Normalize(box.dimension, bounds=bounds)
    )
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    best = LogExpectedImprovement(model, best_f=values.max())
    candidate, _ = optimize_acqf(best, bounds=bounds, q=1, num_restarts=10, raw_samples=512)
    return candidate[0].numpy()


def surefoot_ask(box: Box, X: np.ndarray, y: np.ndarray, seed: int) -> np.ndarray:
    policy = ExpectedImprovement(box, seed=seed)
    for x, value in zip(X, y, strict=True):
        policy.tell(x, value)
    start = time.perf_counter()
    x = policy.ask().x
    SECONDS[0] = time.perf_counter() - start
    return x


def latency(repetitions: int = 5) -> None:
    problem, rng = problems.hartmann6(), np.random.default_rng(0)
    print("full ask, d = 6, median seconds\n   n   botorch  surefoot     ratio")
    for n in (20, 50, 100, 200, 400):
        times: dict[str, list[float]] = {"botorch": [], "surefoot": []}
        for repetition in range(repetitions + 1):  # the first warms up
            X = problem.domain.sample(n, rng)
            y = problem(X)
            start = time.perf_counter()
            botorch_ask(problem.domain, X, y, repetition)
            peer = time.perf_counter() - start
            surefoot_ask(problem.domain, X, y, repetition)
            if repetition:
                times["botorch"].append(peer)
                times["surefoot"].append(SECONDS[0])
        b, s = (float(np.median(values)) for values in times.values())
        print(f"{n:4d}  {b:8.4f}  {s:8.4f}  {b / s:7.1f}x", flush=True)


def simple_regret(problem: problems.Problem, ask, seed: int, budget: int) -> float:
    box = problem.domain
    X = box.design(max(3, box.dimension + 1), np.random.default_rng(seed))
    y = problem(X)
    for step in range(budget):
        x = np.clip(ask(box, X, y, 1000 * seed + step), box.bounds[:, 0], box.bounds[:, 1])
        X, y = np.vstack([X, x]), np.append(y, problem(x[None]))
    return max(problem.optimum - float(y.max()), 1e-12)


def regret(seeds: int) -> None:
    print("\nlog10 simple regret; the difference is surefoot − botorch, below zero means surefoot is better")
    print("problem            budget   botorch  surefoot   mean paired difference, 95 % interval")
    for problem, budget in [
        (problems.branin(), 30),
        (problems.hartmann6(), 50),
        (problems.levy(4), 50),
        (problems.ackley(5), 50),
        (problems.rosenbrock(4), 50),
    ]:
        asks, runs = (botorch_ask, surefoot_ask), range(1000, 1000 + seeds)  # the priors were chosen on other seeds
        pairs = np.log10([[simple_regret(problem, ask, seed, budget) for ask in asks] for seed in runs])
        difference = pairs[:, 1] - pairs[:, 0]
        half = student.ppf(0.975, seeds - 1) * difference.std(ddof=1) / np.sqrt(seeds)
        peer, own = pairs.mean(axis=0)
        middle = difference.mean()
        interval = f"{middle:+.2f} [{middle - half:+.2f}, {middle + half:+.2f}]"
        print(f"{problem.name:18s} {budget:6d}  {peer:8.2f}  {own:8.2f}   {interval}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--latency-only", action="store_true")
    arguments = parser.parse_args()
    latency()
    if not arguments.latency_only:
        regret(arguments.seeds)
