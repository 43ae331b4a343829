"""An exact Gaussian process of BoTorch in Surefoot's terms.

BoTorch models scaled inputs and standardized outputs; Surefoot keeps everything in the user's units. With inputs scaled
by (x − a)/r a stationary kernel of lengths ℓ is one of lengths ℓ r; with outputs standardized by (y − m)/s the signal
and noise variances are s² times as large, and the mean is m + s c. The result is the same process, not an
approximation, and an ordinary :class:`~surefoot.GP`: fast on candidates, stored as JSON, fitted again if you wish.
"""

from __future__ import annotations

from typing import Any

import gpytorch.kernels as gk
import numpy as np
import torch
from botorch.models.transforms.input import AffineInputTransform
from botorch.models.transforms.outcome import Standardize
from gpytorch.likelihoods import FixedNoiseGaussianLikelihood, GaussianLikelihood
from gpytorch.means import ConstantMean, ZeroMean
from gpytorch.models import ExactGP
from numpy.typing import NDArray
from torch import Tensor

from surefoot.belief import GP, SE, Matern, Posterior, RationalQuadratic
from surefoot.belief.algebra import Kernel
from surefoot.belief.kernels import ConstantKernel, Linear
from surefoot.errors import NotSupported

__all__ = ["to_gp", "to_posterior"]

Array = NDArray[np.float64]


def to_gp(model: Any) -> GP:
    """Return the prior of an exact BoTorch model, with its hyper-parameters, as a Surefoot GP.

    Parameters
    ----------
    model : SingleTaskGP or another exact GP
        One output, no batch; a constant mean; RBF, Matérn, RQ, linear and constant kernels, scaled, added, multiplied
        or restricted to some inputs; inputs scaled by ``Normalize`` or the like, outputs by ``Standardize``. What has
        no counterpart raises ``NotSupported`` and is named; :class:`~surefoot.bridge.botorch.ModelBelief` takes it as
        it is.

    The GP is used as it is; ``to_gp(model).refit(every=5)`` lets Surefoot fit it again. It does not know the model's
    data: tell them to the policy.

    >>> from botorch.models import SingleTaskGP
    >>> X = torch.linspace(0.0, 1.0, 5, dtype=torch.float64)[:, None]
    >>> to_gp(SingleTaskGP(X, torch.sin(6.0 * X))).kernel.names
    ['variance', 'lengthscale[0]']
    """
    _check(model)
    coefficient, shifted = _scaling(model)
    kernel = _kernel(model.covar_module, coefficient, shifted)
    level, spread = _standardization(model)
    likelihood = model.likelihood
    if not isinstance(likelihood, (GaussianLikelihood, FixedNoiseGaussianLikelihood)):
        raise NotSupported(f"a {type(likelihood).__name__} has no counterpart; a Gaussian likelihood has")
    noise = _number(likelihood.noise.mean()) * spread**2
    return GP(kernel.scaled(spread**2), noise, mean=level + spread * _mean(model.mean_module))


def to_posterior(model: Any) -> Posterior:
    """Return the posterior of an exact BoTorch model, given its own training data.

    >>> from botorch.models import SingleTaskGP
    >>> X = torch.linspace(0.0, 1.0, 5, dtype=torch.float64)[:, None]
    >>> model = SingleTaskGP(X, torch.sin(6.0 * X))
    >>> bool(abs(to_posterior(model).mean([[0.3]]) - model.posterior(X.new_tensor([[0.3]])).mean.item()) < 1e-8)
    True
    """
    gp = to_gp(model)
    level, spread = _standardization(model)
    inputs = model.train_inputs[0]
    if getattr(model, "_has_transformed_inputs", False):
        inputs = model._original_train_inputs
    noise = None
    if isinstance(model.likelihood, FixedNoiseGaussianLikelihood):
        noise = _numbers(model.likelihood.noise) * spread**2
    return gp.condition(_numbers(inputs), level + spread * _numbers(model.train_targets), noise)


def _check(model: Any) -> None:
    if not isinstance(model, ExactGP):
        raise NotSupported(f"a {type(model).__name__} is no exact Gaussian process; ModelBelief takes any model")
    if getattr(model, "num_outputs", 1) != 1 or model.train_targets.ndim != 1:
        raise NotSupported(
            f"a belief has one output and no batch; this model's targets have shape {tuple(model.train_targets.shape)}"
        )
    if not hasattr(model, "covar_module") or not hasattr(model, "mean_module"):
        raise NotSupported(f"a {type(model).__name__} has no mean_module and covar_module to translate")


