"""One party: kernel ridge regression on its own data, scored on rows it keeps apart."""

from __future__ import annotations

import numpy as np

from ridge_federation.agreement import make_agent
from surefoot.bridge.flower import client_app


def own_data(context):
    """The node's file, `data="table.csv"` in its configuration with the target last; else data of its own making."""
    if path := context.node_config.get("data"):
        return np.loadtxt(path, delimiter=",")
    number = int(context.node_config.get("agent", context.node_config.get("partition-id", 0)))
    rng = np.random.default_rng(number)
    X = rng.uniform(-2.0, 2.0, (120, 2))
    y = np.sin((2.0 + 0.1 * number) * X[:, 0]) * X[:, 1] + 0.3 * rng.standard_normal(120)
    return np.column_stack([X, y])


def objective(query, context):
    """R² on the last third of the rows."""
    data = own_data(context)
    X, y, rows = data[:, :-1], data[:, -1], 2 * len(data) // 3
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=-1)
    K = np.exp(-squares / (2.0 * query.params["width"] ** 2))
    weights = np.linalg.solve(K[:rows, :rows] + query.params["penalty"] * np.eye(rows), y[:rows])
    return float(1.0 - np.mean((y[rows:] - K[rows:, :rows] @ weights) ** 2) / np.var(y[rows:]))


app = client_app(make_agent, objective)
