"""Models of earlier tasks: what was measured in each, as functions of the target's points.

:class:`TaskModels` keeps one Gaussian process per :class:`~surefoot.policy.transfer.tasks.Task`, each conditioned once:

* **Hyper-parameters.** A GP you pass is used as it is for every task. One that asks to be fitted is fitted once per
  task; ``share_hyperparameters`` fits it once to all tasks together instead.
* **Scale.** ``scaling="task"`` moves every task to a common mean and spread; predictions are then aligned with the
  target's values. Otherwise values stay as they are, and ``"pooled"`` only measures differences in units of the
  standard deviation of all values of all tasks.
* **Room.** All models together hold at most 2²⁵ numbers (256 MiB), whatever the number and the length of the tasks:
  above √(2²⁵/M) measurements per task they are summarized at that many inducing points
  (:mod:`surefoot.belief.compact`). ``max_points`` sets the number by hand. Hyper-parameters are fitted to at most 200
  measurements of a task. On candidates only the predictions at them are kept.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, Self, cast

import numpy as np
from numpy.typing import NDArray

from surefoot.arguments import one_of, whole
from surefoot.belief.compact import CompactPosterior
from surefoot.belief.gp import GP
from surefoot.belief.joint import fit_jointly
from surefoot.domain import Domain
from surefoot.domain.candidates import INLINE
from surefoot.loop.state import pack, storable, unpack
from surefoot.policy.transfer.tasks import Task

__all__ = ["Negated", "Predictor", "TaskModels", "in_blocks", "slopes"]

Array = NDArray[np.float64]

ROOM = 2**25  # numbers that the models of all tasks may hold together
LONGEST_FIT = 200  # measurements of one task that its hyper-parameters are fitted to
SHARED_TASKS, SHARED_LENGTH = 32, 100  # tasks, and measurements of each, behind shared hyper-parameters
BLOCK = 2**14  # points predicted at once
LEADERS = 5  # tasks whose best points a search starts from
REMEMBERED = 4096  # fits of tasks kept for the next policy of this process that knows the same tasks

_fits: dict[tuple[GP, str], GP] = {}


class Predictor(Protocol):
    """Anything that predicts: mean and standard deviation at encoded points.

    :class:`~surefoot.policy.transfer.rgpe.RGPE` and :class:`~surefoot.policy.transfer.taf.TAF` take predictors in place
    of tasks. One that has ``sample(E, count, rng)`` is drawn from jointly, and one that has ``gradient(E)``, like
    :meth:`Posterior.gradient <surefoot.belief.posterior.Posterior.gradient>`, is searched by its gradients; both are
    made up for where they are missing. To be kept in a state, its class must be ``@storable``.
    """

    def predict(self, E: Array, /) -> tuple[Array, Array]:
        """Return mean and standard deviation at encoded points (m, e), each of shape (m,)."""


@storable
class Negated:
    """A predictor of −f, made of one of f.

    >>> from surefoot.belief import GP
    >>> Negated(GP(mean=2.0).condition()).predict(np.zeros((1, 1)))[0]
    array([-2.])
    """

    def __init__(self, surrogate: Predictor) -> None:
        self.surrogate = surrogate

    def predict(self, E: Array, /) -> tuple[Array, Array]:
        """Return mean and standard deviation at encoded points (m, e), each of shape (m,)."""
        mean, std = self.surrogate.predict(E)
        return -mean, std

    def __getattr__(self, name: str) -> Any:
        # Draws and gradients, where there are some.
        if name == "sample":
            draw = self.surrogate.sample  # type: ignore[attr-defined]
            return lambda *of, **options: -draw(*of, **options)
        if name == "gradient":
            slopes = self.surrogate.gradient  # type: ignore[attr-defined]
            return lambda E: [part if i % 2 else -part for i, part in enumerate(slopes(E))]
        raise AttributeError(name)

    def negated(self) -> Predictor:
        """Return the predictor of f."""
        return self.surrogate

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able description, for a predictor that has one."""
        return {"surrogate": pack(self.surrogate)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild it from :meth:`to_dict`."""
        return cls(unpack(data["surrogate"]))


class TaskModels:
    """Earlier tasks and their models.

    Parameters
    ----------
    domain : Domain
        Of the target.
    tasks : sequence of Task or Predictor
        What was measured before, or models of it.
    gp : GP
        The prior of the target, and of every task.
    scaling : {"pooled", "task", None}
        The scale of the tasks; see the module's page.
    share_hyperparameters : bool
        Whether one fit serves all.
    max_points : int, optional
        Measurements of a task beyond which it is summarized.
    inputs : callable, optional
        ``inputs(task, X)``, what a belief sees of the points X of a task; None: what the domain encodes.
    facing : callable, optional
        Makes a task's posterior a function of what the domain encodes, where ``inputs`` says more.

    >>> from surefoot import Box
    >>> tasks = TaskModels(Box([(0.0, 1.0)]), [Task([[0.2], [0.4]], [1.0, 3.0])], GP(noise=1e-6))
    >>> tasks.models()[0].predict(np.array([[0.4]]))[0].round(2), tasks.level
    (array([3.]), (2.0, 1.0))
    """

    def __init__(
        self,
        domain: Domain,
        tasks: Sequence[Task | Predictor],
        gp: GP,
        *,
        scaling: str | None = "pooled",
        share_hyperparameters: bool = False,
        max_points: int | None = None,
        inputs: Callable[[Task, Array], Array] | None = None,
        facing: Callable[[Any], Predictor] | None = None,
    ) -> None:
        self.domain, self.tasks, self.gp = domain, tuple(tasks), gp
        self.scaling = one_of(scaling, "scaling", ("pooled", "task", None))
        self.share_hyperparameters = share_hyperparameters
        room = max(32, math.isqrt(ROOM // len(tasks)))
        self.max_points = room if max_points is None else whole(max_points, "max_points", 1)
        self._inputs, self._facing = inputs, facing
        self.points = [task.points(domain) if isinstance(task, Task) else None for task in tasks]
        self.ours = np.array([isinstance(task, Task) for task in tasks])  # the others bring their own scale
        self.level = self._common([task.y for task in tasks if isinstance(task, Task)])
        self._gps: list[GP | None] | None = None
        self._models: list[Predictor] | None = None
        self._everywhere: tuple[Array, Array] | None = None

    def __len__(self) -> int:
        return len(self.tasks)

    # -- scale -------------------------------------------------------------------------------------------------------

    def _common(self, values: list[Array]) -> tuple[float, float]:
        """Level and spread that all tasks have in common."""
        if self.scaling == "task" and self.gp.every is None:  # a known prior says what it expects
            return self.gp.mean, float(self.gp.kernel.diag(self.domain.lower[None])[0]) ** 0.5
        if self.scaling == "task":  # levels differ for no reason: only the spread within tasks counts
            level, spread = np.median([_spread(y) for y in values] or [(0.0, 1.0)], axis=0)
            return float(level), float(spread)
        return _spread(np.concatenate(values)) if values else (0.0, 1.0)

    def values(self, task: Task) -> Array:
        """Return the values as the task's model sees them: with ``scaling="task"`` at the common mean and spread."""
        if self.scaling != "task":
            return task.y
        shift, scale = _spread(task.y)
        return self.level[0] + self.level[1] * (task.y - shift) / scale

    def alignment(self, y: Array) -> tuple[float, float]:
        """Return shift and factor that bring predictions of the tasks to the scale of the target's values y (n,)."""
        if self.scaling != "task":
            return 0.0, 1.0
        shift, scale = _spread(y) if len(y) > 1 and y.max() > y.min() else self.level
        return shift - self.level[0] * scale / self.level[1], scale / self.level[1]

    # -- hyper-parameters --------------------------------------------------------------------------------------------

    def gps(self) -> list[GP | None]:
        """Return the hyper-parameters of each task, fitted once; None for what is no :class:`Task`."""
        if self._gps is None:
            gp = replace(self.gp, samples=0)
            if gp.every is None:
                fits = {id(task): gp for task in self.tasks}
            elif self.share_hyperparameters:
                shared = self._shared_fit(gp)
                fits = {id(task): shared for task in self.tasks}
            else:
                fits = {id(task): self.task_fit(gp, i) for i, task in enumerate(self.tasks) if isinstance(task, Task)}
            plain = {key: replace(gp, priors=None, every=None, standardize=False) for key, gp in fits.items()}
            self._gps = [plain[id(task)] if isinstance(task, Task) else None for task in self.tasks]
        return self._gps

    def shared(self) -> GP | None:
        """Return the hyper-parameters that all tasks and the target share, if they do."""
        if not self.share_hyperparameters:
            return None
        return next((found for found in self.gps() if found is not None), None)

    def inputs(self, i: int) -> Array:
        """Return what the belief sees of the measured points of one task."""
        points = cast(Array, self.points[i])
        return self.domain.encode(points) if self._inputs is None else self._inputs(cast(Task, self.tasks[i]), points)

    def _part(self, i: int, length: int) -> tuple[Array, Array, Array | None]:
        """At most so many measurements of one task, encoded; the choice depends on the task alone."""
        task = cast(Task, self.tasks[i])
        X, y, noise = self.inputs(i), self.values(task), task.noise
        if len(y) > length:
            rows = np.sort(_content_rng(task.sha256).choice(len(y), length, replace=False))
            X, y, noise = X[rows], y[rows], None if noise is None else noise[rows]
        return X, y, noise

    def task_fit(self, gp: GP, i: int) -> GP:
        """Return the fit of one task, which its content and the GP decide: policies with the same tasks share it."""
        part = self._part(i, LONGEST_FIT)
        digest = hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in part if a is not None)).hexdigest()
        if (gp, digest) not in _fits:
            while len(_fits) >= REMEMBERED:
                del _fits[next(iter(_fits))]
            _fits[gp, digest] = gp.fit(*part, rng=_content_rng(digest))
        return _fits[gp, digest]

    def _shared_fit(self, gp: GP) -> GP:
        rows = [i for i, task in enumerate(self.tasks) if isinstance(task, Task)]
        if not rows:
            return gp
        rows = sorted(rows, key=lambda i: cast(Task, self.tasks[i]).sha256)[:SHARED_TASKS]
        rng = _content_rng(cast(Task, self.tasks[rows[0]]).sha256)
        return fit_jointly(gp, [self._part(i, SHARED_LENGTH) for i in rows], rng)

    # -- models ------------------------------------------------------------------------------------------------------

    def model(self, i: int) -> Predictor:
        """Return the model of one task, conditioned on all its measurements."""
        task, gp = self.tasks[i], self.gps()[i]
        if not isinstance(task, Task) or gp is None:
            return cast(Predictor, task)
        known = CompactPosterior(gp, self.inputs(i), self.values(task), task.noise, points=self.max_points)
        return known if self._facing is None else self._facing(known)

    def models(self) -> list[Predictor]:
        """Return the models of all tasks, made once."""
        if self._models is None:
            self._models = [self.model(i) for i in range(len(self))]
        return self._models

    def tables(self) -> tuple[Array, Array]:
        """Return mean and standard deviation of all tasks at all candidates, (M, size) each, *not* aligned."""
        if self._everywhere is None:
            models = self._models or (self.model(i) for i in range(len(self)))
            rows = [in_blocks(model, self.domain.enumerate()) for model in models]
            self._everywhere = np.stack([mean for mean, _ in rows]), np.stack([std for _, std in rows])
        return self._everywhere

    def best_points(self, rows: Any) -> list[Array]:
        """Return the best measured point of each of some tasks; of predictors nothing is known."""
        known = [(self.tasks[i], self.points[i]) for i in rows]
        return [points[int(np.argmax(cast(Task, task).y))] for task, points in known if points is not None]

    def leaders(self, weights: Array) -> list[Array]:
        """Return the best points of the tasks that matter most: good places to start a search."""
        return self.best_points(np.argsort(-weights, kind="stable")[:LEADERS])

    # -- keeping -----------------------------------------------------------------------------------------------------

    def stored(self, config: dict[str, Any], given: Sequence[Any]) -> dict[str, Any]:
        """Return a configuration in which many numbers of many tasks, as they were given, are described by hashes."""
        if sum(task.numbers for task in given if isinstance(task, Task)) <= INLINE:
            return config
        hashed = [
            {"$type": "Task", "value": task.to_dict(inline=False)} if isinstance(task, Task) else pack(task)
            for task in given
        ]
        return {**config, "tasks": hashed}

    def cache(self) -> dict[str, Any]:
        """Return the fits of the tasks, JSON-able, once there are any."""
        if self._gps is None or self.gp.every is None:
            return {}
        return {"task_gps": [None if gp is None else gp.to_dict() for gp in self._gps]}

    def restore(self, cache: dict[str, Any]) -> None:
        """Take back what :meth:`cache` gave."""
        if "task_gps" in cache:
            self._gps = [None if data is None else GP.from_dict(data) for data in cache["task_gps"]]


