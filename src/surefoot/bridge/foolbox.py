"""Surefoot's attacks as attacks of Foolbox.

>>> import numpy as np, foolbox
>>> from surefoot.attack import BOS2
>>> from surefoot.bridge.foolbox import SurefootAttack
>>> def logits(x):                        # two classes, told apart by the mean brightness
...     return np.stack([np.zeros(len(x)), 40.0 * (x.mean(axis=(1, 2, 3)) - 0.5)], axis=1)
>>> model = foolbox.models.NumPyModel(logits, bounds=(0, 1), data_format="channels_first")
>>> images, labels = np.full((2, 1, 8, 8), 0.45, dtype=np.float32), np.array([0, 0])
>>> attack = SurefootAttack(BOS2(sizes=(3, 4), groups=3), budget=100)
>>> raw, clipped, success = attack(model, images, labels, epsilons=0.1)
>>> success.tolist(), [r.queries <= 100 for r in attack.results]
([True, True], [True, True])

For testing models one is entitled to test.
"""

from __future__ import annotations

import importlib.util
from typing import Any, Literal

if importlib.util.find_spec("foolbox") is None:
    from surefoot.errors import MissingExtra

    raise MissingExtra("the Foolbox bridge needs Foolbox: pip install 'surefoot[foolbox]'")

import eagerpy as ep
import foolbox
import numpy as np
from foolbox.attacks.base import (
    FixedEpsilonAttack,
    get_channel_axis,
    get_criterion,
    raise_if_kwargs,
    verify_input_bounds,
)
from foolbox.criteria import Misclassification, TargetedMisclassification

from surefoot.attack import Attack, AttackResult, BlackBox, NormBall, attack_many
from surefoot.errors import NotSupported
from surefoot.experimental import experimental

__all__ = ["SurefootAttack"]

INSIDE = 1.0 - 1e-6  # of the radius: rounding to single precision must not leave the ball


@experimental
class SurefootAttack(FixedEpsilonAttack):
    """An attack of Surefoot, such as BOS², on any model of Foolbox; all images share each call of the model.

    Parameters
    ----------
    method : Attack, optional
        By default ``BOS2()``; ``SquareAttack`` and others are attacks too.
    norm : "linf" or "l2"
        Norm in which ``epsilons`` are meant.
    budget : int
        Queries for each image.
    logits : bool
        Foolbox models answer with logits, by convention; False for one that answers with probabilities.
    seed : int, optional
        Seed of all random draws.

    Attributes
    ----------
    results : list of AttackResult
        Of the last epsilon: queries, traces, rounds. Empty where it was 0, for which nothing is asked.

    >>> SurefootAttack(norm="l2").distance
    LpDistance(2)
    """

    def __init__(
        self,
        method: Attack | None = None,
        *,
        norm: Literal["linf", "l2"] = "linf",
        budget: int = 900,
        logits: bool = True,
        seed: int | None = 0,
    ) -> None:
        self.method, self.norm, self.budget, self.logits, self.seed = method, norm, budget, logits, seed
        self.results: list[AttackResult] = []
        NormBall(1.0, norm)  # refuses an unknown norm here, not in the middle of a run
        if method is not None and not isinstance(method, Attack):
            raise TypeError(f"method must be an Attack of Surefoot, such as BOS2(), got {method!r}")

    @property
    def distance(self) -> Any:
        """The distance of Foolbox that belongs to the norm."""
        return foolbox.distances.linf if self.norm == "linf" else foolbox.distances.l2

    def run(self, model: Any, inputs: Any, criterion: Any, *, epsilon: float, **kwargs: Any) -> Any:
        """Attack all inputs within ``epsilon``; called by Foolbox."""
        raise_if_kwargs(kwargs)
        x, restore = ep.astensor_(inputs)
        verify_input_bounds(x, model)
        wanted = get_criterion(criterion)
        labels, targets = None, None
        if isinstance(wanted, Misclassification):
            labels = [int(label) for label in wanted.labels.numpy()]
        elif isinstance(wanted, TargetedMisclassification):
            targets = [int(target) for target in wanted.target_classes.numpy()]
        else:
            raise NotSupported(f"SurefootAttack knows Misclassification and TargetedMisclassification, not {wanted!r}")
        if epsilon == 0.0:  # usual in lists of epsilons: what the model says of the images as they are
            self.results = []
            return restore(x)
        given = x.numpy()
        axis = get_channel_axis(model, given.ndim) if given.ndim == 4 else None

        def scores(images: np.ndarray) -> np.ndarray:
            return np.asarray(ep.astensor(model(ep.from_numpy(x, images.astype(given.dtype)).raw)).numpy())

        box = BlackBox(
            scores,
            clip=(float(model.bounds.lower), float(model.bounds.upper)),
            logits=self.logits,
            channels="first" if axis in (None, 1) else "last",
        )
        self.results = attack_many(
            box,
            given,
            targets,
            ball=NormBall(epsilon * INSIDE, self.norm),
            method=self.method,
            labels=labels,
            budget=self.budget,
            seed=self.seed,
        )
        found = np.stack([result.adversarial for result in self.results]).astype(given.dtype)
        return restore(ep.from_numpy(x, found))
