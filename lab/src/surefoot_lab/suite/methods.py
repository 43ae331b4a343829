"""Each library behind the same three calls, used as its own documentation recommends.

A method minimizes. It is made from the axes, a seed and the measurements made before, and driven by ``ask`` and
``tell``. Points are lists of numbers, the places of choices among them. This file runs in the method's own
environment, without the laboratory; a library is imported when its method is made.
"""

from __future__ import annotations

import random
import tempfile
import warnings
from abc import ABC, abstractmethod
from importlib.metadata import version
from typing import Any, ClassVar

import numpy as np

__all__ = ["METHODS", "Method", "Point"]

Point = list[float]
Axis = dict[str, Any]


class Method(ABC):
    """One library on one problem, given its first measurements."""

    package: ClassVar[str] = "numpy"  # whose version is kept

    def __init__(self, axes: list[Axis], seed: int, X: list[Point], y: list[float]) -> None:
        self.axes, self.seed = axes, seed
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002 some libraries draw from it
        self.bounds = np.array([(0, a["size"] - 1) if a["kind"] == "choice" else (a["low"], a["high"]) for a in axes])
        self.X, self.y = list(X), list(y)
        self.begin()
        for x, value in zip(X, y, strict=True):
            self.learn(x, value)

    @classmethod
    def version(cls) -> str:
        return version(cls.package)

    def begin(self) -> None:  # noqa: B027 some have nothing to make
        """Make what the library needs, before it is told anything."""

    @abstractmethod
    def ask(self) -> Point:
        """Return the point to measure next."""

    def learn(self, x: Point, value: float) -> None:  # noqa: B027 some need only what self keeps
        """Tell the library a measurement that it did not ask for."""

    def answer(self, x: Point, value: float) -> None:
        """Tell the library the measurement that it asked for last."""
        self.learn(x, value)

    def tell(self, x: Point, value: float) -> None:
        """Take the measurement that was asked for last."""
        self.X.append(x)
        self.y.append(value)
        self.answer(x, value)

    def rounded(self, x: Any) -> Point:
        """Return a point of reals with its integers and choices rounded, inside the bounds."""
        inside = np.clip(np.asarray(x, dtype=float), self.bounds[:, 0], self.bounds[:, 1]).tolist()
        return [v if a["kind"] == "float" else round(v) for v, a in zip(inside, self.axes, strict=True)]

    def named(self, x: Point) -> dict[str, Any]:
        return {a["name"]: float(v) if a["kind"] == "float" else int(v) for a, v in zip(self.axes, x, strict=True)}

    def placed(self, params: Any) -> Point:
        kinds = [(a["name"], float if a["kind"] == "float" else int) for a in self.axes]
        return [kind(params[name]) for name, kind in kinds]


class RandomSearch(Method):
    """Uniform over the axes."""

    def begin(self) -> None:
        self.rng = np.random.default_rng([self.seed, 1])

    def ask(self) -> Point:
        low, high = self.bounds.T
        spread = self.rng.uniform(low, high)
        whole = self.rng.integers(np.floor(low).astype(int), np.floor(high).astype(int) + 1)
        return [float(v) if a["kind"] == "float" else int(k) for a, v, k in zip(self.axes, spread, whole, strict=True)]


class Surefoot(Method):
    """What ``optimize`` makes when nothing is said."""

    package = "surefoot"
    options: ClassVar[dict[str, Any]] = {}

    def begin(self) -> None:
        from surefoot.domain import Box, Choice, Float, Int, Space
        from surefoot.policy.improvement import ExpectedImprovement

        self.box = all(a["kind"] == "float" and not a.get("log") for a in self.axes)
        if self.box:
            domain: Any = Box(self.bounds.tolist())
        else:
            kinds = {"float": Float, "int": Int}
            domain = Space(
                {
                    a["name"]: Choice([str(i) for i in range(a["size"])])
                    if a["kind"] == "choice"
                    else kinds[a["kind"]](a["low"], a["high"], log=bool(a.get("log")))
                    for a in self.axes
                }
            )
        self.policy = ExpectedImprovement(domain, direction="minimize", seed=self.seed, **self.options)

    def _own(self, x: Point) -> Any:
        names = {a["name"] for a in self.axes if a["kind"] == "choice"}
        return x if self.box else {k: str(v) if k in names else v for k, v in self.named(x).items()}

    def learn(self, x: Point, value: float) -> None:
        self.policy.tell(self._own(x), value)

    def ask(self) -> Point:
        self.query = self.policy.ask()
        return self.query.x.tolist() if self.box else self.placed(self.query.params)

    def answer(self, x: Point, value: float) -> None:
        self.policy.tell(self.query, value)


