"""TruVaR: a look-ahead step beside its arithmetic, and level sets beside other libraries' acquisitions.

    python benchmarks/truvar.py step                                  # 100 x 100 candidates, NumPy
    python benchmarks/truvar.py step --device cuda --side 1000        # 1000 x 1000 on a GPU, torch
    python benchmarks/truvar.py peers --methods truvar gp-lse straddle trieste

``step`` scores all n candidates by what each would do to m points, after t measurements. Its two floors are measured in
the same run on the same device: the bare matrix product, 2 t m n operations in one block after the other, and one read
of the t n numbers that it needs. The ratio is to the larger.

``peers`` maps where a function drawn from a known prior exceeds a threshold, on the unit square. All methods start from
the same points and know the same prior; each reports a posterior mean that classifies a grid of 2,500 points. Printed
are the F1 scores after some measurements, and the time of one. A library that is not installed is named and left
out. Trieste wants an environment of its own: ``pip install trieste`` and then ``pip install -U tensorflow tf-keras
tensorflow-probability``, since the TensorFlow that one of its dependencies pins does not work with NumPy 2.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from surefoot import GP, GPLSE, SE, Box, Candidates, Straddle, TruVaR
from surefoot.belief.grid import GridPosterior
from surefoot.belief.lookahead import BLOCK, DEVICE_BLOCK, Lookahead
from surefoot_lab.bench_rates import Place, repeated
from surefoot_lab.fields import f1_score
from surefoot_lab.problems import grid
from surefoot_lab.samples import gp_sample_continuous

COLUMNS = ["device", "candidates", "m", "t", "step, ms", "product, ms", "read, ms", "step / larger floor"]
LENGTH, NOISE, LEVEL, SIDE = 0.15, 1e-4, 0.7, 50


# -- one step ----------------------------------------------------------------------------------------------------------


def step(device: str, side: int, rows: int, measurements: int, repeats: int, fused: bool | None) -> str:
    """Return one row of the table."""
    place = Place(None if device == "numpy" else device)
    rng = np.random.default_rng(0)
    n = side * side
    # Short length-scales leave something to learn everywhere.
    belief = GridPosterior(GP(SE(0.05), noise=1e-2), place.put(grid([(0.0, 1.0)] * 2, side)), capacity=measurements)
    for index in rng.integers(n, size=measurements).tolist():
        belief.append(index, 0.0)
    chosen = np.sort(rng.choice(n, size=min(rows, n), replace=False))

    def seconds(work: Callable[[], Any]) -> float:
        work()  # warms up
        return float(np.median(repeated(work, place, repeats=repeats)))

    spent = seconds(lambda: Lookahead(belief, chosen, fused=fused).gains(scale=9.0, floor=0.01))
    V = belief._V[: belief.n, :]
    U = V[:, chosen].T if device == "numpy" else V[:, chosen].T.contiguous()
    product = seconds(lambda: _product(np.ascontiguousarray(U) if device == "numpy" else U, V, device))
    read = seconds(V.sum)
    floor = max(product, read)
    cells = [device, f"{side} x {side}", f"{chosen.size:,}", f"{belief.n}"]
    cells += [f"{1e3 * value:.1f}" for value in (spent, product, read)] + [f"{spent / floor:.1f}"]
    return f"| {' | '.join(cells)} |"


def _product(U: Any, V: Any, device: str) -> None:
    """The matrix product alone, block after block, so that nothing of m n numbers is held."""
    wide = max(1, (BLOCK if device in ("numpy", "cpu") else DEVICE_BLOCK) // len(U))
    for start in range(0, V.shape[1], max(wide, 256)):
        U @ V[:, start : start + max(wide, 256)]


# -- beside other libraries --------------------------------------------------------------------------------------------


class Ours:
    """One of our policies on the grid, or on the square itself."""

    def __init__(self, kind: Callable[..., Any], X: np.ndarray, y: np.ndarray, domain: Any, **options: Any) -> None:
        self.policy = kind(domain, gp=GP(SE(LENGTH), noise=NOISE), **options)
        for x, value in zip(X, y, strict=True):
            self.policy.tell(x, float(value))

    def ask(self) -> np.ndarray:
        return self.policy.ask().x

    def tell(self, x: np.ndarray, y: float) -> None:
        self.policy.tell(self.policy.pending[0], float(y))

    def mean(self, points: np.ndarray) -> np.ndarray:
        return self.policy.posterior().mean(points)


class Trieste:
    """Trieste's ExpectedFeasibility (Bichon's and Ranjan's criteria) on a GPflow model with the known prior."""

    def __init__(self, X: np.ndarray, y: np.ndarray, threshold: float, delta: int = 1) -> None:
        import gpflow
        import tensorflow as tf
        from trieste.acquisition import ExpectedFeasibility
        from trieste.acquisition.rule import EfficientGlobalOptimization
        from trieste.ask_tell_optimization import AskTellOptimizer
        from trieste.data import Dataset
        from trieste.models.gpflow import GaussianProcessRegression
        from trieste.space import Box as Square

        self.tf, self.Dataset = tf, Dataset
        X, y = tf.constant(X, tf.float64), tf.constant(y[:, None], tf.float64)
        gpr = gpflow.models.GPR((X, y), gpflow.kernels.SquaredExponential(lengthscales=LENGTH), noise_variance=NOISE)
        gpflow.set_trainable(gpr, False)
        self.model = GaussianProcessRegression(gpr)
        self.model.optimize = lambda dataset: None  # the prior is known: nothing to fit
        rule = EfficientGlobalOptimization(ExpectedFeasibility(threshold, delta=delta))
        square = Square([0.0, 0.0], [1.0, 1.0])
        self.optimizer = AskTellOptimizer(square, Dataset(X, y), self.model, rule, fit_model=False)

    def ask(self) -> np.ndarray:
        return self.optimizer.ask().numpy()[0]

    def tell(self, x: np.ndarray, y: float) -> None:
        tf = self.tf
        self.optimizer.tell(self.Dataset(tf.constant(x[None], tf.float64), tf.constant([[y]], tf.float64)))

    def mean(self, points: np.ndarray) -> np.ndarray:
        model = self.optimizer.model
        return model.predict(self.tf.constant(points, self.tf.float64))[0].numpy()[:, 0]


