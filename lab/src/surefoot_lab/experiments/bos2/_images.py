"""Attacks on networks that the lab trains: instances, methods and what is measured, shared by the image experiments.

An instance is an image that is classified correctly, and a target: every other class in turn, or some of them. One
repetition is one instance, so that methods are compared on the same image and target.

Changed pixels that leave their range are either *clipped*, the library's default, or all pixels are *pressed* back into
it, (x + δ + r)/(1 + 2r), as the public code of BayesOpt does, which makes every attack stronger: on the black ground of
a digit half of the changes are lost by clipping.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.attack import BOS2, Attack, BlackBox, NormBall
from surefoot.attack.bayesopt_attack import BayesOptAttack
from surefoot.attack.genattack import GenAttack
from surefoot.attack.latent_search import RandomLatentSearch
from surefoot.attack.square_attack import SquareAttack
from surefoot.loop.streams import stream
from surefoot_lab import Replicate, Trace, Unit
from surefoot_lab.baselines.zoo import ZOO, AutoZOOM
from surefoot_lab.classifiers import Classifier, image_classifier
from surefoot_lab.datasets import load
from surefoot_lab.readings import Reading, across

Array = NDArray[np.float64]

IMAGE = Unit("image", lambda index, settings: index // settings["targets"])

BOS, PLAIN, CHANCE_SIZE = "BOS²", "without stopping", "random size"
BAYES, GEN, SQUARE, RANDOM = "BayesOpt", "GenAttack", "square attack", "random"
ZOO_, AUTO = "ZOO", "AutoZOOM"

METHODS: dict[str, Attack] = {
    BOS: BOS2(),
    PLAIN: BOS2(stopping=False),
    CHANCE_SIZE: BOS2(dimension="random"),
    BAYES: BayesOptAttack(),
    GEN: GenAttack(),
    SQUARE: SquareAttack(),
    ZOO_: ZOO(),
    AUTO: AutoZOOM(),
    RANDOM: RandomLatentSearch(),
}


@dataclass(frozen=True, eq=False)
class Instance:
    """One image, its class, and the class it is to be taken for."""

    image: Array
    label: int
    target: int


@cache
def _model(data: str, architecture: str, epochs: int | None) -> tuple[Classifier, Array, NDArray[Any]]:
    """The network, and the unseen images that it classifies correctly, in an order of their own."""
    plain = architecture == "published"  # layers and training as published
    network = image_classifier(data, architecture=architecture, plain=plain, epochs=epochs)  # type: ignore[arg-type]
    stored = load(data)
    images = np.asarray(stored["X_test"] / np.float32(255.0), dtype=np.float64)
    good = np.flatnonzero(network.logits(images).argmax(axis=1) == stored["y_test"])
    order = stream(0, f"images of {data}", 0).permutation(good)
    return network, images[order], stored["y_test"][order].astype(int)


def instance(replicate: Replicate, data: str) -> Instance:
    """Return the instance of a repetition: ``targets`` of them for each image."""
    network, images, labels = _model(data, replicate["architecture"], replicate.settings.get("epochs"))
    i, k = divmod(replicate.index, replicate["targets"])
    label = int(labels[i % len(labels)])
    others = np.delete(np.arange(network.classes), label)
    if replicate["targets"] < len(others):
        others = stream(0, f"targets of {data}", i).permutation(others)
    return Instance(images[i % len(images)], label, int(others[k % len(others)]))


def _model_under_attack(network: Classifier, radius: float, pixels: str) -> BlackBox:
    if pixels == "clipped":
        return BlackBox(network.logits, logits=True)

    def pressed(images: Array) -> Array:
        return network.logits((images + radius) / (1.0 + 2.0 * radius))

    return BlackBox(pressed, logits=True, clip=(-radius, 1.0 + radius))


def attacks(replicate: Replicate, data: str, radius: float, names: Sequence[str]) -> Mapping[str, Trace]:
    """Attack the instance of a repetition by some methods.

    Measured are ``success``, ``queries`` of a success, ``capped`` queries (a failure is the whole budget), and for BOS²
    its loops and how many were given up.
    """
    network, _, _ = _model(data, replicate["architecture"], replicate.settings.get("epochs"))
    each, budget, ball = instance(replicate, data), replicate["budget"], NormBall(radius)
    traces = {}
    for name in names:
        box = _model_under_attack(network, radius, replicate["pixels"])
        result = METHODS[name].run(
            box, each.image, each.target, label=each.label, ball=ball, budget=budget, seed=replicate.integer
        )
        traces[name] = Trace(
            success=result.success,
            queries=result.queries if result.success else float("nan"),
            capped=result.capped(budget),
            loops=len(result.rounds),
            given_up=sum(r.stopped for r in result.rounds),
        )
    if replicate.index == 0 and "accuracy" in network.notes:
        traces["network"] = Trace(accuracy=network.notes["accuracy"])
    return traces


def over_successes(name: str, statistic: str) -> Reading:
    """Return the median or the most queries of the successful attacks, over all repetitions at once."""
    reduce: Any = {"median": np.median, "max": np.max}[statistic]

    def value(replicates: Sequence[Mapping[str, Trace]]) -> Array:
        found = [float(t[name]["queries"]) for t in replicates if name in t]
        good = np.array(found)[np.isfinite(found)]
        return np.array([float(reduce(good)) if good.size else np.nan])

    return across(value, f"{statistic} of queries[{name}]")
