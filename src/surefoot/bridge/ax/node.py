"""Any Surefoot policy as a node of Ax's generation strategies.

An arm is a query. Before each generation the policy is made anew and told the trials of the experiment, in the order of
their numbers, as events: the same trials give the same proposals in any process, and nothing is lost with one. What a
policy notes about a query is kept in the metadata of the generator run.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from ax.api.client import Client
from ax.core.base_trial import BaseTrial
from ax.core.data import Data
from ax.core.experiment import Experiment
from ax.core.generator_run import GeneratorRun
from ax.core.trial_status import TrialStatus
from ax.core.types import TParameterization
from ax.exceptions.core import SearchSpaceExhausted
from ax.exceptions.generation_strategy import MaxParallelismReachedException, OptimizationConfigRequired
from ax.generation_strategy.external_generation_node import ExternalGenerationNode
from ax.generation_strategy.transition_criterion import TransitionCriterion
from ax.storage.json_store.decoder import object_from_json
from ax.storage.json_store.registry import CORE_DECODER_REGISTRY, CORE_ENCODER_REGISTRY

from surefoot.bridge.ax.space import AxSpace
from surefoot.bridge.made import made
from surefoot.domain import Space
from surefoot.errors import Exhausted, NoData, NotSupported, PendingQuery
from surefoot.loop.policy import Policy
from surefoot.loop.registry import find_anywhere, policy_named
from surefoot.loop.state import pack, unpack
from surefoot.loop.types import LARGEST, Recommendation
from surefoot.policy.improvement import ExpectedImprovement

__all__ = ["SurefootNode", "scores"]

_log = logging.getLogger("surefoot.bridge.ax")
NOTES = "surefoot:notes"
"""Where a generator run keeps what its policy noted about each of its arms."""

_LOST = (TrialStatus.FAILED, TrialStatus.ABANDONED)


class SurefootNode(ExternalGenerationNode):
    """Chooses the arms of an Ax experiment by a Surefoot policy.

    Parameters
    ----------
    policy : policy class, its name, or callable, optional
        Called as ``policy(domain, seed=..., **options)``. None: ``ExpectedImprovement``.
    name : str
        Of the node.
    seed : int, optional
        Seed of all random draws. None: follows from the experiment's name and the time it was made.
    should_deduplicate : bool
        Whether Ax refuses arms that were tried before. The policy is then told not to repeat measured points.
    transition_criteria : sequence of TransitionCriterion, optional
        When the strategy moves on to another node.
    **options
        For the policy, such as ``width``, or ``perturbation`` of ``StableOpt``.

    Failed and abandoned trials are remembered as failed: not proposed again at once, and no number is learnt from them.
    Stale ones are forgotten, all others without a result are pending. One that was stopped early counts by its last
    value, though by none below the worst completed one. Standard errors of the data are the noise of measurements.
    Policies that take boxes only get one where all parameters are floats on a linear scale.

    >>> from surefoot import GPUCB
    >>> SurefootNode(GPUCB, seed=1, confidence=0.99)
    SurefootNode(GPUCB, seed=1, confidence=0.99)
    """

    def __init__(
        self,
        policy: type[Policy] | Callable[..., Policy] | str | None = None,
        *,
        name: str = "Surefoot",
        seed: int | None = None,
        should_deduplicate: bool = True,
        transition_criteria: Sequence[TransitionCriterion] | None = None,
        **options: Any,
    ) -> None:
        made = ExpectedImprovement if policy is None else policy_named(policy) if isinstance(policy, str) else policy
        if not callable(made):
            raise TypeError(f"policy must be a policy class, its name, or a callable, got {policy!r}")
        if "journal" in options:
            raise ValueError("a node keeps no journal: Ax stores the experiment")
        super().__init__(name=name, should_deduplicate=should_deduplicate, transition_criteria=transition_criteria)
        self._make: Callable[..., Policy] = made
        self._seed, self._options = seed, options
        self._space: AxSpace | None = None
        self._policy: Policy | None = None
        self._asked: list[dict[str, Any]] = []  # in this generation
        self._known: list[list[float]] = []  # points of arms, tried or pending

    def __repr__(self) -> str:
        shown = [f"{key}={value!r}" for key, value in {"seed": self._seed, **self._options}.items()]
        return f"SurefootNode({', '.join([_name(self._make), *shown])})"

    # -- what Ax calls -----------------------------------------------------------------------------------------------

    def update_generator_state(self, experiment: Experiment, data: Data) -> None:
        """Make the policy anew and tell it the trials of the experiment."""
        space = AxSpace(experiment.search_space)
        policy = self._made(space, _seed(experiment) if self._seed is None else self._seed, _way(experiment))
        events = self._events(experiment, data, space)
        policy.replay(events)
        self._space, self._policy = space, policy
        self._known = [event["x"] for event in events if event["event"] == "asked"]

    def get_next_candidate(self, pending_parameters: list[TParameterization]) -> TParameterization:
        """Ask the policy for one point; it has seen those that are pending."""
        space, policy = self._ready()
        for parameters in pending_parameters:
            self._await(parameters)
        try:
            query = policy.ask()
        except (PendingQuery, Exhausted) as error:
            if policy.pending:
                raise MaxParallelismReachedException(len(policy.pending), node_name=self.name) from error
            raise SearchSpaceExhausted(str(error)) from error
        parameters = space.parameters(query.x)
        x = space.point(parameters).tolist()  # as Ax knows it: rounded, where a parameter has so many digits
        self._asked.append({"x": x, "note": dict(query.note)})
        self._known.append(x)
        return parameters

    def _gen(self, experiment: Experiment, *args: Any, **kwargs: Any) -> GeneratorRun:
        fixed = kwargs.pop("fixed_features", None)
        if fixed is not None and fixed.parameters:
            raise NotSupported(
                f"a policy chooses all parameters; {sorted(fixed.parameters)} cannot be fixed for one trial"
            )
        self._asked = []
        run = super()._gen(experiment, *args, **kwargs)
        if len(self._asked) == len(run.arms):  # else it is a fallback's
            run._gen_metadata = {**(run.gen_metadata or {}), NOTES: self._asked}
        return run

    # -- what a user may look at -------------------------------------------------------------------------------------

    @property
    def policy(self) -> Policy:
        """The policy after the last generation; of one metric to minimize it minimizes."""
        return self._ready()[1]

    def recommend(self, experiment: Client | Experiment) -> tuple[TParameterization, Recommendation]:
        """Return the policy's own answer given all trials: parameters, and what to expect of the objective there.

        >>> from ax.api.client import Client
        >>> from ax.api.configs import RangeParameterConfig
        >>> client = Client()
        >>> client.configure_experiment([RangeParameterConfig("x", (0.0, 1.0), "float")])
        >>> client.configure_optimization("-loss")
        >>> for x in (0.1, 0.5, 0.9):
        ...     _ = client.complete_trial(client.attach_trial({"x": x}), {"loss": x})
        >>> parameters, answer = SurefootNode(seed=0).recommend(client)
        >>> parameters, round(answer.mean, 1)
        ({'x': 0.1}, 0.1)
        """
        if isinstance(experiment, Client):
            experiment = experiment._experiment  # it has no public name
        self.update_generator_state(experiment, experiment.lookup_data())
        space, policy = self._ready()
        answer = policy.recommend()
        if not isinstance(answer, Recommendation) or len(answer.x) != len(space.axes.axes):
            raise NotSupported(f"the answer of {type(policy).__name__} is no arm of this experiment: {answer!r}")
        return space.parameters(answer.x), answer

    # -- the experiment as events ------------------------------------------------------------------------------------

    def _ready(self) -> tuple[AxSpace, Policy]:
        if self._space is None or self._policy is None:
            raise NoData("the node has seen no experiment yet: Ax shows it one before it asks")
        return self._space, self._policy

    def _made(self, space: AxSpace, seed: int, way: str) -> Policy:
        kinds = getattr(self._make, "domains", (Space,))
        options = {"repeats": False, **self._options} if self.should_deduplicate else self._options
        policy = made(self._make, space.domain_for(kinds), way, seed=seed, **options)
        declared = {"fidelities": policy.fidelities, "steps": policy.steps, "context": policy.context}
        for ability, there in declared.items():
            if there:
                raise NotSupported(f"{type(policy).__name__} works with {ability}, which an arm of Ax does not have")
        if policy.domain.dimension != len(space.axes.axes):
            raise NotSupported(f"{type(policy).__name__} measures {policy.domain!r}, which is not the search space")
        return policy

    def _events(self, experiment: Experiment, data: Data, space: AxSpace) -> list[dict[str, Any]]:
        """What the trials say to a policy."""
        found = scores(experiment, data)
        completed = [
            found[index, arm.name][0]
            for index, trial in experiment.trials.items()
            if trial.status == TrialStatus.COMPLETED
            for arm in trial.arms
            if (index, arm.name) in found
        ]
        up = _way(experiment) == "maximize"
        worst = min(completed, default=-math.inf) if up else max(completed, default=math.inf)
        events: list[dict[str, Any]] = []
        id = 0
        for index in sorted(experiment.trials):
            trial = experiment.trials[index]
            notes = _notes(trial)
            gone: set[str] = getattr(trial, "abandoned_arm_names", set())
            for arm in trial.arms:
                try:
                    x = space.point(arm.parameters)
                except ValueError as error:  # attached by hand, or the search space has changed since
                    _log.info("arm %s is not used: %s", arm.name, error)
                    continue
                note = next((kept["note"] for kept in notes if space.same(kept["x"], x)), {"initial": True})
                events.append({"event": "asked", "id": id, "x": x.tolist(), "note": note})
                events += self._end(
                    id, trial, found.get((index, arm.name)), arm.name in gone, (max if up else min), worst
                )
                id += 1
        return events

    def _end(
        self,
        id: int,
        trial: BaseTrial,
        score: tuple[float, float | None] | None,
        gone: bool,
        better: Callable[[float, float], float],
        worst: float,
    ) -> list[dict[str, Any]]:
        """How a trial ended, for one of its arms; nothing while it runs."""
        status = trial.status
        if gone or status in _LOST:
            return [{"event": "told", "id": id, "value": None}]
        if status == TrialStatus.STALE:
            return [{"event": "cancelled", "id": id}]
        if status not in (TrialStatus.COMPLETED, TrialStatus.EARLY_STOPPED):
            return []
        if score is None:
            return [{"event": "told", "id": id, "value": None}]
        value, noise = score
        if status == TrialStatus.EARLY_STOPPED:
            value = better(value, worst)
        return [{"event": "told", "id": id, "value": value, **({} if noise is None else {"noise": noise})}]

    def _await(self, parameters: TParameterization) -> None:
        """Put a point that somebody else waits for on record, unless it is."""
        space, policy = self._ready()
        try:
            x = space.point(parameters)
        except ValueError:
            return
        if not any(space.same(known, x) for known in self._known):
            event = {"event": "asked", "id": len(policy.queries), "x": x.tolist(), "note": {"initial": True}}
            policy.replay([event])
            self._known.append(x.tolist())

    # -- storage -----------------------------------------------------------------------------------------------------

    @classmethod
    def serialize_init_args(cls, obj: Any) -> dict[str, Any]:
        """Return the node as Ax stores it; ValueError where it holds code, which is not stored."""
        name, options = _name(obj._make), pack(obj._options)
        if find_anywhere(name) is not obj._make or _holds_code(options):
            raise ValueError(
                f"{obj!r} holds code, which Ax cannot store; store the experiment alone and make the node again"
            )
        return {
            "policy": name,
            "name": obj.name,
            "seed": obj._seed,
            "should_deduplicate": obj.should_deduplicate,
            "transition_criteria": obj.transition_criteria,
            "options": options,
        }

    @classmethod
    def deserialize_init_args(
        cls, args: dict[str, Any], decoder_registry: Any = None, class_decoder_registry: Any = None
    ) -> dict[str, Any]:
        """Return the arguments of a stored node."""
        options = {key: unpack(value) for key, value in args["options"].items()}
        criteria = object_from_json(args["transition_criteria"])
        plain = {key: args[key] for key in ("policy", "name", "seed", "should_deduplicate")}
        return {**plain, "transition_criteria": criteria, **options}


def scores(experiment: Experiment, data: Data) -> dict[tuple[int, str], tuple[float, float | None]]:
    """Return, by trial and arm, the latest value of the objective and its noise variance where the data tell.

    The objective is the metric, where there is one, and else the weighted sum of which more is better.

    >>> from ax.api.client import Client
    >>> from ax.api.configs import RangeParameterConfig
    >>> client = Client()
    >>> client.configure_experiment([RangeParameterConfig("x", (0.0, 1.0), "float")])
    >>> client.configure_optimization("-loss")
    >>> _ = client.complete_trial(client.attach_trial({"x": 0.5}), {"loss": (2.0, 0.1)})
    >>> found = scores(client._experiment, client._experiment.lookup_data())
    >>> [(value, round(noise, 6)) for value, noise in found.values()]
    [(2.0, 0.01)]
    """
    weights = _weights(experiment)
    if _way(experiment) == "minimize":
        weights = {metric: -weight for metric, weight in weights.items()}
    frame = data.df
    parts: dict[tuple[int, str], dict[str, tuple[float, float]]] = {}
    for index, arm, metric, mean, sem in zip(
        *(frame[column] for column in ("trial_index", "arm_name", "metric_signature", "mean", "sem")), strict=True
    ):
        if metric in weights and math.isfinite(mean):
            parts.setdefault((int(index), str(arm)), {})[metric] = (float(mean), float(sem))
    found: dict[tuple[int, str], tuple[float, float | None]] = {}
    for key, metrics in parts.items():
        value = sum(weights[metric] * mean for metric, (mean, _) in metrics.items())
        if len(metrics) == len(weights) and abs(value) <= LARGEST:
            noise = sum((weights[metric] * sem) ** 2 for metric, (_, sem) in metrics.items())
            found[key] = (value, noise if math.isfinite(noise) else None)
    return found


def _weights(experiment: Experiment) -> dict[str, float]:
    """The metrics of the objective and their weights; a negative one is minimized."""
    config = experiment.optimization_config
    if config is None:
        raise OptimizationConfigRequired("the experiment has no objective yet; configure its optimization")
    if config.objective.is_multi_objective:
        raise NotSupported(f"a policy optimizes one objective, and this experiment has {config.objective.expression!r}")
    if config.outcome_constraints:
        raise NotSupported("a policy knows no outcome constraints; put their violation into the objective")
    return dict(config.objective.metric_weights)


def _way(experiment: Experiment) -> str:
    """The direction: a single metric of negative weight is minimized."""
    weights = _weights(experiment)
    return "minimize" if len(weights) == 1 and next(iter(weights.values())) < 0 else "maximize"


def _notes(trial: BaseTrial) -> list[dict[str, Any]]:
    return [kept for run in trial.generator_runs for kept in (run.gen_metadata or {}).get(NOTES, [])]


def _seed(experiment: Experiment) -> int:
    name = experiment._name or ""  # asking for the name of one without is an error
    words = np.frombuffer(f"{name}\0{experiment.time_created}".encode(), dtype=np.uint8)
    return int(np.random.SeedSequence(words.tolist()).generate_state(1, np.uint32)[0])


def _name(made: Any) -> str:
    return getattr(made, "__name__", type(made).__name__)


def _holds_code(packed: Mapping[str, Any] | Any) -> bool:
    if isinstance(packed, Mapping):
        return "$code" in packed or any(_holds_code(value) for value in packed.values())
    return isinstance(packed, list) and any(_holds_code(value) for value in packed)


# Ax stores what its registries name.
CORE_ENCODER_REGISTRY[SurefootNode] = lambda node: {
    "__type": "SurefootNode",
    **SurefootNode.serialize_init_args(node),
}
CORE_DECODER_REGISTRY["SurefootNode"] = SurefootNode
