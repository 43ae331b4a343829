"""Attacks, and how they are driven: one image, or many at once with their queries in common batches.

>>> import numpy as np
>>> from surefoot.attack import BOS2, NormBall, BlackBox, attack_many
>>> def scores(images):
...     bright = 1.0 / (1.0 + np.exp(-40.0 * (images.mean(axis=(1, 2)) - 0.5)))
...     return np.column_stack([1.0 - bright, bright])
>>> images = np.stack([np.full((8, 8), 0.45), np.full((8, 8), 0.55)])
>>> method = BOS2(sizes=(3, 4), initial_sizes=(3,), groups=3)
>>> [r.success for r in attack_many(BlackBox(scores), images, method=method, ball=NormBall(0.1), budget=60)]
[True, True]
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.attack.ball import NormBall
from surefoot.attack.black_box import BlackBox
from surefoot.attack.probe import FLOOR, AttackResult, Finished, Probe, Search, log_odds
from surefoot.loop.streams import as_integer, fresh_seed

__all__ = ["Attack", "attack_many"]

Array = NDArray[np.float64]


class Attack(ABC):
    """Base of the attacks: options, and a generator that asks through a probe.

    A subclass gives :meth:`search`; everything else (the ball, the range of the pixels, counting, budgets, success,
    common batches) is done for it.

    >>> class Noise(Attack):
    ...     "Random signs, over and over."
    ...     def search(self, probe):
    ...         while True:
    ...             signs = probe.stream("noise", probe.spent).choice([-1.0, 1.0], size=(1, *probe.image.shape))
    ...             yield from probe.query(probe.ball.stretch(signs))
    >>> box = BlackBox(lambda images: np.tile([0.7, 0.3], (len(images), 1)))
    >>> result = Noise().run(box, np.zeros((4, 4)), 1, label=0, ball=NormBall(0.1), budget=7)
    >>> result.success, result.queries, box.queries
    (False, 7, 7)
    """

    @abstractmethod
    def search(self, probe: Probe) -> Search:
        """Ask about perturbations until the probe ends the attack."""

    def check(self, shape: tuple[int, ...], ball: NormBall) -> None:  # noqa: B027 - most attacks have nothing to refuse
        """Refuse images (c, H, W), or a ball, that the attack cannot work with, before anything is asked."""

    def allowance(self, budget: int) -> int:
        """Return the queries that are allowed in all under a budget; a method may count some of them apart."""
        return budget

    def run(
        self,
        black_box: BlackBox,
        image: ArrayLike,
        target: int | None = None,
        *,
        ball: NormBall,
        label: int | None = None,
        budget: int = 900,
        seed: int | None = 0,
    ) -> AttackResult:
        """Attack one image; the arguments are those of :func:`attack_many`, with ``seed`` used as it is."""
        own = fresh_seed() if seed is None else seed
        targets = None if target is None else [target]
        labels = None if label is None else [label]
        image = np.asarray(image)
        return _drive(self, black_box, image[None], targets, ball=ball, labels=labels, budget=budget, seeds=[own])[0]


def attack_many(
    black_box: BlackBox,
    images: ArrayLike,
    targets: Sequence[int | None] | None = None,
    *,
    ball: NormBall,
    method: Attack | None = None,
    labels: Sequence[int] | None = None,
    budget: int = 900,
    seed: int | Sequence[int] | None = 0,
    watch: Callable[[int, AttackResult], None] | None = None,
) -> list[AttackResult]:
    """Attack many images at once; each call of the model is given the next queries of all of them.

    The attacks do not know of each other: each is the same as alone, with the seed that its result carries.

    Parameters
    ----------
    black_box : BlackBox
        The model under test. Where its own budget runs out, the attacks that are left end without success.
    images : array of shape (n, H, W) or (n, H, W, c)
        Within the range of the pixels; with ``channels="first"`` (n, c, H, W).
    targets : sequence of int, optional
        The class that each image is to be taken for; None (for one, or for all): anything but the true class.
    ball : NormBall
        How far an image may be moved.
    method : Attack, optional
        By default ``BOS2()``.
    labels : sequence of int, optional
        True classes. None: what the model answers for the images as they are, one query each.
    budget : int
        Queries for each image.
    seed : int or sequence of int, optional
        Seed of all random draws; None draws one. With a seed for each image, an image is attacked as it would be alone.
    watch : callable, optional
        Called with the number of an image and its result as soon as its attack is over, so that nothing is lost if a
        later one is interrupted.

    Raises
    ------
    ModelFault
        The model raised an error or did not answer with scores; the error says how many queries were spent.
    ValueError
        Bad arguments; a target that is the true class, or no class.

    >>> from surefoot.attack import BOS2
    >>> box = BlackBox(lambda images: np.tile([0.7, 0.3], (len(images), 1)))
    >>> results = attack_many(box, np.zeros((3, 8, 8)), method=BOS2(sizes=(2,)), ball=NormBall(0.1), budget=4)
    >>> [r.queries for r in results], box.queries
    ([4, 4, 4], 12)
    """
    count = len(np.asarray(images))
    if isinstance(seed, (Sequence, np.ndarray)):
        seeds = [int(each) for each in seed]
        if len(seeds) != count:
            raise ValueError(f"{count} images need {count} seeds, or one for all, got {len(seeds)}")
    else:
        root = fresh_seed() if seed is None else seed
        seeds = [as_integer(np.random.SeedSequence(root, spawn_key=(i,))) for i in range(count)]
    if method is None:
        from surefoot.attack.bos_squared import BOS2

        method = BOS2()
    return _drive(method, black_box, images, targets, ball=ball, labels=labels, budget=budget, seeds=seeds, watch=watch)


def _drive(
    method: Attack,
    black_box: BlackBox,
    images: ArrayLike,
    targets: Sequence[int | None] | None,
    *,
    ball: NormBall,
    labels: Sequence[int] | None,
    budget: int,
    seeds: Sequence[int],
    watch: Callable[[int, AttackResult], None] | None = None,
) -> list[AttackResult]:
    if not isinstance(black_box, BlackBox):
        raise TypeError(f"the model must be a BlackBox, got {type(black_box).__name__}: say BlackBox(scores)")
    if not isinstance(ball, NormBall):
        raise TypeError(f"ball must be a NormBall, for example NormBall(0.3), got {ball!r}")
    if isinstance(budget, bool) or not isinstance(budget, (int, np.integer)) or budget < 1:
        raise ValueError(f"budget must be a positive whole number, got {budget!r}")
    stack, ask, restore = _layout(images, black_box)
    n, allowed = len(stack), method.allowance(int(budget))
    goals = _classes("targets", targets, n) if targets is not None else [None] * n
    known = _classes("labels", labels, n) if labels is not None else [None] * n
    method.check(stack.shape[1:], ball)
    floor = -np.inf if black_box.logits else FLOOR
    probes = [
        Probe(image, ball, black_box.clip, allowed, label, goal, seed, floor=floor)
        for image, label, goal, seed in zip(stack, known, goals, seeds, strict=True)
    ]
    _check_goals(probes, black_box)
    if n and labels is None:
        logs = black_box(ask(stack))
        for probe, row in zip(probes, logs, strict=True):
            probe.label, probe.spent, probe.initial = int(row.argmax()), 1, 1
        _check_goals(probes, black_box)
        for probe, row in zip(probes, logs, strict=True):
            probe.trace += log_odds(row[None], probe.label or 0, probe.target)[0].tolist()
    running = {i: method.search(probe) for i, probe in enumerate(probes)}
    asked = {i: _advance(search, None) for i, search in running.items()}
    while True:
        requests = {i: images for i, images in asked.items() if images is not None}
        left, served = black_box.remaining, []
        for i, wanted in requests.items():
            if len(wanted) <= left:
                served.append(i)
                left -= len(wanted)
        if not served:
            break
        logs = black_box(ask(np.concatenate([requests[i] for i in served])))
        _check_goals(probes, black_box)
        ends = np.cumsum([len(requests[i]) for i in served])
        asked = {i: _advance(running[i], answer) for i, answer in zip(served, np.split(logs, ends[:-1]), strict=True)}
        if watch is not None:
            for i in served:
                if asked[i] is None:
                    watch(i, probes[i].result(restore))
                    running.pop(i)
    if watch is not None:
        for i in running:  # those that the model's own budget has left over
            watch(i, probes[i].result(restore))
    return [probe.result(restore) for probe in probes]


def _advance(search: Search, answer: Array | None) -> Array | None:
    """Go on to the next images to ask about; None when the attack is over."""
    try:
        return next(search) if answer is None else search.send(answer)
    except (Finished, StopIteration):
        return None


def _layout(images: ArrayLike, black_box: BlackBox) -> tuple[Array, Callable[[Array], Array], Callable[[Array], Array]]:
    """The images as (n, c, H, W), the way back for many, and the way back for one."""
    given = np.array(images, dtype=np.float64)
    if given.ndim in (3, 4) and not len(given):
        raise ValueError("there is no image to attack")
    if given.ndim not in (3, 4) or not given.size:
        raise ValueError(f"an image has shape (H, W) or three dimensions with its channels, got {given.shape[1:]}")
    low, high = black_box.clip
    if not np.isfinite(given).all():
        raise ValueError("the pixels of an image must be finite")
    if given.min() < low or given.max() > high:
        raise ValueError(
            f"pixels lie between {low} and {high}, got {given.min():.6g} to {given.max():.6g}: say BlackBox(..., clip=)"
        )
    if given.ndim == 3:
        return given[:, None], lambda stack: stack[:, 0], lambda image: image[0].copy()
    if black_box.channels == "first":
        return given, lambda stack: stack, lambda image: image.copy()
    return (
        np.ascontiguousarray(np.moveaxis(given, -1, 1)),
        lambda stack: np.ascontiguousarray(np.moveaxis(stack, 1, -1)),
        lambda image: np.ascontiguousarray(np.moveaxis(image, 0, -1)),
    )


def _classes(name: str, values: Sequence[Any], n: int) -> list[int | None]:
    values = list(values)
    if len(values) != n:
        raise ValueError(f"{n} images need {n} {name}, got {len(values)}")
    for value in values:
        whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool) and value >= 0
        if not (whole or (value is None and name == "targets")):
            raise ValueError(f"{name} are classes, whole numbers from 0 on, got {value!r}")
    return [None if value is None else int(value) for value in values]


def _check_goals(probes: Sequence[Probe], black_box: BlackBox) -> None:
    """Refuse a target that is the true class, and classes that the model does not have."""
    spent = f"({black_box.queries} queries spent)"
    for i, probe in enumerate(probes):
        if probe.target is not None and probe.target == probe.label:
            raise ValueError(f"the target of image {i} is its true class, {probe.label} {spent}")
        for value in (probe.target, probe.label):
            if black_box.classes is not None and value is not None and value >= black_box.classes:
                raise ValueError(
                    f"image {i} speaks of class {value}, but the model has {black_box.classes} classes {spent}"
                )
