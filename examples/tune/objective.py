"""Something to tune: a small neural network that tells two spirals apart, in plain NumPy.

surefoot tune objective.py:accuracy --space space.toml --trials 30
surefoot tune objective.py:train --space space.toml --trials 30 --epochs 40
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

EPOCHS = 40


def spirals(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points (count, 2) of two noisy spirals, and which one each belongs to."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 2, count)
    turn = np.sqrt(rng.random(count)) * 5.0
    angle = turn + np.pi * label
    points = 0.2 * turn[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return points + 0.05 * rng.standard_normal((count, 2)), label.astype(float)


def train(params: dict[str, Any]) -> Iterator[float]:
    """Yield the accuracy on unseen points after each epoch."""
    points, label = spirals(400, seed=0)
    unseen, truth = spirals(400, seed=1)
    rng = np.random.default_rng(2)
    first = rng.standard_normal((3, params["hidden"])) * 2.0
    second = rng.standard_normal(params["hidden"] + 1) * 0.1
    bend = np.tanh if params["activation"] == "tanh" else lambda z: np.maximum(z, 0.0)

    def output(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        one = np.ones((len(x), 1))
        inner = np.hstack([bend(np.hstack([x, one]) @ first), one])
        return one, inner, 1.0 / (1.0 + np.exp(-np.clip(inner @ second, -30.0, 30.0)))

    for _epoch in range(EPOCHS):
        for _step in range(5):
            one, inner, guess = output(points)
            error = (guess - label)[:, None] / len(label)
            slope = 1.0 - inner[:, :-1] ** 2 if params["activation"] == "tanh" else inner[:, :-1] > 0.0
            back = error * second[:-1] * slope
            second = second - params["learning_rate"] * (inner.T @ error)[:, 0]
            first = first - params["learning_rate"] * np.hstack([points, one]).T @ back
        yield float(np.mean((output(unseen)[2] > 0.5) == truth))


def accuracy(params: dict[str, Any]) -> float:
    """Return the accuracy after the last epoch."""
    return list(train(params))[-1]
