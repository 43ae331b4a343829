"""Thompson sampling: draw a function from the belief, measure where it is highest.

Question: where is the maximum? Random by nature, so many workers can ask at once and spread by themselves.

Rule: f̃ ~ posterior, x_t = argmax f̃(x). On candidates the draw is an exact joint one up to a few thousand of them; on
larger sets, boxes and mixed spaces it is a pathwise draw (a prior path of random Fourier features plus the exact
data-dependent update, Wilson et al. 2020) that is optimized continuously.

References: Thompson 1933; Chowdhury & Gopalan 2017. Guarantee: Bayesian regret O(√(T γ_T log |D|)) on finite domains
with the true prior (Russo & Van Roy 2014).

Differences from the papers: the posterior is not inflated by a width. Cost of one ask: one joint draw, O(M²n + M³) on M
candidates; on a box O(n² + n F) plus the search, F Fourier features.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from surefoot.belief.fourier import FourierFeatures
from surefoot.belief.gp import GP
from surefoot.belief.grid import GridPosterior
from surefoot.belief.noisy_inputs import smooth_and_white
from surefoot.belief.paths import sample_paths
from surefoot.belief.posterior import Posterior
from surefoot.domain import Candidates, Domain
from surefoot.errors import NotSupported
from surefoot.loop.policy import Proposal
from surefoot.policy.base import Acquisition, ModelOptions, ModelPolicy

__all__ = ["ThompsonSampling"]

Array = NDArray[np.float64]
_EXACT = 2000  # candidates up to which a joint draw by Cholesky is cheap


class ThompsonSampling(ModelPolicy):
    """Draw a function from the belief and measure where it is highest.

    Parameters
    ----------
    domain : Box, Candidates or Space
        Where points may lie.
    features : int
        Random Fourier features of a pathwise draw.
    **options
        ``gp``, ``initial``, ``confidence``, ``seed``, ``repeats``, ``journal``.

    >>> from surefoot import Candidates
    >>> policy = ThompsonSampling(Candidates(np.linspace(0.0, 1.0, 21)), seed=0)
    >>> for _ in range(10):
    ...     query = policy.ask()
    ...     policy.tell(query, -(query.x[0] - 0.3) ** 2)
    >>> abs(policy.recommend().x[0] - 0.3) < 0.11
    np.True_
    """

    def __init__(self, domain: Domain, *, features: int = 1024, **options: Unpack[ModelOptions]) -> None:
        super().__init__(domain, **options)
        if not isinstance(features, (int, np.integer)) or features < 2 or features % 2:
            raise ValueError(f"features must be a positive even number, got {features!r}")
        self.features = int(features)
        self._exact = isinstance(domain, Candidates) and domain.size <= _EXACT
        self._check_drawable()

    def _check_drawable(self) -> None:
        """Pathwise draws need a spectral density; say so before anything was asked."""
        if self._exact:
            return
        try:
            dimension = self.domain.encoded_dimension
            FourierFeatures(smooth_and_white(self.gp.kernel, dimension)[0], dimension, 2, np.random.default_rng(0))
        except TypeError as error:
            raise NotSupported(
                f"ThompsonSampling on a box, a space or more than {_EXACT} candidates draws paths of random Fourier "
                f"features, which need a kernel with a spectral density: {error}"
            ) from None

    def _acquisition(self, belief: Posterior | GridPosterior, step: int) -> Acquisition:
        raise NotSupported("ThompsonSampling maximizes a draw, not a function of mean and standard deviation")

    def _over_all_candidates(self, gp: GP) -> bool:
        return super()._over_all_candidates(gp) and self._exact

    def _rule(self, step: int, context: Mapping[str, Any]) -> Proposal:
        rng = self.stream("thompson", step)
        with self._hallucinated() as belief:
            if isinstance(belief, GridPosterior):
                return self._best_candidate(np.asarray(belief.sample(1, rng)[0]), step)
            points = getattr(self.domain, "points", None)
            if points is not None and self._exact:
                return self._best_candidate(belief.sample(points, 1, rng)[0], step)
            path = sample_paths(belief, 1, rng, self.features, dimension=self.domain.encoded_dimension)[0]
            return self._best_point(path, belief, step) if points is None else self._best_candidate(path(points), step)
