"""How often reported bounds hold: intervals of nominal 50, 80 and 95 % at the recommended point and at random points.

    nice python benchmarks/coverage.py --raw raw.jsonl                 # some half an hour; goes on where it was stopped
    python benchmarks/coverage.py --raw raw.jsonl --sets 40            # fewer data sets of each setting
    python benchmarks/coverage.py --raw raw.jsonl --sets 0             # only prints what is there
    python benchmarks/coverage.py --raw raw.jsonl --settings choosing  # the functions that constants were chosen on
    python benchmarks/coverage.py --raw raw.jsonl --automatic 1        # the belief of version 0.1

A setting is a function, the standard deviation of the noise (as a share of that of the function over the domain; the
belief is not told of it), the number of measurements, and whether they lie at random points (``told``) or where
``ExpectedImprovement`` asked for them (``asked``). A data set is one draw of points and noise. Twelve settings on four
functions are reported, and two on draws from a Gaussian process, another one for each data set; constants were chosen
on three other functions.

Printed are, for each setting, the shares of data sets in which the intervals hold the true, noise-free value, the same
of 20 random points of each data set, Wilson's intervals of the former at 95 %, and widths. These are compared with the
95 % intervals of an oracle at the same points: a Gaussian process with the kernel and the priors of the default, with
the hyper-parameters that suit 300 exact values of the function (those of the process, where it is one), and the
true variance of the noise. It is no ideal: ``sure`` is how often its intervals hold at random points.
``next`` is the share of further noisy measurements at the recommended point within the 95 % interval for them.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from surefoot import GP, Box, Choice, ExpectedImprovement, Float, Int, Matern, Space
from surefoot.belief import Fixed
from surefoot.domain import Domain

LEVELS = (0.5, 0.8, 0.95)
RANDOM = 20  # random points of each data set
LEARNED = 300  # exact values that the oracle's hyper-parameters come from

Function = Callable[[Sequence[Any]], float]


# -- functions ---------------------------------------------------------------------------------------------------------


def branin(x: Sequence[Any]) -> float:
    a, b = 15 * x[0] - 5, 15 * x[1]
    well = (b - 5.1 / (4 * np.pi**2) * a * a + 5 / np.pi * a - 6) ** 2
    return -float(well + 10 * (1 - 1 / (8 * np.pi)) * np.cos(a) + 10)


def hill(x: Sequence[Any]) -> float:
    return float(80 - 10 * ((x[0] - 0.5) / 0.15) ** 2 - 8 * ((x[1] - 0.5) / 0.18) ** 2 + 3 * x[2])


def reaction(x: Sequence[Any]) -> float:
    temperature, concentration, solvent = x
    shift = {"water": 0.0, "ethanol": 6.0, "thf": -5.0}[solvent]
    return float(80 - ((temperature - 70) / 15) ** 2 * 10 - ((np.log10(concentration) + 2) / 0.7) ** 2 * 8 + shift)


def hartmann(x: Sequence[Any]) -> float:
    A = np.array([[3, 10, 30], [0.1, 10, 35], [3, 10, 30], [0.1, 10, 35]])
    P = np.array([[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]]) / 1e4
    return float(np.array([1, 1.2, 3, 3.2]) @ np.exp(-(A * (np.array(x) - P) ** 2).sum(axis=1)))


def camel(x: Sequence[Any]) -> float:
    a, b = 4 * x[0] - 2, 2 * x[1] - 1
    return -float((4 - 2.1 * a**2 + a**4 / 3) * a**2 + a * b + (4 * b**2 - 4) * b**2)


def friedman(x: Sequence[Any]) -> float:
    return float(10 * np.sin(np.pi * x[0] * x[1]) - 20 * (x[2] - 0.5) ** 2 + 10 * x[3] + 5 * x[4])


def training(x: Sequence[Any]) -> float:
    """What a network might reach: a learning rate, a number of layers, an optimizer and a share of dropout."""
    rate, layers, kind, dropout = x
    best, wide = {"sgd": (-1.5, 0.8), "adam": (-3.0, 0.6), "rms": (-3.3, 0.5)}[kind]
    fall = ((np.log10(rate) - best) / wide) ** 2
    return float(90 * np.exp(-0.3 * fall) - 0.6 * (layers - 5) ** 2 - 30 * (dropout - 0.25) ** 2 + (kind == "adam"))


REACTION = Space(
    temperature=Float(20, 120), concentration=Float(1e-4, 1, log=True), solvent=Choice(["water", "ethanol", "thf"])
)
TRAINING = Space(
    rate=Float(1e-5, 1.0, log=True), layers=Int(1, 9), kind=Choice(["sgd", "adam", "rms"]), dropout=Float(0.0, 0.6)
)
PROCESS = GP(Matern(2.5, lengthscale=[0.25, 0.5]), 1e-9)


@cache
def process(number: int) -> Function:
    """A draw from :data:`PROCESS`, by random Fourier features."""
    rng = np.random.default_rng([20190, number])
    frequencies = rng.standard_normal((1000, 2)) / PROCESS.kernel.lengthscale
    frequencies *= np.sqrt(5.0 / rng.chisquare(5.0, 1000))[:, None]
    phase, weight = rng.uniform(0.0, 2.0 * math.pi, 1000), rng.standard_normal(1000) * math.sqrt(2.0 / 1000)
    return lambda x: float(np.cos(frequencies @ np.asarray(x) + phase) @ weight)


FUNCTIONS: dict[str, tuple[Function, Domain]] = {
    "branin": (branin, Box.unit(2)),
    "hill": (hill, Box.unit(3)),
    "reaction": (reaction, REACTION),
    "hartmann": (hartmann, Box.unit(3)),
    "camel": (camel, Box.unit(2)),
    "friedman": (friedman, Box.unit(5)),
    "training": (training, TRAINING),
}


@dataclass(frozen=True)
class Setting:
    """A function, its noise, how many measurements, and how their points came about."""

    function: str
    noise: float
    n: int
    points: str

    @property
    def name(self) -> str:
        return f"{self.function} {self.noise:g} {self.n} {self.points}"

    def problem(self, number: int) -> str:
        """The name of the function of a data set."""
        return f"process {number}" if self.function == "process" else self.function


CHOOSING = [
    Setting(*line)
    for line in (
        ("branin", 0.0, 15, "told"),
        ("branin", 0.0, 30, "told"),
        ("branin", 0.1, 15, "told"),
        ("branin", 0.3, 30, "told"),
        ("branin", 0.1, 25, "asked"),
        ("hill", 0.1, 15, "told"),
        ("hill", 0.3, 15, "told"),
        ("hill", 0.1, 30, "told"),
        ("hill", 0.3, 50, "told"),
        ("hill", 0.1, 30, "asked"),
        ("reaction", 0.1, 15, "told"),
        ("reaction", 0.1, 30, "told"),
        ("reaction", 0.2, 20, "asked"),
    )
]
REPORTED = [
    Setting(*line)
    for line in (
        ("hartmann", 0.1, 20, "told"),
        ("hartmann", 0.3, 40, "told"),
        ("hartmann", 0.1, 30, "asked"),
        ("camel", 0.0, 20, "told"),
        ("camel", 0.1, 10, "told"),
        ("camel", 0.3, 25, "asked"),
        ("friedman", 0.1, 60, "told"),
        ("friedman", 0.0, 30, "asked"),
        ("friedman", 0.3, 40, "asked"),
        ("training", 0.1, 20, "told"),
        ("training", 0.3, 50, "told"),
        ("training", 0.1, 30, "asked"),
        ("process", 0.1, 30, "told"),
        ("process", 0.3, 40, "asked"),
    )
]


# -- one data set ------------------------------------------------------------------------------------------------------


def user(domain: Domain, x: np.ndarray) -> Any:
    """A point as a user gives it."""
    return domain.params(x) or x


def problem(name: str) -> tuple[Function, Domain]:
    """A function and its domain, by its name; of a process with the number of the draw."""
    kind, _, number = name.partition(" ")
    return (process(int(number)), Box.unit(2)) if kind == "process" else FUNCTIONS[name]


def value(name: str, x: np.ndarray) -> float:
    """The true value at a point."""
    function, domain = problem(name)
    params = domain.params(x)
    return function(list(params.values()) if params else x)


@cache
def deviation(name: str) -> float:
    """The standard deviation of a function over its domain."""
    if name.startswith("process"):
        return 1.0
    _, domain = problem(name)
    return float(np.std([value(name, x) for x in domain.sample(4000, np.random.default_rng(0))]))


@cache
def oracle(name: str) -> GP:
    """The default's kernel and priors, with hyper-parameters from many exact values."""
    if name.startswith("process"):
        return PROCESS
    _, domain = problem(name)
    X = domain.sample(LEARNED, np.random.default_rng(1))
    y = np.array([value(name, x) for x in X])
    automatic = GP.automatic(domain, version=2)
    exact = replace(automatic, priors={**(automatic.priors or {}), "noise": Fixed(1e-7)}, floor=0.0)
    return exact.fit(domain.encode(X), y, rng=np.random.default_rng(2))


