"""The libraries that are compared, each behind the same three calls and used as its own documentation recommends.

An :class:`Optimizer` maximizes over a ``Box``, or over a ``Space`` of integers. It starts from given measurements, so
that all libraries share their initial designs, and is driven by ``ask`` and ``tell``; ``best`` is the point that the
library would have its user take. A library is imported when it is first used, and none is told whether the
measurements are exact.
"""

from __future__ import annotations

import contextlib
import tempfile
import warnings
from abc import ABC, abstractmethod
from importlib.metadata import version
from typing import Any

import numpy as np

from surefoot import Box, ExpectedImprovement, Int, Space


class Optimizer(ABC):
    """One library on one problem, given its first measurements X (n, d) and y (n,)."""

    package: str  # on the package index
    settings: str

    def __init__(self, domain: Box | Space, X: np.ndarray, y: np.ndarray, seed: int) -> None:
        self.domain, self.seed = domain, seed
        self.X, self.y = np.array(X), np.array(y)
        self.integers = isinstance(domain, Space)
        if isinstance(domain, Space):
            axes = [axis for axis in domain.parameters.values() if isinstance(axis, Int)]
            self.bounds = np.array([(axis.low, axis.high) for axis in axes], dtype=np.float64)
        else:
            self.bounds = domain.bounds
        self.names = [f"x{i}" for i in range(len(self.bounds))]

    @classmethod
    def version(cls) -> str:
        return version(cls.package)

    @abstractmethod
    def ask(self) -> np.ndarray:
        """Return the point to measure next, shape (d,)."""

    def tell(self, x: np.ndarray, y: float) -> None:
        self.X, self.y = np.vstack([self.X, x]), np.append(self.y, y)

    def best(self) -> np.ndarray:
        """Return the point to use: the best measured one, where a library has no better answer."""
        return self.X[int(np.argmax(self.y))]

    def named(self, x: np.ndarray) -> dict[str, Any]:
        return dict(zip(self.names, map(int if self.integers else float, x), strict=True))


class Surefoot(Optimizer):
    package = "surefoot"
    settings = "ExpectedImprovement with its defaults"

    def __init__(self, domain: Box | Space, X: np.ndarray, y: np.ndarray, seed: int) -> None:
        super().__init__(domain, X, y, seed)
        self.policy = ExpectedImprovement(domain, seed=seed)
        for x, value in zip(X, y, strict=True):
            self.policy.tell(x, float(value))

    def ask(self) -> np.ndarray:
        self.query = self.policy.ask()
        return self.query.x

    def tell(self, x: np.ndarray, y: float) -> None:
        self.policy.tell(self.query, y)

    def best(self) -> np.ndarray:
        return self.policy.recommend().x


class BoTorch(Optimizer):
    package = "botorch"
    settings = (
        "SingleTaskGP, inputs normalized, outputs standardized; LogExpectedImprovement, 10 restarts, 512 raw samples"
    )

    def _model(self) -> Any:
        import torch
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import SingleTaskGP
        from botorch.models.transforms import Normalize, Standardize
        from gpytorch.mlls import ExactMarginalLogLikelihood

        self.box = torch.tensor(self.bounds.T.copy())
        normalize = Normalize(len(self.bounds), bounds=self.box)
        train, values = torch.tensor(self.X), torch.tensor(self.y)[:, None]
        model = SingleTaskGP(train, values, outcome_transform=Standardize(1), input_transform=normalize)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        return model

    def ask(self) -> np.ndarray:
        import torch
        from botorch.acquisition.analytic import LogExpectedImprovement
        from botorch.optim import optimize_acqf

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.manual_seed(1000 * self.seed + len(self.y))
            improvement = LogExpectedImprovement(self._model(), best_f=float(self.y.max()))
            candidate, _ = optimize_acqf(improvement, bounds=self.box, q=1, num_restarts=10, raw_samples=512)
        x = candidate[0].numpy()
        return np.rint(x) if self.integers else x  # integers are relaxed to reals and rounded

    def best(self) -> np.ndarray:
        import torch

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mean = self._model().posterior(torch.tensor(self.X)).mean[:, 0]
        return self.X[int(mean.argmax())]


