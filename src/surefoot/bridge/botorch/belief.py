"""BoTorch's models as the belief of a policy.

Two ways, for two needs. :class:`BotorchGP` lets BoTorch *fit*: each time a refit is due it calls a function that
returns a fitted exact GP, and translates it (:mod:`~surefoot.bridge.botorch.translate`), so that everything a policy
can do with a GP it can do with this one. :class:`ModelBelief` takes a model *as it is*, of any kind that has Gaussian
posteriors and can be conditioned on observations, and asks it for every mean and covariance.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Never, Self

import numpy as np
import torch
from botorch.models.model import Model
from gpytorch.likelihoods import FixedNoiseGaussianLikelihood
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from surefoot.belief import GP, Posterior
from surefoot.belief.algebra import Kernel, Pulled
from surefoot.belief.posterior import NOTHING, observations
from surefoot.bridge.botorch.translate import to_gp
from surefoot.errors import NotSupported
from surefoot.loop.state import storable

__all__ = ["BotorchGP", "ModelBelief", "ModelPosterior", "hallucinate"]

Array = NDArray[np.float64]
Make = Callable[[Tensor, Tensor, Tensor | None], Model]


class _Code(GP):
    """A GP that is partly code: stored by name, and passed again when a policy is rebuilt."""

    _named: Callable[[], str]  # what the code is called

    def to_dict(self) -> dict[str, Any]:
        """Return what can be stored: a name."""
        return {"code": self._named(), "every": self.every}

    @classmethod
    def from_dict(cls, data: Any) -> Never:
        """Refuse: code is not stored."""
        raise ValueError(f"{data['code']!r} is code and was stored by name only")


@storable
class BotorchGP(_Code):
    """A belief whose hyper-parameters BoTorch fits.

    Parameters
    ----------
    make : callable
        ``make(X, Y, Yvar)`` with tensors n x d, n x 1, and n x 1 or None where no measurement brought its noise;
        returns a *fitted* exact model with a counterpart in Surefoot (see :func:`to_gp`).
    every : int
        Fit after so many new measurements.

    Points are as models see them (``domain.encode``): in the user's units on ``Box`` and ``Candidates``, in the unit
    cube on ``Space``. Torch's random numbers are seeded by the policy, so that a fit is a function of the data and the
    seed. Give the policy ``initial=``: before the first fit the belief is a plain ``GP()``.

    >>> from botorch.fit import fit_gpytorch_mll
    >>> from botorch.models import SingleTaskGP
    >>> from gpytorch.mlls import ExactMarginalLogLikelihood
    >>> def make(X, Y, Yvar):
    ...     model = SingleTaskGP(X, Y, Yvar)
    ...     fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    ...     return model
    >>> from surefoot import GPUCB, Candidates
    >>> policy = GPUCB(Candidates(np.linspace(0.0, 1.0, 21)), gp=BotorchGP(make, every=3), initial=3, seed=0)
    >>> for _ in range(6):
    ...     query = policy.ask()
    ...     policy.tell(query, -(query.x[0] - 0.3) ** 2)
    >>> bool(abs(policy.recommend().x[0] - 0.3) < 0.11)
    True
    """

    make: Make

    def __init__(self, make: Make, every: int = 1) -> None:
        if not callable(make):
            raise TypeError(f"make must be a function of X, Y and Yvar that returns a fitted model, got {make!r}")
        super().__init__(every=every)
        object.__setattr__(self, "make", make)

    def _named(self) -> str:
        return getattr(self.make, "__qualname__", type(self.make).__qualname__)

    def refit(self, every: int | None) -> BotorchGP:
        """Return the same belief, fitted after so many new measurements."""
        if every is None:
            raise ValueError("a belief that BoTorch fits needs every=1 or more; to_gp(model) is used as it is")
        return BotorchGP(self.make, every)

    def fit(
        self, X: ArrayLike, y: ArrayLike, noise: ArrayLike | None = None, *, rng: np.random.Generator | None = None
    ) -> GP:
        """Return what BoTorch fits to the measurements, as a Surefoot GP."""
        points, values, noises = observations(X, y, noise)
        variances = None
        if not np.isnan(noises).all():
            if np.isnan(noises).any():
                raise NotSupported("BoTorch needs the noise of all measurements or of none; some have brought theirs")
            variances = torch.from_numpy(noises)[:, None]
        seed = int((np.random.default_rng(0) if rng is None else rng).integers(2**31))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = self.make(torch.from_numpy(points), torch.from_numpy(values)[:, None], variances)
        if not isinstance(model, Model):
            raise TypeError(f"make must return a model of BoTorch, got {model!r}")
        return to_gp(model)


class _Asked(Kernel):
    """The covariance of a model of BoTorch, as it is before any measurement: that of its own posterior."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        return self._between(_tensor(X), _tensor(X if Z is None else Z)).detach().numpy()

    def _between(self, X: Tensor, Z: Tensor) -> Tensor:
        joint: Tensor = self.model.posterior(torch.cat([X, Z])).covariance_matrix
        return joint[: len(X), len(X) :]

    def diag(self, X: Array) -> Array:
        with torch.no_grad():
            variance: Array = self.model.posterior(_tensor(X).unsqueeze(-2)).variance[..., 0, 0].numpy()
        return variance

    def pull_input(self, X: Array, Z: Array) -> Pulled:
        points = _tensor(X).requires_grad_()
        K = self._between(points, _tensor(Z))

        def pull(W: Array) -> Array:
            (slope,) = torch.autograd.grad((torch.as_tensor(np.array(W)) * K).sum(), points, retain_graph=True)
            return slope.numpy()

        return K.detach().numpy(), pull

    @property
    def theta(self) -> Array:
        return np.empty(0)

    @property
    def names(self) -> list[str]:
        return []

    def with_theta(self, theta: ArrayLike) -> Self:
        return self

    def over(self, X: Array) -> Never:
        raise NotSupported("a model is used as it is; BotorchGP(make) fits one again")

    def scaled(self, factor: float) -> Never:
        raise NotSupported("a model is used as it is, in its own units; to_gp(model) can be scaled")

    def to_dict(self) -> dict[str, Any]:
        return {"kernel": type(self).__name__, "code": type(self.model).__name__}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Never:
        raise ValueError(f"{data['code']!r} is code and was stored by name only")


