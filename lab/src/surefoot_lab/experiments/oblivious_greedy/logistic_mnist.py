"""Which pixels of a handwritten digit to look at when some of them go missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from surefoot.select import LogisticSupport
from surefoot_lab import Budget, Data, Order, Replicate, Trace, Trend, datasets, experiment, falls, highest
from surefoot_lab.experiments.oblivious_greedy._removal import GREEDY, HALF, OBLIVIOUS, left, removed

NAMES = (HALF, GREEDY, OBLIVIOUS)
K, TAUS = 30, (5, 10, 15)

claims = [
    Order(
        "objective after removal: OBLIVIOUS-GREEDY (β = 0.5) above both",
        [test for tau in TAUS for test in highest(left(HALF, tau, K), [left(n, tau, K) for n in NAMES[1:]])],
    ),
    Order("large τ: OBLIVIOUS above GREEDY", left(OBLIVIOUS, TAUS[-1], K) > left(GREEDY, TAUS[-1], K)),
    Trend(
        "GREEDY falls fastest with τ",
        [falls(*[left(GREEDY, tau, K) - left(n, tau, K) for tau in TAUS]) for n in (HALF, OBLIVIOUS)],
    ),
]


def digits(part: str, count: int, pool: int, rng: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
    """``count`` random images of each digit, averaged over squares of ``pool`` pixels, as rows in [0, 1]."""
    data = datasets.load("mnist")
    images, labels = data[f"X_{part}"], data[f"y_{part}"]
    rows = np.concatenate([rng.permutation(np.flatnonzero(labels == digit))[:count] for digit in range(10)])
    side = images.shape[1] // pool
    pooled = images[rows].reshape(len(rows), side, pool, side, pool).mean(axis=(2, 4)) / 255.0
    return pooled.reshape(len(rows), -1), labels[rows]


@experiment(
    "oblivious-greedy/logistic-mnist",
    source="Bogunovic, Zhao and Cevher 2018; Bogunovic 2019 (thesis), Fig. 7.4",
    data=Data("published", ("mnist",)),
    unit="sample of digits",
    quick=Budget(2, settings=tuple((tau, K) for tau in TAUS), pool=2, train=20, test=50, refit=5),
    full=Budget(
        2,
        minutes=120,
        settings=((5, 30), (10, 30), (15, 30), (10, 50), (20, 50), (30, 50), (10, 80), (20, 80), (30, 80)),
        pool=2,
        train=200,
        test=100,
        refit=10,
    ),
    priority=2,
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """Pixels of handwritten digits that survive the loss of some of them."""
    X, y = digits("train", replicate["train"], replicate["pool"], replicate.rng("train"))
    test_X, test_y = digits("test", replicate["test"], replicate["pool"], replicate.rng("test"))
    varies = np.ptp(X, axis=0) > 0.0
    X, test_X = X[:, varies], test_X[:, varies]
    f = LogisticSupport(X, y, refit=replicate["refit"])

    def tested(kept: Sequence[int]) -> dict[str, float]:
        """The share of test images that the classifier on what is left gets right."""
        found = f.classes[np.argmax(test_X[:, kept] @ f.coefficients(kept), axis=1)]
        return {"accuracy": float(np.mean(found == test_y))}

    return removed(f, NAMES, replicate["settings"], replicate, tested, restarts=0)
