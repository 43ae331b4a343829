"""StableOpt: its step on a grid beside plainer ways to take the same minima, and its answers beside its peers'.

    python benchmarks/stable_opt.py step                     # 100 x 100 grid, ball of 379 points, 100 measurements
    python benchmarks/stable_opt.py side --seeds 10          # robust regret per evaluation and per second

``step`` times the minimum over all balls, and whole asks, with the decomposed filter, with one gather over a padded
index matrix, and with a loop over the points. All three give the same numbers; the script checks it.

``side`` maximizes the worst case of a polynomial in two variables over boxes of a tenth of the range to each side, on a
continuous domain. Peers: BoTorch's ``WorstCase`` risk measure under ``InputPerturbation`` with noisy expected
improvement, and OptunaHub's ``samplers/carbo``, which needs the package ``optunahub`` and its registry on the network.
A peer that cannot be loaded is named, with the reason. All start from the same ten measurements.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from peers import threads
from surefoot import GP, SE, Ball, Box, Candidates, StableOpt, WeightedBox, widths
from surefoot.domain.minfilter import box_minimum
from surefoot.domain.sets import Filtered
from surefoot.policy.robust.judge import SetJudge
from surefoot.policy.robust.stable_opt import AmongSets
from surefoot_lab.experiments.stableopt._polynomial import BOUNDS, points, polynomial

SIDES = np.array(BOUNDS)
RANGE = SIDES[:, 1] - SIDES[:, 0]
REACH = 0.1  # of the range, to each side
DESIGN, STEPS, CHECKS = 10, 40, (10, 20, 40)


# -- the step ----------------------------------------------------------------------------------------------------------


class Gathered(Filtered):
    """The same sets as one padded matrix of indices: a gather and a minimum along rows."""

    def __init__(self, family: Filtered) -> None:
        self.__dict__.update(family.__dict__)
        rows = [self.members(i) for i in range(self.count)]
        self.matrix = np.full((self.count, max(map(len, rows))), self.count)
        for i, row in enumerate(rows):
            self.matrix[i, : len(row)] = row

    def minimum(self, values: np.ndarray) -> np.ndarray:
        return np.append(values, np.inf)[self.matrix].min(axis=1)


class Looped(Gathered):
    """One point after the other."""

    def minimum(self, values: np.ndarray) -> np.ndarray:
        padded = np.append(values, np.inf)
        return np.array([padded[row].min() for row in self.matrix])


def median_of(work: Callable[[], Any], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def step(measurements: int, repeats: int) -> str:
    """Return the table of minima and asks."""
    grid = points(100)
    domain, values = Candidates(grid), polynomial(grid)
    family = Ball(0.5).on(domain)
    assert isinstance(family, Filtered)
    gathered = Gathered(family)
    kinds: dict[str, Any] = {"filter": family, "gather": gathered, "loop": Looped.__new__(Looped)}
    kinds["loop"].__dict__.update(gathered.__dict__)
    rng = np.random.default_rng(0)
    rows = [f"| minimum over {len(family.offsets)} points of 10,000 | ms | over filter | ask, ms | over filter |"]
    rows.append("|---|---|---|---|---|")
    first: tuple[float, float] | None = None
    for name, sets in kinds.items():
        if not np.array_equal(sets.minimum(values), family.minimum(values)):
            raise RuntimeError(f"{name} gives other minima")
        alone = median_of(lambda sets=sets: sets.minimum(values), repeats if name != "loop" else 5)
        gp = GP(SE([0.97, 1.09], variance=206.0**2), noise=0.01)
        policy = StableOpt(domain, perturbation=Ball(0.5), gp=gp, width=widths.Constant(2.0), seed=0)
        policy.rule = AmongSets(SetJudge(sets), policy.width, policy.side)
        for i in rng.choice(len(grid), measurements, replace=False):
            policy.tell(grid[i], values[i])
        policy.cancel(policy.ask())

        def ask(policy: StableOpt = policy) -> None:
            policy.cancel(policy.ask())

        whole = median_of(ask, repeats if name != "loop" else 5)
        first = first or (alone, whole)
        cells = [
            name,
            f"{alone * 1e3:.2f}",
            f"{alone / first[0]:.0f}x",
            f"{whole * 1e3:.2f}",
            f"{whole / first[1]:.0f}x",
        ]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


# -- beside its peers --------------------------------------------------------------------------------------------------


class Surefoot:
    """StableOpt with an automatic belief."""

    def __init__(self, X: np.ndarray, y: np.ndarray, seed: int) -> None:
        self.policy = StableOpt(
            Box(BOUNDS), perturbation=WeightedBox(REACH * RANGE), width=widths.Constant(2.0), seed=seed
        )
        for x, value in zip(X, y, strict=True):
            self.policy.tell(x, value)

    def step(self) -> None:
        query = self.policy.ask()
        self.policy.tell(query, float(polynomial(query.x[None])[0]))

    def best(self) -> np.ndarray:
        return self.policy.recommend().x


class BoTorch:
    """WorstCase over perturbations of the inputs; the measured point whose worst posterior mean is highest."""

    def __init__(self, X: np.ndarray, y: np.ndarray, seed: int) -> None:
        import torch

        self.torch, self.X, self.y = torch, X, y
        torch.manual_seed(seed)
        corners = np.stack(np.meshgrid([-1.0, 0.0, 1.0], [-1.0, 0.0, 1.0]), axis=-1).reshape(-1, 2)
        spread = torch.quasirandom.SobolEngine(2, scramble=True, seed=seed).draw(23, dtype=torch.double).numpy() * 2 - 1
        self.set = torch.tensor(REACH * np.vstack([corners, spread]))  # of the unit square

    def _model(self) -> Any:
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import SingleTaskGP
        from botorch.models.transforms.input import InputPerturbation
        from botorch.models.transforms.outcome import Standardize
        from gpytorch.mlls import ExactMarginalLogLikelihood

        box = self.torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=self.torch.double)
        moved = InputPerturbation(perturbation_set=self.set, bounds=box)
        train = self.torch.tensor((self.X - SIDES[:, 0]) / RANGE)
        values = self.torch.tensor(self.y)[:, None]
        model = SingleTaskGP(train, values, outcome_transform=Standardize(1), input_transform=moved)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        model.eval()
        return model, train, box

    def step(self) -> None:
        from botorch.acquisition.logei import qLogNoisyExpectedImprovement
        from botorch.acquisition.risk_measures import WorstCase
        from botorch.optim import optimize_acqf
        from botorch.sampling.normal import SobolQMCNormalSampler

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model, train, box = self._model()
            score = qLogNoisyExpectedImprovement(
                model,
                train,
                sampler=SobolQMCNormalSampler(self.torch.Size([64])),
                objective=WorstCase(n_w=len(self.set)),
                prune_baseline=True,
            )
            found, _ = optimize_acqf(score, bounds=box, q=1, num_restarts=5, raw_samples=64)
        x = SIDES[:, 0] + found[0].numpy() * RANGE
        self.X, self.y = np.vstack([self.X, x]), np.append(self.y, polynomial(x[None]))

    def best(self) -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model, train, _ = self._model()
            mean = model.posterior(train).mean[:, 0].reshape(len(train), len(self.set))
        return self.X[int(mean.min(dim=1).values.argmax())]


class Carbo:
    """OptunaHub's CARBO sampler without constraints; it answers with its best trial."""

    def __init__(self, X: np.ndarray, y: np.ndarray, seed: int) -> None:
        import optuna
        import optunahub

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        sampler = optunahub.load_module("samplers/carbo").CARBOSampler(
            seed=seed, n_startup_trials=len(y), deterministic_objective=True, local_ratio=2.0 * REACH
        )
        self.study = optuna.create_study(direction="maximize", sampler=sampler)
        self.axes = {f"x{i}": optuna.distributions.FloatDistribution(*pair) for i, pair in enumerate(BOUNDS)}
        for x, value in zip(X, y, strict=True):
            params = dict(zip(self.axes, x.tolist(), strict=True))
            self.study.add_trial(optuna.trial.create_trial(params=params, distributions=self.axes, value=float(value)))

    def step(self) -> None:
        trial = self.study.ask(self.axes)
        x = np.array([trial.params[name] for name in self.axes])
        self.study.tell(trial, float(polynomial(x[None])[0]))

    def best(self) -> np.ndarray:
        return np.array([self.study.best_params[name] for name in self.axes])


