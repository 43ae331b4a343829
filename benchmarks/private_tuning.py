"""Tuning on private records with a bill for the whole search: what it costs in accuracy.

    python benchmarks/private_tuning.py --repetitions 20

Handwritten digits (1797 rows of scikit-learn). 200 rows are public and train; 1000 are private and judge a setting by
its accuracy, which one record changes by 0.001; the other 597 measure what was chosen. Repetitions share splits between
methods. Two models: logistic regression (its penalty and a scale of the input) and a small network (width, learning
rate, penalty).

- *not private*: random settings, the best by exact accuracy
- *selection*: ``private_search``, geometric and logarithmic, as many runs on average
- *composition*: as many trials of a GP-UCB that sees noisy accuracies, each charged; best estimated setting
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

from surefoot import GPUCB, Float, Int, Outcome, Space
from surefoot.private import (
    GaussianEvent,
    Repeats,
    ResearchNoise,
    noise_multiplier,
    private_search,
    selection_multiplier,
)

MODELS = {
    "logistic": Space(penalty=Float(1e-5, 1e3, log=True), scale=Float(1e-3, 10.0, log=True)),
    "network": Space(width=Int(2, 64, log=True), rate=Float(1e-4, 0.3, log=True), penalty=Float(1e-5, 10.0, log=True)),
}
TRIALS, DELTA, SENSITIVITY = 20, 1e-5, 1e-3
Params = dict[str, Any]


def problem(model: str, repetition: int) -> Callable[[Params], tuple[float, float]]:
    """Return a function from a setting to its accuracy on private records and on those kept apart."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(repetition).permutation(len(y))
    train, judge, test = order[:200], order[200:1200], order[1200:]

    def measure(params: Params) -> tuple[float, float]:
        if model == "logistic":
            made: Any = LogisticRegression(C=params["penalty"], max_iter=60)
            data = X * params["scale"]
        else:
            made = MLPClassifier(
                (params["width"],),
                learning_rate_init=params["rate"],
                alpha=params["penalty"],
                max_iter=40,
                random_state=0,
            )
            data = X / 16.0
        with warnings.catch_warnings(action="ignore"):
            made.fit(data[train], y[train])
        return float(made.score(data[judge], y[judge])), float(made.score(data[test], y[test]))

    return measure


def not_private(measure: Callable[[Params], tuple[float, float]], space: Space, seed: int) -> float:
    points = space.sample(TRIALS, np.random.default_rng(seed))
    return max((measure(space.params(x) or {}) for x in points), key=lambda pair: pair[0])[1]


def selection(
    measure: Callable[[Params], tuple[float, float]], space: Space, seed: int, epsilon: float, shape: float
) -> float:
    repeats = Repeats(float(TRIALS), shape=shape)
    z = selection_multiplier(epsilon, DELTA, repeats)
    found = private_search(
        lambda params: measure(params)[0], space, event=GaussianEvent(z), repeats=repeats, delta=DELTA,
        sensitivity=SENSITIVITY, noise=ResearchNoise(seed),
    )  # fmt: skip
    return measure(found.params)[1]


def composition(measure: Callable[[Params], tuple[float, float]], space: Space, seed: int, epsilon: float) -> float:
    scale = SENSITIVITY * noise_multiplier(epsilon, DELTA, count=TRIALS)
    policy, noise = GPUCB(space, seed=seed), ResearchNoise(seed)
    for _ in range(TRIALS):
        query = policy.ask()
        value = float(noise.gaussian([measure(dict(query.params or {}))[0]], scale)[0])
        policy.tell(query, Outcome(value, noise=scale**2))
    return measure(dict(policy.recommend().params or {}))[1]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--models", nargs="*", default=list(MODELS))
    options = parser.parse_args()
    print("| model | method | " + " | ".join(f"ε = {e}" for e in (1, 3, 8)) + " |\n|---|---|---|---|---|")
    for model in options.models:
        space, rows = MODELS[model], dict[str, list[list[float]]]()
        for repetition in range(options.repetitions):
            measure = problem(model, repetition)
            free = not_private(measure, space, repetition)
            for name, method in (
                ("selection, geometric", lambda e: selection(measure, space, repetition, e, 1.0)),  # noqa: B023
                ("selection, logarithmic", lambda e: selection(measure, space, repetition, e, 0.0)),  # noqa: B023
                ("composition, GP-UCB", lambda e: composition(measure, space, repetition, e)),  # noqa: B023
            ):
                rows.setdefault(name, []).append([method(e) - free for e in (1.0, 3.0, 8.0)])
            rows.setdefault("not private", []).append([free] * 3)
        for name, values in rows.items():
            print(
                f"| {model} | {name} | " + " | ".join(cell(np.array(values)[:, j]) for j in range(3)) + " |", flush=True
            )


def cell(values: np.ndarray) -> str:
    """Mean and 95 % interval, in percent."""
    half = stats.t.ppf(0.975, max(1, len(values) - 1)) * values.std(ddof=1) / math.sqrt(len(values))
    return f"{100 * values.mean():.1f} ± {100 * half:.1f}"


if __name__ == "__main__":
    main()