NEEDS = {"trieste": "trieste"}
METHODS = ["truvar", "gp-lse", "straddle", "truvar-box", "gp-lse-box", "trieste"]


def make(method: str, points: np.ndarray, X: np.ndarray, y: np.ndarray, threshold: float, seed: int) -> Any:
    """Return one method after its first measurements."""
    if method == "trieste":
        return Trieste(X, y, threshold)
    domain = Box.unit(2) if method.endswith("-box") else Candidates(points)
    kind, more = {
        "truvar": (TruVaR, {"goal": "level", "among": "potential"}),
        "gp-lse": (GPLSE, {}),
        "straddle": (Straddle, {}),
    }[method.removesuffix("-box")]
    return Ours(kind, X, y, domain, threshold=threshold, seed=seed, **more)


def play(method: str, seed: int, checks: list[int]) -> tuple[list[float], float]:
    """Return the F1 scores after so many measurements, and the seconds of one ask and tell."""
    rng = np.random.default_rng(seed)
    points = grid([(0.0, 1.0)] * 2, SIDE)
    f = gp_sample_continuous(SE(LENGTH), Box.unit(2), rng)
    truth = f(points)
    threshold = float(np.quantile(truth, LEVEL))
    X = points[rng.choice(len(points), 5, replace=False)]
    noise = rng.standard_normal(checks[-1] + 5) * NOISE**0.5
    player = make(method, points, X, f(X) + noise[:5], threshold, seed)
    scores, spent = [], 0.0
    for k in range(checks[-1]):
        start = time.perf_counter()
        x = player.ask()
        spent += time.perf_counter() - start
        value = float(f(x[None])[0] + noise[5 + k])
        start = time.perf_counter()
        player.tell(x, value)
        spent += time.perf_counter() - start
        if k + 1 in checks:
            scores.append(f1_score(truth > threshold, player.mean(points) > threshold))
    return scores, spent / checks[-1]


def peers(methods: list[str], runs: int, checks: list[int]) -> None:
    heads = [f"F1 at {k}" for k in checks]
    print(f"| method | runs | {' | '.join(heads)} | seconds per measurement |\n{'|---' * (3 + len(heads))}|")
    for method in methods:
        if (package := NEEDS.get(method)) and importlib.util.find_spec(package) is None:
            print(f"| {method} | not installed |{' |' * (1 + len(heads))}")
            continue
        found = [play(method, seed, checks) for seed in range(runs)]
        means = [f"{np.mean(column):.3f}" for column in zip(*(scores for scores, _ in found), strict=True)]
        took = statistics.median(seconds for _, seconds in found)
        print(f"| {method} | {runs} | {' | '.join(means)} | {took:.4f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("step")
    one.add_argument("--device", default="numpy", help="numpy, or a torch device: cpu, cuda")
    one.add_argument("--side", type=int, default=100)
    one.add_argument("--rows", type=int, nargs="+", default=[300, 1000, 10_000])
    one.add_argument("--measurements", type=int, nargs="+", default=[50, 200])
    one.add_argument("--repeats", type=int, default=5)
    one.add_argument(
        "--fused", action=argparse.BooleanOptionalAction, help="compile the pass; by default if it is long"
    )
    many = commands.add_parser("peers")
    many.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    many.add_argument("--runs", type=int, default=10)
    many.add_argument("--checks", type=int, nargs="+", default=[20, 40, 60])
    options = parser.parse_args()
    if options.command == "peers":
        peers(options.methods, options.runs, sorted(options.checks))
        return
    print(f"| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|")
    for measurements in options.measurements:
        for rows in options.rows:
            print(step(options.device, options.side, rows, measurements, options.repeats, options.fused), flush=True)


if __name__ == "__main__":
    main()
