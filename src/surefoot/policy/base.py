"""A policy that believes: a surrogate, a rule, and what is measured before the rule takes over.

:class:`ModelPolicy` puts these parts together. A policy of a family is its constructor, which checks the options and
chooses the parts; its algorithm is its rule. Combinations are other parts, not other classes below one another.

>>> from surefoot import Box
>>> from surefoot.policy.ucb.gp_ucb import UpperConfidence
>>> from surefoot.loop.widths import Constant
>>> class Mean(ModelPolicy):
...     "Measures where the mean is highest: a rule too greedy for anything but an example."
...     def __init__(self, domain, **options):
...         super().__init__(domain, **options)
...         self.rule = UpperConfidence(Constant(0.0))
>>> policy = Mean(Box([(0.0, 1.0)]), seed=0)
>>> policy.initial
3
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from surefoot.arguments import open_unit, whole
from surefoot.belief.gp import GP
from surefoot.belief.posterior import Posterior
from surefoot.domain import Domain
from surefoot.errors import NoData, NotSupported
from surefoot.loop import table
from surefoot.loop.journal import Journal
from surefoot.loop.options import Options
from surefoot.loop.policy import Policy
from surefoot.loop.trials import Place
from surefoot.loop.types import Observation, Prediction, Proposal, Recommendation
from surefoot.loop.widths import Width
from surefoot.policy.exploration import SecondLook
from surefoot.policy.importance import Importance, importance
from surefoot.policy.rule import Pointwise, Rule
from surefoot.policy.start import InitialDesign, MoveStart, SobolStart
from surefoot.policy.surrogate import Surrogate
from surefoot.policy.treated import TreatedRows
from surefoot.policy.view import View

__all__ = ["ModelOptions", "ModelPolicy"]

Array = NDArray[np.float64]
NEWEST = 2
"""Version of what is automatic: the belief, the first points, what keeps a policy from getting stuck."""
LARGE = 512
"""Measurements beyond which, from version 2 on, fits become fewer and cheaper."""


class ModelOptions(Options, total=False):
    """Keyword arguments that every model-based policy takes, besides :class:`Options`.

    ``gp`` is used as it is (your units, no refit unless it says so); None means ``GP.automatic(domain)``. ``initial``
    is the number of Sobol points before the rule takes over: 0 with a given ``gp``, else max(3, d + 1); points told
    unasked count. ``confidence`` is that of the reported bounds, and of the policy's width where it has one.
    ``automatic`` is the version of all that is chosen without a ``gp``: None is the newest, or that of the journal.
    """

    gp: GP | None
    initial: int | None
    confidence: float
    automatic: int | None


class ModelPolicy(Policy):
    """Base of the policies that choose by a belief: its parts, and the answer they give.

    Parameters
    ----------
    domain : Domain
        Where points may lie.
    gp : GP, optional
        The belief; None fits one automatically.
    initial : int, optional
        Sobol points before the rule takes over.
    confidence : float
        Confidence of the recommendation's bounds.
    automatic : int, optional
        Version of what is automatic without a ``gp``. Studies that 0.1 began go on with 1; None: the newest.

    Attributes
    ----------
    automatic : int
        The version in use; 0 with a given ``gp``.
    surrogate : Surrogate
        The surrogate of the objective.
    rule : Rule
        How the next point is chosen; set by the constructor of a subclass.
    start : InitialDesign
        What is measured before.

    >>> from surefoot import Box, GPUCB
    >>> GPUCB(Box([(0.0, 1.0)]), seed=0).surrogate.gp.every
    1
    """

    valued: ClassVar[tuple[str, ...]] = ("gp",)
    doubts: ClassVar[bool] = False
    """Whether it takes a second look where its rule has stalled, with an automatic belief of version 2."""
    treats: ClassVar[bool] = False
    """Whether its question has the same answer on every increasing scale of the values, so that an automatic belief of
    version 2 may choose one and leave outliers out (:mod:`surefoot.policy.treated`)."""
    rule: Rule
    width: Width | None = None
    """How many standard deviations the bounds of the rule are wide, where it has bounds."""

    def __init__(
        self,
        domain: Domain,
        *,
        gp: GP | None = None,
        initial: int | None = None,
        confidence: float = 0.95,
        automatic: int | None = None,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(domain, **options)
        version = NEWEST if automatic is None else whole(automatic, "automatic", 1)
        if version > NEWEST:
            raise ValueError(f"automatic={version} is of a later release; this one knows versions 1 to {NEWEST}")
        self.automatic = version if gp is None else 0
        if gp is not None and not isinstance(gp, GP):
            raise TypeError(f"gp must be a GP, for example GP(SE(0.2), noise=1e-4); got {gp!r}")
        few = max(3, domain.dimension + 1) if gp is None else 0
        self.initial = few if initial is None else whole(initial, "initial")
        self.confidence = open_unit(confidence, "confidence")
        believed, reported = GP.automatic(domain) if gp is None else gp, None
        if self.automatic >= 2:
            believed = believed.refit(believed.every, large=LARGE)
            reported = GP.automatic(domain, version=2)
        self.surrogate = Surrogate(self.trials, believed, self.stream, reported=reported)
        if self.treats and self.automatic >= 2 and not domain.travels:
            self.surrogate.rows = TreatedRows(self.surrogate)
        self._noticed: set[int] = set()  # outliers that a warning has named
        takes = self.doubts and self.automatic >= 2 and not domain.travels
        self.second_look = SecondLook() if takes else None
        self._until = 0  # the number of queries when the present ask is done
        self.start: InitialDesign = MoveStart(self.initial) if domain.travels else SobolStart(self.initial)

    @classmethod
    def _completed(cls, arguments: dict[str, Any]) -> dict[str, Any]:
        if "automatic" not in cls.__signature__.parameters or arguments.get("automatic") is not None:
            return arguments
        journal = arguments.get("journal")
        if journal is not None and not isinstance(journal, Journal):
            journal = Journal(journal)
        began = None if journal is None else journal.configured()
        return {**arguments, "automatic": NEWEST if began is None else began.get("automatic", 1)}

    @property
    def gp(self) -> GP:
        """The prior belief."""
        return self.surrogate.gp

    def view(self, step: int | None = None, context: Mapping[str, Any] | None = None) -> View:
        """Return what the rule sees when it chooses query number ``step``; None: the next one."""
        step = len(self.trials.queries) if step is None else step
        left = max(1, self._until - step)
        return View(self.trials, self.surrogate, step, self.stream, self._blocked, context or {}, left)

    def _choose(self, step: int, context: Mapping[str, Any]) -> Proposal:
        view = self.view(step, context)
        first = self.start.propose(view)
        if first is not None:
            return first
        self._warn()
        doubtful = self.surrogate.rows.unconfirmed() if self.repeats else None
        if doubtful is not None:
            return Proposal(doubtful, note={"again": True})
        return self.rule.propose(view) if self.second_look is None else self.second_look.propose(view, self.rule)

    def _blocked(self, *, sparing: bool = False) -> list[Place]:
        """Points that must not be asked now: measured ones too where measurements are exact, from version 2 on."""
        places = super()._blocked(sparing=sparing)
        known = self.automatic >= 2 and self.clock is None and not self.domain.travels and self.repeats
        measured = [(o.x, o.index) for o in self.trials.observations if not o.failed] if known else []
        if not measured or not (sparing or self.surrogate.exact):
            return places
        full = self.domain.size is not None and self.domain.count(places + measured) >= self.domain.size
        return places if full else places + measured

    def _begin(self, count: int) -> None:
        self._until = len(self.trials.queries) + count

    @property
    def spares_pending(self) -> bool:
        """Whether a point that is pending is not asked for a second time while another is left.

        It is with ``repeats=False``, and where the belief takes measurements to be exact: a given ``gp`` whose noise
        variance is 0 or at most a millionth of the signal's, which is rounding, and a fitted one at a thousandth.

        >>> from surefoot import GPUCB, Candidates
        >>> [GPUCB(Candidates([0.0, 1.0]), gp=GP(noise=noise)).spares_pending for noise in (0.0, 0.01)]
        [True, False]
        """
        return not self.repeats or self.surrogate.exact

    def data(self) -> tuple[Array, Array, Array]:
        """Return points (n, d), values (n,) and noises (n,; NaN where not known) of successful measurements.

        Each measured stop of a move is one of them.
        """
        X, y, given = super().data()
        return X, y, self.surrogate.rows.noises(given)

    def posterior(self, *, time: float | None = None) -> Posterior:
        """Return the belief given all measurements, over encoded points; refitted if a refit is due.

        It is about what the rule maximizes: −f for a policy that minimizes. It is the caller's own: appending to it
        does not change what the policy believes.

        Parameters
        ----------
        time : float, optional
            The belief about which time, from the latest one on, which is the default; for policies that declare
            ``forecasts``.
        """
        if time is not None and not self.forecasts:
            raise NotSupported(f"the belief of {type(self).__name__} cannot be asked about a time")
        if self.clock is not None:
            self.clock.speak_of(time)
        return self.surrogate.rows.in_units(self.surrogate.posterior())

    @property
    def outliers(self) -> list[Observation]:
        """Measurements that the others do not support, and that the belief leaves out for now.

        A second measurement of the same point that agrees with one of them brings it back.

        >>> from surefoot import Box, GPUCB
        >>> policy = GPUCB(Box([(0.0, 1.0)]), seed=0)
        >>> for x in np.linspace(0.0, 1.0, 10):
        ...     policy.tell([x], 1e6 if x == 1.0 else x)
        >>> [o.value for o in policy.outliers]
        [1000000.0]
        """
        measured = [o for o in self.history if not o.failed]
        return [measured[row] for row in self.surrogate.rows.outliers]

    def _left_out(self) -> str:
        """Which measurements are left out, in words; empty where none is."""
        rows = self.surrogate.rows.outliers
        if not rows:
            return ""
        measured = [(i, o) for i, o in enumerate(self.trials.observations) if not o.failed]
        names = [
            f"measurement {i + 1}" if o.id is None else f"trial {o.id}" for i, o in (measured[row] for row in rows)
        ]
        return f"{', '.join(names)} left out as {'an outlier' if len(rows) == 1 else 'outliers'}"

    def _warn(self) -> None:
        """Say once of every outlier that it is left out."""
        rows = set(self.surrogate.rows.outliers)
        if rows - self._noticed:
            self._noticed |= rows
            warnings.warn(
                f"{self._left_out()}: the other measurements do not support it. If a value is right, measure its "
                "point again: a second one like it is believed. If it stands for a failed run, tell None instead",
                stacklevel=4,
            )

    def inputs(self, points: Array) -> Array:
        """Return what the belief sees of points (n, d): their encoding, for runs of many epochs with the last one."""
        return self.surrogate.rows.encode(points)

    def averaged(self) -> Posterior:
        """Return the belief that is reported, over encoded points: what bounds and recommendations are made of.

        Where the belief is automatic it is an average over the hyper-parameters that the measurements allow, with
        ``quantile`` of the mixture; else it is :meth:`posterior`. Like that, it is about what the rule maximizes.

        >>> from surefoot import Box, GPUCB
        >>> policy = GPUCB(Box([(0.0, 1.0)]), seed=0)
        >>> for x in (0.1, 0.3, 0.8, 0.9):
        ...     policy.tell([x], 2.0 * x)
        >>> low, high = (policy.averaged().quantile([[0.5]], level)[0] for level in (0.1, 0.9))
        >>> bool(low < 1.0 < high)
        True
        """
        if self.clock is not None:  # its belief fades, which an average over fits does not know
            return self.posterior()
        return self.surrogate.rows.in_units(self.surrogate.averaged())

    def predict(self, points: Any) -> Any:
        """Return what is predicted at a point, or a list of that for a table or an array of points.

        The bounds are about the noise-free value, with the ``confidence`` of the policy, as those of ``recommend``.

        >>> from surefoot import ExpectedImprovement, Float, Space
        >>> policy = ExpectedImprovement(Space(heat=Float(20.0, 90.0)), seed=0)
        >>> policy.tell([{"heat": 30, "yield": 0.6}, {"heat": 50, "yield": 0.8}, {"heat": 80, "yield": 0.5}])
        >>> 0.7 < policy.predict({"heat": 50}).mean < 0.9
        True
        """
        one, X = self._points(points)
        if all(o.failed for o in self.trials.observations):
            raise NoData(f"{type(self).__name__} has no successful measurement yet")
        belief, E = self.averaged(), self.surrogate.rows.encode(X)
        mean, std = belief.predict(E)
        half = ndtri(0.5 + 0.5 * self.confidence) * std
        lower, upper = mean - half, mean + half
        if self.surrogate.reported is not None:
            lower, upper = (belief.quantile(E, 0.5 + 0.5 * side * self.confidence) for side in (-1.0, 1.0))
        found = [
            self._facing(Prediction(x, self.domain.params(x), float(m), float(low), float(high)))
            for x, m, low, high in zip(X, mean, lower, upper, strict=True)
        ]
        return found[0] if one else found

    def score(self, points: Any) -> Array:
        """Return the acquisition at each point of a table or array, shape (n,): the highest one is worth most now.

        For a list of points of one's own; the scale is that of the rule (expected improvement: in logarithms). Pending
        points count as in ``ask``.

        >>> from surefoot import ExpectedImprovement, Float, Space
        >>> policy = ExpectedImprovement(Space(heat=Float(20.0, 90.0)), seed=0)
        >>> policy.tell([{"heat": 30, "yield": 0.6}, {"heat": 50, "yield": 0.8}, {"heat": 80, "yield": 0.5}])
        >>> int(policy.score([{"heat": 50}, {"heat": 60}]).argmax())
        1
        """
        if not isinstance(self.rule, Pointwise) or self.domain.travels:
            raise NotSupported(f"{type(self).__name__} does not score points one by one")
        _, X = self._points(points)
        if all(o.failed for o in self.trials.observations):
            raise NoData(f"{type(self).__name__} has no successful measurement yet")
        view = self.view()
        with view.hallucinated() as belief:
            mean, std = belief.predict(self.domain.address(X))
            return np.asarray(self.rule.acquisition(view, belief).value(mean, std))

    def importance(self, *, points: int = 1024, draws: int = 64) -> list[Importance]:
        """Return the Sobol indices of each parameter, with intervals; see :mod:`surefoot.policy.importance`."""
        return importance(self, points=points, draws=draws)

    def _points(self, points: Any) -> tuple[bool, Array]:
        """Whether this is one point, and the points (n, d)."""
        rows: Any = table.rows_of(points) if table.is_table(points) else points
        one = isinstance(rows, Mapping) or (len(rows) > 0 and all(np.isscalar(part) for part in rows))
        return one, table.points_of(self.domain, [rows] if one else list(rows))

    def _recommend(self) -> Recommendation:
        self._warn()
        return self._most_promising(self.trials.data()[0], "highest posterior mean among measured points")

    def _most_promising(self, X: Array, rule: str) -> Recommendation:
        """The point of X (n, d) with the highest posterior mean."""
        if self.clock is not None:
            self.clock.speak_of(None)
        belief, E = self.surrogate.averaged(), self.surrogate.rows.encode(X)
        if self.surrogate.reported is None:
            return self._highest(X, *belief.predict(E), rule, noise=belief.noise_level)
        mean = belief.expected(E)  # of many a standard deviation each is O(n³), and one is enough
        best = int(np.argmax(mean))
        luck, at = belief.optimism(E), E[best : best + 1]  # the best of many estimates is too high
        low, high = 0.5 - 0.5 * self.confidence, 0.5 + 0.5 * self.confidence
        lower, upper = float(belief.quantile(at, low)[0]) - luck, float(belief.quantile(at, high)[0])
        least, most = (float(belief.quantile(at, level, noise=math.nan)[0]) for level in (low, high))
        return self._answer(X[best], [float(mean[best]), lower, upper, least - luck, most], rule)

    def _highest(self, X: Array, mean: Array, std: Array, rule: str, noise: float | None = None) -> Recommendation:
        """The point of X (n, d) with the highest of these means, as the belief sees values, and its bounds."""
        best = int(np.argmax(mean))
        middle, width = float(mean[best]), float(ndtri(0.5 + 0.5 * self.confidence))
        half = float(width * std[best])
        wide = None if noise is None else width * math.sqrt(float(std[best]) ** 2 + noise)
        following = [] if wide is None else [middle - wide, middle + wide]
        return self._answer(X[best], [middle, middle - half, middle + half, *following], rule)

    def _answer(self, x: Array, values: list[float], rule: str) -> Recommendation:
        """The answer from mean and bounds as the belief sees values, those of the next measurement last if at all."""
        mean, lower, upper, *following = (float(value) for value in self.surrogate.rows.told(values))
        least, most = following or (None, None)
        rule = "; ".join(filter(None, [rule, self._left_out()]))
        fields = {"mean": mean, "lower": lower, "upper": upper, "confidence": self.confidence}
        return self._recommendation(x, **fields, next_lower=least, next_upper=most, rule=rule)

    def _cache(self) -> dict[str, Any]:
        return self.surrogate.cache()

    def _restore(self, cache: dict[str, Any]) -> None:
        self.surrogate.restore(cache)
