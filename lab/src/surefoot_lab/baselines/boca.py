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

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from surefoot.belief.kernels import SE
from surefoot.domain import Domain
from surefoot.loop.types import Proposal, Recommendation
from surefoot.loop.widths import Logarithmic, Width
from surefoot.policy.base import ModelOptions, ModelPolicy
from surefoot.policy.epochs.runs import RunPolicy, RunRows, automatic_over_epochs
from surefoot.policy.rule import Rule
from surefoot.policy.start import InitialDesign
from surefoot.policy.surrogate import Surrogate
from surefoot.policy.ucb.gp_ucb import UpperConfidence
from surefoot.policy.view import View

__all__ = ["BOCA", "CheapestRun", "CompleteStart"]


class CompleteStart:
    """Another start, whose runs are complete ones."""

    def __init__(self, start: InitialDesign, epochs: int) -> None:
        self.start, self.epochs = start, epochs

    def propose(self, view: View) -> Proposal | None:
        """Return its point, with N epochs."""
        found = self.start.propose(view)
        return None if found is None else replace(found, fidelity=self.epochs)


class CheapestRun:
    """Choose a configuration by another rule, and give its run the cheapest fidelity that teaches something.

    Parameters
    ----------
    choice : Rule
        How the configuration is chosen.
    rows : RunRows
        What the belief sees of runs.
    width : width
        β_t^(1/2).
    """

    def __init__(self, choice: Rule, rows: RunRows, width: Width) -> None:
        self.choice, self.rows, self.width = choice, rows, width

    def propose(self, view: View) -> Proposal:
        """Return x_t and z_t n."""
        proposal = self.choice.propose(view)
        x = view.domain.enumerate()[proposal.index] if proposal.x is None else proposal.x
        belief, rows, epochs = view.surrogate.posterior(), self.rows.along(x), self.rows.runs.epochs
        prior = belief.gp.kernel.diag(rows)
        correlation = belief.gp.kernel(rows, rows[-1:])[:, 0] / prior
        gap = np.sqrt(np.maximum(0.0, 1.0 - correlation**2))  # ξ(z)
        cost = np.arange(1, epochs + 1) / epochs  # λ(z)/λ(z•)
        gamma = np.sqrt(prior) * gap * cost ** (1.0 / (view.domain.dimension + 3))
        width = view.deviations(self.width, belief)
        worth = (belief.std(rows) > gamma) & (gap > gap.max() / max(width, 1e-12))
        worth[-1] = True
        return replace(proposal, fidelity=int(worth.argmax()) + 1)


class BOCA(RunPolicy, ModelPolicy):
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
        scale: str = "linear",
        width: Width | None = None,
        **options: Unpack[ModelOptions],
    ) -> None:
        super().__init__(domain, epochs=epochs, **options)
        self.rows = RunRows(self.runs, intermediate, scale)
        self.scale, self.intermediate = scale, self.rows.intermediate
        gp = self.gp if options.get("gp") is not None else automatic_over_epochs(domain, kernel=SE())
        self.surrogate = Surrogate(self.trials, gp, self.stream, rows=self.rows)
        self.width = Logarithmic(0.2, extra=1) if width is None else width
        self.start = CompleteStart(self.start, self.epochs)
        self.rule = CheapestRun(UpperConfidence(self.width), self.rows, self.width)

    def coordinate(self, epoch: float | NDArray[Any]) -> Any:
        """Return how the belief sees an epoch, 1 for the last one."""
        return self.rows.coordinate(epoch)

    def _recommend(self) -> Recommendation:
        X, which = self.runs.comparable()
        return self._most_promising(X, f"highest posterior mean at the last epoch among {which} runs")