def measured(setting: Setting, number: int, automatic: int | None) -> ExpectedImprovement:
    """A policy that was told one data set."""
    name = setting.problem(number)
    domain = problem(name)[1]
    rng = np.random.default_rng([2026, *setting.name.encode(), number])
    policy = ExpectedImprovement(domain, seed=number, automatic=automatic)
    for _ in range(setting.n):
        x = policy.ask() if setting.points == "asked" else domain.sample(1, rng)[0]
        at = x.x if setting.points == "asked" else x
        noise = setting.noise * deviation(name) * rng.standard_normal()
        policy.tell(x if setting.points == "asked" else user(domain, x), value(name, at) + noise)
    return policy


def judge(setting: Setting, number: int, automatic: int | None) -> dict[str, Any]:
    """What the bounds of one data set were worth."""
    policy = measured(setting, number, automatic)
    name = setting.problem(number)
    domain, unit = policy.domain, deviation(name)
    rng = np.random.default_rng([2027, *setting.name.encode(), number])
    held, X = {}, domain.sample(RANDOM, rng)
    tiny = 1e-6 * unit
    truth, E = np.array([value(name, x) for x in X]), domain.encode(X)
    belief = policy.averaged()
    for level in LEVELS:
        policy.confidence = level
        best = policy.recommend()
        true = value(name, best.x)
        low, high = (belief.quantile(E, 0.5 + side * level / 2) for side in (-1, 1))
        held[f"best {level:g}"] = bool(best.lower - tiny <= true <= best.upper + tiny)
        held[f"random {level:g}"] = float(np.mean((low - tiny <= truth) & (truth <= high + tiny)))
    further = true + setting.noise * unit * rng.standard_normal()
    between = getattr(best, "next_lower", None), getattr(best, "next_upper", None)
    held["next"] = None if between[0] is None else bool(between[0] - tiny <= further <= between[1] + tiny)
    known, (D, y, _) = oracle(name), policy.data()
    noise = max((setting.noise * unit) ** 2, known.noise)
    sure = GP(known.kernel, noise, mean=known.mean).condition(domain.encode(D), y)
    means, stds = sure.predict(np.vstack([domain.encode(best.x[None]), E]))
    widths = 2 * 1.96 * stds
    return {
        "setting": setting.name,
        "number": number,
        **held,
        "low": (true - best.lower) / unit,
        "high": (best.upper - true) / unit,
        "error": (best.mean - true) / unit,
        "value": true / unit,
        "width": (best.upper - best.lower) / unit,
        "oracle": float(widths[0]) / unit,
        "sure": float(np.mean(np.abs(means[1:] - truth) <= 1.96 * stds[1:] + tiny)),
        "ratio": float((best.upper - best.lower) / widths[0]),
        "random ratio": float(np.median((high - low) / widths[1:])),
    }


