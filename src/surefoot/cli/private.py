"""``surefoot audit`` and ``surefoot curate``."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from surefoot.cli.app import Direction, app

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
    from surefoot.cli.audit import BROKEN, available
    from surefoot.cli.audit import audit as run

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


@app.command(short_help="Let a service optimize over private data.")
def curate(
    data: Annotated[Path, typer.Argument(metavar="DATA.csv", help="The private table, with a header.")],
    objective: Annotated[
        str,
        typer.Option(
            metavar="FUNCTION",
            help="Measures one row, a dict by column; MODULE:NAME, or FILE.py:NAME.",
        ),
    ],
    server: Annotated[str, typer.Option(metavar="URL", help="The service.")],
    epsilon: Annotated[float, typer.Option(metavar="E", help="Privacy of the release.")],
    delta: Annotated[float, typer.Option(metavar="D", help="And its δ.")],
    token: Annotated[
        str, typer.Option(metavar="TEXT", envvar="SUREFOOT_TOKEN", help="A token of the service; best as variable.")
    ],
    bounds: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LIMITS",
            help="Public limits, COLUMN=LOW:HIGH or a TOML file; repeatable. Columns without limits stay here.",
        ),
    ] = None,
    radius: Annotated[float, typer.Option(metavar="R", help="What limits are scaled to.")] = 25.0,
    neighbor: Annotated[
        float, typer.Option(metavar="R", help="Protected change of a row, after scaling; inf: any change.")
    ] = 1.0,
    asks: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="How many rows to measure at most; by default 30, or all if fewer."),
    ] = None,
    direction: Annotated[Direction, typer.Option(metavar="WAY", help="maximize or minimize.")] = Direction.maximize,
    policy: Annotated[str, typer.Option(metavar="NAME", help="Which policy the service runs.")] = "GPUCB",
    values: Annotated[
        tuple[float, float] | None,
        typer.Option(metavar="LOW HIGH", help="Public limits of measured values, to put noise on them."),
    ] = None,
    values_epsilon: Annotated[
        float | None, typer.Option(metavar="E", help="Privacy of measured values; without it they are in the clear.")
    ] = None,
    budget: Annotated[
        float | None, typer.Option(metavar="E", help="Limit of the ledger over all releases of this table.")
    ] = None,
    ledger: Annotated[
        Path | None, typer.Option(metavar="FILE", help="What was charged; by default beside the table.")
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The run, to go on with; by default beside the table."),
    ] = None,
    ca: Annotated[Path | None, typer.Option(metavar="FILE", help="Certificates to trust.")] = None,
    name: Annotated[str | None, typer.Option(metavar="TEXT", help="What the service calls the run.")] = None,
    no_preflight: Annotated[
        bool, typer.Option("--no-preflight", help="Do not print what the release would be good for.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Stop after that; nothing is released.")] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Release even where limits clip more than 5 % of a column.")
    ] = False,
    stop_on_error: Annotated[
        bool, typer.Option("--stop-on-error", help="Stop when the objective raises, instead of answering: failed.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only the outcome, as JSON.")] = False,
) -> None:
    """Find the best row of a private table with an optimizer that runs elsewhere.

    Columns with public limits are released once, with noise that gives (epsilon, delta)-differential privacy; the
    service asks for rows by number, and the objective measures them here. No row, no name of a column, a file or a
    function leaves this machine. Measured values do, in the clear unless --values-epsilon is given. The same command
    again goes on where it was stopped.

    Where limits would clip more than 5 % of a column, which is mostly a mistyped limit, it stops before anything is
    charged, unless --yes is given. That share is for you alone: like all that is printed here it depends on the data,
    and no guarantee covers it or what you do because of it.

    \b
    Examples:
      surefoot curate patients.csv \\
        --objective tests.py:measure \\
        --server https://bo.example \\
        --epsilon 3 --delta 1e-5 \\
        --bounds age=18:90 \\
        --bounds bmi=15:45
      surefoot curate loans.csv \\
        --objective desk:roi \\
        --server https://bo.example \\
        --epsilon 2 --delta 1e-6 \\
        --bounds limits.toml --dry-run
    """
    from surefoot.errors import MissingExtra

    try:
        from surefoot.cli.curate import curate as run
    except ImportError as error:
        if (error.name or "surefoot").partition(".")[0] == "surefoot":  # no extra would help
            raise
        raise MissingExtra(f"this command needs {error.name}: pip install 'surefoot[serve,private]'") from None
    try:
        run(
            data,
            objective=objective,
            server=server,
            token=token,
            epsilon=epsilon,
            delta=delta,
            bounds=bounds or [],
            radius=radius,
            neighbor=neighbor,
            asks=asks,
            direction=direction.value,
            policy=policy,
            values=values,
            values_epsilon=values_epsilon,
            budget=budget,
            ledger=ledger,
            state=state,
            ca=ca,
            name=name,
            look=not no_preflight,
            dry_run=dry_run,
            yes=yes,
            stop_on_error=stop_on_error,
            quiet=quiet,
        )
    except KeyboardInterrupt:
        typer.echo(f"interrupted; go on with\n{_again(sys.argv[1:])}", err=True)
        raise typer.Exit(130) from None


def _again(words: list[str]) -> str:
    """The same command, the token not shown."""
    shown = list(words)
    for i, word in enumerate(words):
        if word.startswith("--token="):
            shown[i] = "--token=..."
        elif i and words[i - 1] == "--token":
            shown[i] = "..."
    return shlex.join(["surefoot", *shown])