@storable
class ModelBelief(_Code):
    """A BoTorch model of any kind as a belief, used as it is.

    Parameters
    ----------
    model : Model
        With one output and Gaussian posteriors; what it was trained on is prior knowledge. Measurements that a policy
        is told, and pending ones, are added by the model's ``condition_on_observations``.

    Where :func:`to_gp` can translate the model, the translation is faster. Policies that need the covariance of all
    candidates at once (``TruVaR``), or a spectral density (``ThompsonSampling`` on a box), cannot use this belief. It
    computes on the processor.

    >>> from botorch.models import SingleTaskGP
    >>> X = torch.linspace(0.0, 1.0, 5, dtype=torch.float64)[:, None]
    >>> belief = ModelBelief(SingleTaskGP(X, torch.sin(6.0 * X)))
    >>> belief.condition([[0.3]], [0.9]).mean([[0.3]]).round(1)
    array([0.9])
    """

    model: Model

    def __init__(self, model: Model) -> None:
        if not isinstance(model, Model):
            raise TypeError(f"model must be a model of BoTorch, got {model!r}")
        if model.num_outputs != 1 or model.batch_shape:
            raise NotSupported(
                f"a belief has one output and no batch; this model has {model.num_outputs} outputs and batch shape "
                f"{tuple(model.batch_shape)}"
            )
        model = model.eval()
        mean, noise = _level(model)
        # One "sample": such a belief has no constant mean, and so no form over all candidates at once.
        super().__init__(_Asked(model), noise, mean=mean, samples=1)
        object.__setattr__(self, "model", model)

    def _named(self) -> str:
        return type(self.model).__name__

    def refit(self, every: int | None) -> ModelBelief:
        """Refuse to be fitted: the model is used as it is."""
        if every is not None:
            raise NotSupported("a model is used as it is; BotorchGP(make) fits one again")
        return self

    def condition(
        self, X: ArrayLike | None = None, y: ArrayLike | None = None, noise: ArrayLike | None = None
    ) -> ModelPosterior:
        """Return the model given measurements."""
        made = ModelPosterior(self)
        points, values, noises = observations(X, y, noise)
        if len(values):
            made._extend(points, values, noises)
        return made


