"""Real training runs to tune: small networks on digits and Fashion-MNIST, logistic regression on MNIST.

Each is a problem of learning curves (:mod:`surefoot_lab.curves`): a space of hyper-parameters, and the validation
accuracy after each epoch of a run. A run is a function of its parameters and the seed, which draws the split of the
images, the first weights and the order of the batches; so a curve can be kept on disk and need not be trained twice.

>>> problem = digits(epochs=3)
>>> scores = problem.curve(problem.domain.point(dict(learning_rate=0.1, momentum=0.9, weight_decay=1e-4, hidden=32,
...                                                  batch=32)))
>>> scores.shape, bool(scores[-1] > 0.8)
((3,), True)

The networks are scikit-learn's ``MLPClassifier``, one epoch per ``partial_fit``. The highest score there is, is not
known; ``best`` is 1, so that a regret is a validation error.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.domain import Float, Int, Space
from surefoot.errors import MissingExtra
from surefoot.loop.journal import write_atomically
from surefoot_lab.datasets import load

__all__ = ["Images", "Training", "digits", "fashion_mnist", "logistic_mnist"]

Array = NDArray[np.float64]
CLASSES = 10

NETWORK = Space(
    learning_rate=Float(1e-4, 1.0, log=True),
    momentum=Float(0.0, 0.99),
    weight_decay=Float(1e-6, 1.0, log=True),
    hidden=Int(8, 128, log=True),
    batch=Int(32, 256, log=True),
)
LOGISTIC = Space(  # the published ranges, none on a logarithmic scale
    batch=Int(20, 500), weight_decay=Float(1e-6, 1.0), learning_rate=Float(1e-3, 0.1)
)


class Images(NamedTuple):
    """Rows of pixels in [0, 1] and their classes, to train and to validate.

    >>> Images(np.zeros((2, 4)), np.zeros(2), np.zeros((1, 4)), np.zeros(1)).train.shape
    (2, 4)
    """

    train: NDArray[Any]
    labels: NDArray[Any]
    unseen: NDArray[Any]
    truth: NDArray[Any]


@dataclass(frozen=True)
class Training:
    """Something that is trained epoch by epoch, as a problem of learning curves.

    Parameters
    ----------
    name : str
        What plots call it.
    domain : Space
        The hyper-parameters.
    epochs : int
        Length of a complete run.
    train : callable
        ``train(params)`` yields the score after each epoch, without end.
    identity : mapping
        Beside the name and the parameters, what a curve depends on: names it in the cache.
    cache : path, optional
        Folder in which complete curves are kept.

    >>> def halves(params):
    ...     error = 1.0
    ...     while True:
    ...         error *= params["rate"]
    ...         yield 1.0 - error
    >>> Training("halves", Space(rate=Float(0.1, 0.9)), 3, halves).curve([0.5])
    array([0.5  , 0.75 , 0.875])
    """

    name: str
    domain: Space
    epochs: int
    train: Callable[[Mapping[str, Any]], Iterator[float]]
    identity: Mapping[str, Any] = field(default_factory=dict)
    cache: str | os.PathLike[str] | None = None

    best = 1.0  # an accuracy

    def scores(self, x: ArrayLike) -> Iterator[float]:
        """Yield the scores of a run after epochs 1, ..., N, each when it is asked for; a kept curve costs nothing.

        >>> next(digits().scores([1e-4, 0.0, 1.0, 8, 256])) < 0.3
        True
        """
        params = self.domain.params(x)
        file = self._file(params)
        if file is not None and file.exists():
            yield from json.loads(file.read_text(encoding="utf-8"))
            return
        done: list[float] = []
        run = self.train(params)
        for _ in range(self.epochs):
            done.append(float(next(run)))
            if len(done) == self.epochs and file is not None:  # before the last one is handed out: nobody may ask on
                file.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(file, json.dumps(done))
            yield done[-1]

    def curve(self, x: ArrayLike, rng: np.random.Generator | None = None) -> Array:
        """Return the scores of a complete run, shape (N,); nothing is left for ``rng`` to draw."""
        return np.array(list(self.scores(x)))

    def _file(self, params: Mapping[str, Any]) -> Path | None:
        if self.cache is None:
            return None
        key = json.dumps([self.name, self.epochs, dict(self.identity), dict(params)], sort_keys=True)
        return Path(self.cache) / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.json"


def digits(seed: int = 0, *, epochs: int = 50, cache: str | os.PathLike[str] | None = None) -> Training:
    """Return a network with one hidden layer on scikit-learn's digits: 1,078 images to train, 719 to validate.

    Parameters
    ----------
    seed : int
        Draws the split, the first weights and the batches.
    epochs : int
        N.
    cache : path, optional
        Folder in which complete curves are kept.

    >>> digits(epochs=20).epochs
    20
    """
    _need_sklearn()
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    data = _split(images / 16.0, labels, 1078, 719, seed)
    return Training("digits", NETWORK, epochs, _perceptron(data, seed), _identity(seed, _need_sklearn()), cache)


def fashion_mnist(
    seed: int = 0, *, images: int = 2000, epochs: int = 50, cache: str | os.PathLike[str] | None = None
) -> Training:
    """Return a network with one hidden layer on Fashion-MNIST at 14 × 14 pixels, validated on as many other images.

    Needs the data set ``fashion_mnist``. Parameters are those of :func:`digits`, and

    Parameters
    ----------
    seed : int
        Draws the images, the first weights and the batches.
    images : int
        How many train, and how many validate; at most 5,000.
    epochs : int
        N.
    cache : path, optional
        Folder in which complete curves are kept.

    >>> fashion_mnist(images=6000)
    Traceback (most recent call last):
    ...
    ValueError: images must lie in 1..5000, got 6000
    """
    if not 1 <= images <= 5000:
        raise ValueError(f"images must lie in 1..5000, got {images!r}")
    stored = load("fashion_mnist")
    halved = stored["X_train"].reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4)).reshape(-1, 196) / 255.0
    data = _split(halved, stored["y_train"], images, images, seed)
    identity = {**_identity(seed, _need_sklearn()), "images": images}
    return Training("Fashion-MNIST", NETWORK, epochs, _perceptron(data, seed), identity, cache)


def logistic_mnist(
    seed: int = 0, *, images: int = 10_000, epochs: int = 50, cache: str | os.PathLike[str] | None = None
) -> Training:
    """Return multinomial logistic regression on MNIST: 80 % of the images train, 20 % validate.

    Plain mini-batch gradient descent from zero weights, with L2 regularization of the weights but not of the offsets;
    the ranges are the published ones (Dai et al. 2019, section 5.1). Needs the data set ``mnist``.

    Parameters
    ----------
    seed : int
        Draws the images and the batches.
    images : int
        How many altogether; at most 12,000.
    epochs : int
        N.
    cache : path, optional
        Folder in which complete curves are kept.

    >>> logistic_mnist(images=5)
    Traceback (most recent call last):
    ...
    ValueError: images must lie in 10..12000, got 5
    """
    if not 10 <= images <= 12_000:
        raise ValueError(f"images must lie in 10..12000, got {images!r}")
    stored = load("mnist")
    pixels = np.concatenate([stored["X_train"], stored["X_test"]]).reshape(-1, 784) / 255.0
    labels = np.concatenate([stored["y_train"], stored["y_test"]])
    data = _split(pixels, labels, round(0.8 * images), images - round(0.8 * images), seed)
    identity = {**_identity(seed), "images": images}
    return Training("logistic regression on MNIST", LOGISTIC, epochs, _logistic(data, seed), identity, cache)


def _split(pixels: NDArray[Any], labels: NDArray[Any], train: int, unseen: int, seed: int) -> Images:
    order = np.random.default_rng([seed, 0]).permutation(len(pixels))[: train + unseen]
    X, y = pixels[order].astype(np.float32), labels[order].astype(np.intp)
    return Images(X[:train], y[:train], X[train:], y[train:])


def _identity(seed: int, *versions: str) -> dict[str, Any]:
    """What a curve depends on beside its parameters; another version of the arithmetic may round otherwise."""
    return {"seed": seed, "versions": [np.__version__, *versions]}


def _need_sklearn() -> str:
    """Return the version of scikit-learn, or say how to get it."""
    try:
        import sklearn
    except ImportError:
        raise MissingExtra("the networks need scikit-learn: pip install 'surefoot[demo]'") from None
    version: str = sklearn.__version__
    return version


def _perceptron(data: Images, seed: int) -> Callable[[Mapping[str, Any]], Iterator[float]]:
    """Training of scikit-learn's perceptron by stochastic gradients with momentum."""
    _need_sklearn()
    from sklearn.neural_network import MLPClassifier

    def train(params: Mapping[str, Any]) -> Iterator[float]:
        network = MLPClassifier(
            hidden_layer_sizes=(params["hidden"],),
            solver="sgd",
            learning_rate_init=params["learning_rate"],
            momentum=params["momentum"],
            alpha=params["weight_decay"],
            batch_size=min(params["batch"], len(data.train)),
            random_state=seed % 2**32,
        )
        try:
            with np.errstate(all="ignore"):  # a learning rate too high makes the weights overflow
                while True:
                    network.partial_fit(data.train, data.labels, classes=np.arange(CLASSES))
                    yield float(np.mean(network.predict(data.unseen) == data.truth))
        except ValueError:  # weights that are not finite are refused
            while True:
                yield 1.0 / CLASSES  # it can only guess

    return train


def _logistic(data: Images, seed: int) -> Callable[[Mapping[str, Any]], Iterator[float]]:
    """Training of a linear softmax classifier by plain stochastic gradients."""
    targets = np.eye(CLASSES, dtype=np.float32)[data.labels]

    def train(params: Mapping[str, Any]) -> Iterator[float]:
        rng = np.random.default_rng([seed, 1])
        W = np.zeros((data.train.shape[1], CLASSES), dtype=np.float32)
        b = np.zeros(CLASSES, dtype=np.float32)
        rate, decay, size = params["learning_rate"], params["weight_decay"], int(params["batch"])
        while True:
            order = rng.permutation(len(data.train))
            for start in range(0, len(order), size):
                batch = order[start : start + size]
                X = data.train[batch]
                Z = X @ W + b
                P = np.exp(Z - Z.max(axis=1, keepdims=True))
                P /= P.sum(axis=1, keepdims=True)
                P -= targets[batch]
                W *= 1.0 - rate * decay
                W -= (rate / len(batch)) * (X.T @ P)
                b -= (rate / len(batch)) * P.sum(axis=0)
            yield float(np.mean((data.unseen @ W + b).argmax(axis=1) == data.truth))

    return train