def _numbers(tensor: Tensor) -> Array:
    return tensor.detach().cpu().to(torch.float64).numpy()


def _number(tensor: Tensor) -> float:
    if tensor.numel() != 1:
        raise NotSupported(f"a batch of hyper-parameters, here {tuple(tensor.shape)}, has no counterpart")
    return float(tensor.detach())


def _scaling(model: Any) -> tuple[Array, bool]:
    """The lengths by which the model divides its inputs, and whether it shifts them as well."""
    dimension = model.train_inputs[0].shape[-1]
    transform = getattr(model, "input_transform", None)
    coefficient = np.ones(dimension)
    if transform is None:
        return coefficient, False
    if not isinstance(transform, AffineInputTransform):
        raise NotSupported(f"inputs changed by {type(transform).__name__} have no counterpart; scaled ones have")
    where = _numbers(transform.indices).astype(np.intp) if hasattr(transform, "indices") else slice(None)
    coefficient[where] = _numbers(transform.coefficient).reshape(-1)
    return coefficient, bool(transform.offset.ne(0.0).any())


def _standardization(model: Any) -> tuple[float, float]:
    """The level and the spread (m, s) of the outputs."""
    transform = getattr(model, "outcome_transform", None)
    if transform is None:
        return 0.0, 1.0
    if not isinstance(transform, Standardize):
        raise NotSupported(f"outputs changed by {type(transform).__name__} have no counterpart; standardized ones have")
    return _number(transform.means), _number(transform.stdvs)


def _mean(module: Any) -> float:
    if isinstance(module, ZeroMean):
        return 0.0
    if type(module) is ConstantMean:
        return _number(module.constant)
    raise NotSupported(f"a {type(module).__name__} has no counterpart; a constant mean has")


def _kernel(module: Any, coefficient: Array, shifted: bool) -> Kernel:
    """The same kernel over the user's units; a restriction to some inputs comes with its own lengths."""
    dims = getattr(module, "active_dims", None)
    if dims is None:
        return _unrestricted(module, coefficient, shifted)
    seen = [int(i) for i in dims]
    return _unrestricted(module, coefficient[seen], shifted).on(seen)


def _unrestricted(module: Any, coefficient: Array, shifted: bool) -> Kernel:
    if isinstance(module, gk.ScaleKernel):  # it restricts the inputs itself, on behalf of what it scales
        return _unrestricted(module.base_kernel, coefficient, shifted).scaled(_number(module.outputscale))
    if type(module) in (gk.AdditiveKernel, gk.ProductKernel):
        parts = [_kernel(part, coefficient, shifted) for part in module.kernels]
        whole = parts[0]
        for part in parts[1:]:
            whole = whole + part if type(module) is gk.AdditiveKernel else whole * part
        return whole
    if type(module) is gk.RBFKernel:
        return SE(_lengths(module, coefficient))
    if type(module) is gk.MaternKernel:
        return Matern(module.nu, _lengths(module, coefficient))
    if type(module) is gk.RQKernel:
        return RationalQuadratic(_lengths(module, coefficient), alpha=_number(module.alpha))
    if type(module) is gk.ConstantKernel:
        return ConstantKernel(_number(module.constant))
    if type(module) is gk.LinearKernel and not shifted and np.ptp(coefficient) == 0.0 and module.variance.numel() == 1:
        return Linear(_number(module.variance) / float(coefficient[0]) ** 2)
    raise NotSupported(
        f"a {type(module).__name__} has no counterpart here; RBF, Matérn, RQ and constant kernels have, linear ones on "
        "inputs that are not shifted, and their sums, products and multiples"
    )


def _lengths(module: Any, coefficient: Array) -> Array | float:
    if not module.has_lengthscale or module.lengthscale.shape[:-1].numel() != 1:
        raise NotSupported(f"a batch of kernels, here {tuple(module.lengthscale.shape)}, has no counterpart")
    lengths = _numbers(module.lengthscale).reshape(-1) * coefficient
    return lengths if module.lengthscale.numel() > 1 or np.ptp(lengths) > 0.0 or coefficient.size == 1 else lengths[0]
