"""``surefoot federate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from surefoot.cli.app import app

__all__: list[str] = []


@app.command(short_help="Simulate or plan a private federation.")
def federate(
    data: Annotated[
        str, typer.Option(metavar="NAME", help="landmine, synthetic, or auto: the former where it is here.")
    ] = "auto",
    agents: Annotated[int | None, typer.Option(metavar="N", help="How many agents.")] = None,
    rounds: Annotated[int | None, typer.Option(metavar="T", help="How many rounds.")] = None,
    runs: Annotated[int | None, typer.Option(metavar="N", help="Federations to average over.")] = None,
    q: Annotated[float | None, typer.Option("--q", metavar="Q", help="Probability that an agent is sampled.")] = None,
    z: Annotated[float | None, typer.Option("--z", metavar="Z", help="Noise multiplier.")] = None,
    epsilon: Annotated[float | None, typer.Option(metavar="E", help="Solve for the z that has this loss.")] = None,
    delta: Annotated[float | None, typer.Option(metavar="D", help="δ of the loss; default N^-1.1.")] = None,
    regions: Annotated[int | None, typer.Option(metavar="P", help="Sub-regions of the domain.")] = None,
    features: Annotated[int | None, typer.Option(metavar="M", help="Shared features: numbers in a message.")] = None,
    clip: Annotated[float | None, typer.Option(metavar="S", help="Clip; default 1.1 √(MP).")] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Only say what it would cost; run nothing.")] = False,
    flower: Annotated[
        Path | None, typer.Option(metavar="APP", help="Run this Flower app instead: a real federation.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Of the whole simulation.")] = 0,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder of what is written.")] = Path("surefoot-federate"),
    picture: Annotated[bool, typer.Option("--picture/--no-picture", help="Whether to draw a picture.")] = True,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only JSON.")] = False,
) -> None:
    """See what a federation of optimizers gains, and what it costs in privacy.

    Simulates agents that keep to themselves (TS), that share draws of their beliefs through a coordinator (FTS-DE),
    that do so in private (DP-FTS-DE), and a broadcast of noise alone, on 29 landmine fields (about a minute) or on
    synthetic functions. Prints a table and the privacy loss, and writes both with a picture. With --plan it computes
    the loss by three accountants and the signal over noise from public numbers, and runs nothing.

    \b
    Examples:
      surefoot federate
      surefoot federate --plan \\
        --agents 200 --rounds 40 \\
        --q 0.25 --z 1 --regions 2
      surefoot federate --plan \\
        --agents 500 --epsilon 4 \\
        --delta 1e-4
      surefoot federate \\
        --data synthetic --agents 500
      surefoot federate --flower \\
        examples/flower_federation
    """
    from surefoot.cli import federate as room

    if flower is not None:
        raise typer.Exit(room.start_flower(flower))
    if z is not None and epsilon is not None:
        raise ValueError("give --z or --epsilon, not both: one follows from the other")
    given: dict[str, Any] = {
        "sampling": q, "multiplier": z, "delta": delta, "regions": regions, "count": features, "clip": clip,
        "agents": agents, "rounds": rounds,
    }  # fmt: skip
    given = {name: value for name, value in given.items() if value is not None}
    if plan:
        room.plan(epsilon=epsilon, quiet=quiet, **given)
    else:
        room.federate(data=data, runs=runs, epsilon=epsilon, seed=seed, out=out, picture=picture, quiet=quiet, **given)
