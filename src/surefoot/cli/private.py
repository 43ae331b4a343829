"""``surefoot audit``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from surefoot.cli.app import app

__all__: list[str] = []


@app.command(short_help="Attack the privacy of every mechanism.")
def audit(
    mechanism: Annotated[
        list[str] | None, typer.Argument(metavar="[MECHANISM ...]", help="Names, or how they start; default all.")
    ] = None,
    epsilon: Annotated[float, typer.Option(metavar="E", help="What mechanisms are calibrated to.")] = 1.0,
    delta: Annotated[float, typer.Option(metavar="D", help="And their δ.")] = 1e-3,
    trials: Annotated[int, typer.Option(metavar="N", help="Releases of each of two neighboring inputs.")] = 100_000,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Of the noise, so that it can be repeated.")] = 0,
    system: Annotated[
        bool, typer.Option("--system", help="Draw noise as in earnest, by OpenDP; slow, and not repeatable.")
    ] = False,
    broken: Annotated[
        bool, typer.Option("--broken", help="Also audit a mechanism with half the noise: it must be refuted.")
    ] = False,
    listing: Annotated[bool, typer.Option("--list", help="Print the names and stop.")] = False,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder of what is written.")] = Path("surefoot-audit"),
    picture: Annotated[bool, typer.Option("--picture/--no-picture", help="Whether to draw a picture.")] = True,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only JSON.")] = False,
) -> None:
    """Find out how much privacy every mechanism loses at least, and whether known rows reveal the others.

    Each mechanism is run on two neighboring inputs. The event that tells them apart best gives a lower bound on epsilon
    with a confidence of 99.9 %; a claim below the bound is refuted, and the exit status is then 1 (mechanisms that are
    broken on purpose do not count). A claim that is not refuted is not thereby proved.

    \b
    Examples:
      surefoot audit
      surefoot audit gaussian \\
        --epsilon 3 --delta 1e-3
      surefoot audit all --broken \\
        --trials 1000000
    """
    from surefoot.lab.audit import BROKEN, available
    from surefoot.lab.audit import audit as run

    if listing:
        for name in available(broken=broken):
            typer.echo(name)
        return
    found = run(
        mechanism or ["all"],
        epsilon=epsilon,
        delta=delta,
        trials=trials,
        seed=seed,
        system=system,
        broken=broken,
        out=out,
        picture=picture,
        quiet=quiet,
    )
    if any(finding.verdict == "refuted" and finding.name not in BROKEN for finding in found):
        raise typer.Exit(1)
