"""``surefoot reproduce``, ``evidence`` and ``bench``: what the laboratory adds to the command.

They are found through the entry-point group ``surefoot.commands``, a command for each name.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

__all__: list[str] = []  # found by their entry points

PATH = click.Path(path_type=Path)


@click.command()
@click.option("--quick", is_flag=True, help="A small grid: a few seconds instead of minutes.")
@click.option("--json", "json_file", type=PATH, metavar="FILE", help="Write all timings here.")
@click.option("--device", metavar="DEVICE", help="Measure array-heavy parts instead: cpu or cuda.")
@click.option("--part", "parts", multiple=True, metavar="NAME", help="Only this part; may be repeated.")
@click.option("--size", metavar="SIZE", help="Of the parts: small or large.")
@click.option("--minutes", type=float, metavar="M", help="Begin no part after so long.")
def bench(
    quick: bool, json_file: Path | None, device: str | None, parts: tuple[str, ...], size: str | None,
    minutes: float | None,
) -> None:  # fmt: skip
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
        if parts or size is not None or minutes is not None:
            raise ValueError("--part, --size and --minutes go with --device cpu or --device cuda")
        from surefoot_lab.bench import bench as asks

        asks(quick=quick, json_file=json_file)
        return
    if quick:
        raise ValueError("--quick is for asks; with --device say --size small")
    from surefoot_lab.bench_device import bench_device

    bench_device(device=device, parts=parts or None, size=size or "small", json_file=json_file, minutes=minutes)


@click.command()
@click.argument("ids", nargs=-1, metavar="[ID]...", help="Experiments, or families of them.")
@click.option("--all", is_flag=True, help="Every experiment whose data are here.")
@click.option("--list", is_flag=True, help="List the experiments.")
@click.option("--full/--quick", help="The published budget, or a small one.")
@click.option("--minutes", type=float, metavar="M", help="Time limit of each experiment.")
@click.option("--workers", type=int, metavar="N", help="Processes; by default one per core.")
@click.option("--resume", is_flag=True, help="Add repetitions to stored results.")
@click.option("--out", type=PATH, default="results", metavar="FOLDER", help="Folder of the results.")
def reproduce(**given: Any) -> None:
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

    run(**given)


@click.command()
@click.argument(
    "results", nargs=-1, type=PATH, metavar="[RESULTS]...", help="Folders of results, or single results.json files."
)
@click.option("--docs", type=PATH, default="docs", metavar="FOLDER", help="The documentation.")
def evidence(results: tuple[Path, ...], docs: Path) -> None:
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

    if run(results, docs=docs):
        raise click.exceptions.Exit(1)
