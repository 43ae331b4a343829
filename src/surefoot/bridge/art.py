"""Surefoot's attacks as evasion attacks of the Adversarial Robustness Toolbox (ART).

>>> import numpy as np
>>> from art.estimators.classification import BlackBoxClassifier
>>> from surefoot.attack import BOS2
>>> from surefoot.bridge.art import SurefootEvasion
>>> def predict(x):                       # two classes, told apart by the mean brightness
...     bright = 1.0 / (1.0 + np.exp(-40.0 * (x.mean(axis=(1, 2, 3)) - 0.5)))
...     return np.column_stack([1.0 - bright, bright])
>>> classifier = BlackBoxClassifier(predict, (8, 8, 1), 2, clip_values=(0.0, 1.0))
>>> attack = SurefootEvasion(classifier, BOS2(sizes=(3, 4), groups=3), eps=0.1, max_queries=100)
>>> found = attack.generate(np.full((2, 8, 8, 1), 0.45, dtype=np.float32))
>>> predict(found).argmax(axis=1).tolist()
[1, 1]

For testing models one is entitled to test.
"""

from __future__ import annotations

import importlib.util
from typing import Any

if importlib.util.find_spec("art") is None:
    from surefoot.errors import MissingExtra

    raise MissingExtra("the ART bridge needs the Adversarial Robustness Toolbox: pip install 'surefoot[art]'")

import numpy as np
from art.attacks.attack import EvasionAttack
from art.estimators.classification.classifier import ClassifierMixin
from art.estimators.estimator import BaseEstimator

from surefoot.attack import Attack, AttackResult, BlackBox, NormBall, attack_many
from surefoot.experimental import experimental

__all__ = ["SurefootEvasion"]

INSIDE = 1.0 - 1e-6  # of the radius: rounding to single precision must not leave the ball


@experimental
class SurefootEvasion(EvasionAttack):
    """An attack of Surefoot, such as BOS², on any classifier of ART; all images share each call of the classifier.

    Parameters
    ----------
    classifier : classifier of ART
        With ``clip_values``; for a model that can only be asked, ``BlackBoxClassifier(predict_fn, ...)``.
    method : Attack, optional
        By default ``BOS2()``; ``SquareAttack`` and others are attacks too.
    eps : float
        Radius of the ball.
    norm : "inf", "2", numpy.inf or 2
        As ART writes norms.
    max_queries : int
        Queries for each image.
    targeted : bool
        Whether ``y`` are the classes to reach; otherwise they are the true ones.
    logits : bool
        Whether the classifier answers with logits.
    channels_first : bool, optional
        Where the channels are. None: what the classifier says, else last.
    seed : int, optional
        Seed of all random draws.

    Attributes
    ----------
    results : list of AttackResult
        Of the last call: queries, traces, rounds.

    >>> from art.estimators.classification import BlackBoxClassifier
    >>> classifier = BlackBoxClassifier(lambda x: x, (8, 8, 1), 2, clip_values=(0.0, 1.0))
    >>> SurefootEvasion(classifier, eps=0.1).targeted
    False
    """

    attack_params = [  # noqa: RUF012 - ART reads a list of the class
        *EvasionAttack.attack_params,
        "method",
        "eps",
        "norm",
        "max_queries",
        "targeted",
        "logits",
        "channels_first",
        "seed",
    ]
    _estimator_requirements = (BaseEstimator, ClassifierMixin)

    def __init__(
        self,
        classifier: Any,
        method: Attack | None = None,
        *,
        eps: float = 0.3,
        norm: float | str = np.inf,
        max_queries: int = 900,
        targeted: bool = False,
        logits: bool = False,
        channels_first: bool | None = None,
        seed: int | None = 0,
    ) -> None:
        super().__init__(estimator=classifier)
        self.method, self.eps, self.norm, self.max_queries = method, eps, norm, max_queries
        self._targeted, self.logits, self.channels_first, self.seed = targeted, logits, channels_first, seed
        self.results: list[AttackResult] = []
        self._check_params()

    def _check_params(self) -> None:
        super()._check_params()
        if self.method is not None and not isinstance(self.method, Attack):
            raise ValueError(f"method must be an Attack of Surefoot, got {self.method!r}")
        if str(self.norm) not in ("inf", "2", "2.0"):
            raise ValueError(f"norm must be numpy.inf or 2, got {self.norm!r}")
        if self.max_queries < 1:
            raise ValueError(f"max_queries must be at least 1, got {self.max_queries!r}")
        if self.estimator.clip_values is None:
            raise ValueError("the classifier needs clip_values, the range of its pixels")
        self._ball()

    def _ball(self) -> NormBall:
        return NormBall(self.eps * INSIDE, "linf" if str(self.norm) == "inf" else "l2")

    def generate(self, x: np.ndarray, y: np.ndarray | None = None, **kwargs: Any) -> np.ndarray:
        """Return adversarial images of the shape of x; where an attack fails, its nearest miss.

        Parameters
        ----------
        x : array of shape (n, H, W, c), (n, c, H, W) or (n, H, W)
        y : array of shape (n,), (n, 1) or (n, classes), optional
            Classes, or one-hot rows: to be reached if ``targeted``, else the true ones. None: what the classifier says.
        """
        if kwargs:
            raise TypeError(f"generate() takes x and y, not {next(iter(kwargs))!r}")
        classes = None if y is None else _classes(np.asarray(y))
        if self.targeted and classes is None:
            raise ValueError("a targeted attack needs y, the classes to reach")
        first = self.channels_first
        if first is None:
            first = bool(getattr(self.estimator, "channels_first", False))
        low, high = self.estimator.clip_values
        given = np.asarray(x)
        dtype = given.dtype if given.dtype.kind == "f" else np.dtype(np.float32)
        box = BlackBox(
            lambda images: self.estimator.predict(images.astype(dtype)),
            clip=(float(np.min(low)), float(np.max(high))),
            logits=self.logits,
            channels="first" if first else "last",
        )
        self.results = attack_many(
            box,
            given,
            classes if self.targeted else None,
            ball=self._ball(),
            method=self.method,
            labels=None if self.targeted else classes,
            budget=self.max_queries,
            seed=self.seed,
        )
        return np.stack([result.adversarial for result in self.results]).astype(dtype)


def _classes(y: np.ndarray) -> list[int]:
    """The class of each image; a single column holds classes, as everywhere in ART, not one-hot rows."""
    if y.ndim > 2:
        raise ValueError(f"y has shape (n,), (n, 1) or (n, classes), got {y.shape}")
    return [int(c) for c in (np.argmax(y, axis=1) if y.ndim == 2 and y.shape[1] > 1 else y.ravel())]