class ModelPosterior(Posterior):
    """A BoTorch model given measurements, with the interface of a posterior. Made by :meth:`ModelBelief.condition`.

    >>> from botorch.models import SingleTaskGP
    >>> X = torch.linspace(0.0, 1.0, 5, dtype=torch.float64)[:, None]
    >>> post = ModelBelief(SingleTaskGP(X, torch.sin(6.0 * X))).condition()
    >>> post.append([0.3], 0.9)
    >>> post.n, post.gradient([[0.4]])[2].shape
    (1, (1, 1))
    """

    def __init__(self, gp: ModelBelief) -> None:
        self.gp: ModelBelief = gp
        self._models, self._counts, self._gains = [gp.model], [0], [0.0]
        self._X, self._y, self._noise = np.empty((0, 0)), np.empty(0), np.empty(0)

    @property
    def n(self) -> int:
        """Number of measurements, besides what the model was trained on."""
        return self._counts[-1]

    @property
    def model(self) -> Model:
        """The model with all measurements."""
        return self._models[-1]

    @property
    def chol(self) -> Never:
        raise TypeError("a model of BoTorch has no Cholesky factor to look at")

    inverse = chol

    @property
    def information_gain(self) -> float:
        """Information of the measurements about f, by the chain rule, in nats."""
        return float(sum(self._gains))

    def solve(self, B: ArrayLike) -> Never:
        raise TypeError("a model of BoTorch has no covariance matrix to solve with")

    def mean(self, Z: ArrayLike) -> Array:
        return self.predict(Z)[0]

    def var(self, Z: ArrayLike) -> Array:
        return self.predict(Z)[1] ** 2

    def std(self, Z: ArrayLike) -> Array:
        return self.predict(Z)[1]

    def predict(self, Z: ArrayLike) -> tuple[Array, Array]:
        with torch.no_grad():
            mean, std = self._moments(_tensor(Z))
        return mean.numpy(), std.numpy()

    def _moments(self, Z: Tensor) -> tuple[Tensor, Tensor]:
        # Each point is a batch of its own: no joint covariance of all of them.
        made = self.model.posterior(Z.unsqueeze(-2))
        return made.mean[..., 0, 0], made.variance[..., 0, 0].clamp_min(NOTHING).sqrt()

    def cov(self, Z: ArrayLike, W: ArrayLike | None = None) -> Array:
        points = _tensor(Z)
        both = points if W is None else torch.cat([points, _tensor(W)])
        with torch.no_grad():
            joint = self.model.posterior(both).covariance_matrix.numpy()
        return joint if W is None else joint[: len(points), len(points) :]

    def gradient(self, Z: ArrayLike) -> tuple[Array, Array, Array, Array]:
        points = _tensor(Z).requires_grad_()
        with torch.enable_grad():
            mean, std = self._moments(points)
            (dmean,) = torch.autograd.grad(mean.sum(), points, retain_graph=True)
            (dstd,) = torch.autograd.grad(std.sum(), points)
        return mean.detach().numpy(), std.detach().numpy(), dmean.numpy(), dstd.numpy()

    def sample(self, Z: ArrayLike, count: int, rng: np.random.Generator) -> Array:
        mean, cov = self.mean(Z), self.cov(Z)
        values, vectors = np.linalg.eigh(cov)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        draws: Array = mean + rng.standard_normal((count, len(mean))) @ root.T
        return draws

    def append(self, x: ArrayLike, y: float, noise: float | None = None) -> None:
        self._extend(*observations(np.asarray(x, dtype=np.float64)[None], [y], noise))

    def pop(self) -> None:
        if self._counts[-1] - (self._counts[-2] if len(self._counts) > 1 else 0) != 1:
            raise ValueError("there is no single measurement to forget")
        for kept in (self._models, self._counts, self._gains):
            kept.pop()
        self._X, self._y, self._noise = self._X[: self.n], self._y[: self.n], self._noise[: self.n]

    def copy(self) -> Self:
        twin = object.__new__(type(self))
        twin.__dict__.update(
            {k: v.copy() if isinstance(v, (list, np.ndarray)) else v for k, v in self.__dict__.items()}
        )
        return twin

    def _extend(self, X: Array, y: Array, noise: Array) -> None:
        points, values = torch.from_numpy(X), torch.from_numpy(y)[:, None]
        with torch.no_grad():
            latent = self.model.posterior(points)
            noisy = self.model.posterior(points, observation_noise=True)
            own = (noisy.variance - latent.variance)[..., 0].numpy()
            used = np.where(np.isnan(noise), own, noise)
            if not np.isnan(noise).all() and not np.allclose(used, own, rtol=1e-6):
                raise NotSupported(
                    "a model is used with its own noise; BotorchGP(make) takes the noise of measurements"
                )
            S = latent.covariance_matrix.numpy()
            _, gain = np.linalg.slogdet(np.eye(len(y)) + S / np.sqrt(np.outer(used, used)))
            self._models.append(_conditioned(self.model, points, values))
        self._counts.append(self.n + len(y))
        self._gains.append(0.5 * float(gain))
        self._X = np.concatenate([self._X, X]) if self._X.size else X
        self._y, self._noise = np.append(self._y, y), np.append(self._noise, used)


