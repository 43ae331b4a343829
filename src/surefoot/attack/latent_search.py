"""Random search for a perturbation at a low resolution: what any attack with a model must beat."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from surefoot.attack.ball import NormBall
from surefoot.attack.method import Attack
from surefoot.attack.probe import Probe, Search
from surefoot.attack.resize import Resize

__all__ = ["RandomLatentSearch"]


@dataclass(frozen=True, kw_only=True)
class RandomLatentSearch(Attack):
    """Uniform draws from the latent box, at a random one of some sizes.

    Parameters
    ----------
    sizes : tuple of int
        Sides of the latent images.
    corners : bool
        Draw corners of the box, which are stronger, instead of points of it.

    >>> import numpy as np
    >>> from surefoot.attack import NormBall, BlackBox
    >>> box = BlackBox(lambda images: np.tile([0.7, 0.3], (len(images), 1)))
    >>> RandomLatentSearch(sizes=(2, 4)).run(box, np.zeros((8, 8)), 1, label=0, ball=NormBall(0.1), budget=5).queries
    5
    """

    sizes: tuple[int, ...] = (6, 8, 10, 12, 14, 16, 18)
    corners: bool = False

    def check(self, shape: tuple[int, ...], ball: NormBall) -> None:
        for size in self.sizes:
            Resize(size, (shape[1], shape[2]))

    def search(self, probe: Probe) -> Search:
        c, H, W = probe.image.shape
        while True:
            rng = probe.stream("latent", probe.spent)
            size = self.sizes[int(rng.integers(len(self.sizes)))]
            u = rng.uniform(-1.0, 1.0, (c, size, size))
            unit = Resize(size, (H, W)).up(np.where(u > 0, 1.0, -1.0) if self.corners else u)
            yield from probe.query(probe.ball.stretch(unit[None]))
