"""``surefoot attack``: how robust is a classifier to small changes of its images, asked only for its scores?

For testing models that one is entitled to test. The model is a function of the user's own code, found by name; no model
file is opened, and nothing is unpickled. Images are an ``.npz`` file or a folder of pictures.

Every attack that is over is written at once (one line of ``attacks.jsonl``, one file in ``adversarial``), so that an
interrupted run keeps what is done and ``--resume`` goes on with the rest, which come out as they would have.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from surefoot.attack import BOS2, Attack, AttackResult, BlackBox, NormBall, attack_many
from surefoot.attack.bayesopt_attack import BayesOptAttack
from surefoot.attack.genattack import GenAttack
from surefoot.attack.latent_search import RandomLatentSearch
from surefoot.attack.robustness import Summary
from surefoot.attack.square_attack import SquareAttack
from surefoot.cli.attack_images import LAYOUTS, Pictures, fingerprint, read_images
from surefoot.cli.attack_report import AttackRecord, write_report
from surefoot.cli.options import PATH, offer, out, quiet, seed
from surefoot.cli.target import find
from surefoot.loop.durable import Appended, write_atomically
from surefoot.loop.streams import as_integer

__all__ = ["METHODS", "Instance", "attack", "instances_of", "method_named"]

Array = NDArray[np.float64]

METHODS = ("bos2", "bayesopt", "genattack", "square", "random")
SIZES = (6, 8, 10, 12, 14, 16, 18)  # sides of latent images, as far as they fit


@dataclass(frozen=True)
class Instance:
    """One attack that is to be made: on which image, from which class, to which one (None: any other).

    >>> Instance(0, 3, 7, 8).target
    8
    """

    number: int
    image: int
    label: int
    target: int | None


@click.argument("target", metavar="MODULE:FUNCTION", help="From images to scores; or FILE.py:FUNCTION.")
@click.option("--images", type=PATH, metavar="FILE.npz|FOLDER", help="The images to start from.")
@click.option("--radius", type=float, metavar="R", help="How far an image may be moved; pixels lie in [0, 1].")
@click.option("--labels", type=PATH, metavar="FILE", help="True classes, one per line or as name,class.")
@click.option("--targets", metavar="WHICH", help="any wrong class, all others in turn, a random one, or a number.")
@click.option(
    "--norm", type=click.Choice(["linf", "l2"]), help="Largest change of a pixel, or root of the sum of squares."
)
@click.option("--budget", type=click.IntRange(1), metavar="N", help="Queries for each attack.")
@click.option("--method", metavar="NAME", help="bos2, bayesopt, genattack, square or random.")
@click.option("--first", type=int, metavar="N", help="Use only the first N images.")
@click.option("--logits", is_flag=True, help="The scores are logits, not probabilities.")
@click.option("--channels", type=click.Choice(["last", "first"]), help="Where the model wants the channels.")
@click.option(
    "--layout",
    type=click.Choice(LAYOUTS),
    help="Where the channels are in the file of images, if its shape does not tell.",
)
@click.option("--batch", type=click.IntRange(1), metavar="N", help="Most images that the model is given at once.")
@seed
@out
@click.option("--resume", is_flag=True, help="Go on with what an interrupted run has left.")
@click.option("--picture/--no-picture", help="Whether to draw pictures.")
@quiet
def attack(
    target: str,
    images: str | os.PathLike[str],
    *,
    radius: float,
    labels: str | os.PathLike[str] | None = None,
    targets: str = "any",
    norm: str = "linf",
    budget: int = 900,
    method: str = "bos2",
    first: int | None = None,
    logits: bool = False,
    channels: str = "last",
    layout: str | None = None,
    batch: int | None = None,
    seed: int = 0,
    out: str | os.PathLike[str] = "surefoot-attack",
    resume: bool = False,
    picture: bool = True,
    quiet: bool = False,
    console: Console | None = None,
) -> Summary | None:
    """Attack a classifier and write a report; return its summary, None if no image was left to attack.

    Its arguments are the options. Without labels the true class is what the model answers.

    >>> attack("math:sqrt", "nowhere.npz", radius=0.1)
    Traceback (most recent call last):
    ...
    ValueError: there is no file or folder nowhere.npz
    """
    ball = NormBall(radius, norm=norm)
    if isinstance(budget, bool) or budget < 1:
        raise ValueError(f"budget must be a positive whole number, got {budget!r}")
    pictures = read_images(images, labels, first, layout)
    if channels == "first" and pictures.images.ndim == 4:
        pictures = pictures.channels_first()
    shape = _shape(pictures.images, channels)
    how = method_named(method, min(shape[1:]))
    how.check(shape, ball)  # before anything is asked
    box = BlackBox(find(target), logits=logits, channels=channels, batch=batch)
    folder, screen = Path(out), console or Console()
    settings = {
        "model": target,
        "images": fingerprint(pictures.images),
        "labels": None if pictures.labels is None else fingerprint(pictures.labels),
        "targets": str(targets),
        "radius": ball.radius,
        "norm": ball.norm,
        "budget": int(budget),
        "method": method,
        "logits": logits,
        "channels": channels,
        "seed": int(seed),
    }
    done, before = _begin(folder, settings, resume)
    answers = box(pictures.images).argmax(axis=1)  # one query for each image: is it classified correctly at all?
    planned = instances_of(answers, pictures.labels, targets, box.classes or 0, seed)
    todo = [instance for instance in planned if instance.number not in done]
    try:
        _run(box, pictures, todo, how, ball, int(budget), seed, folder, done, None if quiet else screen)
    finally:  # also of an interrupted run, or one whose model broke
        spent = before + box.queries
        summary = write_report(folder, settings, pictures, answers, len(planned), done, spent, picture, quiet, screen)
    return summary


def method_named(name: str, side: int = 28) -> Attack:
    """Return an attack by its name, for images of at least ``side`` pixels on a side.

    >>> method_named("bos2", 14).sizes
    (6, 8, 10, 12, 14)
    >>> method_named("guessing")
    Traceback (most recent call last):
    ...
    ValueError: the method is one of bos2, bayesopt, genattack, square, random, not 'guessing'
    """
    sizes = tuple(size for size in SIZES if size <= side) or tuple(range(max(1, side // 2), side + 1))
    made: dict[str, Callable[[], Attack]] = {
        "bos2": lambda: BOS2(sizes=sizes),
        "bayesopt": lambda: BayesOptAttack(sizes=sizes),
        "genattack": GenAttack,
        "square": SquareAttack,
        "random": lambda: RandomLatentSearch(sizes=sizes),
    }
    if name not in made:
        raise ValueError(f"the method is one of {', '.join(METHODS)}, not {name!r}")
    return made[name]()


def instances_of(
    answers: NDArray[np.intp], labels: NDArray[Any] | None, targets: str, classes: int, seed: int
) -> list[Instance]:
    """Return the attacks to be made on images that are classified correctly, given the model's answers (n,).

    >>> [i.target for i in instances_of(np.array([0, 1]), np.array([0, 2]), "all", 3, 0)]
    [1, 2]
    """
    truth = answers if labels is None else np.asarray(labels)
    if truth.size and (truth.min() < 0 or truth.max() >= classes):
        raise ValueError(f"labels must lie in 0..{classes - 1}, the model's classes; got {truth.min()}..{truth.max()}")
    goal = None
    if targets not in ("any", "all", "random"):
        if not targets.isdigit() or int(targets) >= classes:
            raise ValueError(f"targets is any, all, random, or a class from 0 to {classes - 1}, got {targets!r}")
        goal = int(targets)
    draws = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,))).integers(classes - 1, size=truth.size)
    planned: list[tuple[int, int, int | None]] = []
    for i in np.flatnonzero(answers == truth).tolist():
        label = int(truth[i])
        others = [c for c in range(classes) if c != label]
        if targets == "any":
            planned.append((i, label, None))
        elif targets == "all":
            planned += [(i, label, c) for c in others]
        elif targets == "random":
            planned.append((i, label, others[int(draws[i])]))
        elif goal != label:  # an image of the class itself cannot be turned into it
            planned.append((i, label, goal))
    return [Instance(number, *rest) for number, rest in enumerate(planned)]


# -- running ---------------------------------------------------------------------------------------------------------


def _run(
    box: BlackBox, pictures: Pictures, todo: Sequence[Instance], how: Attack, ball: NormBall, budget: int, seed: int,
    folder: Path, done: dict[int, AttackRecord], screen: Console | None,
) -> None:  # fmt: skip
    if not todo:
        return
    kept = folder / "adversarial"
    kept.mkdir(exist_ok=True)
    seeds = [as_integer(np.random.SeedSequence(seed, spawn_key=(1, instance.number))) for instance in todo]
    columns = [TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}")]
    quiet = screen is None or not screen.is_terminal
    bar = Progress(*columns, TimeElapsedColumn(), console=screen, transient=True, disable=quiet)
    log = Appended(folder / "attacks.jsonl")
    log.open()
    with contextlib.closing(log), bar:
        task = bar.add_task("attacks", total=len(todo))

        def keep(i: int, result: AttackResult) -> None:
            instance = todo[i]
            best = float(result.trace.max()) if len(result.trace) else math.nan
            record = AttackRecord(
                number=instance.number,
                name=pictures.names[instance.image],
                label=instance.label,
                target=instance.target,
                success=result.success,
                queries=result.queries,
                image=instance.image,
                seed=result.seed,
                distance=float(ball.size(result.perturbation[None])[0]),
                best=best if math.isfinite(best) else None,
            )
            image = io.BytesIO()
            np.save(image, result.adversarial)
            write_atomically(kept / f"{instance.number:05d}.npy", image.getvalue())
            log.append(f"{record.to_json()}\n".encode())
            done[instance.number] = record
            bar.advance(task)

        attack_many(
            box,
            pictures.images[[instance.image for instance in todo]],
            [instance.target for instance in todo],
            labels=[instance.label for instance in todo],
            method=how,
            ball=ball,
            budget=budget,
            seed=seeds,
            watch=keep,
        )


def _begin(folder: Path, settings: Mapping[str, Any], resume: bool) -> tuple[dict[int, AttackRecord], int]:
    """What is done already, and the queries that were spent; refuses to mix two runs."""
    log, note = folder / "attacks.jsonl", folder / "settings.json"
    if not resume:
        if log.exists():
            raise ValueError(f"{folder} holds an earlier run: --resume goes on with it, or choose another --out")
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(note, json.dumps(settings, indent=1, ensure_ascii=False) + "\n")
        return {}, 0
    if not note.exists():
        raise ValueError(f"there is nothing to resume in {folder}")
    before = json.loads(note.read_text(encoding="utf-8"))
    changed = sorted(key for key in settings if before.get(key) != settings[key])
    if changed:
        raise ValueError(f"{folder} was begun with other {', '.join(changed)}: --resume needs the same command")
    lines = log.read_text(encoding="utf-8").split("\n") if log.exists() else []
    whole, torn = lines[:-1], lines[-1:] != [""] and bool(lines)
    if torn:  # the power went while the last line was written: that attack is made again
        write_atomically(log, "".join(f"{line}\n" for line in whole))
    records = [AttackRecord.from_json(line) for line in whole]
    report = folder / "report.json"  # not there after a crash: then what the finished attacks took is all that is known
    known = sum(record.queries for record in records)
    spent = json.loads(report.read_text(encoding="utf-8"))["queries"] if report.exists() else known
    return {record.number: record for record in records}, spent


def _shape(images: Array, channels: str) -> tuple[int, ...]:
    if images.ndim == 3:
        return (1, *images.shape[1:])
    return images.shape[1:] if channels == "first" else (images.shape[3], *images.shape[1:3])


command = offer(
    attack,
    """Find out how few queries it takes to make an image classifier answer wrongly.

    For testing models that you are entitled to test. The function is given images of shape (k, H, W) or (k, H, W, c),
    with --channels first (k, c, H, W), and returns scores (k, classes); it is your own code, and no model file is
    opened here. Writes a report with the share of attacks that succeed, the queries they take, and pictures:
    report.html and report.json. All attacks share the calls of the model. What is done is kept when the run is
    interrupted.

    \b
    Examples:
      surefoot attack model.py:scores \\
        --images digits.npz \\
        --radius 0.3
      surefoot attack mymodel:predict \\
        --images photos/ --norm l2 \\
        --radius 2 --targets random \\
        --method genattack --budget 2000
      surefoot attack model.py:logits \\
        --logits --images digits.npz \\
        --radius 0.3 --targets all \\
        --first 5 --resume
    """,
)