class SurefootFirst(Surefoot):
    """The same, as release 0.1 did it."""

    options: ClassVar[dict[str, Any]] = {"automatic": 1}


class BoTorch(Method):
    """A Gaussian process with the library's priors, and the logarithm of expected improvement."""

    package = "botorch"

    def begin(self) -> None:
        import torch

        torch.set_num_threads(1)

    def ask(self) -> Point:
        import torch
        from botorch.acquisition.analytic import LogExpectedImprovement
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import SingleTaskGP
        from botorch.models.transforms import Normalize, Standardize
        from botorch.optim import optimize_acqf
        from gpytorch.mlls import ExactMarginalLogLikelihood

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.manual_seed(1000 * self.seed + len(self.y))
            box = torch.tensor(self.bounds.T.astype(float).copy(), dtype=torch.float64)
            train = torch.tensor(np.array(self.X, dtype=float))
            values = -torch.tensor(np.array(self.y, dtype=float))[:, None]
            model = SingleTaskGP(
                train,
                values,
                outcome_transform=Standardize(1),
                input_transform=Normalize(len(self.axes), bounds=box),
            )
            fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
            improvement = LogExpectedImprovement(model, best_f=float(values.max()))
            candidate, _ = optimize_acqf(improvement, bounds=box, q=1, num_restarts=10, raw_samples=512)
        return self.rounded(candidate[0].numpy())


class OptunaGP(Method):
    """``GPSampler``; the shared points take the place of its start-up trials."""

    package = "optuna"

    def sampler(self) -> Any:
        import optuna

        return optuna.samplers.GPSampler(seed=self.seed, n_startup_trials=len(self.y))

    def begin(self) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.distributions: dict[str, Any] = {}
        for a in self.axes:
            if a["kind"] == "choice":
                made: Any = optuna.distributions.CategoricalDistribution(list(range(a["size"])))
            elif a["kind"] == "int":
                made = optuna.distributions.IntDistribution(a["low"], a["high"], log=bool(a.get("log")))
            else:
                made = optuna.distributions.FloatDistribution(a["low"], a["high"], log=bool(a.get("log")))
            self.distributions[a["name"]] = made
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.study = optuna.create_study(direction="minimize", sampler=self.sampler())

    def learn(self, x: Point, value: float) -> None:
        import optuna

        told = optuna.trial.create_trial(params=self.named(x), distributions=self.distributions, value=value)
        self.study.add_trial(told)

    def ask(self) -> Point:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.trial = self.study.ask(self.distributions)
        return self.placed(self.trial.params)

    def answer(self, x: Point, value: float) -> None:
        self.study.tell(self.trial, value)


class OptunaTPE(OptunaGP):
    """``TPESampler`` with its defaults."""

    def sampler(self) -> Any:
        import optuna

        return optuna.samplers.TPESampler(seed=self.seed)


class CMA(Method):
    """CMA-ES from the best shared point with a quarter of the range; restarted from a random point when it stops."""

    package = "cma"

    def begin(self) -> None:
        self.rng, self.starts = np.random.default_rng([self.seed, 2]), 0
        low, high = self.bounds.T
        self._start((np.array(self.X[int(np.argmin(self.y))], dtype=float) - low) / (high - low))

    def _start(self, unit: Any) -> None:
        import cma

        self.starts += 1
        options = {"bounds": [0.0, 1.0], "seed": 1000 * self.starts + self.seed + 1, "verbose": -9}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.strategy = cma.CMAEvolutionStrategy(unit, 0.25, options)
        self.waiting: list[Any] = []
        self.asked: list[Any] = []
        self.values: list[float] = []

    def ask(self) -> Point:
        if not self.waiting:
            self.waiting, self.asked, self.values = list(self.strategy.ask()), [], []
        self.asked.append(self.waiting.pop(0))
        low, high = self.bounds.T
        return self.rounded(low + self.asked[-1] * (high - low))

    def answer(self, x: Point, value: float) -> None:
        self.values.append(value)
        if not self.waiting:
            self.strategy.tell(self.asked, self.values)
            if self.strategy.stop():
                self._start(self.rng.uniform(size=len(self.axes)))


