"""A Surefoot posterior as a model of BoTorch.

:class:`GPModel` holds what a :class:`~surefoot.belief.posterior.Posterior` holds, in tensors: the measured points, the
inverse L⁻¹ of the Cholesky factor, and the whitened residuals w = L⁻¹ (y − c). With V = k(Z) L⁻ᵀ,

    mean(Z) = c + V w,   cov(Z) = k(Z, Z) − V Vᵀ,

over any batch of joint points, differentiable in Z. New observations extend the factor by a block, so
that fantasies (knowledge gradients, noisy improvements) work, with gradients in the new points, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.models.model import FantasizeMixin, Model
from botorch.posteriors import GPyTorchPosterior, Posterior
from botorch.posteriors.fully_bayesian import GaussianMixturePosterior
from gpytorch.distributions import MultivariateNormal
from linear_operator import to_linear_operator
from linear_operator.utils.cholesky import psd_safe_cholesky
from torch import Tensor

from surefoot.belief import posterior as belief
from surefoot.belief.algebra import Active, Kernel, Product, Sum
from surefoot.belief.kernels import ConstantKernel, Linear, Stationary
from surefoot.belief.mixture import members_of
from surefoot.errors import NotSupported

__all__ = ["GPModel", "covariance"]

# Below this scaled squared distance two points are one: the root in a Matérn profile has no derivative at 0.
_SAME = 1e-30


def covariance(kernel: Kernel, X: Tensor, Z: Tensor) -> Tensor:
    """Return the kernel between points X (... x q x d) and Z (... x m x d), shape ... x q x m, differentiable in both.

    >>> from surefoot import SE
    >>> x = torch.tensor([[1.0]], dtype=torch.float64, requires_grad=True)
    >>> covariance(SE(), x, torch.zeros(2, 1, dtype=torch.float64)).sum().backward()
    >>> x.grad
    tensor([[-1.2131]], dtype=torch.float64)
    """
    if isinstance(kernel, Sum):
        return covariance(kernel.left, X, Z) + covariance(kernel.right, X, Z)
    if isinstance(kernel, Product):
        return covariance(kernel.left, X, Z) * covariance(kernel.right, X, Z)
    if isinstance(kernel, Active):
        seen = list(kernel.dimensions)
        return covariance(kernel.inner, X[..., seen], Z[..., seen])
    if isinstance(kernel, Stationary):
        if kernel.lengthscale.size not in (1, X.shape[-1]):
            raise ValueError(
                f"the kernel has {kernel.lengthscale.size} length-scales, the points {X.shape[-1]} columns"
            )
        length = torch.as_tensor(np.array(kernel.lengthscale), dtype=X.dtype, device=X.device)
        r2 = ((X.unsqueeze(-2) - Z.unsqueeze(-3)) / length).square().sum(dim=-1)
        return kernel.variance * kernel.profile(r2.clamp_min(_SAME))
    if isinstance(kernel, Linear):  # a kind of ConstantKernel, so it comes first
        return kernel.variance * (X @ Z.mT)
    if isinstance(kernel, ConstantKernel):
        return kernel.variance * (X[..., :1] * 0.0 + 1.0) @ (Z[..., :1] * 0.0 + 1.0).mT
    raise NotSupported(
        f"a {type(kernel).__name__} kernel has no form in tensors; stationary, linear and constant kernels have, and "
        "their sums, products and restrictions"
    )


class GPModel(Model, FantasizeMixin):
    """A Surefoot posterior as a BoTorch model.

    Parameters
    ----------
    posterior : Posterior
        For example ``gp.condition(X, y)`` or ``policy.posterior()``. Points are as *its* model sees them: on a
        ``Space``, in the unit cube of ``space.encode``.
    device : torch device, optional
        Where to compute.

    The posterior of a GP whose hyper-parameters were sampled is an ensemble, as BoTorch's fully Bayesian models are.
    BoTorch rounds variances below 1e-10 up to that.

    >>> from surefoot import GP, SE
    >>> model = GPModel(GP(SE(lengthscale=0.5), noise=0.01).condition([[0.0], [1.0]], [1.0, 3.0]))
    >>> X = torch.rand(5, 2, 1, dtype=torch.float64)  # five pairs of points
    >>> model.posterior(X).mean.shape, model.posterior(X).covariance_matrix.shape
    (torch.Size([5, 2, 1]), torch.Size([5, 2, 2]))
    """

    train_X: Tensor
    inverse: Tensor
    white: Tensor
    constant: Tensor
    noise: Tensor

    def __init__(self, posterior: belief.Posterior, *, device: torch.device | str | None = None) -> None:
        members = members_of(posterior)
        several = members[0] is not posterior
        super().__init__()

        def tensor(arrays: Sequence[Any]) -> Tensor:
            stacked = torch.as_tensor(np.array([np.array(a) for a in arrays]), dtype=torch.float64, device=device)
            return stacked if several else stacked[0]

        self._is_ensemble = several
        self._hold(
            kernels=[member.gp.kernel for member in members],
            train_X=torch.as_tensor(posterior.X.copy(), dtype=torch.float64, device=device),
            inverse=tensor([member.inverse for member in members]),
            white=tensor([member.inverse @ (member.y - member.gp.mean) for member in members]),
            constant=tensor([member.gp.mean for member in members]),
            noise=tensor([member.gp.noise for member in members]),
        )

    def _hold(self, kernels: list[Kernel], **tensors: Tensor) -> None:
        self._kernels = kernels
        self.likelihood = None  # BoTorch asks whether the noise of a fantasy is fixed; here it is the model's
        for name, value in tensors.items():
            self.register_buffer(name, value)

    @property
    def num_outputs(self) -> int:
        """One."""
        return 1

    @property
    def batch_shape(self) -> torch.Size:
        """The batch of the data: empty, the size of the ensemble, or that of the fantasies."""
        return torch.broadcast_shapes(self.inverse.shape[:-2], self.white.shape[:-1])

    @property
    def train_inputs(self) -> tuple[Tensor]:
        """The measured points, n x d."""
        return (self.train_X,)

    def _kernel(self, X: Tensor, Z: Tensor) -> Tensor:
        if not self._is_ensemble:
            return covariance(self._kernels[0], X, Z)
        return torch.stack([covariance(kernel, X, Z) for kernel in self._kernels], dim=-3)

    def _white_cross(self, X: Tensor) -> Tensor:
        """Return V = k(X, measured) L⁻ᵀ, shape ... x q x n."""
        if not self.white.shape[-1]:
            return X.new_zeros(*X.shape[:-2], *((len(self._kernels),) if self._is_ensemble else ()), X.shape[-2], 0)
        if X.shape[-1] != self.train_X.shape[-1]:
            raise ValueError(f"the points have {X.shape[-1]} coordinates, the measured ones {self.train_X.shape[-1]}")
        return self._kernel(X, self.train_X) @ self.inverse.mT

    def _mean(self, V: Tensor) -> Tensor:
        return self.constant.unsqueeze(-1) + (V @ self.white.unsqueeze(-1)).squeeze(-1)

    def covariance(self, X: Tensor, Z: Tensor) -> Tensor:
        """Return the posterior covariance of points X (... x q x d) with others, Z (... x m x d).

        >>> from surefoot import GP
        >>> model = GPModel(GP(noise=1.0).condition([[0.0]], [1.0]))
        >>> model.covariance(torch.zeros(1, 1, dtype=torch.float64), torch.zeros(1, 1, dtype=torch.float64))
        tensor([[0.5000]], dtype=torch.float64)
        """
        return self._kernel(X, Z) - self._white_cross(X) @ self._white_cross(Z).mT

    def posterior(
        self,
        X: Tensor,
        output_indices: list[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: PosteriorTransform | None = None,
    ) -> Posterior:
        """Return the joint posterior at X (... x q x d), of f or, with ``observation_noise``, of measurements of it."""
        if output_indices not in (None, [0]):
            raise ValueError(f"the model has one output, number 0; got output_indices={output_indices!r}")
        V = self._white_cross(X)
        mean, prior = self._mean(V), self._kernel(X, X)
        cov = prior - V @ V.mT
        # Rounding must not take a variance below 0; what is lifted is what Surefoot's posterior lifts.
        added = (belief.NOTHING * prior - cov).diagonal(dim1=-2, dim2=-1).clamp_min(0.0)
        if isinstance(observation_noise, Tensor):
            added = added + observation_noise.squeeze(-1)
        elif observation_noise:
            added = added + self.noise.unsqueeze(-1)
        cov = cov + torch.diag_embed(added)
        # Lazily, as in BoTorch: a dense matrix would be factorized here, and equal points make it singular.
        normal = MultivariateNormal(mean, to_linear_operator(cov.expand(*mean.shape, mean.shape[-1])))
        made = GaussianMixturePosterior(normal) if self._is_ensemble else GPyTorchPosterior(normal)
        return made if posterior_transform is None else posterior_transform(made)

    def condition_on_observations(self, X: Tensor, Y: Tensor, noise: Tensor | None = None, **_: Any) -> GPModel:
        """Return a model with further measurements Y (... x n' x 1) at X (... x n' x d).

        Parameters
        ----------
        X, Y : tensors
            Y may have batch dimensions that X lacks: fantasies share one factor.
        noise : tensor of the shape of Y, optional
            Noise variances; by default the model's.

        >>> from surefoot import GP
        >>> model = GPModel(GP(noise=1.0).condition([[0.0]], [1.0]))
        >>> one = torch.ones(1, 1, dtype=torch.float64)
        >>> model.condition_on_observations(0 * one, one).posterior(0 * one).mean.item()
        0.666...
        """
        if self._is_ensemble:
            raise NotSupported(
                "an ensemble of hyper-parameters takes no further observations; condition its GP instead"
            )
        if X.ndim < 2 or Y.ndim < 2 or X.shape[-2] != Y.shape[-2] or Y.shape[-1] != 1:
            raise ValueError(f"X is ... x n x d and Y ... x n x 1; got {tuple(X.shape)} and {tuple(Y.shape)}")
        V, more, n = self._white_cross(X), X.shape[-2], self.white.shape[-1]
        variance = self.noise.expand(more) if noise is None else noise.squeeze(-1)
        # Below this share of the prior a variance is rounding error.
        prior = self._kernel(X, X)
        variance = torch.maximum(variance, belief.EXACT * prior.diagonal(dim1=-2, dim2=-1))
        corner = psd_safe_cholesky(prior - V @ V.mT + torch.diag_embed(variance))
        eye = torch.eye(more, dtype=X.dtype, device=X.device)
        right = torch.linalg.solve_triangular(corner, eye.expand_as(corner), upper=False)
        left = -right @ V @ self.inverse if n else right.new_zeros(*right.shape[:-1], 0)
        batch = right.shape[:-2]
        top = torch.cat([self.inverse.expand(*batch, n, n), right.new_zeros(*batch, n, more)], dim=-1)
        residual = Y.squeeze(-1) - self._mean(V)
        fresh = (right @ residual.unsqueeze(-1)).squeeze(-1)
        points = X.expand(*batch, more, X.shape[-1])
        model = GPModel.__new__(GPModel)
        Model.__init__(model)
        model._hold(
            kernels=self._kernels,
            train_X=torch.cat([self.train_X.expand(*batch, n, X.shape[-1]), points], dim=-2) if n else points,
            inverse=torch.cat([top, torch.cat([left, right], dim=-1)], dim=-2),
            white=torch.cat([self.white.expand(*fresh.shape[:-1], n), fresh], dim=-1),
            constant=self.constant,
            noise=self.noise,
        )
        return model