def slopes(model: Predictor, E: Array, extent: Array) -> tuple[Array, Array, Array, Array]:
    """Return mean, standard deviation (m,) and their gradients (m, e), by central differences where a model has none.

    Parameters
    ----------
    model : Predictor
    E : array of shape (m, e)
    extent : array of shape (e,)
        Width of each encoded coordinate, which the differences are a fraction of.

    >>> class Plane:
    ...     def predict(self, E):
    ...         return E @ np.array([1.0, 2.0]), np.ones(len(E))
    >>> slopes(Plane(), np.zeros((1, 2)), np.ones(2))[2].round(6)
    array([[1., 2.]])
    """
    known = getattr(model, "gradient", None)
    if known is not None:
        found: tuple[Array, Array, Array, Array] = known(E)
        return found
    (m, e), step = E.shape, 1e-5 * extent
    moved = np.vstack([E, *(E + sign * h for h in np.diag(step) for sign in (1.0, -1.0))])
    means, stds = (part.reshape(1 + 2 * e, m) for part in model.predict(moved))
    dmean, dstd = (((part[1::2] - part[2::2]) / (2.0 * step[:, None])).T for part in (means, stds))
    return means[0], stds[0], dmean, dstd


def in_blocks(model: Predictor, E: Array) -> tuple[Array, Array]:
    """Predict at many points in bounded memory: mean and standard deviation at the rows of E (m, e), each (m,).

    >>> from surefoot.belief import GP
    >>> in_blocks(GP().condition(), np.zeros((40_000, 1)))[1].shape
    (40000,)
    """
    mean, std = np.empty(len(E)), np.empty(len(E))
    for start in range(0, len(E), BLOCK):
        part = slice(start, start + BLOCK)
        mean[part], std[part] = model.predict(E[part])
    return mean, std


def _content_rng(digest: str) -> np.random.Generator:
    """Draws named by content: tasks in another order, twice, or in another policy are treated alike."""
    return np.random.default_rng(int(digest[:16], 16))


def _spread(y: Array) -> tuple[float, float]:
    """Mean and standard deviation; values that differ by rounding only count as of spread 1."""
    shift, scale = float(y.mean()), float(y.std())
    return shift, scale if scale > 1e-12 * abs(shift) else 1.0