def side(seeds: int, names: list[str]) -> str:
    """Return the table of robust regrets and seconds."""
    fine = 501
    grid = points(fine)
    worst = box_minimum(polynomial(grid).reshape(fine, fine), np.full(2, round(REACH * (fine - 1)))).ravel()
    nearest = Candidates(grid)

    def regret(x: np.ndarray) -> float:
        return float(worst.max() - worst[nearest.index_of(nearest.decode(x[None])[0])])

    rows = [f"| method | {' | '.join(f'regret at {t}' for t in CHECKS)} | seconds a step | runs |"]
    rows.append("|---" * (len(CHECKS) + 3) + "|")
    for name in names:
        regrets, seconds = [], []
        try:
            for seed in range(seeds):
                X = Box(BOUNDS).design(DESIGN, np.random.default_rng(seed))
                method, row = PEERS[name](X, polynomial(X), seed), []
                for number in range(1, STEPS + 1):
                    start = time.perf_counter()
                    method.step()
                    seconds.append(time.perf_counter() - start)
                    if number in CHECKS:
                        row.append(regret(method.best()))
                regrets.append(row)
        except Exception as error:  # a peer that is not installed, or whose registry is out of reach
            reason = " ".join(str(error).split())[:120]
            rows.append(f"| {name}: not measured ({type(error).__name__}: {reason}) |{' |' * (len(CHECKS) + 2)}")
            continue
        means = [f"{value:.2f}" for value in np.mean(regrets, axis=0)]
        rows.append(f"| {name} | {' | '.join(means)} | {statistics.median(seconds):.3f} | {seeds} |")
    return "\n".join(rows)


PEERS: dict[str, Callable[..., Any]] = {"surefoot": Surefoot, "botorch": BoTorch, "carbo": Carbo}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("step")
    one.add_argument("--measurements", type=int, default=100)
    one.add_argument("--repeats", type=int, default=31)
    two = commands.add_parser("side")
    two.add_argument("--seeds", type=int, default=10)
    two.add_argument("--methods", nargs="+", default=list(PEERS), choices=PEERS)
    options = parser.parse_args()
    with threads(1):
        if options.command == "step":
            print(step(options.measurements, options.repeats))
        else:
            print(side(options.seeds, options.methods))


if __name__ == "__main__":
    main()
