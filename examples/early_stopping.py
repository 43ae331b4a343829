"""Tune a small neural network, and give up training runs that will not beat the best one.

python examples/early_stopping.py
"""

from collections.abc import Iterator

import numpy as np

import surefoot
from surefoot import BOBOS, Float, Int, Space

EPOCHS = 40

# Two interleaved spirals, and a third of the points kept for validation.
rng = np.random.default_rng(0)
label = rng.integers(0, 2, 900)
angle = rng.uniform(0.3, 3.0, 900) * np.pi
X = np.stack([angle * np.cos(angle + np.pi * label), angle * np.sin(angle + np.pi * label)], axis=1) / 6.0
X += 0.08 * rng.standard_normal(X.shape)

space = Space(
    rate=Float(1e-3, 3.0, log=True),
    momentum=Float(0.0, 0.99),
    decay=Float(1e-6, 1e-1, log=True),
    units=Int(4, 64, log=True),
)


def train(params: dict[str, float]) -> Iterator[float]:
    """Yield the validation accuracy after each epoch: this is all that early stopping needs."""
    draw = np.random.default_rng(1)
    W = [draw.standard_normal((3, params["units"])) * 2.0, draw.standard_normal((params["units"] + 1, 1)) * 0.1]
    speed = [np.zeros_like(w) for w in W]
    for _epoch in range(EPOCHS):
        for batch in np.array_split(draw.permutation(600), 20):
            inner = np.column_stack([X[batch], np.ones(len(batch))])
            hidden = np.column_stack([np.tanh(inner @ W[0]), np.ones(len(batch))])
            error = 1.0 / (1.0 + np.exp(-np.clip(hidden @ W[1], -30, 30))) - label[batch, None]
            back = (error @ W[1][:-1].T) * (1.0 - hidden[:, :-1] ** 2)
            for i, gradient in enumerate([inner.T @ back, hidden.T @ error]):
                speed[i] = params["momentum"] * speed[i] - params["rate"] * (gradient / 30 + params["decay"] * W[i])
                W[i] = W[i] + speed[i]
        hidden = np.tanh(np.column_stack([X[600:], np.ones(300)]) @ W[0])
        yield float(np.mean((hidden @ W[1][:-1] + W[1][-1] > 0)[:, 0] == label[600:]))


result = surefoot.optimize(train, space, budget=20, policy=BOBOS, epochs=EPOCHS, seed=0)
policy = result.policy
for run in policy.history:
    why = policy.stopped.get(run.id, "complete")
    print(f"run {run.id:2d}: {policy.length(run.id):2d} epochs, accuracy {run.value:.3f}, {why}")
print(f"{policy.epochs_used} epochs used, {policy.epochs_saved} saved; use {result.params}: {result.value:.3f}")