class Hebo(Method):
    """``HEBO``; the shared points take the place of its random ones."""

    package = "HEBO"

    def begin(self) -> None:
        import torch
        from hebo.design_space.design_space import DesignSpace
        from hebo.optimizers.hebo import HEBO

        torch.set_num_threads(1)
        torch.manual_seed(self.seed)
        kinds = {"float": "num", "int": "int"}
        entries = [
            {"name": a["name"], "type": "cat", "categories": list(range(a["size"]))}
            if a["kind"] == "choice"
            else {
                "name": a["name"],
                "type": ("pow" if a["kind"] == "float" else "pow_int") if a.get("log") else kinds[a["kind"]],
                "lb": a["low"],
                "ub": a["high"],
            }
            for a in self.axes
        ]
        self.library = HEBO(DesignSpace().parse(entries), rand_sample=len(self.y), scramble_seed=self.seed)

    def learn(self, x: Point, value: float) -> None:
        import pandas

        self.library.observe(pandas.DataFrame([self.named(x)]), np.array([[value]]))

    def ask(self) -> Point:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            row = self.library.suggest(n_suggestions=1).iloc[0]
        return self.placed(row)


class Smac(Method):
    """``BlackBoxFacade``: a Gaussian process with expected improvement."""

    package = "smac"

    def begin(self) -> None:
        import logging

        from ConfigSpace import Categorical, ConfigurationSpace, Float, Integer
        from smac import BlackBoxFacade, Scenario

        logging.getLogger("smac").setLevel(logging.ERROR)
        self.space = ConfigurationSpace(seed=self.seed)
        for a in self.axes:
            if a["kind"] == "choice":
                self.space.add(Categorical(a["name"], list(range(a["size"]))))
            else:
                kind = Float if a["kind"] == "float" else Integer
                self.space.add(kind(a["name"], (a["low"], a["high"]), log=bool(a.get("log"))))
        self.folder = tempfile.TemporaryDirectory()
        scenario = Scenario(
            self.space, deterministic=True, n_trials=10_000, seed=self.seed, output_directory=self.folder.name
        )
        design = BlackBoxFacade.get_initial_design(scenario, n_configs=0, additional_configs=[])
        self.facade = BlackBoxFacade(
            scenario, lambda config, seed=0: 0.0, initial_design=design, overwrite=True, logging_level=40
        )

    def learn(self, x: Point, value: float) -> None:
        from ConfigSpace import Configuration
        from smac.runhistory import TrialInfo, TrialValue

        info = TrialInfo(Configuration(self.space, values=self.named(x)), seed=self.facade.scenario.seed)
        self.facade.tell(info, TrialValue(cost=value, time=0.0), save=False)

    def ask(self) -> Point:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.info = self.facade.ask()
        return self.placed(self.info.config)

    def answer(self, x: Point, value: float) -> None:
        from smac.runhistory import TrialValue

        self.facade.tell(self.info, TrialValue(cost=value, time=0.0), save=False)


class AxPlatform(Method):
    """Ax's ``Client``; the shared points take the place of its Sobol points."""

    package = "ax-platform"

    def begin(self) -> None:
        import logging

        import torch
        from ax.api.client import Client
        from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig

        torch.set_num_threads(1)
        logging.disable(logging.WARNING)
        self.client = Client(random_seed=self.seed)
        parameters: list[Any] = [
            ChoiceParameterConfig(name=a["name"], values=list(range(a["size"])), parameter_type="int", is_ordered=False)
            if a["kind"] == "choice"
            else RangeParameterConfig(
                name=a["name"],
                bounds=(a["low"], a["high"]),
                parameter_type=a["kind"],
                scaling="log" if a.get("log") else "linear",
            )
            for a in self.axes
        ]
        self.client.configure_experiment(parameters=parameters)
        self.client.configure_optimization(objective="-value")
        self.client.configure_generation_strategy(
            method="fast", initialization_budget=len(self.y), initialize_with_center=False
        )

    def learn(self, x: Point, value: float) -> None:
        trial = self.client.attach_trial(parameters=self.named(x))
        self.client.complete_trial(trial_index=trial, raw_data={"value": value})

    def ask(self) -> Point:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ((self.trial, params),) = self.client.get_next_trials(max_trials=1).items()
        return self.placed(params)

    def answer(self, x: Point, value: float) -> None:
        self.client.complete_trial(trial_index=self.trial, raw_data={"value": value})


METHODS: dict[str, type[Method]] = {
    "surefoot": Surefoot,
    "surefoot-0.1": SurefootFirst,
    "random": RandomSearch,
    "cma": CMA,
    "optuna-tpe": OptunaTPE,
    "optuna-gp": OptunaGP,
    "botorch": BoTorch,
    "hebo": Hebo,
    "smac": Smac,
    "ax": AxPlatform,
}
