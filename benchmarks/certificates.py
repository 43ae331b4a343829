"""How often the certificate of StableOpt holds when the belief is fitted to the run's own measurements.

    nice python benchmarks/certificates.py --raw raw.jsonl             # some two hours; goes on where it was stopped
    python benchmarks/certificates.py --raw raw.jsonl --draws 20       # fewer draws of each domain
    python benchmarks/certificates.py --raw raw.jsonl --draws 0        # only prints what is there
    python benchmarks/certificates.py sets --raw sets.jsonl            # the same of GPLSE and TruVaR, on candidates

Every draw is a function on the unit square, measured 40 times by ``StableOpt`` with its default belief: a draw from a
Gaussian process (squared exponential, Matérn 3/2 or 5/2, length-scales between 0.1 and 0.6), a narrow peak beside a
broad one, or a test function on a part of its square, each at a scale and level of its own. Half of the draws are
exact, the others have noise of 0.03 or 0.1 standard deviations of the function that the belief is not told of. Three
domains: a grid of 15 x 15 candidates, the square itself, and a space of a real number, an integer and a choice. The
adversary moves a tenth of the range; robust regrets are those of a fine grid.

Printed are the share of rounds with a finite certificate in which it was below the true regret; the same of what
version 0.1.0 said, the lowest upper bound of all rounds; and of the runs that ``accuracy`` would have ended, the share
whose answer was worse than that. Rounds of one run are not independent, draws are: intervals of shares of rounds are
bootstrapped over draws, those of shares of runs are Wilson's. Draws below 1000 were for choosing constants; those that
are printed begin there.

``sets`` asks which points lie above the 60 % quantile (``GPLSE``, and ``TruVaR`` with ``goal="level"``) and where the
maximum is (``TruVaR``): how many of the decided points are on the wrong side, and how often a fit that left nothing
open was wrong.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from surefoot import GPLSE, Ball, Box, Candidates, Choice, Float, Int, Space, StableOpt, TruVaR, WeightedBox
from surefoot.policy.plausible import ENOUGH

DOMAINS = ("candidates", "box", "space")
ROUNDS, REACH, SIDE = 40, 0.1, 15
ACCURACIES = (0.1, 0.2, 0.5)  # in standard deviations of the function over the domain
HELD_OUT = 1000  # the first of the draws that no constant was chosen on
TINY = 2e-3  # what a fine grid may miss, in standard deviations of the function

Function = Callable[[np.ndarray], np.ndarray]  # of points (n, 2) of the unit square


# -- functions ---------------------------------------------------------------------------------------------------------


def process(rng: np.random.Generator) -> Function:
    """A draw from a Gaussian process, by random Fourier features."""
    count, smooth = 500, (1.5, 2.5, math.inf)[rng.integers(3)]
    length = math.exp(rng.uniform(math.log(0.1), math.log(0.6))) * np.exp(rng.uniform(-0.3, 0.3, 2))
    W = rng.standard_normal((count, 2)) / length
    if math.isfinite(smooth):
        W *= np.sqrt(2.0 * smooth / rng.chisquare(2.0 * smooth, count))[:, None]
    phase, weight = rng.uniform(0.0, 2.0 * math.pi, count), rng.standard_normal(count) * math.sqrt(2.0 / count)
    return lambda X: np.cos(X @ W.T + phase) @ weight


def peaks(rng: np.random.Generator) -> Function:
    """A narrow high peak, which is no robust choice, and a broad low one."""
    a, b = rng.random((2, 2))
    narrow, broad = rng.uniform(0.03, 0.06), rng.uniform(0.15, 0.3)
    return lambda X: 2.0 * np.exp(-((X - a) ** 2).sum(-1) / narrow**2) + np.exp(-((X - b) ** 2).sum(-1) / broad**2)


def branin(X: np.ndarray) -> np.ndarray:
    a, b = 15.0 * X[:, 0] - 5.0, 15.0 * X[:, 1]
    return -((b - 5.1 / (4 * np.pi**2) * a * a + 5 / np.pi * a - 6) ** 2) - 10 * (1 - 1 / (8 * np.pi)) * np.cos(a)


def camel(X: np.ndarray) -> np.ndarray:
    a, b = 4.0 * X[:, 0] - 2.0, 2.0 * X[:, 1] - 1.0
    return -((4 - 2.1 * a**2 + a**4 / 3) * a**2 + a * b + (4 * b**2 - 4) * b**2)


def waves(X: np.ndarray) -> np.ndarray:
    return np.sin(7.0 * X[:, 0]) * np.cos(5.0 * X[:, 1]) + X[:, 0]


def ripples(X: np.ndarray) -> np.ndarray:
    return np.cos(12.0 * np.hypot(X[:, 0] - 0.4, X[:, 1] - 0.6)) - np.hypot(X[:, 0] - 0.3, X[:, 1] - 0.5)


def known(rng: np.random.Generator) -> Function:
    """A test function on a part of its square, perhaps mirrored."""
    function = (branin, camel, waves, ripples)[rng.integers(4)]
    low, high = rng.uniform(0.0, 0.15, 2), rng.uniform(0.85, 1.0, 2)
    mirrored = rng.random(2) < 0.5
    return lambda X: function(low + (high - low) * np.where(mirrored, 1.0 - X, X))


class Draw:
    """The function, the noise, the domain and the perturbation of one draw."""

    def __init__(self, domain: str, number: int) -> None:
        rng = np.random.default_rng([20180, DOMAINS.index(domain), number])
        kind = number % 10
        family = process if kind < 6 else peaks if kind < 8 else known
        self.kind, self.name, self.number = family.__name__, domain, number
        plain = family(rng)
        side = np.linspace(0.0, 1.0, SIDE)
        coarse = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2)
        spread = float(plain(coarse).std())
        scale, level = 10.0 ** rng.uniform(-2.0, 3.0), rng.uniform(-3.0, 3.0)
        function: Function = lambda X: scale * (plain(X) / spread + level)  # noqa: E731
        self.noise = (0.0, 0.03, 0.0, 0.1)[(number // 10) % 4] * scale
        self.deviation = scale
        if domain == "space":
            others = [process(rng) for _ in range(3)]
            shares = rng.uniform(0.0, 0.7, 3) * scale
            self.value = lambda X: (
                function(X[:, :2] / [1.0, 10.0])
                + np.sum([(X[:, 2] == c) * shares[c] * others[c](X[:, :2] / [1.0, 10.0]) for c in range(3)], axis=0)
            )
            self.domain: Any = Space(a=Float(0.0, 1.0), n=Int(0, 10), c=Choice(["p", "q", "r"]))
            self.perturbation: Any = WeightedBox({"a": REACH, "n": 1})
        else:
            self.value = function
            self.domain = Candidates(coarse) if domain == "candidates" else Box.unit(2)
            self.perturbation = Ball(REACH)
        self.optimum = {"candidates": self._listed, "box": self._searched, "space": self._mixed}[domain]()

    def worst(self, x: np.ndarray) -> float:
        """What an adversary makes of a choice."""
        if self.name == "candidates":
            return float(self._worst[self.domain.index_of(x)])
        if self.name == "box":
            return float(self._around(x[None])[0])
        a, n = np.meshgrid(np.clip(np.linspace(x[0] - REACH, x[0] + REACH, 41), 0, 1), np.arange(x[1] - 1, x[1] + 2))
        points = np.column_stack([a.ravel(), n.ravel(), np.full(a.size, x[2])])
        return float(self.value(points[(points[:, 1] >= 0) & (points[:, 1] <= 10)]).min())

    def _listed(self) -> float:
        values, sets = self.value(self.domain.points), self.perturbation.on(self.domain)
        self._worst = sets.minimum(values)
        return float(self._worst.max())

    def _around(self, X: np.ndarray, rings: tuple[float, ...] = (1.0, 0.85, 0.65, 0.45, 0.25, 0.0)) -> np.ndarray:
        angle = np.linspace(0.0, 2.0 * np.pi, 33)[:-1]
        ring = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
        moves = np.concatenate([REACH * radius * ring for radius in rings])
        points = np.clip(X[:, None] + moves, 0.0, 1.0)  # what leaves the square comes back, closer to its center
        return self.value(points.reshape(-1, 2)).reshape(points.shape[:2]).min(axis=1)

    def _searched(self) -> float:
        side = np.linspace(0.0, 1.0, 33)
        X = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2)
        X = X[np.argsort(-self._around(X, (1.0, 0.5)))[:40]]
        best = -math.inf
        for step in (0.012, 0.004, 0.0015):
            offsets = step * np.stack(np.meshgrid(*[np.arange(-2, 3)] * 2), axis=-1).reshape(-1, 2)
            X = np.clip((X[:, None] + offsets).reshape(-1, 2), 0.0, 1.0)
            worst = self._around(X)
            best = max(best, float(worst.max()))
            X = X[np.argsort(-worst)[:8]]
        return best

    def _mixed(self) -> float:
        a, n, c = np.meshgrid(np.linspace(0, 1, 201), np.arange(11), np.arange(3), indexing="ij")
        values = self.value(np.column_stack([a.ravel(), n.ravel(), c.ravel()])).reshape(a.shape)
        far = np.pad(values, ((20, 20), (1, 1), (0, 0)), constant_values=np.inf)
        windows = np.lib.stride_tricks.sliding_window_view(far, (41, 3), axis=(0, 1))
        return float(windows.min(axis=(-2, -1)).max())

    def run(self, rounds: int = ROUNDS) -> list[dict[str, Any]]:
        """Run StableOpt; what it promised and what was true after every measurement from the sixth on."""
        policy = StableOpt(self.domain, perturbation=self.perturbation, seed=self.number)
        errors = np.random.default_rng([20181, DOMAINS.index(self.name), self.number]).standard_normal(rounds)
        found = []
        for n, error in enumerate(errors, 1):
            query = policy.ask()
            policy.tell(query, float(self.value(query.x[None])[0] + self.noise * error))
            if n > 5:
                found.append({"n": n, **self.judged(policy)})
        return found

    def judged(self, policy: StableOpt) -> dict[str, Any]:
        """The regret, certificates and whether the lower bound holds, in standard deviations of the function.

        A certificate above both the regret and all accuracies is null: it holds and ends nothing.
        """
        best = policy.recommend()
        worst = self.worst(best.x)
        regret = max(self.optimum - worst, 0.0)
        limit = max(regret, max(ACCURACIES) * self.deviation)
        policy.accuracy = limit  # finished is cheaper to tell than the certificate
        certificate = policy.certificate / self.deviation if policy.finished else None
        uppers = [query.note["upper"] for query in policy.queries if "upper" in query.note]
        return {
            "regret": regret / self.deviation,
            "finite": len(policy.history) >= ENOUGH * len(policy.gp.names),
            "certificate": certificate,
            "before": (min(uppers) - best.lower) / self.deviation if uppers else None,
            "lower": bool(best.lower <= worst + 1e-6 * self.deviation),
        }


def sets(number: int) -> list[dict[str, Any]]:
    """Run the policies that follow sets on candidates; what their fits had decided."""
    draw = Draw("candidates", number)
    values = draw.value(draw.domain.points) / draw.deviation
    level = float(np.quantile(values, 0.6))
    found = []
    for name, policy in (
        ("GPLSE", GPLSE(draw.domain, threshold=level, seed=number)),
        ("TruVaR level", TruVaR(draw.domain, goal="level", threshold=level, seed=number)),
        ("TruVaR", TruVaR(draw.domain, seed=number)),
    ):
        errors = np.random.default_rng([20182, number]).standard_normal(ROUNDS) * draw.noise / draw.deviation
        for n, error in enumerate(errors, 1):
            query = policy.ask()
            policy.tell(query, float(values[query.index] + error))
            if n < 6:
                continue
            best = policy.recommend()
            if isinstance(policy, TruVaR) and policy.goal == "maximize":
                wrong, open_points = int(values[best.index] < values.max() - TINY), int(policy.potential.sum()) - 1
                decided = values.size - open_points
            else:
                wrong = int(((best.above & (values < level)) | (best.below & (values > level))).sum())
                open_points = int(best.undecided.sum())
                decided = values.size - open_points
            found.append({"name": name, "n": n, "wrong": wrong, "decided": decided, "settled": open_points == 0})
    return found


# -- what is printed ---------------------------------------------------------------------------------------------------


def wilson(bad: int, of: int) -> tuple[float, float]:
    """The 95 % interval of a share of independent runs."""
    if not of:
        return 0.0, 1.0
    z, p = 1.96, bad / of
    middle, half = p + z * z / (2 * of), z * math.sqrt(p * (1 - p) / of + z * z / (4 * of * of))
    return (middle - half) / (1 + z * z / of), (middle + half) / (1 + z * z / of)


def share_of_rounds(runs: list[list[bool]]) -> str:
    """A share of rounds, with an interval over draws."""
    bad, of = np.array([sum(run) for run in runs]), np.array([len(run) for run in runs])
    if not of.sum():
        return "none"
    rows = np.random.default_rng(0).integers(len(runs), size=(4000, len(runs)))
    low, high = np.quantile(bad[rows].sum(axis=1) / np.maximum(of[rows].sum(axis=1), 1), [0.025, 0.975])
    return f"{100 * bad.sum() / of.sum():4.1f} % [{100 * low:.1f}, {100 * high:.1f}] of {of.sum()}"


def broken(runs: list[list[dict[str, Any]]], name: str, accuracy: float) -> tuple[int, int]:
    """Of how many runs a certificate has ended, how many were ended too early."""
    stops = [[r for r in run if r[name] is not None and r[name] <= accuracy] for run in runs]
    return sum(stop[0]["regret"] > accuracy + TINY for stop in stops if stop), sum(map(bool, stops))


def summary(lines: list[dict[str, Any]]) -> None:
    """Print the shares of each domain, and of all."""
    for domain in [*DOMAINS, "all"]:
        runs = [line["rounds"] for line in lines if domain in (line["domain"], "all")]
        if not runs:
            continue
        late = [[r["finite"] for r in run if r["n"] > 20] for run in runs]
        now = [
            [r["certificate"] is not None and r["certificate"] < r["regret"] - TINY for r in run if r["finite"]]
            for run in runs
        ]
        before = [[r["before"] < r["regret"] - TINY for r in run if r["before"] is not None] for run in runs]
        print(f"{domain}: {len(runs)} draws")
        print("  certificate finite, rounds after the 20th:", share_of_rounds(late))
        print("  certificate below the true regret:", share_of_rounds(now))
        print("  the lowest upper bound of all rounds, below it:", share_of_rounds(before))
        print("  worst case below recommend().lower:", share_of_rounds([[not r["lower"] for r in run] for run in runs]))
        for accuracy in ACCURACIES:
            for name, label in (("certificate", "now"), ("before", "version 0.1.0")):
                bad, of = broken(runs, name, accuracy)
                low, high = (f"{100 * share:.1f}" for share in wilson(bad, of))
                print(f"  accuracy {accuracy}, {label}: {of} ended, {bad} too early, [{low}, {high}] %")


def summary_of_sets(lines: list[dict[str, Any]]) -> None:
    """Print what the fits of the policies that follow sets had decided wrongly."""
    for name in ("GPLSE", "TruVaR level", "TruVaR"):
        runs = [[r for r in line["rounds"] if r["name"] == name] for line in lines]
        print(f"{name}: {len(runs)} draws")
        if name != "TruVaR":
            last = [run[-1] for run in runs]
            wrong = [[True] * r["wrong"] + [False] * (r["decided"] - r["wrong"]) for r in last]
            print(f"  decided points on the wrong side after {ROUNDS} measurements:", share_of_rounds(wrong))
            print("  draws in which there are some:", sum(r["wrong"] > 0 for r in last))
        stops = [next(r for r in run if r["settled"]) for run in runs if any(r["settled"] for r in run)]
        bad = sum(r["wrong"] > 0 for r in stops)
        low, high = (f"{100 * share:.1f}" for share in wilson(bad, len(stops)))
        print(f"  fits that leave nothing open: {len(stops)}, {bad} of them wrong, [{low}, {high}] %")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=("stableopt", "sets"), default="stableopt")
    parser.add_argument("--raw", type=Path, required=True, help="one line of JSON for each run")
    parser.add_argument("--draws", type=int, default=200, help="of each domain")
    parser.add_argument("--first", type=int, default=HELD_OUT, help="number of the first draw")
    parser.add_argument("--domains", nargs="+", choices=DOMAINS, default=DOMAINS)
    options = parser.parse_args()
    lines = [json.loads(line) for line in options.raw.open()] if options.raw.exists() else []
    known = {(line["domain"], line["number"]) for line in lines}
    domains = options.domains if options.what == "stableopt" else ["candidates"]
    with options.raw.open("a") as file:
        for number in range(options.first, options.first + options.draws):
            for domain in domains:
                if (domain, number) not in known:
                    draw = Draw(domain, number)
                    rounds = draw.run() if options.what == "stableopt" else sets(number)
                    line = {"domain": domain, "number": number, "kind": draw.kind, "rounds": rounds}
                    lines.append(line)
                    print(json.dumps(line), file=file, flush=True)
    lines = [line for line in lines if line["number"] >= options.first]
    (summary if options.what == "stableopt" else summary_of_sets)(lines)


if __name__ == "__main__":
    main()
