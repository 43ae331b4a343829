"""Any Surefoot policy as an Optuna sampler.

The study's storage is the policy's journal. For each trial the trials so far are translated into the policy's events
(:mod:`surefoot.bridge.optuna.history`), the policy is rebuilt from them and asked. A policy that was kept from the last
time saves the rebuilding where the events went on from there; it changes no answer.

Several processes may choose at the same moment, and no lock is needed. Each one sees that trials with lower numbers
are still without parameters, and since what a policy says follows from the events and the seed alone, it asks for them
as their owners do, before it asks for its own. Where it guessed wrong, because a result came in between, and has chosen
what another one is running, it finds out when it looks again after writing its choice down, and chooses once more.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from surefoot.bridge.made import made
from surefoot.bridge.optuna.history import ASKED, PRUNED, events, running_blank, sign_of, study_seed
from surefoot.bridge.optuna.space import Group, OptunaAxis, decompose
from surefoot.bridge.optuna.transfer import Transfer
from surefoot.errors import Exhausted, NotSupported
from surefoot.loop.events import timeless
from surefoot.loop.policy import Policy
from surefoot.loop.streams import stream
from surefoot.loop.types import Advice
from surefoot.policy.improvement import ExpectedImprovement

__all__ = ["SurefootSampler"]

_TRIES = 3  # choices, where others are found to have chosen the same
_NEAR = 0.01  # of an axis: closer than that, a policy that knew of the other one would not have chosen
_BLANKS = 8  # trials without parameters beyond so many are more likely dead than being chosen


class SurefootSampler(BaseSampler):
    """Chooses the parameters of Optuna's trials by a Surefoot policy.

    Parameters
    ----------
    policy : policy class or callable, optional
        Called as ``policy(domain, seed=..., **options)`` for each group of parameters that occur together. None:
        ``ExpectedImprovement``, or ``RMGPUCB`` with ``transfer_from``.
    seed : int, optional
        Seed of all random draws. None: derived from the study, the same in all of its processes.
    transfer_from : sequence of Study, optional
        Earlier studies to learn from: policies that take ``tasks`` get their trials. A study that lacks a parameter or
        goes the other way is skipped with a warning; a group that none of them knows is left to
        ``ExpectedImprovement``. Read once, when first needed.
    independent_sampler : BaseSampler, optional
        Chooses what is not known beforehand: the parameters of the first trial, and new ones. None: at random, or from
        the earlier studies.
    pruned : {"value", "failed", "ignore"}
        What a pruned trial counts as: a measurement of its last value (though none worse than the worst completed
        trial), a failed run, nothing.
    **options
        For the policy, such as ``width`` or ``repeats``.

    Running trials are pending, failed ones are remembered and not proposed again; values that are infinite, or beyond
    ±1e150, count as failed. To a policy of drifting functions, such as ``TVGPUCB``, the number of a trial is its time.
    Constraints are ignored, with a warning. Studies with several objectives are refused.

    >>> import optuna
    >>> from surefoot import GPUCB
    >>> study = optuna.create_study(direction="maximize", sampler=SurefootSampler(GPUCB, seed=1))
    >>> def objective(trial):
    ...     x = trial.suggest_float("x", 0.0, 1.0)
    ...     kind = trial.suggest_categorical("kind", ["a", "b"])
    ...     return -((x - 0.7) ** 2) - (kind == "a")
    >>> study.optimize(objective, n_trials=12)
    >>> study.best_params["kind"], abs(study.best_params["x"] - 0.7) < 0.1
    ('b', True)
    """

    def __init__(
        self,
        policy: type[Policy] | Callable[..., Policy] | None = None,
        *,
        seed: int | None = None,
        transfer_from: Sequence[Study] | None = None,
        independent_sampler: BaseSampler | None = None,
        pruned: str = "value",
        **options: Any,
    ) -> None:
        if policy is not None and not callable(policy):
            raise TypeError(f"policy must be a policy class, or a callable that returns a policy, got {policy!r}")
        if seed is not None and (not isinstance(seed, (int, np.integer)) or isinstance(seed, bool) or seed < 0):
            raise ValueError(f"seed must be a non-negative integer or None, got {seed!r}")
        if pruned not in PRUNED:
            raise ValueError(f"pruned must be one of {', '.join(PRUNED)}, got {pruned!r}")
        if "journal" in options:
            raise ValueError("a sampler keeps no journal: the study's storage holds every event")
        self._policy = policy
        self._seed = None if seed is None else int(seed)
        self._transfer = Transfer(transfer_from)
        self._independent = independent_sampler
        self._pruned = pruned
        self._options = options
        self._warned = False
        self._kept: dict[tuple[Any, ...], Policy] = {}  # only to save work; threads take a policy out to use it

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_kept": {}}

    # -- what Optuna asks --------------------------------------------------------------------------------------------

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Return the parameters that trials so far have had, those of conditional branches included."""
        return {name: d for group in self._view(study).groups() for name, d in group.items()}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: Mapping[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Choose the parameters of a search space, one policy for each group in it."""
        view = self._view(study)
        if not search_space:
            return {}
        if not self._warned and any(other.constraints for other in view.trials):
            self._warned = True
            warnings.warn("SurefootSampler ignores the constraints of this study", UserWarning, stacklevel=2)
        known = [{name: search_space[name] for name in group if name in search_space} for group in view.groups()]
        rest = {name: d for name, d in search_space.items() if not any(name in group for group in known)}
        return self._choose(view, trial, [Group(found) for found in [*known, rest] if found])

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Choose a parameter that no trial has had before: from the earlier studies, else at random."""
        view = self._view(study)
        if self._independent is not None:
            return self._independent.sample_independent(study, trial, param_name, param_distribution)
        axis = OptunaAxis(param_distribution)
        foreign = self._from_earlier_studies(view, trial)
        if param_name in foreign:
            with contextlib.suppress(ValueError):  # this study's range may be another one
                return axis.value(axis.number(foreign[param_name]))
        # The trial's number and the parameter's name are the key, so that processes sharing a seed do not agree.
        rng = stream(view.seed, "independent", trial.number, within=(crc32(param_name.encode()),))
        return axis.value(float(axis.parameter.spread(rng.random(1))[0]))

    def reseed_rng(self) -> None:
        """Random draws are keyed by the trial, so there is nothing to reseed but an independent sampler."""
        if self._independent is not None:
            self._independent.reseed_rng()

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Let an independent sampler prepare itself."""
        if self._independent is not None:
            self._independent.before_trial(study, trial)

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        """Let an independent sampler finish."""
        if self._independent is not None:
            self._independent.after_trial(study, trial, state, values)

    # -- choosing ----------------------------------------------------------------------------------------------------

    def policy(self, study: Study, names: Sequence[str] | None = None) -> Policy:
        """Return the policy of a study as it stands, for a closer look: its posterior, recommendation or weights.

        With conditional parameters there are several; ``names`` says which, by parameters of one group.

        >>> import optuna
        >>> study = optuna.create_study(sampler=SurefootSampler(seed=0))
        >>> study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), n_trials=4)
        >>> study.sampler.policy(study)
        ExpectedImprovement(Space(x=Float(0.0, 1.0)), asked=4, measured=4)
        """
        view = self._view(study)
        found = [group for group in view.groups() if names is None or set(names) <= set(group)]
        if len(found) != 1:
            known = [list(group) for group in view.groups()]
            raise ValueError(f"names must single out one of the groups {known}, got {names!r}")
        return self._rebuilt(view, view.trials, Group(found[0]))

    def advise(self, study: Study, trial: FrozenTrial) -> Advice:
        """Return what the policy that chose a running trial says about its newest report: whether to end it, and why.

        >>> import optuna
        >>> from surefoot import BOBOS
        >>> study = optuna.create_study(sampler=SurefootSampler(BOBOS, epochs=9, seed=0))
        >>> study.sampler.advise(study, optuna.create_trial(state=TrialState.RUNNING)).reason
        'no trial has ended yet'
        """
        view = self._view(study)
        found = [Group(group) for group in view.groups() if set(group) <= set(trial.distributions)]
        if len(found) != 1:
            return Advice(False, "the trial has several groups of parameters" if found else "no trial has ended yet")
        policy = self._rebuilt(view, view.trials, found[0])
        self._kept[view.study.study_name, found[0].key, view.seed] = policy
        if not policy.steps:
            if self._transfer:  # no earlier study could be used, and the policy is another one
                return Advice(False, f"{type(policy).__name__} does not follow runs")
            raise NotSupported(f"{type(policy).__name__} does not follow runs: take BOBOS, RMBOBOS, or a BosPruner")
        earlier = [other for other in view.trials if other.number < trial.number]
        told = events(found[0], earlier, sign=view.sign, pruned=self._pruned)
        id = sum(event["event"] == "asked" for event in told)
        reports = policy.reports().get(id)
        if not reports:
            return Advice(False, "nothing was reported yet")
        return policy.report(id, max(reports), reports[max(reports)])  # once more: it changes nothing

    def _view(self, study: Study) -> _View:
        sign, trials = sign_of(study), study.get_trials(deepcopy=False)
        return _View(study, trials, sign, study_seed(study, trials) if self._seed is None else self._seed)

    def _choose(self, view: _View, trial: FrozenTrial, groups: Sequence[Group]) -> dict[str, Any]:
        params: dict[str, Any] = {}
        for _ in range(_TRIES):
            asked: list[dict[str, Any]] = []
            for group in groups:
                x, note = self._ask(view, trial, group)
                params.update(group.values(x))
                asked.append({"names": group.names, "x": x.tolist(), "note": dict(note)})
            # The other processes learn what is pending here, and a policy finds its notes again. Optuna gives samplers
            # no other way to write; its own samplers use this one.
            view.study._storage.set_trial_system_attr(trial._trial_id, ASKED, asked)
            before, view = view, self._view(view.study)
            if not view.taken(before, trial, groups, asked):
                break
        return params

    def _ask(self, view: _View, trial: FrozenTrial, group: Group) -> tuple[NDArray[np.float64], Mapping[str, Any]]:
        others = [other for other in view.trials if other.number != trial.number]
        policy = self._rebuilt(view, others, group)
        ahead = min(_BLANKS, running_blank(others, trial.number)) if policy.parallel else 0
        # The time of a trial is its number; others that are known already may have higher ones.
        time = {"time": max(trial.number, policy.time or 0)} if "time" in policy.context else {}
        try:
            query = policy.ask(ahead + 1, **time)[-1]
        except Exhausted:  # more workers than points: two of them have to measure the same
            rng = stream(group.seed(view.seed), "exhausted", trial.number)
            return group.domain.sample(1, rng)[0], {}
        self._kept[view.study.study_name, group.key, view.seed] = policy
        return query.x, query.note

    def _rebuilt(self, view: _View, trials: Sequence[FrozenTrial], group: Group) -> Policy:
        """The policy of a group after these trials: the one kept from the last time, if its events were the same."""
        policy = self._kept.pop((view.study.study_name, group.key, view.seed), None) or self._new(view, group)
        length = (policy.epochs or 0) if policy.steps else None
        timed = "time" in policy.context
        history = events(group, trials, sign=view.sign, pruned=self._pruned, steps=length, timed=timed)
        past = timeless(policy.events)
        if past != history[: len(past)]:
            past, policy = [], self._new(view, group)
        policy.replay(history[len(past) :])
        return policy

    def _new(self, view: _View, group: Group) -> Policy:
        make: Callable[..., Policy] = self._policy or (_meta() if self._transfer else ExpectedImprovement)
        options = dict(self._options)
        if self._transfer:
            options["tasks"] = self._transfer.tasks(group, view.sign)
            if not options["tasks"]:
                make, options = ExpectedImprovement, {}
        way = "maximize" if view.sign > 0 else "minimize"
        policy = made(make, group.domain, way, seed=group.seed(view.seed), **options)
        if policy.fidelities:
            raise NotSupported(f"{type(policy).__name__} chooses fidelities, which an Optuna trial cannot take")
        return policy

    def _from_earlier_studies(self, view: _View, trial: FrozenTrial) -> dict[str, Any]:
        """What earlier studies suggest as long as this one has no finished trial that shows its parameters."""
        if not self._transfer or view.groups():
            return {}
        groups = [Group(found) for found in self._transfer.groups()]
        asked = trial.system_attrs.get(ASKED)
        if asked is None:
            return self._choose(view, trial, groups)
        points = {tuple(ask["names"]): ask["x"] for ask in asked}
        found = [group.values(points[key]) for group in groups if (key := tuple(group.names)) in points]
        return {name: value for params in found for name, value in params.items()}


@dataclass(frozen=True)
class _View:
    """What a sampler sees of a study at one moment."""

    study: Study
    trials: Sequence[FrozenTrial]
    sign: float
    seed: int

    def taken(
        self, before: _View, trial: FrozenTrial, groups: Sequence[Group], asked: Sequence[Mapping[str, Any]]
    ) -> bool:
        """Whether a trial that was not finished before was given the same point, or one very near in every axis."""
        settled = {t.number for t in before.trials if t.state.is_finished()} | {trial.number}
        for theirs in (t.system_attrs.get(ASKED, ()) for t in self.trials if t.number not in settled):
            if [ask["names"] for ask in theirs] != [ask["names"] for ask in asked]:
                continue
            pairs = zip(groups, asked, theirs, strict=True)
            ends = [group.domain.encode(np.array([mine["x"], other["x"]])) for group, mine, other in pairs]
            if all(np.abs(E[0] - E[1]).max() < _NEAR for E in ends):
                return True
        return False

    def groups(self) -> list[dict[str, BaseDistribution]]:
        """The groups of the study's parameters, as its finished trials show them.

        A failed trial may have ended before it had all its parameters, so it counts only where there is nothing better.
        """
        good = [t for t in self.trials if t.state in (TrialState.COMPLETE, TrialState.PRUNED)]
        failed = [t for t in self.trials if t.state == TrialState.FAIL]
        return decompose(t.distributions for t in good or failed)


def _meta() -> type[Policy]:
    from surefoot.policy.transfer.rm_gp_ucb import RMGPUCB

    return RMGPUCB
