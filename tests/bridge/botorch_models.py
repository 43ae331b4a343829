"""What the tests of the BoTorch bridge share: data, a goal, models and domains."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from botorch.models import SingleTaskGP

from surefoot import Box, Candidates

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(9, 2))
Y = np.sin(5.0 * X[:, 0]) + X[:, 1] ** 2
Z = RNG.uniform(size=(12, 2))
UNIT = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
LINE = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
GRID = np.linspace(0.0, 1.0, 41)


@pytest.fixture(autouse=True)
def quiet_and_seeded():
    torch.manual_seed(0)  # the starts of optimize_acqf
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def tensor(array) -> torch.Tensor:
    return torch.as_tensor(np.array(array), dtype=torch.float64)


def close(a, b, tolerance=1e-8) -> bool:
    a, b = (v.detach().numpy() if isinstance(v, torch.Tensor) else np.asarray(v) for v in (a, b))
    return np.allclose(a, b, rtol=0.0, atol=tolerance)


def goal(x) -> float:
    return float(np.sin(6.0 * x[0]) + 0.5 * np.sum(x))


def run(policy, steps=6) -> list[list[float]]:
    asked = []
    for _ in range(steps):
        query = policy.ask()
        policy.tell(query, goal(query.x))
        asked.append(query.x.tolist())
    return asked


def line_model(**options) -> SingleTaskGP:
    x = np.linspace(0.05, 0.95, 6)[:, None]
    return SingleTaskGP(tensor(x), tensor([[goal(v)] for v in x]), **options).eval()


DOMAINS = {"candidates": Candidates(GRID), "box": Box([(0.0, 1.0)])}
