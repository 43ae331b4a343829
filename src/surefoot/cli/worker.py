"""``surefoot worker``: run trials of a study at the service, on any machine."""

from __future__ import annotations

import os
import signal
import socket
import threading
from pathlib import Path
from types import FrameType

import click

from surefoot.cli.options import PATH
from surefoot.cli.target import find
from surefoot.loop.types import Outcome, Query
from surefoot.serve.client import Client
from surefoot.serve.remote_worker import work

__all__: list[str] = []


@click.command("worker")
@click.argument("url", metavar="URL")
@click.argument("study", metavar="STUDY")
@click.argument("target", metavar="MODULE:FUNCTION")
@click.option(
    "--token",
    required=True,
    envvar="SUREFOOT_TOKEN",
    show_envvar=True,
    metavar="TOKEN",
    help="A token of the service; best as variable.",
)
@click.option("--ca", type=PATH, metavar="FILE", help="Certificates to trust, where the system does not.")
@click.option("--trials", type=click.IntRange(1), metavar="N", help="Trials of this worker.")
@click.option("--most", type=click.IntRange(1), metavar="N", help="Trials of the study, all workers together.")
@click.option(
    "--lease",
    type=click.FloatRange(0.1),
    default=60.0,
    metavar="SECONDS",
    help="When this machine is lost, its point goes back after so long.",
)
@click.option(
    "--grace",
    type=click.FloatRange(0.0),
    metavar="SECONDS",
    help="Time for the trial under way when told to stop; by default as long as it takes.",
)
@click.option("--name", metavar="TEXT", help="Who this is, for people; by default the machine and the process.")
def command(
    url: str,
    study: str,
    target: str,
    token: str,
    ca: Path | None,
    trials: int | None,
    most: int | None,
    lease: float,
    grace: float | None,
    name: str | None,
) -> None:
    """Run trials of a study that lives at the service: ask, measure, tell, until it has enough.

    Each point is leased: a heartbeat renews it while the function runs, and when this machine is lost the point goes
    back by itself. With SIGTERM or Ctrl-C the worker finishes the trial it has and stops; a second one, or the end of
    --grace, gives the trial up. A function that raises is a failed trial; after three in a row the worker stops.

    \b
    Examples:
      surefoot worker \\
        http://127.0.0.1:8000 018f3c2a \\
        model.py:train --most 200 \\
        --token sf_...
      surefoot worker \\
        https://surefoot.example \\
        018f3c2a bench:measure \\
        --lease 600 --token sf_...
    """
    objective, stop = find(target), threading.Event()
    if not callable(objective):
        raise ValueError(f"{target} is not a function: {objective!r}")

    def told(query: Query, outcome: Outcome) -> None:
        where = query.x.tolist() if query.params is None else query.params
        click.echo(f"{query.id}\t{'failed' if outcome.failed else outcome.value}\t{where}")

    def end(_number: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        click.echo("stopping after this trial", err=True)
        if grace is not None:
            timer = threading.Timer(grace, lambda: os.kill(os.getpid(), signal.SIGTERM))
            timer.daemon = True
            timer.start()

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        with Client(url, token=token, verify=True if ca is None else str(ca), retries=60) as client:
            who = name or f"{socket.gethostname()} {os.getpid()}"
            found = client.study(study)
            done = work(found, objective, lease=lease, name=who, trials=trials, most=most, stop=stop, told=told)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    click.echo(f"{done.trials} trials, {done.failed} failed: {done.why}", err=True)
