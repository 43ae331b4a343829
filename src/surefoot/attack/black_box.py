"""The model under test: a function from images to scores, with its queries counted.

>>> import numpy as np
>>> box = BlackBox(lambda images: np.full((len(images), 4), 0.25), budget=10)
>>> box(np.zeros((3, 8, 8))).shape
(3, 4)
>>> box.queries, box.remaining
(3, 7)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from surefoot.errors import BudgetSpent, SurefootError

__all__ = ["BlackBox", "ModelFault"]

Array = NDArray[np.float64]
TINY = 1e-30  # added to a probability before its logarithm is taken


class ModelFault(SurefootError):
    """The model under test raised an error, or answered with something that is not a table of scores.

    ``queries`` is how many images it had been given by then, those of the faulty call included.

    >>> raise ModelFault("the model returned NaN", queries=12)
    Traceback (most recent call last):
    ...
    surefoot.attack.black_box.ModelFault: the model returned NaN (12 queries spent)
    """

    def __init__(self, message: str, *, queries: int) -> None:
        super().__init__(f"{message} ({queries} {'query' if queries == 1 else 'queries'} spent)")
        self.queries = queries


class BlackBox:
    """A classifier that can only be asked.

    Parameters
    ----------
    scores : callable
        From images, an array of shape (k, ...) in the pixels' range, to an array of shape (k, classes): probabilities,
        or anything that ``logits`` says. Tensors on the CPU are understood.
    clip : tuple of float
        Lowest and highest value of a pixel.
    budget : int, optional
        Images that may be asked about in all; None: as many as you like. Nothing is ever asked beyond it.
    logits : bool
        The scores are logits or log-probabilities: they are normalized by a softmax. Better than probabilities, which
        are rounded to 0 by a model that is sure of itself. Minus infinity is a class that is ruled out.
    channels : "last" or "first"
        Where the channels are in images of three dimensions.
    batch : int, optional
        Most images that the model is given at once.

    Attributes
    ----------
    queries : int
        Images that the model was given so far.
    classes : int or None
        Number of classes, once the model has answered.

    >>> import numpy as np
    >>> BlackBox(lambda images: np.ones((len(images), 2)))(np.zeros((1, 4, 4)))
    Traceback (most recent call last):
    ...
    surefoot.attack.black_box.ModelFault: the model's scores are not probabilities: row 0 adds up to 2, not to 1; \
for logits say BlackBox(..., logits=True) (1 query spent)
    """

    def __init__(
        self,
        scores: Callable[[Array], Any],
        *,
        clip: tuple[float, float] = (0.0, 1.0),
        budget: int | None = None,
        logits: bool = False,
        channels: Literal["last", "first"] = "last",
        batch: int | None = None,
    ) -> None:
        if not callable(scores):
            raise TypeError(f"scores must be a function from images to scores, got {scores!r}")
        low, high = (float(value) for value in clip)
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise ValueError(f"clip is the lowest and the highest value of a pixel, got {clip!r}")
        for name, value in (("budget", budget), ("batch", batch)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1):
                raise ValueError(f"{name} must be a positive whole number, got {value!r}")
        if channels not in ("last", "first"):
            raise ValueError(f"channels must be 'last' or 'first', got {channels!r}")
        self.scores, self.clip, self.budget, self.logits = scores, (low, high), budget, bool(logits)
        self.channels, self.batch = channels, batch
        self.queries = 0
        self.classes: int | None = None

    @property
    def remaining(self) -> float:
        """Images that may still be asked about; infinite without a budget."""
        return math.inf if self.budget is None else self.budget - self.queries

    def __call__(self, images: Array) -> Array:
        """Return log-probabilities (k, classes) of images (k, ...).

        Raises
        ------
        BudgetSpent
            There are more images than the budget allows; none was asked about.
        ModelFault
            The model raised an error or did not answer with scores.
        """
        images = np.asarray(images, dtype=np.float64)
        if len(images) > self.remaining:
            raise BudgetSpent(
                f"{len(images)} more queries would exceed the budget of {self.budget}: {self.queries} are spent"
            )
        step = self.batch or max(len(images), 1)
        answers = [self._ask(images[start : start + step]) for start in range(0, len(images), step)]
        return np.concatenate(answers) if answers else np.empty((0, self.classes or 0))

    def _ask(self, images: Array) -> Array:
        self.queries += len(images)  # before the call: what was handed over may have been charged for
        try:
            answer = self.scores(images.copy())  # a model that normalizes in place must not change what was asked
            # A tensor that remembers its gradient does not become an array by itself.
            table = np.asarray(answer.detach() if hasattr(answer, "detach") else answer, dtype=np.float64)
        except Exception as error:
            raise ModelFault(f"the model raised {type(error).__name__}: {error}", queries=self.queries) from error
        if table.ndim != 2 or len(table) != len(images) or table.shape[1] < 2:
            self._fault(f"{len(images)} images need scores of shape ({len(images)}, classes), got {table.shape}")
        if self.classes not in (None, table.shape[1]):
            self._fault(f"the model had {self.classes} classes before and has {table.shape[1]} now")
        if np.isnan(table).any() or (table == np.inf).any():
            self._fault(f"the model returned {'NaN' if np.isnan(table).any() else 'infinity'}")
        if self.logits:
            if (table.max(axis=1) == -np.inf).any():
                self._fault("the model returned minus infinity for every class")
            logs: Array = np.asarray(log_softmax(table, axis=1))
            # A probability of exactly 0 counts as TINY, or as the lowest of the others where that is less.
            lowest = np.min(logs, axis=1, keepdims=True, where=logs > -np.inf, initial=math.log(TINY))
            logs = np.maximum(logs, lowest)
        else:
            sums = table.sum(axis=1)
            row = int(np.abs(sums - 1.0).argmax())
            hint = "for logits say BlackBox(..., logits=True)"
            if table.min() < -1e-6:
                self._fault(f"the model's scores are not probabilities: the lowest is {table.min():.6g}; {hint}")
            if abs(sums[row] - 1.0) > 1e-3:
                self._fault(
                    f"the model's scores are not probabilities: row {row} adds up to {sums[row]:.6g}, not to 1; {hint}"
                )
            logs = np.log(np.maximum(table, 0.0) + TINY)
        self.classes = table.shape[1]
        return logs

    def _fault(self, message: str) -> None:
        raise ModelFault(message, queries=self.queries)
