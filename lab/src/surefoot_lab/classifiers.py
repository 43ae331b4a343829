"""Image classifiers to be attacked: small convolutional networks that the lab trains itself.

Trained on the subsets of MNIST, Fashion-MNIST and CIFAR-10 of :mod:`surefoot_lab.datasets` (10,000 images each), in a
minute or two on one core, or several times that the plain way, and kept (:mod:`surefoot_lab.trained`). Pixels lie in
[0, 1].

>>> import tempfile
>>> rng = np.random.default_rng(0)
>>> labels = rng.integers(2, size=64)
>>> images = np.clip(labels[:, None, None] * 0.5 + rng.uniform(0.0, 0.5, (64, 16, 16)), 0.0, 1.0)
>>> net = train(images, labels, classes=2, epochs=12, seed=0, cache=tempfile.mkdtemp())
>>> net.probabilities(images[:3]).shape, net.accuracy(images, labels) > 0.9
((3, 2), True)

Architectures: ``"small"`` has 3 × 3 convolutions with 16, 16, 32 and 32 filters, a maximum over 2 × 2 pixels after
every second one, and one dense layer; ``"published"`` is that of the networks attacked in the literature (Carlini &
Wagner 2017): 32, 32, 64, 64 filters on gray images, 64, 64, 128, 128 on colored ones, and two dense layers with
dropout.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.cli.attack_images import fingerprint
from surefoot_lab.datasets import load
from surefoot_lab.trained import batches, torch, trained

__all__ = ["ARCHITECTURES", "Classifier", "image_classifier", "train"]

Array = NDArray[np.float64]
Architecture = Literal["small", "published"]

ARCHITECTURES = ("small", "published")
EPOCHS = {"mnist": 10, "fashion_mnist": 12, "cifar10": 20}
PLAIN_EPOCHS = 30
CHUNK = 512  # images that a network is given at once
SHIFT = 2  # pixels by which a training image is moved at most, in each direction


@dataclass(frozen=True, eq=False)
class Classifier:
    """A trained network as a function from images to scores.

    Attributes
    ----------
    name : str
        Data and architecture.
    shape : tuple of int
        Of an image: (H, W) or (H, W, c).
    classes : int
        Number of classes.
    notes : dict
        ``accuracy`` on unseen images, where there were some.

    >>> import tempfile
    >>> net = train(np.zeros((4, 16, 16)), [0, 1, 0, 1], classes=2, epochs=1, cache=tempfile.mkdtemp())
    >>> net.logits(np.zeros((2, 9, 9)))
    Traceback (most recent call last):
    ...
    ValueError: this classifier takes images of shape (16, 16), got an array of shape (2, 9, 9)
    """

    name: str
    module: Any = field(repr=False)
    shape: tuple[int, ...]
    classes: int
    notes: dict[str, float]

    def logits(self, images: ArrayLike) -> Array:
        """Return logits (k, classes) of images (k, H, W) or (k, H, W, c)."""
        given = np.asarray(images)
        if given.shape[1:] != self.shape or given.ndim < 3:
            raise ValueError(f"this classifier takes images of shape {self.shape}, got an array of shape {given.shape}")
        pytorch = torch()
        with pytorch.no_grad():
            parts = [
                self.module(_tensor(given[start : start + CHUNK], pytorch)) for start in range(0, len(given), CHUNK)
            ]
        if not parts:
            return np.empty((0, self.classes))
        return np.asarray(pytorch.cat(parts).double().numpy())

    def probabilities(self, images: ArrayLike) -> Array:
        """Return probabilities (k, classes) of images (k, H, W) or (k, H, W, c)."""
        logits = self.logits(images)
        scores = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray(scores / scores.sum(axis=1, keepdims=True))

    def accuracy(self, images: ArrayLike, labels: ArrayLike) -> float:
        """Return the share of images that are classified as their labels say."""
        return float(np.mean(self.logits(images).argmax(axis=1) == np.asarray(labels)))


def image_classifier(
    data: Literal["mnist", "fashion_mnist", "cifar10"] = "mnist",
    *,
    architecture: Architecture = "small",
    seed: int = 0,
    epochs: int | None = None,
    plain: bool = False,
    cache: str | os.PathLike[str] | None = None,
) -> Classifier:
    """Return a classifier of a data set, trained on its 10,000 images and judged on 2,000 others.

    Parameters
    ----------
    data : "mnist", "fashion_mnist" or "cifar10"
        Name of the data set; :class:`~surefoot.errors.MissingData` says where to get it.
    architecture : "small" or "published"
        Layers.
    seed : int
        Draws first weights, batches and shifts.
    epochs : int, optional
        Passes through the images; None: 10, 12 and 20, or 30 if trained the plain way.
    plain : bool
        Train as the networks of the literature were; see :func:`train`.
    cache : path, optional
        Folder of trained models.

    >>> image_classifier("imagenet")
    Traceback (most recent call last):
    ...
    ValueError: data must be one of mnist, fashion_mnist, cifar10, got 'imagenet'
    """
    if data not in EPOCHS:
        raise ValueError(f"data must be one of {', '.join(EPOCHS)}, got {data!r}")
    torch()
    stored = load(data)
    return train(
        stored["X_train"] / np.float32(255.0),
        stored["y_train"],
        unseen=(stored["X_test"] / np.float32(255.0), stored["y_test"]),
        name=data,
        architecture=architecture,
        epochs=epochs if epochs is not None else PLAIN_EPOCHS if plain else EPOCHS[data],
        mirror=data == "cifar10" and not plain,
        plain=plain,
        seed=seed,
        cache=cache,
    )


def train(
    images: ArrayLike,
    labels: ArrayLike,
    *,
    classes: int = 10,
    unseen: tuple[ArrayLike, ArrayLike] | None = None,
    name: str = "images",
    architecture: Architecture = "small",
    epochs: int = 10,
    mirror: bool = False,
    plain: bool = False,
    seed: int = 0,
    cache: str | os.PathLike[str] | None = None,
) -> Classifier:
    """Train a network, by Adam with a learning rate that rises and falls once; images are moved by up to two pixels.

    Parameters
    ----------
    images : array of shape (n, H, W) or (n, H, W, c)
        Pixels in [0, 1].
    labels : array of shape (n,)
        Classes from 0 on.
    classes : int
        How many there are.
    unseen : tuple of arrays, optional
        Images and labels to judge it by.
    name : str
        Beginning of the name in the cache.
    architecture, epochs, seed, cache
        As for :func:`image_classifier`.
    mirror : bool
        Whether images may be mirrored in training.
    plain : bool
        Train by stochastic gradients with momentum (rate 0.01) on the images as they are, as Carlini and Wagner did.
        Such a network is much easier to fool than one that has seen its images moved.

    >>> train(np.zeros((2, 4, 4)), [0, 1])
    Traceback (most recent call last):
    ...
    ValueError: the network needs images of at least 16 x 16 pixels, got (4, 4)
    """
    X, y = np.asarray(images, dtype=np.float32), np.asarray(labels, dtype=np.int64)
    if architecture not in ARCHITECTURES:
        raise ValueError(f"architecture must be one of {', '.join(ARCHITECTURES)}, got {architecture!r}")
    if X.ndim not in (3, 4) or len(X) != len(y) or not len(X):
        raise ValueError(f"images (n, H, W) or (n, H, W, c) need n labels, got {X.shape} and {y.shape}")
    if min(X.shape[1:3]) < 16:
        raise ValueError(f"the network needs images of at least 16 x 16 pixels, got {X.shape[1:3]}")
    if y.min() < 0 or y.max() >= classes:
        raise ValueError(f"labels must lie in 0..{classes - 1}, got {y.min()}..{y.max()}")
    if epochs < 1:
        raise ValueError(f"epochs must be at least 1, got {epochs!r}")
    pytorch = torch()
    shape = X.shape[1:]
    judge = None if unseen is None else (np.asarray(unseen[0], dtype=np.float32), np.asarray(unseen[1]))

    def make() -> Any:
        return _network(architecture, shape, classes, pytorch)

    def fit(module: Any) -> dict[str, float]:
        rng = np.random.default_rng([seed, 1])
        if plain:
            _fit_plainly(module, X, y, epochs, rng, pytorch)
        else:
            _fit(module, X, y, epochs, mirror, rng, pytorch)
        module.eval()
        return {} if judge is None else {"accuracy": Classifier("", module, shape, classes, {}).accuracy(*judge)}

    identity = {
        "architecture": architecture,
        "shape": list(shape),
        "classes": classes,
        "epochs": epochs,
        "mirror": mirror,
        **({"plain": True} if plain else {}),
        "data": fingerprint(X, y, *([] if judge is None else judge)),
    }
    module, notes = trained(f"{name}-{architecture}", make, fit, identity=identity, seed=seed, cache=cache)
    return Classifier(f"{name}, {architecture}", module, shape, classes, notes)


def _network(architecture: str, shape: tuple[int, ...], classes: int, pytorch: Any) -> Any:
    nn = pytorch.nn
    channels = shape[2] if len(shape) == 3 else 1
    filters, dense, drop = [16, 32], [64], 0.0
    if architecture == "published":
        filters, dense, drop = ([32, 64], [200, 200], 0.5) if channels == 1 else ([64, 128], [256, 256], 0.5)
    layers: list[Any] = []
    inside, height, width = channels, shape[0], shape[1]
    for count in filters:
        layers += [nn.Conv2d(inside, count, 3), nn.ReLU(), nn.Conv2d(count, count, 3), nn.ReLU(), nn.MaxPool2d(2)]
        inside, height, width = count, (height - 4) // 2, (width - 4) // 2
    layers.append(nn.Flatten())
    inside *= height * width
    for number, count in enumerate(dense):
        layers += [nn.Linear(inside, count), nn.ReLU(), *([nn.Dropout(drop)] if drop and number == 0 else [])]
        inside = count
    return nn.Sequential(*layers, nn.Linear(inside, classes))


def _fit(
    module: Any, X: NDArray[Any], y: NDArray[Any], epochs: int, mirror: bool, rng: np.random.Generator, pytorch: Any
) -> None:
    size = min(100, len(X))
    steps = epochs * -(-len(X) // size)
    optimizer = pytorch.optim.Adam(module.parameters())
    rate = pytorch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=3e-3, total_steps=steps)
    for _ in range(epochs):
        for batch in batches(len(X), size, rng):
            _step(module, optimizer, _moved(X[batch], mirror, rng), y[batch], pytorch)
            rate.step()


def _fit_plainly(
    module: Any, X: NDArray[Any], y: NDArray[Any], epochs: int, rng: np.random.Generator, pytorch: Any
) -> None:
    optimizer = pytorch.optim.SGD(module.parameters(), lr=0.01, momentum=0.9, nesterov=True)
    for _ in range(epochs):
        for batch in batches(len(X), min(128, len(X)), rng):
            _step(module, optimizer, X[batch], y[batch], pytorch)


def _step(module: Any, optimizer: Any, X: NDArray[Any], y: NDArray[Any], pytorch: Any) -> None:
    loss = pytorch.nn.functional.cross_entropy(module(_tensor(X, pytorch)), pytorch.from_numpy(y))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def _moved(X: NDArray[Any], mirror: bool, rng: np.random.Generator) -> NDArray[Any]:
    """Images moved by up to some pixels, each by its own, and mirrored where that is allowed."""
    n, H, W = X.shape[:3]
    wide = np.pad(X, [(0, 0), (SHIFT, SHIFT), (SHIFT, SHIFT), *[(0, 0)] * (X.ndim - 3)])
    down, right = rng.integers(2 * SHIFT + 1, size=(2, n, 1))
    rows, columns = down + np.arange(H), right + np.arange(W)
    if mirror:
        turned = rng.random(n) < 0.5
        columns[turned] = columns[turned, ::-1]
    moved: NDArray[Any] = wide[np.arange(n)[:, None, None], rows[:, :, None], columns[:, None, :]]
    return moved


def _tensor(images: NDArray[Any], pytorch: Any) -> Any:
    """Images as the network sees them: channels first, around zero."""
    X = images[:, None] if images.ndim == 3 else np.moveaxis(images, -1, 1)
    return pytorch.from_numpy(np.ascontiguousarray(X, dtype=np.float32)) - 0.5
