"""A variational autoencoder with a latent space of two dimensions: images as points in a plane.

Attacker and defender of :mod:`surefoot_lab.adversarial_game` move images by moving their latent points. The layers are
those of the study it comes from: one hidden layer of 512 units on each side (Dai 2021, appendix E.6.2.1), trained by
Adam for 50 epochs with batches of 128 on the sum of binary cross-entropy and Kullback-Leibler divergence.

>>> import tempfile
>>> images = np.random.default_rng(0).random((32, 4, 4))
>>> vae = autoencoder(images, hidden=8, epochs=2, cache=tempfile.mkdtemp())
>>> vae.encode(images).shape, vae.decode(np.zeros((3, 2))).shape
((32, 2), (3, 4, 4))
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

__all__ = ["Autoencoder", "autoencoder", "image_autoencoder"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Autoencoder:
    """A trained autoencoder.

    Attributes
    ----------
    shape : tuple of int
        Of an image.
    dimension : int
        Of a latent point.
    notes : dict
        ``loss`` of the last epoch, for each image.

    >>> import tempfile
    >>> vae = autoencoder(np.zeros((4, 3, 3)), hidden=4, epochs=1, cache=tempfile.mkdtemp())
    >>> vae.decode(np.zeros((1, 5)))
    Traceback (most recent call last):
    ...
    ValueError: latent points have shape (k, 2), got (1, 5)
    """

    module: Any = field(repr=False)
    shape: tuple[int, ...]
    dimension: int
    notes: dict[str, float]

    def encode(self, images: ArrayLike) -> Array:
        """Return the latent means (k, dimension) of images (k, ...)."""
        X = np.asarray(images)
        if X.shape[1:] != self.shape:
            raise ValueError(f"this autoencoder takes images of shape {self.shape}, got an array of shape {X.shape}")
        pytorch = torch()
        with pytorch.no_grad():
            hidden = self.module["encoder"](pytorch.from_numpy(np.array(X.reshape(len(X), -1), dtype=np.float32)))
            return np.asarray(self.module["mean"](hidden).double().numpy())

    def decode(self, Z: ArrayLike) -> Array:
        """Return images (k, ...) with pixels in [0, 1] of latent points Z (k, dimension)."""
        points = np.asarray(Z, dtype=np.float32)
        if points.ndim != 2 or points.shape[1] != self.dimension:
            raise ValueError(f"latent points have shape (k, {self.dimension}), got {points.shape}")
        pytorch = torch()
        with pytorch.no_grad():
            images = pytorch.sigmoid(self.module["decoder"](pytorch.from_numpy(points.copy())))
            return np.asarray(images.double().numpy().reshape(len(points), *self.shape))


def image_autoencoder(
    data: Literal["mnist", "fashion_mnist", "cifar10"] = "mnist",
    *,
    dimension: int = 2,
    seed: int = 0,
    epochs: int = 50,
    cache: str | os.PathLike[str] | None = None,
) -> Autoencoder:
    """Return an autoencoder of the training images of a data set, trained in a minute or two and kept.

    Parameters
    ----------
    data : str
        Name of the data set; :class:`~surefoot.errors.MissingData` says where to get it.
    dimension : int
        Of the latent space.
    seed : int
        Draws first weights, batches and latent noise.
    epochs : int
        Passes through the images.
    cache : path, optional
        Folder of trained models.

    >>> image_autoencoder("imagenet")
    Traceback (most recent call last):
    ...
    ValueError: unknown data set 'imagenet'; known are ...
    """
    torch()
    images = load(data)["X_train"] / np.float32(255.0)
    return autoencoder(images, dimension=dimension, seed=seed, epochs=epochs, name=data, cache=cache)


def autoencoder(
    images: ArrayLike,
    *,
    dimension: int = 2,
    hidden: int = 512,
    epochs: int = 50,
    name: str = "images",
    seed: int = 0,
    cache: str | os.PathLike[str] | None = None,
) -> Autoencoder:
    """Train an autoencoder on images (n, ...) with pixels in [0, 1].

    Parameters
    ----------
    images : array of shape (n, ...)
        What it learns from.
    dimension, hidden : int
        Of the latent space, and units of the hidden layers.
    epochs, seed, cache
        As for :func:`image_autoencoder`.
    name : str
        Beginning of the name in the cache.

    >>> autoencoder(np.full((2, 3, 3), 2.0))
    Traceback (most recent call last):
    ...
    ValueError: pixels must lie in [0, 1], got 2 to 2
    """
    X = np.asarray(images, dtype=np.float32)
    if X.ndim < 2 or not len(X):
        raise ValueError(f"images have shape (n, ...), got {X.shape}")
    if not (X.min() >= 0.0 and X.max() <= 1.0):
        raise ValueError(f"pixels must lie in [0, 1], got {X.min():g} to {X.max():g}")
    if min(dimension, hidden, epochs) < 1:
        raise ValueError(f"dimension, hidden and epochs must be at least 1, got {dimension}, {hidden}, {epochs}")
    pytorch = torch()
    flat = X.reshape(len(X), -1)

    def make() -> Any:
        nn = pytorch.nn
        return nn.ModuleDict(
            {
                "encoder": nn.Sequential(nn.Linear(flat.shape[1], hidden), nn.ReLU()),
                "mean": nn.Linear(hidden, dimension),
                "spread": nn.Linear(hidden, dimension),
                "decoder": nn.Sequential(nn.Linear(dimension, hidden), nn.ReLU(), nn.Linear(hidden, flat.shape[1])),
            }
        )

    def fit(module: Any) -> dict[str, float]:
        return {"loss": _fit(module, flat, epochs, np.random.default_rng([seed, 2]), pytorch)}

    identity = {"dimension": dimension, "hidden": hidden, "epochs": epochs, "data": fingerprint(X)}
    module, notes = trained(f"{name}-vae", make, fit, identity=identity, seed=seed, cache=cache)
    return Autoencoder(module, X.shape[1:], dimension, notes)


def _fit(module: Any, X: NDArray[Any], epochs: int, rng: np.random.Generator, pytorch: Any) -> float:
    """Train, and return the loss per image in the last epoch."""
    optimizer = pytorch.optim.Adam(module.parameters())
    total = 0.0
    for _ in range(epochs):
        total = 0.0
        for batch in batches(len(X), 128, rng):
            inputs = pytorch.from_numpy(X[batch])
            hidden = module["encoder"](inputs)
            mean, spread = module["mean"](hidden), module["spread"](hidden)  # spread: logarithm of the variance
            latent = mean + pytorch.exp(0.5 * spread) * pytorch.randn_like(mean)
            entropy = pytorch.nn.functional.binary_cross_entropy_with_logits(
                module["decoder"](latent), inputs, reduction="sum"
            )
            divergence = -0.5 * (1.0 + spread - mean**2 - pytorch.exp(spread)).sum()
            loss = entropy + divergence
            optimizer.zero_grad()
            (loss / len(batch)).backward()
            optimizer.step()
            total += float(loss.detach())
    return total / len(X)
