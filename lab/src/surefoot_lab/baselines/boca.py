"""BOCA: Bayesian optimization with continuous approximations, the length of a run fixed before it starts.

Question: where is the best configuration, if shorter runs are cheap approximations of long ones?

Rule (Kandasamy et al. 2017, Algorithm 1): a Gaussian process over [z, x] with the fidelity z = n/N; x_t maximizes the
upper confidence bound at z• = 1. The run then gets the cheapest fidelity out of z• and those with

* τ(z, x_t) > γ(z) = √κ₀ ξ(z) (λ(z)/λ(z•))^(1/(p + d + 2)): something is left to learn there, and
* ξ(z) > ‖ξ‖_∞/β_t^(1/2): z is not so close to z• that one should rather measure at z•,

where τ is the posterior standard deviation, κ₀ the prior variance, ξ(z) = √(1 − k(z, z•)²/κ₀²) the gap in information,
λ the cost (here the number of epochs), p = 1 and d the dimensions of z and x.

Authors' options: squared exponential kernel, β_t = 0.2 d log 2t, d here that of x and z together. Differences: as many
complete initial runs as the other policies have, instead of random fidelities; hyper-parameters fitted at every ask.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from surefoot.belief.kernels import SE
from surefoot.domain import Domain
from surefoot.loop.policy import Proposal
from surefoot.loop.widths import Logarithmic, Width
from surefoot.policy.base import ModelOptions
from surefoot.policy.epochs.runs import EpochPolicy, automatic_over_epochs

__all__ = ["BOCA"]


class BOCA(EpochPolicy):
    """GP-UCB at the last epoch, with runs as short as they can be and still teach something.

    Parameters
    ----------
    domain : Box, Candidates or Space
        Where configurations may lie.
    epochs : int
        N, the length of a complete run; a query's ``fidelity`` is the length of its run.
    width : width, optional
        None: the authors', √(0.2 (d + 1) log 2t).
    intermediate, scale
        As in :class:`~surefoot.policy.epochs.runs.EpochPolicy`; by default a run teaches its last score only.
    **options
        ``gp``, ``initial``, ``confidence``, ``seed``, ``repeats``, ``journal``.

    >>> from surefoot import Box
    >>> policy = BOCA(Box([(0.0, 1.0)]), epochs=20, seed=0)
    >>> for _ in range(6):
    ...     query = policy.ask()
    ...     policy.tell(query, (1.0 - (query.x[0] - 0.3) ** 2) * (1.0 - 0.7**query.fidelity))
    >>> [query.fidelity for query in policy.queries][:3]
    [20, 20, 20]
    """

    fidelities = True

    def __init__(
        self,
        domain: Domain,
        *,
        epochs: int,
        intermediate: Sequence[int] | None = (),
        width: Width | None = None,
        **options: Unpack[ModelOptions],
    ) -> None:
        chosen = Logarithmic(0.2, extra=1) if width is None else width
        super().__init__(domain, epochs=epochs, intermediate=intermediate, width=chosen, **options)
        if options.get("gp") is None:
            self.gp = automatic_over_epochs(domain, kernel=SE())

    def _choose(self, step: int, context: Mapping[str, Any]) -> Proposal:
        proposal = super()._choose(step, context)
        if "initial" in proposal.note:
            return replace(proposal, fidelity=self.epochs)
        return replace(proposal, fidelity=self._fidelity(proposal))

    def _fidelity(self, proposal: Proposal) -> int:
        """The number of epochs of the run at the chosen point."""
        x = self.domain.points[proposal.index] if proposal.x is None else proposal.x  # type: ignore[attr-defined]
        z = self.coordinate(np.arange(1, self.epochs + 1))
        encoded = np.broadcast_to(self.domain.encode(x[None]), (self.epochs, self.domain.encoded_dimension))
        rows = np.column_stack([encoded, z])
        belief = self._believe()
        prior = belief.gp.kernel.diag(rows)
        correlation = belief.gp.kernel(rows, rows[-1:])[:, 0] / prior
        gap = np.sqrt(np.maximum(0.0, 1.0 - correlation**2))
        cost = np.arange(1, self.epochs + 1) / self.epochs
        gamma = np.sqrt(prior) * gap * cost ** (1.0 / (self.domain.dimension + 3))
        width = self.width(
            len(self._observations) + len(self._pending) + 1,
            size=self.domain.size,
            dimension=self.domain.dimension,
            gain=belief.information_gain,
        )
        worth = (belief.std(rows) > gamma) & (gap > gap.max() / max(width, 1e-12))
        worth[-1] = True
        return int(worth.argmax()) + 1
