"""The base of the policies that know earlier tasks.

:class:`TransferPolicy` keeps one Gaussian process per :class:`~surefoot.policy.transfer.tasks.Task`, each conditioned
once:

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
* **Room.** All models together hold at most 2²⁵ numbers (256 MiB), whatever the number and the length of the tasks:
  above √(2²⁵/M) measurements per task they are summarized at that many inducing points
  (:mod:`surefoot.belief.compact`). ``max_points`` sets the number by hand. Hyper-parameters are fitted to at most 200
  measurements of a task. On candidates only the predictions at them are kept.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Protocol, Self, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from surefoot.arguments import one_of, whole
from surefoot.belief.compact import CompactPosterior
from surefoot.belief.gp import GP
from surefoot.belief.joint import fit_jointly
from surefoot.belief.posterior import Posterior
from surefoot.domain import Box, Candidates, Domain, Space
from surefoot.domain.candidates import INLINE
from surefoot.domain.search import Score, maximize
from surefoot.loop.policy import Proposal
from surefoot.loop.state import pack, storable, unpack
from surefoot.policy.base import ModelOptions, ModelPolicy
from surefoot.policy.transfer.tasks import Task

__all__ = ["Surrogate", "TransferOptions", "TransferPolicy", "in_blocks", "slopes"]

Array = NDArray[np.float64]

ROOM = 2**25  # numbers that the models of all tasks may hold together
LONGEST_FIT = 200  # measurements of one task that its hyper-parameters are fitted to
SHARED_TASKS, SHARED_LENGTH = 32, 100  # tasks, and measurements of each, behind shared hyper-parameters
BLOCK = 2**14  # points predicted at once
LEADERS = 5  # tasks whose best points a search starts from
REMEMBERED = 4096  # fits of tasks kept for the next policy of this process that knows the same tasks

_fits: dict[tuple[GP, str], GP] = {}


class Surrogate(Protocol):
    """Anything that predicts: mean and standard deviation at encoded points.

    :class:`~surefoot.policy.transfer.rgpe.RGPE` and :class:`~surefoot.policy.transfer.taf.TAF` take surrogates in place
    of tasks. One that has ``sample(E, count, rng)`` is drawn from jointly, and one that has ``gradient(E)``, like
    :meth:`Posterior.gradient <surefoot.belief.posterior.Posterior.gradient>`, is searched by its gradients; both are
    made up for where they are missing. To be kept in a state, its class must be ``@storable``.

    >>> from surefoot.belief import GP
    >>> surrogate: Surrogate = GP().condition()
    """

    def predict(self, E: Array, /) -> tuple[Array, Array]:
        """Return mean and standard deviation at encoded points (m, e), each of shape (m,)."""


@storable
class Negated:
    """A surrogate of −f, made of one of f.

    >>> from surefoot.belief import GP
    >>> Negated(GP(mean=2.0).condition()).predict(np.zeros((1, 1)))[0]
    array([-2.])
    """

    def __init__(self, surrogate: Surrogate) -> None:
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

    def negated(self) -> Surrogate:
        """Return the surrogate of f."""
        return self.surrogate

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able description, for a surrogate that has one."""
        return {"surrogate": pack(self.surrogate)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild it from :meth:`to_dict`."""
        return cls(unpack(data["surrogate"]))


class TransferOptions(ModelOptions, total=False):
    """Keyword arguments that every policy with earlier tasks takes, besides :class:`ModelOptions`.

    All are explained on this module's page.

    >>> options: TransferOptions = {"share_hyperparameters": True, "max_points": 64}
    """

    head_start: int
    share_hyperparameters: bool
    max_points: int | None


class TransferPolicy(ModelPolicy):
    """Base of the policies that know earlier tasks; see the module's page."""

    domains: ClassVar[tuple[type[Domain], ...]] = (Box, Candidates, Space)
    valued: ClassVar[tuple[str, ...]] = ("tasks",)

    def __init__(
        self,
        domain: Domain,
        *,
        tasks: Sequence[Task | Surrogate],
        scaling: str | None = "pooled",
        head_start: int = 2,
        share_hyperparameters: bool = False,
        max_points: int | None = None,
        **options: Unpack[ModelOptions],
    ) -> None:
        super().__init__(domain, **options)
        name = type(self).__name__
        if isinstance(tasks, (Task, str, bytes)) or not isinstance(tasks, Sequence):
            raise TypeError(f"tasks must be a sequence of tasks, got {type(tasks).__name__}")
        if not tasks:
            raise ValueError(f"{name} needs at least one earlier task; without any, use a policy that knows none")
        for task in tasks:
            if not (isinstance(task, Task) or self._takes(task)):
                raise TypeError(f"{name} does not take a {type(task).__name__} as a task; make it a Task(X, y)")
        self.tasks = tuple(tasks)
        self.scaling = one_of(scaling, "scaling", ("pooled", "task", None))
        self.head_start, self.share_hyperparameters = whole(head_start, "head_start"), share_hyperparameters
        room = max(32, math.isqrt(ROOM // len(tasks)))
        self.max_points = room if max_points is None else whole(max_points, "max_points", 1)
        self._points = [task.points(domain) if isinstance(task, Task) else None for task in tasks]
        self._pool = self._common([task.y for task in tasks if isinstance(task, Task)])
        self._task_gps: list[GP | None] | None = None
        self._models: list[Surrogate] | None = None
        self._everywhere_else: tuple[Array, Array] | None = None

    @classmethod
    def _negated(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        found = super()._negated(options)
        if isinstance(tasks := found.get("tasks"), tuple):
            known = [not hasattr(task, "predict") or hasattr(task, "negated") for task in options["tasks"]]
            found["tasks"] = tuple(t if done else Negated(t) for t, done in zip(tasks, known, strict=True))
        return found

    def _takes(self, task: Any) -> bool:
        """Whether something that is no :class:`Task` serves as one."""
        return False

    def _common(self, values: list[Array]) -> tuple[float, float]:
        """Level and spread that all tasks have in common."""
        if self.scaling == "task" and self.gp.every is None:  # a known prior says what it expects
            return self.gp.mean, self._prior_std(self.gp)
        if self.scaling == "task":  # levels differ for no reason: only the spread within tasks counts
            level, spread = np.median([_spread(y) for y in values] or [(0.0, 1.0)], axis=0)
            return float(level), float(spread)
        return _spread(np.concatenate(values)) if values else (0.0, 1.0)

    def config(self) -> dict[str, Any]:
        """Return the constructor's arguments as strict JSON; many numbers of many tasks are stored by their hashes."""
        stored = super().config()
        given = self._arguments["tasks"]
        if sum(task.numbers for task in given if isinstance(task, Task)) > INLINE:
            stored["tasks"] = [
                {"$type": "Task", "value": task.to_dict(inline=False)} if isinstance(task, Task) else pack(task)
                for task in given
            ]
        return stored

    # -- believing ---------------------------------------------------------------------------------------------------

    def _values(self, task: Task) -> Array:
        """Values of a task as its model sees them: with ``scaling="task"`` at the mean and the spread of all values."""
        if self.scaling != "task":
            return task.y
        shift, scale = _spread(task.y)
        return self._pool[0] + self._pool[1] * (task.y - shift) / scale

    def _alignment(self) -> tuple[float, float]:
        """Shift and factor that bring predictions of the tasks to the target's scale: with ``scaling="task"``."""
        if self.scaling != "task":
            return 0.0, 1.0
        y = self._data()[1]
        shift, scale = _spread(y) if len(y) > 1 and y.max() > y.min() else self._pool
        return shift - self._pool[0] * scale / self._pool[1], scale / self._pool[1]

    def _gps(self) -> list[GP | None]:
        """The hyper-parameters of each task, fitted once; None for what is no :class:`Task`."""
        if self._task_gps is None:
            gp = replace(self.gp, samples=0)
            if gp.every is None:
                fits = {id(task): gp for task in self.tasks}
            elif self.share_hyperparameters:
                shared = self._shared_fit(gp)
                fits = {id(task): shared for task in self.tasks}
            else:
                fits = {id(task): self._task_fit(gp, i) for i, task in enumerate(self.tasks) if isinstance(task, Task)}
            plain = {key: replace(gp, priors=None, every=None, standardize=False) for key, gp in fits.items()}
            self._task_gps = [plain[id(task)] if isinstance(task, Task) else None for task in self.tasks]
        return self._task_gps

    def _places_of(self, i: int) -> Array:
        """What the belief sees of the measured points of one task."""
        return self.domain.encode(cast(Array, self._points[i]))

    def _part(self, i: int, length: int) -> tuple[Array, Array, Array | None]:
        """At most so many measurements of one task, encoded; the choice depends on the task alone."""
        task = cast(Task, self.tasks[i])
        X, y, noise = self._places_of(i), self._values(task), task.noise
        if len(y) > length:
            rows = np.sort(_content_rng(task.sha256).choice(len(y), length, replace=False))
            X, y, noise = X[rows], y[rows], None if noise is None else noise[rows]
        return X, y, noise

    def _task_fit(self, gp: GP, i: int) -> GP:
        """Fit one task; a function of its content and the GP alone, so that policies with the same tasks share it."""
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

    def _model(self, i: int) -> Surrogate:
        """The model of one task, conditioned on all its measurements."""
        task, gp = self.tasks[i], self._gps()[i]
        if not isinstance(task, Task) or gp is None:
            return cast(Surrogate, task)
        return CompactPosterior(gp, self._places_of(i), self._values(task), task.noise, points=self.max_points)

    def _surrogates(self) -> list[Surrogate]:
        """The models of all tasks, made once."""
        if self._models is None:
            self._models = [self._model(i) for i in range(len(self.tasks))]
        return self._models

    def _tables(self) -> tuple[Array, Array]:
        """Mean and standard deviation of all tasks at all candidates, (M, size) each, made once and *not* aligned."""
        if self._everywhere_else is None:
            points = cast(Candidates, self.domain).points
            models = self._models or (self._model(i) for i in range(len(self.tasks)))
            rows = [in_blocks(model, points) for model in models]
            self._everywhere_else = np.stack([mean for mean, _ in rows]), np.stack([std for _, std in rows])
        return self._everywhere_else

    def _fit(self, at: int | None) -> GP:
        gp = self.gp
        if gp.every is None:
            return gp
        if self.share_hyperparameters:
            shared = next((found for found in self._gps() if found is not None), None)
            if shared is not None:
                return shared
        if not gp.standardize or (at or 0) >= max(3, self.domain.dimension + 1):
            return super()._fit(at)
        # Too few values to know their own scale: the tasks lend theirs.
        shift, scale = self._pool
        lent = replace(gp, standardize=False)
        if at:
            (X, y, noise), end = self._encoded(), self._span(at)
            own = None if noise is None else noise[:end] / scale**2
            lent = lent.fit(X[:end], (y[:end] - shift) / scale, own, rng=self.stream("fit", at))
        return _moved(lent, shift, scale)

    # -- choosing ----------------------------------------------------------------------------------------------------

    def _blocked(self, *, sparing: bool = False) -> list[tuple[Array, int | None]]:
        return super()._blocked(sparing=True)  # what earlier tasks say knows nothing of the points under way

    def _initial_choice(self, step: int) -> Proposal | None:
        return None if len(self._by_rule()) < self.head_start else super()._initial_choice(step)

    def _best_near_tasks(self, score: Score, belief: Posterior, step: int, weights: Array) -> Proposal:
        """Maximize from the best points of the target and of the tasks that matter most."""
        leaders = [i for i in np.argsort(-weights, kind="stable")[:LEADERS] if self._points[i] is not None]
        near = [cast(Array, self._points[i])[int(np.argmax(cast(Task, self.tasks[i]).y))] for i in leaders]
        known = self._incumbents(belief)
        seeds = [*near, *([] if known is None else known)]
        x, _ = maximize(
            score,
            self.domain,
            rng=self.stream("maximize", step),
            seeds=np.array(seeds).reshape(-1, self.domain.dimension) if seeds else None,
            exclude=self._excluded_points(),
        )
        return Proposal(x)

    # -- remembering -------------------------------------------------------------------------------------------------

    def _by_rule(self) -> list[Mapping[str, Any]]:
        """What was noted with every query that the rule chose; points of a design, or of others, have no such note."""
        return [query.note for query in self._queries if "nu" in query.note or "weights" in query.note]

    def _cache(self) -> dict[str, Any]:
        cache = super()._cache()
        if self._task_gps is not None and self.gp.every is not None and self._by_rule():
            cache["task_gps"] = [None if gp is None else gp.to_dict() for gp in self._task_gps]
        return cache

    def _restore(self, cache: dict[str, Any]) -> None:
        super()._restore(cache)
        if "task_gps" in cache:
            self._task_gps = [None if data is None else GP.from_dict(data) for data in cache["task_gps"]]


def slopes(model: Surrogate, E: Array, extent: Array) -> tuple[Array, Array, Array, Array]:
    """Return mean, standard deviation (m,) and their gradients (m, e), by central differences where a model has none.

    Parameters
    ----------
    model : Surrogate
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


def in_blocks(model: Surrogate, E: Array) -> tuple[Array, Array]:
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


def _moved(gp: GP, shift: float, scale: float) -> GP:
    """The same belief about shift + scale · f."""
    return replace(
        gp,
        kernel=gp.kernel.scaled(scale**2),
        noise=gp.noise * scale**2,
        mean=shift + scale * gp.mean,
        members=tuple(_moved(member, shift, scale) for member in gp.members),
    )
