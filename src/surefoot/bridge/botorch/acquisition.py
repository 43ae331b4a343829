"""Two of Surefoot's rules as acquisition functions of BoTorch, differentiable, for any of its models.

:class:`RobustUpperBound` is the rule of StableOpt (Algorithm 7 of its source): the candidate is the x of highest
min_δ ucb(x + δ), and what is *measured* is x + δ for the δ of lowest lcb(x + δ). :class:`TruncatedVarianceReduction` is
the rule of TruVaR: the variance that a measurement takes away from the points that may still be the maximum, or may
still lie on either side of a threshold, down to a target and per unit of cost.

Both maximize, take double precision, and know pending points: as if these had been measured at their means. The
policies :class:`surefoot.StableOpt` and :class:`surefoot.TruVaR` decide by the same scores, and also keep the books:
epochs, reports, certificates.

References: Bogunovic, Scarlett, Jegelka & Cevher 2018 (StableOpt); Bogunovic, Scarlett, Krause & Cevher 2016 (TruVaR).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import cast

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.models.model import Model
from botorch.utils.transforms import average_over_ensemble_models, is_ensemble, t_batch_mode_transform
from linear_operator.utils.cholesky import psd_safe_cholesky
from torch import Tensor

from surefoot.belief.posterior import EXACT, NOTHING
from surefoot.bridge.botorch.belief import hallucinate
from surefoot.bridge.botorch.model import GPModel
from surefoot.domain import Box
from surefoot.domain.perturbation import Perturbation
from surefoot.domain.sets import Around, ParameterRegion
from surefoot.errors import NotSupported

__all__ = ["RobustUpperBound", "TruncatedVarianceReduction"]


class _Believing(AcquisitionFunction):
    """An acquisition whose pending points are hallucinated: measured at their means."""

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        if model.num_outputs != 1:
            raise NotSupported(f"the rule takes one output, and this model has {model.num_outputs}")
        self.measured = model
        self.X_pending = None

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:
        """Take points that are under way as if they had been measured at their means; None forgets them."""
        if X_pending is not None and len(X_pending) and is_ensemble(self.measured):
            raise NotSupported("an ensemble of hyper-parameters cannot take pending points")
        super().set_X_pending(X_pending)
        self.model = self.measured
        if self.X_pending is not None and len(self.X_pending):
            self.model = hallucinate(self.measured, self._measures(self.X_pending))

    def _measures(self, X: Tensor) -> Tensor:
        """Where candidates X (n x d) are measured."""
        return X


class RobustUpperBound(_Believing):
    """StableOpt's rule: the upper confidence bound after the worst perturbation, min_δ ucb(x + δ).

    Parameters
    ----------
    model : Model
        One output. Its inputs are designs x; with parameters beside them (``UnknownParameters``, ``AroundEstimate``), x
        and then θ.
    perturbation : Perturbation or tensor m x d
        What an adversary may do, for example ``surefoot.Ball(0.1)``; or the offsets themselves.
    bounds : tensor, 2 x d
        Of the designs, as ``optimize_acqf`` takes them. A point x + δ outside is moved to the nearest inside, which is
        not farther from x: perturbations never leave the domain.
    width : float
        Standard deviations above the mean, β^(1/2); the authors use 2.
    count : int
        About so many points stand for a perturbation that is not finite. Fewer make the bound too high.
    temperature : float
        0 takes the minimum. A positive one takes −τ log Σ exp(−ucb/τ) instead, which is at most τ log m lower and
        has no kinks for a gradient method to stick to; choose it small beside the values' range.

    The measurement belongs at :meth:`sample` of the candidate, not at the candidate. Of the candidates so far, report
    the one of highest :meth:`lower`. Pending points are candidates; what is hallucinated is their samples.

    >>> from surefoot import GP, SE, Ball
    >>> gp = GP(SE(lengthscale=0.3), noise=1e-4)
    >>> model = GPModel(gp.condition([[0.0], [0.5], [1.0]], [0.0, 1.0, 0.0]))
    >>> rule = RobustUpperBound(model, Ball(0.1), torch.tensor([[0.0], [1.0]], dtype=torch.float64))
    >>> x = torch.tensor([[[0.5]], [[0.9]]], dtype=torch.float64)
    >>> bool((rule.lower(x) <= rule(x)).all())
    True
    """

    bounds: Tensor
    offsets: Tensor | None
    theta: Tensor | None

    def __init__(
        self,
        model: Model,
        perturbation: Perturbation | Tensor,
        bounds: Tensor,
        *,
        width: float = 2.0,
        count: int = 128,
        temperature: float = 0.0,
    ) -> None:
        super().__init__(model)
        for name, value in (("width", width), ("temperature", temperature)):
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{name} must be finite and not negative, got {value!r}")
        if not isinstance(count, int) or count < 1:
            raise ValueError(f"count must be a whole number from 1 on, got {count!r}")
        if bounds.ndim != 2 or len(bounds) != 2:
            raise ValueError(f"bounds are a tensor 2 x d, got shape {tuple(bounds.shape)}")
        offsets, theta = _reached(perturbation, bounds, count)
        self.register_buffer("offsets", offsets)
        self.register_buffer("theta", theta)
        self.register_buffer("bounds", bounds)
        self.width, self.temperature = float(width), float(temperature)

    @t_batch_mode_transform(expected_q=1)
    @average_over_ensemble_models
    def forward(self, X: Tensor) -> Tensor:
        """Return min_δ ucb(x + δ) at X (b x 1 x d), shape b: line 1 of the algorithm."""
        return self._worst(self._bounds(X, self.width), X.ndim - 2)

    @t_batch_mode_transform(expected_q=1)
    @average_over_ensemble_models
    def lower(self, X: Tensor) -> Tensor:
        """Return min_δ lcb(x + δ) at X (b x 1 x d), shape b: what a candidate is reported by."""
        return self._bounds(X, -self.width).amin(dim=X.ndim - 2)

    def _worst(self, values: Tensor, dim: int) -> Tensor:
        if not self.temperature:
            return values.amin(dim=dim)
        return -self.temperature * torch.logsumexp(-values / self.temperature, dim=dim)

    def sample(self, X: Tensor) -> Tensor:
        """Return where to measure for candidates X (n x d): at their δ of lowest lcb, line 2 of the algorithm."""
        if X.ndim != 2:
            raise ValueError(f"candidates are a tensor n x d, got shape {tuple(X.shape)}")
        with torch.no_grad():
            low = self._bounds(X.unsqueeze(-2), -self.width)
            if is_ensemble(self.model):
                low = low.mean(dim=-1)
            points = self._perturbed(X.unsqueeze(-2)).squeeze(-2)
            return points[torch.arange(len(X)), low.argmin(dim=1)]

    def _measures(self, X: Tensor) -> Tensor:
        self.model = self.measured
        return self.sample(X)

    def _perturbed(self, X: Tensor) -> Tensor:
        """All perturbed points of X (... x 1 x d), shape ... x m x 1 x d."""
        center = X.unsqueeze(-3)
        if self.offsets is not None:
            moved = center + self.offsets.to(X).unsqueeze(-2)
            return torch.clamp(moved, self.bounds[0].to(X), self.bounds[1].to(X))
        theta = cast(Tensor, self.theta).to(X).unsqueeze(-2)
        batch = torch.broadcast_shapes(center.shape[:-1], theta.shape[:-1])
        return torch.cat([center.expand(*batch, -1), theta.expand(*batch, -1)], dim=-1)

    def _bounds(self, X: Tensor, width: float) -> Tensor:
        """Confidence bounds at all perturbed points, shape ... x m, with the members of an ensemble last."""
        made = self.model.posterior(self._perturbed(X))
        std = made.variance.clamp_min(NOTHING).sqrt()
        return (made.mean + width * std).squeeze(-1).squeeze(-1)


def _reached(perturbation: Perturbation | Tensor, bounds: Tensor, count: int) -> tuple[Tensor | None, Tensor | None]:
    """Offsets (m x d) from any design, or else the parameters (m x e) beside it."""
    if isinstance(perturbation, Tensor):
        if perturbation.ndim != 2 or not len(perturbation) or not bool(perturbation.isfinite().all()):
            shape = tuple(perturbation.shape)
            raise ValueError(f"offsets are a finite tensor m x d with m from 1 on, got shape {shape}")
        if perturbation.shape[1] != bounds.shape[1]:
            raise ValueError(f"the offsets have {perturbation.shape[1]} coordinates, the bounds {bounds.shape[1]}")
        return perturbation, None
    if not isinstance(perturbation, Perturbation):
        raise TypeError(f"a perturbation is one of Surefoot's, or a tensor of offsets; got {perturbation!r}")
    designs = Box(bounds.detach().cpu().numpy().T)
    region, center = perturbation.on(perturbation.join(designs)), designs.lower[None]
    if isinstance(region, ParameterRegion):
        reached = region.spread(center, count)[0, :, designs.dimension :]
        return None, torch.from_numpy(reached.copy()).to(bounds)
    if isinstance(region, Around):
        # The same around a center so far from any border that nothing is cut off.
        wide = Box([(-1.0 - r, 1.0 + r) for r in region.reach.tolist()])
        offsets = Around(wide, region.reach, region.norm).spread(0.0 * center, count)[
            0, : 1 if region.trivial else None
        ]
        return torch.from_numpy(offsets.copy()).to(bounds), None
    raise NotSupported(f"{perturbation!r} has no form on a box; balls, boxes and parameters beside a design have")


class TruncatedVarianceReduction(_Believing):
    """TruVaR's rule: how far a measurement takes the variance of undecided points down to a target, per unit of cost.

    Parameters
    ----------
    model : Model
        One output.
    points : tensor, m x d
        Where the question is asked: a grid, or representer points.
    width : float
        Standard deviations of the confidence bounds, β^(1/2).
    target : float
        η: what the bounds' half-width is to come down to, in units of the output. While all undecided points are
        below, it is multiplied by ``ratio``; pass :attr:`target` on to the next round.
    threshold : float, optional
        The level whose sides are asked for. None: the maximum.
    ratio : float
        r.
    cost : tensor-valued callable, optional
        ``cost(X)`` of points ... x q x d, shape ... x q, positive. None: 1 each.
    noise : float, optional
        Variance of a measurement. None: as the model says.

    For one point the score is the paper's; for several at once (q > 1) it is the same for all their measurements
    together, over the sum of their costs. The sets are those of one round, formed over all points.

    Attributes
    ----------
    potential : boolean tensor, m
        Which points may still be the maximum, or lie on either side.
    target : float
        η of this round.

    >>> from surefoot import GP, SE
    >>> model = GPModel(GP(SE(lengthscale=0.2), noise=1e-4).condition([[0.1]], [0.0]))
    >>> grid = torch.linspace(0.0, 1.0, 11, dtype=torch.float64)[:, None]
    >>> rule = TruncatedVarianceReduction(model, grid, width=2.0, target=0.5)
    >>> int(rule(grid[:, None]).argmax())
    7
    """

    def __init__(
        self,
        model: Model,
        points: Tensor,
        *,
        width: float,
        target: float,
        threshold: float | None = None,
        ratio: float = 0.1,
        cost: Callable[[Tensor], Tensor] | None = None,
        noise: float | None = None,
    ) -> None:
        super().__init__(model)
        if points.ndim != 2 or not len(points):
            raise ValueError(f"points are a tensor m x d with m from 1 on, got shape {tuple(points.shape)}")
        if not (width > 0 and math.isfinite(width)):
            raise ValueError(f"width must be positive and finite, got {width!r}")
        if not (target >= 0 and math.isfinite(target)):
            raise ValueError(f"target must be finite and not negative, got {target!r}")
        if not 0 < ratio < 1:
            raise ValueError(f"ratio must lie strictly between 0 and 1, got {ratio!r}")
        if is_ensemble(model):
            raise NotSupported(
                "truncated variances are those of one process, not of an ensemble; use one of its members"
            )
        if threshold is not None and not math.isfinite(threshold):
            raise ValueError(f"threshold must be finite, got {threshold!r}")
        if noise is not None and not (noise >= 0 and math.isfinite(noise)):
            raise ValueError(f"noise is a variance, finite and not negative, got {noise!r}")
        self.width, self.ratio, self.cost, self.noise = float(width), float(ratio), cost, noise
        self.register_buffer("points", points.detach())
        with torch.no_grad():
            made = model.posterior(points.unsqueeze(-2))
            mean, std = made.mean.flatten(), made.variance.clamp_min(0.0).flatten().sqrt()
        upper, lower = mean + self.width * std, mean - self.width * std
        self.potential = upper >= lower.max() if threshold is None else (upper >= threshold) & (lower <= threshold)
        self.target = self._advanced(float(target), self.width * std[self.potential], float(std.max()))

    def _advanced(self, target: float, half: Tensor, scale: float) -> float:
        """The target of this round: smaller, as long as all undecided points are below it (line 6, with a while)."""
        floor = math.sqrt(EXACT) * max(scale, 1e-300)  # below this a deviation is rounding error
        while len(half) and target > floor and float(half.max()) <= target * (1.0 + 1e-9):
            target *= self.ratio
        return target

    @property
    def decided(self) -> bool:
        """Whether no point is left to decide about."""
        return not bool(self.potential.any())

    @t_batch_mode_transform()
    def forward(self, X: Tensor) -> Tensor:
        """Return the scores of X (b x q x d), shape b; all 0 when everything is decided."""
        batch, left = X.shape[:-2], self.points[self.potential].to(X)
        if not len(left):
            return X.sum(dim=(-2, -1)) * 0.0
        cross, among, before, noise = self._covariances(X, left)
        # The variance a measurement takes from each point: cov²/(var + noise) for one, with a factor for several.
        factor = psd_safe_cholesky(among + torch.diag_embed(noise))
        taken = torch.linalg.solve_triangular(factor, cross, upper=False).square().sum(dim=-2)
        beta = self.width**2
        room = (beta * before - self.target**2).clamp_min(0.0)  # η², not η: both sides are squared widths
        score = torch.minimum(beta * taken, room).sum(dim=-1)
        return score if self.cost is None else score / self._price(X).expand(batch)

    def _price(self, X: Tensor) -> Tensor:
        price = self.cost(X) if self.cost is not None else X.new_ones(X.shape[:-1])
        if price.shape != X.shape[:-1]:
            raise ValueError(f"cost must return one number per point, {tuple(X.shape[:-1])}, got {tuple(price.shape)}")
        if not bool((price > 0).all()):
            raise ValueError(f"costs must be positive, got {float(price.min())!r}")
        return price.sum(dim=-1)

    def _covariances(self, X: Tensor, Z: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Of X with the undecided points, among X, the variances of the undecided ones, and the noise at X."""
        if isinstance(self.model, GPModel):
            # One block of covariances; the joint posterior below holds those among the undecided points for each X.
            cross, among = self.model.covariance(X, Z), self.model.covariance(X, X)
            before = self.model.posterior(Z.unsqueeze(-2)).variance.flatten()
            own = self.model.noise.expand(X.shape[:-1])
        else:
            q = X.shape[-2]
            joint = self.model.posterior(torch.cat([X, Z.expand(*X.shape[:-2], *Z.shape)], dim=-2))
            S = joint.covariance_matrix
            cross, among = S[..., :q, q:], S[..., :q, :q]
            before = S.diagonal(dim1=-2, dim2=-1)[..., q:]
            noisy = self.model.posterior(X, observation_noise=True).variance.squeeze(-1)
            own = (noisy - among.diagonal(dim1=-2, dim2=-1)).clamp_min(0.0)
        if self.noise is not None:
            own = torch.full_like(own, self.noise)
        level = float(before.detach().max().clamp_min(1e-300))
        return cross, among, before, own.clamp_min(EXACT * level)
