"""A whole black-box attack on one image, without the time of the classifier.

    python benchmarks/attack.py [--budget 900] [--repeats 3] [--images mnist cifar10] [--seed 0]

The model under test is linear, so that its own time is next to nothing, and so sure of itself that no attack within the
ball succeeds: every attack spends its whole budget. Prints the seconds per attack and per query of BOS², with and
without stopping, and of the methods it is compared with, and how many loops were given up. Methods that use no model of
the search are there for scale.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np

from surefoot.attack import BOS2, BlackBox, NormBall, Resize
from surefoot.attack.bayesopt_attack import BayesOptAttack
from surefoot.attack.genattack import GenAttack
from surefoot.attack.square_attack import SquareAttack

SHAPES = {"mnist": ((28, 28), 0.3), "cifar10": ((32, 32, 3), 0.05)}
METHODS = {
    "BOS²": BOS2(),
    "BOS² without stopping": BOS2(stopping=False),
    "BayesOpt": BayesOptAttack(),
    "GenAttack": GenAttack(),
    "square attack": SquareAttack(),
}


class Stubborn:
    """Ten classes, linear and smooth; the log-odds of class 1 are far beyond what the ball can reach."""

    def __init__(self, shape: tuple[int, ...], radius: float, seed: int) -> None:
        rng = np.random.default_rng(seed)
        side, channels = shape[0], shape[2] if len(shape) == 3 else 1
        weights = Resize(7, (side, side)).up(rng.normal(size=(10, channels, 7, 7)))
        self.weights = np.moveaxis(weights, 1, -1).reshape(10, -1)
        self.image = rng.uniform(0.0, 1.0, shape)
        reach = radius * np.abs(self.weights[1] - self.weights[0]).sum()
        self.weights *= 10.0 / reach  # the ball is worth ten units of log-odds
        self.bias = -self.weights @ self.image.ravel() - np.where(np.arange(10) == 0, 0.0, 15.0)
        self.seconds = 0.0

    def __call__(self, images: np.ndarray) -> np.ndarray:
        start = time.perf_counter()
        logits = images.reshape(len(images), -1) @ self.weights.T + self.bias
        self.seconds += time.perf_counter() - start
        return logits


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", type=int, default=900)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--images", nargs="+", choices=sorted(SHAPES), default=["mnist"])
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for name in options.images:
        shape, radius = SHAPES[name]
        size = " x ".join(map(str, shape))
        print(f"{name}: {size}, {options.budget} queries, median of {options.repeats}, classifier excluded")
        for label, method in METHODS.items():
            seconds, rounds, given_up = [], [], []
            for repeat in range(options.repeats):
                model = Stubborn(shape, radius, options.seed + repeat)
                box = BlackBox(model, logits=True)
                start = time.perf_counter()
                result = method.run(
                    box,
                    model.image,
                    1,
                    label=0,
                    ball=NormBall(radius),
                    budget=options.budget,
                    seed=options.seed + repeat,
                )
                seconds.append(time.perf_counter() - start - model.seconds)
                if result.queries != options.budget or box.queries != options.budget:
                    raise SystemExit(f"{label} spent {result.queries} of {options.budget} queries")
                rounds.append(len(result.rounds))
                given_up.append(sum(r.stopped for r in result.rounds))
            middle = statistics.median(seconds)
            loops = f", {sum(given_up)} of {sum(rounds)} loops given up" if sum(rounds) else ""
            print(f"  {label:<22} {middle:8.2f} s  {1e3 * middle / options.budget:7.2f} ms per query{loops}")


if __name__ == "__main__":
    main()
