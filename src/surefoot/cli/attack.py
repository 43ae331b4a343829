"""``surefoot attack``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from surefoot.cli.app import app

__all__: list[str] = []


class Norm(StrEnum):
    """How the size of a change is measured."""

    linf = "linf"
    l2 = "l2"


class Channels(StrEnum):
    """Where the model wants the channels of an image."""

    last = "last"
    first = "first"


class Layout(StrEnum):
    """Where the channels are in a file of images."""

    NCHW = "NCHW"
    NHWC = "NHWC"


@app.command(short_help="Test how robust a classifier is.")
def attack(
    model: Annotated[
        str, typer.Argument(metavar="MODULE:FUNCTION", help="From images to scores; or FILE.py:FUNCTION.")
    ],
    images: Annotated[Path, typer.Option(metavar="FILE.npz|FOLDER", help="The images to start from.")],
    radius: Annotated[float, typer.Option(metavar="R", help="How far an image may be moved; pixels lie in [0, 1].")],
    labels: Annotated[
        Path | None, typer.Option(metavar="FILE", help="True classes, one per line or as name,class.")
    ] = None,
    targets: Annotated[
        str, typer.Option(metavar="WHICH", help="any wrong class, all others in turn, a random one, or a number.")
    ] = "any",
    norm: Annotated[Norm, typer.Option(help="Largest change of a pixel, or root of the sum of squares.")] = Norm.linf,
    budget: Annotated[int, typer.Option(min=1, metavar="N", help="Queries for each attack.")] = 900,
    method: Annotated[str, typer.Option(metavar="NAME", help="bos2, bayesopt, genattack, square or random.")] = "bos2",
    first: Annotated[int | None, typer.Option(metavar="N", help="Use only the first N images.")] = None,
    logits: Annotated[bool, typer.Option("--logits", help="The scores are logits, not probabilities.")] = False,
    channels: Annotated[Channels, typer.Option(help="Where the model wants the channels.")] = Channels.last,
    layout: Annotated[
        Layout | None, typer.Option(help="Where the channels are in the file of images, if its shape does not tell.")
    ] = None,
    batch: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Most images that the model is given at once.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Names all random draws.")] = 0,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder of what is written.")] = Path("surefoot-attack"),
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what an interrupted run has left.")] = False,
    picture: Annotated[bool, typer.Option("--picture/--no-picture", help="Whether to draw pictures.")] = True,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only JSON.")] = False,
) -> None:
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
    """
    from surefoot.cli.attack_command import attack as run

    run(
        model,
        images,
        radius=radius,
        labels=labels,
        targets=targets,
        norm=norm.value,
        budget=budget,
        method=method,
        first=first,
        logits=logits,
        channels=channels.value,
        layout=None if layout is None else layout.value,
        batch=batch,
        seed=seed,
        out=out,
        resume=resume,
        picture=picture,
        quiet=quiet,
    )
