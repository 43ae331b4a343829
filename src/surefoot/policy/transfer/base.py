"""The base of the policies that know earlier tasks, and the parts they share.

:class:`~surefoot.policy.transfer.models.TaskModels` keeps one Gaussian process per
:class:`~surefoot.policy.transfer.tasks.Task`; the rest is about the target:

* **Hyper-parameters.** A ``gp`` you pass is used as it is, for the target and for every task. One that asks to be
  fitted (``gp=None`` does) is fitted once per task and to the target as usual; ``share_hyperparameters`` fits it once
  to all tasks together instead and uses that for the target too, as the theory wants.
* **Scale.** ``scaling="pooled"`` measures differences between target and tasks in units of the standard deviation of
  all values of all tasks: one affine map for everybody, so that a task at another level or of another size *is* a
  different task. ``scaling="task"`` moves every task to the mean and the standard deviation of the target's values
  first, for tasks of which only the shape is to be trusted. ``scaling=None`` leaves all in the units of the values.
* **Few measurements.** The tasks choose the first ``head_start`` queries; the points of the initial design, where there
  is one, come after these. Until the target has max(3, d + 1) measurements of its own, an automatic belief takes their
  scale from the tasks: the spread of one or two values says nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import NDArray

from surefoot.arguments import whole
from surefoot.belief.gp import GP
from surefoot.belief.protocol import Belief
from surefoot.domain import Box, Candidates, Domain, Space
from surefoot.loop.trials import Trials
from surefoot.loop.types import Proposal
from surefoot.policy.base import ModelOptions, ModelPolicy
from surefoot.policy.start import InitialDesign
from surefoot.policy.surrogate import Rows, Stream, Surrogate
from surefoot.policy.transfer.models import Negated, Predictor, TaskModels
from surefoot.policy.transfer.tasks import Task
from surefoot.policy.view import View

__all__ = [
    "HeadStart",
    "TargetSurrogate",
    "TransferOptions",
    "TransferPolicy",
    "by_rule",
    "checked_tasks",
    "near_tasks",
    "predicts",
]

Array = NDArray[np.float64]


def checked_tasks(tasks: Any, name: str, takes: Callable[[Any], bool] | None = None) -> tuple[Any, ...]:
    """Return what a policy of this name was given as its tasks, or raise an error that says what they should be.

    ``takes`` says what else than a :class:`Task` serves as one.

    >>> checked_tasks([Task([0.5], [1.0])], "RMGPUCB")
    (Task(1 measurements),)
    """
    if isinstance(tasks, (Task, str, bytes)) or not isinstance(tasks, Sequence):
        raise TypeError(f"tasks must be a sequence of tasks, got {type(tasks).__name__}")
    if not tasks:
        raise ValueError(f"{name} needs at least one earlier task; without any, use a policy that knows none")
    for task in tasks:
        if not (isinstance(task, Task) or (takes is not None and takes(task))):
            raise TypeError(f"{name} does not take a {type(task).__name__} as a task; make it a Task(X, y)")
    return tuple(tasks)


def predicts(task: Any) -> bool:
    """Tell whether something serves as a task because it predicts.

    >>> predicts(GP().condition()), predicts("last year")
    (True, False)
    """
    return callable(getattr(task, "predict", None))


def by_rule(trials: Trials) -> list[Mapping[str, Any]]:
    """Return what was noted with every query that the rule chose; points of a design, or of others, have no such note.

    >>> from surefoot import Box, RandomSearch
    >>> by_rule(RandomSearch(Box([(0.0, 1.0)])).trials)
    []
    """
    return [query.note for query in trials.queries if "nu" in query.note or "weights" in query.note]


def negated_tasks(found: dict[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of −f in which predictors that cannot turn themselves are turned too.

    >>> class Zero:
    ...     def predict(self, E):
    ...         return np.zeros(len(E)), np.ones(len(E))
    >>> options = {"tasks": (Zero(),)}
    >>> type(negated_tasks(dict(options), options)["tasks"][0]).__name__
    'Negated'
    """
    if isinstance(tasks := found.get("tasks"), tuple):
        known = [not predicts(task) or hasattr(task, "negated") for task in options["tasks"]]
        found["tasks"] = tuple(t if done else Negated(t) for t, done in zip(tasks, known, strict=True))
    return found


class HeadStart:
    """The tasks choose the first queries; then what is missing of an initial design follows.

    Parameters
    ----------
    count : int
        How many queries the tasks choose.
    then : InitialDesign
        What follows.

    >>> from surefoot.policy.start import SobolStart
    >>> HeadStart(2, SobolStart(3)).count
    2
    """

    def __init__(self, count: int, then: InitialDesign) -> None:
        self.count, self.then = count, then

    def propose(self, view: View) -> Proposal | None:
        """Return a point of the design, or None: the rule, which knows the tasks, chooses."""
        return None if len(by_rule(view.trials)) < self.count else self.then.propose(view)


