"""Black-box attacks: how few queries does it take to make a classifier one is entitled to test answer wrongly?

The purpose is to measure robustness: of a model of one's own, or one that its owner has asked to be tested. What is
asked of the model is a function from images to class probabilities; nothing is trained, and nothing inside the model is
read.

>>> import numpy as np
>>> from surefoot.attack import NormBall, BlackBox, bos2
>>> def scores(images):                      # two classes, told apart by the mean brightness
...     bright = 1.0 / (1.0 + np.exp(-40.0 * (images.mean(axis=(1, 2)) - 0.5)))
...     return np.column_stack([1.0 - bright, bright])
>>> result = bos2(BlackBox(scores), np.full((12, 12), 0.45), 1, ball=NormBall(0.1), sizes=(4, 6), seed=0)
>>> result.success, result.queries < 100
(True, True)

:func:`bos2` attacks one image and :func:`attack_many` several at once, with their queries in common batches.
:class:`BOS2` holds the options, and so does every other :class:`Attack`: the methods of this room beside it, and
those of ``surefoot_lab.baselines``.
"""

from __future__ import annotations

from surefoot import lazy

__getattr__, __dir__, __all__ = lazy.names(
    __name__,
    {
        "ball": ["NormBall"],
        "black_box": ["BlackBox", "ModelFault"],
        "resize": ["Resize", "bilinear"],
        "probe": ["AttackResult", "Probe", "PerturbationLoop"],
        "method": ["Attack", "attack_many"],
        "dimension": ["LatentSizes"],
        "abandon": ["Abandon"],
        "bos_squared": ["BOS2", "bos2"],
    },
    renamed={"Ball": "NormBall", "Round": "PerturbationLoop"},
)