def hallucinate(model: Model, X: Tensor) -> Model:
    """Return a model as if points X (n x d) had been measured at their means.

    >>> from surefoot import GP
    >>> from surefoot.bridge.botorch import GPModel
    >>> model = hallucinate(GPModel(GP(noise=1.0).condition([[0.0]], [1.0])), torch.zeros(1, 1, dtype=torch.float64))
    >>> round(model.posterior(torch.zeros(1, 1, dtype=torch.float64)).variance.item(), 3)
    0.333
    """
    with torch.no_grad():
        return _conditioned(model, X, model.posterior(X).mean)


def _conditioned(model: Model, X: Tensor, Y: Tensor) -> Model:
    """The model with further measurements; where its noises are fixed, with their average."""
    likelihood = getattr(model, "likelihood", None)
    if isinstance(likelihood, FixedNoiseGaussianLikelihood):
        return model.condition_on_observations(X, Y, noise=likelihood.noise.mean().expand(Y.shape))
    return model.condition_on_observations(X, Y)


def _level(model: Model) -> tuple[float, float]:
    """The average of a model, and of its noise, over what it was trained on."""
    inputs = getattr(model, "train_inputs", None)
    if not inputs or not inputs[0].numel():
        return 0.0, 1e-6
    given = model._original_train_inputs if model._has_transformed_inputs else inputs[0]
    with torch.no_grad():
        latent, noisy = model.posterior(given), model.posterior(given, observation_noise=True)
    return float(latent.mean.mean()), max(float((noisy.variance - latent.variance).mean()), 0.0)


def _tensor(Z: ArrayLike) -> Tensor:
    points = np.array(Z, dtype=np.float64)
    if points.ndim != 2:
        raise ValueError(f"points must be an array of shape (m, e), got shape {points.shape}")
    return torch.from_numpy(points)