class TargetSurrogate(Surrogate):
    """The belief about the target, whose hyper-parameters the tasks share or, at first, whose scale they lend.

    Parameters
    ----------
    trials, gp, stream, rows
        As of :class:`~surefoot.policy.surrogate.Surrogate`.
    tasks : TaskModels
        The earlier tasks.

    >>> from surefoot import RGPE, Box
    >>> policy = RGPE(Box([(0.0, 1.0)]), tasks=[Task([[0.1], [0.9]], [90.0, 110.0])], seed=0)
    >>> policy.surrogate.now().mean  # nothing measured: the level of the task
    100.0
    """

    def __init__(self, trials: Trials, gp: GP, stream: Stream, tasks: TaskModels, rows: Rows | None = None) -> None:
        super().__init__(trials, gp, stream, rows=rows)
        self.tasks = tasks

    def fit(self, at: int | None) -> GP:
        gp = self.gp
        if gp.every is None:
            return gp
        shared = self.tasks.shared()
        if shared is not None:
            return shared
        if not gp.standardize or (at or 0) >= max(3, self.domain.dimension + 1):
            return super().fit(at)
        # Too few values to know their own scale: the tasks lend theirs.
        shift, scale = self.tasks.level
        lent = replace(gp, standardize=False)
        if at:
            (X, y, noise), end = self.rows.data(), self.rows.span(at)
            own = None if noise is None else noise[:end] / scale**2
            lent = lent.fit(X[:end], (y[:end] - shift) / scale, own, rng=self.stream("fit", at))
        return _moved(lent, shift, scale)


def near_tasks(view: View, tasks: TaskModels, score: Any, belief: Belief, weights: Array) -> Proposal:
    """Return where a score is highest; the search starts at the best points of the target and of leading tasks.

    >>> from surefoot import RGPE, Box
    >>> from surefoot.policy.acquisition import BeliefScore
    >>> from surefoot.policy.ucb.gp_ucb import UpperBound
    >>> policy = RGPE(Box([(0.0, 1.0)]), tasks=[Task([[0.1], [0.4], [0.9]], [0.0, 1.0, 0.0])], seed=0)
    >>> view = View(policy.trials, policy.surrogate, 0, policy.stream)
    >>> score = BeliefScore(policy.models.models()[0], UpperBound(0.0))
    >>> abs(near_tasks(view, policy.models, score, view.believe(), np.ones(1)).x[0] - 0.45) < 0.1
    np.True_
    """
    if view.domain.listed:
        return view.highest(score, belief)
    known = view.incumbents(belief)
    seeds = [*tasks.leaders(weights), *([] if known is None else known)]
    return Proposal(view.search(score, seeds=np.array(seeds).reshape(-1, view.domain.dimension) if seeds else None).x)


class TransferOptions(ModelOptions, total=False):
    """Keyword arguments that every policy with earlier tasks takes, besides :class:`ModelOptions`.

    All are explained on this module's page.
    """

    head_start: int
    share_hyperparameters: bool
    max_points: int | None


class TransferPolicy(ModelPolicy):
    """Base of the policies that know earlier tasks; see the module's page.

    Attributes
    ----------
    models : TaskModels
        The earlier tasks and what they predict.
    """

    domains: ClassVar[tuple[type[Domain], ...]] = (Box, Candidates, Space)
    valued: ClassVar[tuple[str, ...]] = ("tasks",)
    ignores_pending = True  # what earlier tasks say knows nothing of the points under way

    @staticmethod
    def takes(task: Any, /) -> bool:
        """Tell whether something that is no :class:`Task` serves as one."""
        return False

    def __init__(
        self,
        domain: Domain,
        *,
        tasks: Sequence[Task | Predictor],
        scaling: str | None = "pooled",
        head_start: int = 2,
        share_hyperparameters: bool = False,
        max_points: int | None = None,
        **options: Unpack[ModelOptions],
    ) -> None:
        super().__init__(domain, **options)
        self.tasks = checked_tasks(tasks, type(self).__name__, type(self).takes)
        self.models = TaskModels(
            domain,
            self.tasks,
            self.gp,
            scaling=scaling,
            share_hyperparameters=share_hyperparameters,
            max_points=max_points,
        )
        self.scaling, self.max_points = self.models.scaling, self.models.max_points
        self.head_start, self.share_hyperparameters = whole(head_start, "head_start"), share_hyperparameters
        self.surrogate = TargetSurrogate(self.trials, self.gp, self.stream, self.models)
        self.start = HeadStart(self.head_start, self.start)

    @classmethod
    def negated_options(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        return negated_tasks(super().negated_options(options), options)

    def config(self) -> dict[str, Any]:
        """Return the constructor's arguments as strict JSON; many numbers of many tasks are stored by their hashes."""
        return self.models.stored(super().config(), self._arguments["tasks"])

    def _cache(self) -> dict[str, Any]:
        return {**super()._cache(), **(self.models.cache() if by_rule(self.trials) else {})}

    def _restore(self, cache: dict[str, Any]) -> None:
        super()._restore(cache)
        self.models.restore(cache)


def _moved(gp: GP, shift: float, scale: float) -> GP:
    """The same belief about shift + scale · f."""
    return replace(
        gp,
        kernel=gp.kernel.scaled(scale**2),
        noise=gp.noise * scale**2,
        mean=shift + scale * gp.mean,
        members=tuple(_moved(member, shift, scale) for member in gp.members),
    )