# -- what is printed ---------------------------------------------------------------------------------------------------


def wilson(good: float, of: int) -> tuple[float, float]:
    """The 95 % interval of a share of independent data sets."""
    z, p = 1.96, good / of
    middle, half = p + z * z / (2 * of), z * math.sqrt(p * (1 - p) / of + z * z / (4 * of * of))
    return (middle - half) / (1 + z * z / of), (middle + half) / (1 + z * z / of)


def summary(lines: list[dict[str, Any]]) -> None:
    """Print a line for each setting, and the averages."""
    heads = "sets  best .5  .8  .95 [interval]    random .5  .8  .95   next  ratio random  sure  error width"
    print(f"{'setting':<24} {heads}")
    rows = []
    for name in dict.fromkeys(line["setting"] for line in lines):
        mine = [line for line in lines if line["setting"] == name]
        best = [np.mean([line[f"best {level:g}"] for line in mine]) for level in LEVELS]
        rest = [np.mean([line[f"random {level:g}"] for line in mine]) for level in LEVELS]
        low, high = wilson(best[-1] * len(mine), len(mine))
        further = [line["next"] for line in mine if line["next"] is not None]
        middle = {key: np.median([line[key] for line in mine]) for key in ("ratio", "random ratio", "width")}
        sure = np.mean([line["sure"] for line in mine])
        error = np.mean([line["error"] for line in mine])
        rows.append([*best, *rest])
        print(
            f"{name:<24} {len(mine):>4}  "
            + "  ".join(f"{share:.2f}" for share in best)
            + f" [{low:.2f}, {high:.2f}]  "
            + "  ".join(f"{share:.2f}" for share in rest)
            + f"  {np.mean(further) if further else math.nan:.2f}"
            + f"  {middle['ratio']:.2f}  {middle['random ratio']:.2f}  {sure:.2f}  {error:+.3f}  {middle['width']:.3f}"
        )
    if rows:
        print(f"{'average':<24}       " + "  ".join(f"{share:.3f}" for share in np.mean(rows, axis=0)))
        print(f"{'lowest':<24}       " + "  ".join(f"{share:.3f}" for share in np.min(rows, axis=0)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--raw", type=Path, required=True, help="one line of JSON for each data set")
    parser.add_argument("--sets", type=int, default=300, help="of each setting")
    parser.add_argument("--settings", choices=("reported", "choosing"), default="reported")
    parser.add_argument("--automatic", type=int, default=None, help="version of the automatic belief")
    options = parser.parse_args()
    settings = REPORTED if options.settings == "reported" else CHOOSING
    names = [setting.name for setting in settings]
    lines = [json.loads(line) for line in options.raw.open()] if options.raw.exists() else []
    known = {(line["setting"], line["number"]) for line in lines}
    with options.raw.open("a") as file:
        for number in range(options.sets):
            for setting in settings:
                if (setting.name, number) not in known:
                    line = judge(setting, number, options.automatic)
                    lines.append(line)
                    print(json.dumps(line), file=file, flush=True)
    lines = [line for line in lines if line["setting"] in names]
    summary(sorted(lines, key=lambda line: names.index(line["setting"])))


if __name__ == "__main__":
    main()
