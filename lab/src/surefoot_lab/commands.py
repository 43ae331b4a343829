"""``surefoot reproduce``, ``evidence`` and ``bench``: what the laboratory adds to the command.

They are found through the entry-point group ``surefoot.commands``, a function for each name.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__: list[str] = []  # found by their entry points


def bench(
    quick: Annotated[bool, typer.Option("--quick", help="A small grid: a few seconds instead of minutes.")] = False,
    json: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write all timings here.")] = None,
    device: Annotated[
        str | None, typer.Option(metavar="DEVICE", help="Measure array-heavy parts instead: cpu or cuda.")
    ] = None,
    part: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Only this part; may be repeated.")] = None,
    size: Annotated[str | None, typer.Option(metavar="SIZE", help="Of the parts: small or large.")] = None,
    minutes: Annotated[float | None, typer.Option(metavar="M", help="Begin no part after so long.")] = None,
) -> None:
    """Measure how long an ask takes, and how much memory, from 20 to 1000 measurements in 2 to 20 dimensions.

    With --device: how long the array-heavy parts take on NumPy, on torch and on the device, beside what the machine
    could do, and how far their answers are apart. The parts are grid, truvar, facility, macro, draws and federated.

    \b
    Examples:
      surefoot bench --quick
      OMP_NUM_THREADS=1 surefoot bench \\
        --json bench.json
      surefoot bench --device cpu
      surefoot bench --device cuda \\
        --size large --json gpu.json
    """
    if device is None:
        if part or size is not None or minutes is not None:
            raise ValueError("--part, --size and --minutes go with --device cpu or --device cuda")
        from surefoot_lab.bench import bench as asks

        asks(quick=quick, json_file=json)
        return
    if quick:
        raise ValueError("--quick is for asks; with --device say --size small")
    from surefoot_lab.bench_device import bench_device as parts

    parts(device=device, parts=part, size=size or "small", json_file=json, minutes=minutes)


def reproduce(
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID", help="Experiments, or families of them.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Every experiment whose data are here.")] = False,
    listing: Annotated[bool, typer.Option("--list", help="List the experiments.")] = False,
    full: Annotated[bool, typer.Option("--full/--quick", help="The published budget, or a small one.")] = False,
    minutes: Annotated[float | None, typer.Option(metavar="M", help="Time limit of each experiment.")] = None,
    workers: Annotated[int | None, typer.Option(metavar="N", help="Processes; by default one per core.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Add repetitions to stored results.")] = False,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder of the results.")] = Path("results"),
) -> None:
    """Run experiments and judge the claims made about them; without ids, list them.

    Writes results.json, a table and pictures per experiment. The exit status is 0 when the run completed, whatever the
    verdicts.

    \b
    Examples:
      surefoot reproduce --list
      surefoot reproduce gp-ucb
      surefoot reproduce \\
        gp-ucb/regret-bound --full
    """
    from surefoot_lab.command import reproduce as run

    run(
        ids or [],
        all=every,
        list=listing,
        full=full,
        minutes=minutes,
        workers=workers,
        resume=resume,
        out=out,
    )


def evidence(
    results: Annotated[
        list[Path] | None, typer.Argument(metavar="RESULTS", help="Folders of results, or single results.json files.")
    ] = None,
    docs: Annotated[Path, typer.Option(metavar="FOLDER", help="The documentation.")] = Path("docs"),
) -> None:
    """Keep small records of results in the documentation, and write its evidence page from all of them.

    Of several runs of an experiment the one with the most repetitions is kept; a results.json named by itself is kept
    in any case. Without RESULTS only the page is written. The exit status is 1 when something must be mended by hand: a
    claim that fails without an explanation, an experiment that is neither recorded nor listed as not run.

    \b
    Examples:
      surefoot evidence
      surefoot evidence results
    """
    from surefoot_lab.evidence import evidence as run

    if run(results or [], docs=docs):
        raise typer.Exit(1)