class Optuna(Optimizer):
    package = "optuna"
    settings = "GPSampler with its defaults, except that its own initial design is replaced by the shared one"

    def __init__(self, domain: Box | Space, X: np.ndarray, y: np.ndarray, seed: int) -> None:
        import optuna

        super().__init__(domain, X, y, seed)
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        axis = optuna.distributions.IntDistribution if self.integers else optuna.distributions.FloatDistribution
        ends = self.bounds.astype(int) if self.integers else self.bounds
        self.axes = {name: axis(*pair) for name, pair in zip(self.names, ends.tolist(), strict=True)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sampler = optuna.samplers.GPSampler(seed=seed, n_startup_trials=len(y))
        self.study = optuna.create_study(direction="maximize", sampler=sampler)
        for x, value in zip(X, y, strict=True):
            done = optuna.trial.create_trial(params=self.named(x), distributions=self.axes, value=float(value))
            self.study.add_trial(done)

    def ask(self) -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.trial = self.study.ask(self.axes)
        return np.array([self.trial.params[name] for name in self.names], dtype=np.float64)

    def tell(self, x: np.ndarray, y: float) -> None:
        super().tell(x, y)
        self.study.tell(self.trial, y)


class BayesianOptimization(Optimizer):
    package = "bayesian-optimization"
    settings = "BayesianOptimization with its defaults (upper confidence bound, Matérn-5/2)"

    def __init__(self, domain: Box | Space, X: np.ndarray, y: np.ndarray, seed: int) -> None:
        from bayes_opt import BayesianOptimization as Library

        super().__init__(domain, X, y, seed)
        ends = [(int(low), int(high), int) for low, high in self.bounds] if self.integers else self.bounds.tolist()
        axes = dict(zip(self.names, map(tuple, ends), strict=True))
        self.library = Library(f=None, pbounds=axes, random_state=seed, verbose=0, allow_duplicate_points=True)
        for x, value in zip(X, y, strict=True):
            self.library.register(params=self.named(x), target=float(value))

    def ask(self) -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            asked = self.library.suggest()
        x = np.array([asked[name] for name in self.names], dtype=np.float64)
        return np.rint(x) if self.integers else np.clip(x, self.bounds[:, 0], self.bounds[:, 1])

    def tell(self, x: np.ndarray, y: float) -> None:
        super().tell(x, y)
        self.library.register(params=self.named(x), target=y)


class SMAC(Optimizer):
    package = "smac"
    settings = "BlackBoxFacade with its defaults (Gaussian process, expected improvement), driven by ask and tell"

    def __init__(self, domain: Box | Space, X: np.ndarray, y: np.ndarray, seed: int) -> None:
        import logging

        from ConfigSpace import ConfigurationSpace
        from smac import BlackBoxFacade, Scenario

        super().__init__(domain, X, y, seed)
        logging.getLogger("smac").setLevel(logging.ERROR)
        ends = self.bounds.astype(int) if self.integers else self.bounds
        self.space = ConfigurationSpace(
            space={name: tuple(pair) for name, pair in zip(self.names, ends.tolist(), strict=True)}, seed=seed
        )
        self.folder = tempfile.TemporaryDirectory()
        scenario = Scenario(
            self.space, deterministic=True, n_trials=10_000, seed=seed, output_directory=self.folder.name
        )
        design = BlackBoxFacade.get_initial_design(scenario, n_configs=0, additional_configs=[])
        self.facade = BlackBoxFacade(
            scenario, lambda config, seed=0: 0.0, initial_design=design, overwrite=True, logging_level=40
        )
        for x, value in zip(X, y, strict=True):
            self._register(x, float(value))

    def _register(self, x: np.ndarray, y: float) -> None:
        from ConfigSpace import Configuration
        from smac.runhistory import TrialInfo, TrialValue

        info = TrialInfo(Configuration(self.space, values=self.named(x)), seed=self.facade._scenario.seed)
        self.facade.tell(info, TrialValue(cost=-y, time=0.0), save=False)

    def ask(self) -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.info = self.facade.ask()
        return np.array([self.info.config[name] for name in self.names], dtype=np.float64)

    def tell(self, x: np.ndarray, y: float) -> None:
        from smac.runhistory import TrialValue

        super().tell(x, y)
        self.facade.tell(self.info, TrialValue(cost=-y, time=0.0), save=False)


OPTIMIZERS: dict[str, type[Optimizer]] = {
    "surefoot": Surefoot,
    "botorch": BoTorch,
    "optuna": Optuna,
    "bayes_opt": BayesianOptimization,
    "smac": SMAC,
}


@contextlib.contextmanager
def threads(count: int) -> Any:
    """Let NumPy's and torch's linear algebra use so many threads."""
    from threadpoolctl import threadpool_limits

    with contextlib.suppress(ImportError):
        import torch

        torch.set_num_threads(count)
    with threadpool_limits(limits=count):
        yield
