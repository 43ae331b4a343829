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

from typing import Unpack

import numpy as np

from surefoot.belief.fourier import FourierFeatures
from surefoot.belief.gp import GP
from surefoot.belief.noisy_inputs import smooth_and_white
from surefoot.belief.paths import sample_path
from surefoot.belief.protocol import EVERY
from surefoot.domain import Domain
from surefoot.errors import NotSupported
from surefoot.loop.types import Proposal
from surefoot.policy.base import ModelOptions, ModelPolicy
from surefoot.policy.view import View

__all__ = ["PosteriorDraw", "ThompsonSampling", "check_drawable", "jointly"]

_EXACT = 2000  # candidates up to which a joint draw by Cholesky is cheap


def jointly(domain: Domain) -> bool:
    """Tell whether a function is drawn at all points of a domain at once, exactly.

    >>> from surefoot import Box, Candidates
    >>> jointly(Candidates([1.0, 2.0])), jointly(Box([(0.0, 1.0)]))
    (True, False)
    """
    return domain.listed and (domain.size or 0) <= _EXACT


def check_drawable(gp: GP, dimension: int) -> None:
    """Refuse a kernel without a spectral density, which pathwise draws need, before anything was asked.

    >>> check_drawable(GP(), 1)
    """
    try:
        FourierFeatures(smooth_and_white(gp.kernel, dimension)[0], dimension, 2, np.random.default_rng(0))
    except TypeError as error:
        raise NotSupported(
            f"ThompsonSampling on a box, a space or more than {_EXACT} candidates draws paths of random Fourier "
            f"features, which need a kernel with a spectral density: {error}"
        ) from None


class PosteriorDraw:
    """f̃ ~ posterior, x_t = argmax f̃(x).

    Parameters
    ----------
    features : int
        Random Fourier features of a pathwise draw, an even number.

    >>> PosteriorDraw(128).features
    128
    """

    def __init__(self, features: int) -> None:
        if not isinstance(features, (int, np.integer)) or features < 2 or features % 2:
            raise ValueError(f"features must be a positive even number, got {features!r}")
        self.features = int(features)

    def propose(self, view: View) -> Proposal:
        """Draw a function given the points under way, and return where it is highest."""
        rng, domain = view.stream("thompson", view.step), view.domain
        with view.hallucinated() as belief:
            if jointly(domain):
                drawn = belief.draw(EVERY, 1, rng)[0]
                return view.highest(lambda at: drawn[at], belief)
            path = sample_path(belief, rng, self.features, dimension=domain.encoded_dimension)
            return view.highest(path, belief)


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

    >>> import numpy as np
    >>> from surefoot import Candidates
    >>> policy = ThompsonSampling(Candidates(np.linspace(0.0, 1.0, 21)), seed=0)
    >>> for _ in range(10):
    ...     query = policy.ask()
    ...     policy.tell(query, -(query.x[0] - 0.3) ** 2)
    >>> abs(policy.recommend().x[0] - 0.3) < 0.11
    np.True_
    """

    doubts = True
    treats = True

    def __init__(self, domain: Domain, *, features: int = 1024, **options: Unpack[ModelOptions]) -> None:
        super().__init__(domain, **options)
        self.rule = PosteriorDraw(features)
        self.features = self.rule.features
        if not jointly(domain):
            check_drawable(self.gp, domain.encoded_dimension)
        self.surrogate.rows.listed = jointly(domain)
