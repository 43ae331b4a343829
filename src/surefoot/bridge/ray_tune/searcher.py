"""Any Surefoot policy as a searcher of Ray Tune.

A trial is a query. Its last result is told; results on the way are reported to policies that follow runs. What is saved
is the policy's state and which trial is which query, in strict JSON; restoring makes the policy anew from the same
options and applies the events again, so that code among the options need not be stored.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from ray.tune.result import DEFAULT_METRIC, TRAINING_ITERATION
from ray.tune.search import Searcher

from surefoot.bridge.made import made
from surefoot.bridge.ray_tune.space import TuneSpace, searched
from surefoot.domain import Space
from surefoot.errors import Exhausted, NotSupported
from surefoot.loop.direction import turned_event
from surefoot.loop.journal import SCHEMA, check_schema, dumps, loads, same_settings, write_atomically
from surefoot.loop.policy import Policy
from surefoot.loop.types import FAILED, LARGEST, Advice
from surefoot.policy.improvement import ExpectedImprovement

__all__ = ["SurefootSearch", "check_target", "score"]

_log = logging.getLogger("surefoot.bridge.ray_tune")


class SurefootSearch(Searcher):
    """Chooses the configurations of Ray Tune's trials by a Surefoot policy.

    Parameters
    ----------
    space : mapping or Space, optional
        What to search, if it is not the ``param_space`` of the tuner: a configuration of Tune, or a space whose names
        may have slashes, ``net/depth``.
    policy : policy class or callable, optional
        Called as ``policy(domain, seed=..., **options)``. None: ``ExpectedImprovement``.
    metric, mode : str, optional
        What to optimize, and "min" or "max", if the tuner does not say.
    seed : int, optional
        Seed of all random draws.
    points_to_evaluate : sequence of mappings, optional
        Configurations to try first.
    time_attr : str
        The entry of a result that counts its epochs from 1, for policies that follow runs.
    **options
        For the policy, such as ``width``, or ``epochs`` of ``BOBOS``.

    A trial that fails, or ends without the metric or with one that is no finite number, or beyond ±1e150, is remembered
    as failed. One that is removed before it began is forgotten. To end trials early, add
    :class:`~surefoot.bridge.ray_tune.SurefootStopping`: a searcher cannot.

    >>> from ray import tune
    >>> from surefoot import GPUCB
    >>> searcher = SurefootSearch(policy=GPUCB, seed=1)
    >>> searcher.set_search_properties("score", "max", {"net": {"depth": tune.randint(1, 9)}, "data": "digits"})
    True
    >>> config = searcher.suggest("first trial")
    >>> searcher.on_trial_complete("first trial", {"score": 0.8})
    >>> searcher.policy
    GPUCB(Space({'net/depth': Int(1, 8)}), asked=1, measured=1)
    """

    CKPT_FILE_TMPL = "searcher-state-{}.json"

    _metric: str | None  # set by the base class
    _mode: str | None

    def __init__(
        self,
        space: Mapping[str, Any] | Space | None = None,
        *,
        policy: type[Policy] | Callable[..., Policy] | None = None,
        metric: str | None = None,
        mode: str | None = None,
        seed: int | None = None,
        points_to_evaluate: Sequence[Mapping[str, Any]] | None = None,
        time_attr: str = TRAINING_ITERATION,
        **options: Any,
    ) -> None:
        check_target(metric, mode)
        if policy is not None and not callable(policy):
            raise TypeError(f"policy must be a policy class, or a callable that returns a policy, got {policy!r}")
        if "journal" in options:
            raise ValueError("a searcher keeps no journal: Ray saves it with the experiment")
        super().__init__(metric=metric, mode=mode)
        self._make: Callable[..., Policy] = policy or ExpectedImprovement
        self._seed = seed
        self._options = options
        self._time_attr = time_attr
        self._first = [dict(point) for point in points_to_evaluate or ()]
        self._trials: dict[str, int] = {}  # the query of each trial
        self._handed = 0  # how many of the first points were suggested
        self._waiting: list[tuple[Any, ...]] = []  # points that were told before the space was known
        self._saved: Mapping[str, Any] | None = None  # a state that was restored before the space was known
        self._space: TuneSpace | None = None
        self._policy: Policy | None = None
        if space is not None:
            self._set_up(space)

    # -- what is searched --------------------------------------------------------------------------------------------

    @property
    def policy(self) -> Policy:
        """The policy, for a closer look; with ``mode="min"`` it minimizes."""
        return self._ready()[1]

    def _ready(self) -> tuple[TuneSpace, Policy]:
        if self._space is None or self._policy is None:
            raise RuntimeError("the searcher has no space yet: give it one, or pass param_space to the tuner")
        return self._space, self._policy

    def set_search_properties(self, metric: str | None, mode: str | None, config: dict[str, Any], **spec: Any) -> bool:
        """Take the metric, the mode and the space of the tuner; False where the searcher has a space already."""
        check_target(metric, mode)
        self._metric, self._mode = metric or self._metric, mode or self._mode
        if self._space is not None:
            if self._policy is not None and self._policy.direction != self._way:  # made before the mode was known
                self._policy = self._made(self._space, self._policy.seed)
            return not any(True for _ in searched(config))
        self._set_up(config)
        return True

    def _set_up(self, space: Mapping[str, Any] | Space) -> None:
        found = TuneSpace(space)
        self._policy = self._made(found, self._seed)
        self._space = found
        if self._saved is not None:
            self._resume(self._saved)
        for point in self._waiting:
            self._learn(*point)
        self._saved, self._waiting = None, []

    def _made(self, space: TuneSpace, seed: int | None) -> Policy:
        policy = made(self._make, space.axes.domain, self._way, seed=seed, **self._options)
        if policy.fidelities:
            raise NotSupported(f"{type(policy).__name__} chooses fidelities, which a trial of Ray Tune cannot take")
        return policy

    @property
    def _way(self) -> str:
        """The direction of the policy."""
        return "minimize" if self._mode == "min" else "maximize"

    @property
    def _target(self) -> tuple[str, float]:
        """The metric, and the factor that turns it into a score."""
        if self._mode is None:
            raise RuntimeError("the searcher does not know what is better: give metric and mode to it, or to the tuner")
        return self._metric or DEFAULT_METRIC, 1.0 if self._mode == "max" else -1.0

    # -- asking and telling ------------------------------------------------------------------------------------------

    def suggest(self, trial_id: str) -> dict[str, Any] | str | None:
        """Return a configuration; None while no point is free, ``FINISHED`` when none will be."""
        space, policy = self._ready()
        _ = self._target  # else only the first result would complain
        if trial_id not in self._trials:
            if self._handed < len(self._first):
                self._trials[trial_id] = self._begin(self._first[self._handed])
                self._handed += 1
            elif policy.pending and not policy.parallel:
                return None
            else:
                try:
                    self._trials[trial_id] = policy.ask().id
                except Exhausted:
                    return None if policy.pending else Searcher.FINISHED
        return space.config(policy.queries[self._trials[trial_id]].x)

    def _begin(self, config: Mapping[str, Any]) -> int:
        """Put a point that somebody else chose on record as a query, and return its number."""
        space, policy = self._ready()
        id, x = len(policy.queries), space.point(config)
        event: dict[str, Any] = {"event": "asked", "id": id, "x": x.tolist(), "note": {"initial": True}}
        if "time" in policy.context:  # one unit after the latest, as that of a query that is asked without one
            event["time"] = (policy.time or 0.0) + 1.0
        policy.replay([event])
        return id

    def on_trial_result(self, trial_id: str, result: Mapping[str, Any]) -> None:
        """Report a result on the way to a policy that follows runs."""
        self.advise(trial_id, result)

    def advise(self, trial_id: str, result: Mapping[str, Any]) -> Advice:
        """Report a result on the way and return what the policy says about the run; a scheduler follows it.

        Epochs on record are not reported twice: a trial that was restored may have begun again.

        >>> from surefoot import BOBOS, Float
        >>> searcher = SurefootSearch(Space(x=Float(0, 1)), policy=BOBOS, epochs=20, mode="max", metric="s", seed=0)
        >>> config = searcher.suggest("a")
        >>> searcher.advise("a", {"s": 0.5, "training_iteration": 1}).reason
        'the first 3 runs are completed'
        """
        policy, id = self.policy, self._trials.get(trial_id)
        if not policy.steps or id is None:
            return Advice(False, "the policy does not follow this run")
        step = result.get(self._time_attr)
        longest = policy.epochs or math.inf
        if not isinstance(step, (int, np.integer)) or step < 1 or self._target[0] not in result:
            return Advice(False, f"the result has no {self._time_attr}, or no {self._target[0]}")
        seen = policy.reports().get(id, {})
        last = max(seen, default=0)
        if last < step <= longest and any(query.id == id for query in policy.pending):
            return policy.report(id, int(step), score(result, self._target[0]))
        if step < last or not seen:
            return Advice(False, "this epoch is on record")
        # The same report once more changes nothing, and brings its advice back after an interruption.
        return policy.report(id, last, seen[last])

    def on_trial_complete(self, trial_id: str, result: Mapping[str, Any] | None = None, error: bool = False) -> None:
        """Tell the policy how a trial ended."""
        policy, id = self.policy, self._trials.get(trial_id)
        value = None if error or result is None else score(result, self._target[0])
        if id is None:
            self._complete_stranger(trial_id, result, value)
        elif id not in {query.id for query in policy.pending}:
            # It has failed, or was removed, before an interruption, and was run again.
            if value is not None and all(o.id != id or o.failed for o in policy.history):
                policy.tell(policy.queries[id].x, value)
        elif result is None and not error:
            policy.cancel(id)
        elif value is None or result is None:
            policy.tell(id, FAILED)
        else:
            self.advise(trial_id, result)
            if policy.reports().get(id):
                policy.tell(id)  # the last value on record, also where a run that began again has given another
            else:
                policy.tell(id, value)

    def _complete_stranger(self, trial_id: str, result: Mapping[str, Any] | None, value: float | None) -> None:
        """Learn from a trial that Ray began without asking: a failed one, restarted under another name."""
        space, policy = self._ready()
        config = {k.removeprefix("config/"): v for k, v in (result or {}).items() if k.startswith("config/")}
        try:
            if value is not None:
                policy.tell(space.point(config), value)
        except ValueError as error:
            _log.info("trial %s is not used: %s", trial_id, error)

    def add_evaluated_point(
        self,
        parameters: Mapping[str, Any],
        value: float | None,
        error: bool = False,
        pruned: bool = False,
        intermediate_values: Sequence[float] | None = None,
    ) -> None:
        """Learn from a configuration that was tried elsewhere.

        Policies that follow runs learn the values on the way, of epochs 1, 2, ..., and nothing from a ``pruned`` run
        without them; to others the value is a measurement. Before the space is known the point waits for it.

        >>> searcher = SurefootSearch(Space.from_dict({"parameters": {"x": {"type": "float", "low": 0, "high": 1}}}),
        ...                           metric="loss", mode="min")
        >>> searcher.add_evaluated_point({"x": 0.5}, 2.0)
        >>> searcher.policy.history[0].value
        2.0
        """
        point = (dict(parameters), value, error, pruned, list(intermediate_values or ()))
        if self._policy is None:
            self._waiting.append(point)
        else:
            self._learn(*point)

    def _learn(
        self, config: dict[str, Any], value: float | None, error: bool, pruned: bool, curve: list[float]
    ) -> None:
        (space, policy), (metric, _) = self._ready(), self._target
        final = None if error else score({metric: value}, metric)
        if not policy.steps or not (curve or pruned):
            policy.tell(space.point(config), final)
        elif curve:
            id = self._begin(config)
            for step, reported in enumerate(curve[: policy.epochs], start=1):
                policy.report(id, step, score({metric: reported}, metric))
            policy.tell(id, final)

    # -- saving ------------------------------------------------------------------------------------------------------

    def get_state(self) -> dict[str, Any]:
        """Return the searcher as strict JSON: the policy's state, and which trial is which query."""
        return {
            "schema": SCHEMA,
            "searcher": type(self).__name__,
            "metric": self._metric,
            "mode": self._mode,
            "trials": dict(self._trials),
            "handed": self._handed,
            "policy": self.policy.state(),
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Take the place of a searcher that was saved; the options must be the same."""
        check_schema(state, "searcher")
        if state.get("searcher") != type(self).__name__:
            raise ValueError(f"this is the state of a {state.get('searcher')}, not of a {type(self).__name__}")
        if self._policy is None:
            self._saved = state
        else:
            self._resume(state)

    def _resume(self, state: Mapping[str, Any]) -> None:
        saved, (space, _) = state["policy"], self._ready()
        self._metric, self._mode = self._metric or state["metric"], self._mode or state["mode"]
        policy = self._made(space, saved["seed"])
        old = state["schema"] == 1 and self._mode == "min"  # written as of −f
        config = policy.negated().config() if old else policy.config()
        if type(policy).__name__ != saved["policy"] or not same_settings(config, saved["config"]):
            raise ValueError(
                f"the saved searcher was a {saved['policy']} with other options or another space than this "
                f"{type(policy).__name__}"
            )
        events = [turned_event(event) for event in saved["events"]] if old else saved["events"]
        policy.replay(events, saved["cache"])
        self._policy = policy
        self._trials, self._handed = dict(state["trials"]), int(state["handed"])

    def save(self, checkpoint_path: str | os.PathLike[str]) -> None:
        """Write :meth:`get_state` to a file."""
        write_atomically(Path(checkpoint_path), dumps(self.get_state()))

    def restore(self, checkpoint_path: str | os.PathLike[str]) -> None:
        """Read what :meth:`save` wrote."""
        self.set_state(loads(Path(checkpoint_path).read_text(encoding="utf-8")))


def check_target(metric: Any, mode: Any) -> None:
    """Refuse what is not one metric to be minimized or maximized.

    >>> check_target(["loss", "size"], ["min", "min"])
    Traceback (most recent call last):
    ...
    ValueError: Surefoot optimizes one metric, got ['loss', 'size']
    """
    if metric is not None and not isinstance(metric, str):
        raise ValueError(f"Surefoot optimizes one metric, got {metric!r}")
    if mode not in (None, "min", "max"):
        raise ValueError(f"mode must be 'min' or 'max', got {mode!r}")


def score(result: Mapping[str, Any], metric: str, sign: float = 1.0) -> float | None:
    """Return the value in a result, times a sign, or None where there is no number that a model can use.

    >>> score({"loss": 0.25}, "loss", -1.0), score({"loss": float("nan")}, "loss", -1.0), score({}, "loss", -1.0)
    (-0.25, None, None)
    """
    value = result.get(metric)
    try:
        number = sign * float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return number if abs(number) <= LARGEST else None
