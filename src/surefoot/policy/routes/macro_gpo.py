"""MacroGPO: plan several moves of a vehicle ahead, each answering to what the ones before it will have measured.

**Question.** A vehicle finds its way over an unknown field. From each place it has a few moves (macro-actions), each a
fixed sequence of stops that are all measured before it decides again. Which move next, so that the values measured
until the end add up to the most?

**Rule.** With H moves to go, R(a) the expected sum of a move's values plus β times what they tell about the field, in
nats, and V the value of the best continuation, the best move maximizes  Q*(a) = R(a) + E V(after a)  (eq. (5)).
Planners:

* ``"epsilon"`` (the default, ε-Macro-GPO, eq. (9)): 𝒬, N imagined outcomes of each move (eq. (6)); a first move whose
  𝒬 differs from ℚ by more than λH + θ falls back to ℚ;
* ``"sampled"``: 𝒬 alone;
* ``"likely"``: ℚ, every outcome is its expectation (eq. (8)), known as nonmyopic GP-UCB;
* ``"anytime"``: 𝒬 explored only where bounds leave it open, for as many iterations or seconds as are given
  (:mod:`surefoot.policy.routes.anytime`); when the horizon shrinks, a search goes on from the one before.

One move ahead (``horizon=1``) all of them are DB-GP-UCB with a linear bonus: the largest R. The horizon shrinks with
what is left of the budget.

**Reference.** Kharkovskii, Ling & Low, *Nonmyopic Gaussian process optimization with macro-actions*, AISTATS 2020.

**Guarantee.** Given a true belief, the expected loss against the best adaptive policy is at most ε when ``epsilon=ε``
chooses N, λ and δ (Theorem 3). ``certificate`` bounds the loss of the last choice: ℚ ≤ Q* ≤ ℚ + θ holds for certain.

**Costs.** With ``toll=``, what a move costs is taken off its reward R. That changes no covariance and no slope: all
bounds stay as they are.

**The authors' options.** H = 2 to 4, β = 0, N = 100, known hyper-parameters, fresh samples (``sampling="iid"``).
β > 0 makes up for a horizon that is too short.

**What differs.** N is given directly and ε follows: the N of the theorem is beyond reach, 10⁵ to 10⁷ outcomes of a move
with our tighter constants, up to 10¹⁶ with the paper's (``constants="paper"``). Outcomes are shared by all nodes of a
stage by default, so that moves are compared on the same luck; the theorems hold all the same. The information is that
about the field, not about noisy measurements, whose noise eq. (4) counts twice (``bonus="noisy"`` is the printed form).
Ties are broken at random. A move into a dead end is not considered while others go on. Stops that were missed count as
measured at their mean.

**Cost of one ask.** O((A N)^(H−1) A) additions for A moves and H stages; memory O(A^H k + N²).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from surefoot.arguments import not_negative, number, one_of, positive, whole
from surefoot.belief.posterior import Posterior
from surefoot.domain import Paths
from surefoot.errors import NoData, NotSupported
from surefoot.loop.journey import Journey
from surefoot.loop.types import Proposal
from surefoot.policy.base import ModelOptions, ModelPolicy
from surefoot.policy.moves import best_moves, drawn
from surefoot.policy.routes.bellman import nodes_of
from surefoot.policy.routes.path_tree import PathTree, check_paths, path_counts
from surefoot.policy.routes.planners import AnytimeSearches, FullTree, Grow, MostLikely, Planner, check_nodes
from surefoot.policy.view import View

__all__ = ["MacroGPO", "MacroRule", "PlanCertificate"]

Array = NDArray[np.float64]
_log = logging.getLogger("surefoot.macro")

FAR = 4  # moves to look ahead where nothing is said, if that many are affordable
# Affordable: so many nodes of a full tree, a few seconds, and so many paths.
NODES, PATHS = 5 * 10**9, 10**6
_CHOICES = {
    "planner": ("epsilon", "likely", "sampled", "anytime"),
    "sampling": ("shared", "iid", "sobol"),
    "constants": ("tight", "paper"),
    "bonus": ("latent", "noisy"),
}


@dataclass(frozen=True)
class PlanCertificate:
    """How much less than the best move the chosen one can be worth, at most, and with which confidence.

    >>> PlanCertificate(0.4, 1.0).loss
    0.4
    """

    loss: float
    confidence: float


@dataclass
class MacroRule:
    """Make the move of the largest Q: the policies that eqs. (6), (8), (9) and Algorithm 1 induce.

    Attributes
    ----------
    planner : Planner
        Says what each first move is worth.
    grow : callable
        Returns the tree of paths, as :meth:`~surefoot.policy.routes.path_tree.PathTree.grow`.
    horizon : int
        H, at most.
    affordable : bool
        Whether to look less far ahead where the tree would be too large.
    samples : int, optional
        N, where all imagined outcomes are searched.
    """

    planner: Planner
    grow: Grow
    horizon: int
    affordable: bool
    samples: int | None

    def propose(self, view: View) -> Proposal:
        """Return the move, and on its note what the plan says of all of them."""
        journey = view.trials.journey
        moves = journey.options()
        with view.hallucinated() as belief:  # stops that were missed
            known, domain, place = cast(Posterior, belief), journey.domain, journey.place
            tree = self.grow(known, domain, place, self.ahead(journey))  # Σ of eq. (1) and R of eq. (4), path by path
            plan = self.planner.plan(tree, view)  # Q of each move
            level = belief.gp.mean * tree.length * tree.horizon  # every path has as many stops
        chosen = drawn(view, best_moves(plan.values, level))  # π(d) = argmax Q
        if plan.fallbacks:
            _log.info("ask %d: the sampled values of moves %s were not trusted", view.step, plan.fallbacks)
        note = {
            "horizon": tree.horizon,
            "values": _strict(plan.values.tolist()),
            "nodes": plan.nodes,
            "fallbacks": list(plan.fallbacks),
            "certificate": _strict([plan.loss(chosen), plan.confidence]),
        }
        return Proposal(stops=moves[chosen], note=note)

    def ahead(self, journey: Journey) -> int:
        """Return how many moves to look ahead: what is left of the budget, H, or what is affordable."""
        most = self.horizon if journey.stages is None else min(self.horizon, journey.stages)
        while self.affordable and most > 1:
            paths = path_counts(journey.domain, journey.place, most)
            if paths[-1] <= PATHS and (self.samples is None or nodes_of(paths, self.samples) <= NODES):
                break
            most -= 1
        return most


class MacroGPO(ModelPolicy):
    """Plan moves ahead.

    Parameters
    ----------
    domain : Paths
        The places, the moves, the start and the budget.
    horizon : int, optional
        Moves to look ahead; fewer when the budget leaves fewer. None: as many as are affordable with these ``samples``
        and this ``planner``, at most 4.
    samples : int
        N, imagined outcomes of each move.
    planner : {"epsilon", "likely", "sampled", "anytime"}
        How moves are valued; see the module's page.
    exploration : float
        β, the worth of one nat of information.
    toll : float, optional
        What one unit of a move's cost is worth, in units of the measured values: the sum of the values less the tolls
        is maximized. None: costs are not weighed, with a warning where moves differ in them; 0 says so.
    sampling : {"shared", "iid", "sobol"}
        Whether all nodes of a stage share their outcomes, draw their own as in the paper, or share a Sobol sequence.
    epsilon : float, optional
        The loss to stay below; it chooses the number of samples.
    iterations : int
        Of the anytime planner.
    seconds : float, optional
        Time limit of the anytime planner; the one licence to differ between two runs.
    constants : {"tight", "paper"}
        Those of the fall-back and the certificate.
    bonus : {"latent", "noisy"}
        Whose covariance the information is about.
    normalize : {"prior", "empirical"}, float or None
        What :attr:`average_output` subtracts: the belief's mean, the mean of all that was measured, a number, nothing.
    device : str, optional
        Where imagined outcomes are added up: None for NumPy, or a torch device such as ``"cuda"``.
    **options
        ``gp``, ``initial`` (random moves are made until so many stops are known), ``confidence``, ``seed``,
        ``journal``. With a ``gp`` that refits itself, ``every`` counts moves.

    >>> from surefoot import GP, SE, Dives, Paths
    >>> grid = np.stack(np.meshgrid(np.arange(9.0), np.arange(9.0), indexing="ij"), axis=-1).reshape(-1, 2)
    >>> field = np.exp(-((grid - [2.0, 6.0]) ** 2).sum(axis=1) / 8.0)
    >>> paths = Paths(grid, Dives((9, 9), 2), start=40, budget=8)
    >>> policy = MacroGPO(paths, horizon=3, samples=20, gp=GP(SE(2.0), noise=1e-4), seed=0)
    >>> policy.tell(grid[40], field[40])  # what is known at the start
    >>> while policy.journey.stages:
    ...     query = policy.ask()
    ...     policy.tell(query, field[query.note["stops"]])
    >>> policy.recommend().x
    array([2., 6.])
    """

    domains = (Paths,)
    parallel = False
    rule: MacroRule
    valued: ClassVar[tuple[str, ...]] = ("normalize",)

    def __init__(
        self,
        domain: Paths,
        *,
        horizon: int | None = None,
        samples: int = 100,
        planner: str = "epsilon",
        exploration: float = 0.0,
        toll: float | None = None,
        sampling: str = "shared",
        epsilon: float | None = None,
        iterations: int = 1500,
        seconds: float | None = None,
        constants: str = "tight",
        bonus: str = "latent",
        normalize: str | float | None = "prior",
        device: str | None = None,
        **options: Unpack[ModelOptions],
    ) -> None:
        self.weighs_costs = toll is not None  # type: ignore[misc]  # without a rate there is nothing to weigh by
        super().__init__(domain, **options)
        for name, word in zip(_CHOICES, (planner, sampling, constants, bonus), strict=True):
            one_of(word, name, _CHOICES[name])
        if planner == "anytime" and sampling == "iid":
            raise ValueError("planner='anytime' carries bounds between nodes that share outcomes: not sampling='iid'")
        finite = math.isfinite(number(normalize))
        if not (normalize is None or finite or (isinstance(normalize, str) and normalize in ("prior", "empirical"))):
            raise ValueError(f"normalize must be 'prior', 'empirical', a number or None; got {normalize!r}")
        if self.gp.samples or self.gp.members:
            raise NotSupported("MacroGPO plans with one set of hyper-parameters, not with a mixture of them")
        self.horizon = FAR if horizon is None else whole(horizon, "horizon", 1)
        self.samples = whole(samples, "samples", 1)
        self.toll = None if toll is None else not_negative(toll, "toll")
        self.iterations = whole(iterations, "iterations", 1)
        self.planner, self.sampling, self.constants, self.bonus = planner, sampling, constants, bonus
        self.exploration = not_negative(exploration, "exploration")
        self.epsilon = None if epsilon is None else positive(epsilon, "epsilon")
        self.seconds = None if seconds is None else positive(seconds, "seconds")
        self.normalize, self.device = normalize, device
        grow = partial(PathTree.grow, exploration=self.exploration, toll=self.toll or 0.0, bonus=bonus)
        full = self.samples if planner in ("epsilon", "sampled") else None
        self.rule = MacroRule(self._planner(grow), grow, self.horizon, horizon is None, full)
        if horizon is not None:
            self._check_tree(domain)

    def _first_header(self, found: Mapping[str, Any]) -> dict[str, Any]:
        # Version 0.1 had no toll, and looked four moves ahead where nothing was said.
        config = {**self.config(), **super()._first_header(found).get("config", {})}
        said = found.get("config", {})
        if config["horizon"] is None and said.get("horizon") == FAR:
            config["horizon"] = FAR
        return {"config": {name: value for name, value in config.items() if name in said or value is not None}}

    def _planner(self, grow: Grow) -> Planner:
        if self.planner == "likely":
            return MostLikely(self.constants)
        if self.planner == "anytime":
            options = self.samples, self.sampling, self.constants, self.epsilon, self.iterations, self.seconds
            return AnytimeSearches(grow, *options)
        falls_back = self.planner == "epsilon"
        return FullTree(self.samples, self.sampling, self.constants, self.epsilon, falls_back, self.device)

    def _check_tree(self, domain: Paths) -> None:
        """Refuse a horizon whose tree cannot be searched at the first planned move; estimated, nothing is grown."""
        ahead = self.horizon
        if domain.budget is not None:  # random moves come first
            ahead = max(1, min(ahead, domain.budget // domain.length - math.ceil(self.initial / domain.length)))
        paths = path_counts(domain, domain.start, ahead)
        check_paths(domain, paths)
        if self.rule.samples is not None and self.epsilon is None:
            check_nodes(nodes_of(paths, self.samples), f"horizon={ahead} with samples={self.samples}")

    # -- looking -----------------------------------------------------------------------------------------------------

    def _last(self) -> dict[str, Any]:
        """What is on record about the last planned move."""
        planned = [query.note for query in self.trials.queries if "values" in query.note]
        if not planned:
            raise NoData("no move was planned yet")
        return dict(planned[-1])

    @property
    def values(self) -> Array:
        """What each move was worth at the last planned ask, shape (A,); −inf for one into a dead end."""
        return np.array([-np.inf if value is None else value for value in self._last()["values"]])

    @property
    def nodes(self) -> int:
        """Nodes of all trees searched so far."""
        return sum(query.note.get("nodes", 0) for query in self.trials.queries)

    @property
    def certificate(self) -> PlanCertificate:
        """A bound on the loss of the last choice, against the best plan of the same horizon under the same belief.

        It says how well the plan was searched. With a belief that is fitted, the default, it is about that fit.
        """
        loss, confidence = self._last()["certificate"]
        return PlanCertificate(math.inf if loss is None else loss, confidence)

    @property
    def fallbacks(self) -> list[int]:
        """Moves of the last planned ask that fell back to their most likely value."""
        return list(self._last()["fallbacks"])

    @property
    def average_output(self) -> float:
        """The mean of what the vehicle measured on its way, less what ``normalize`` says."""
        asked = [o for o in self.trials.observations if o.id is not None]
        values = [value for o in asked for _, value in o.stops() if value is not None]
        if not values:
            raise NoData("the vehicle has measured nothing yet")
        if self.normalize == "prior":
            level = self.posterior().gp.mean
        elif self.normalize == "empirical":
            level = float(self.trials.data()[1].mean())
        else:
            level = float(self.normalize or 0.0)
        return self.trials.facing(float(np.mean(values)) - level)


def _strict(numbers: list[float]) -> list[float | None]:
    """Numbers as strict JSON has them."""
    return [number if math.isfinite(number) else None for number in numbers]
