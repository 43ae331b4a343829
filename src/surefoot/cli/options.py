"""How a function becomes a command, and the options that mean the same in several of them."""

from __future__ import annotations

import inspect
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

__all__ = ["again", "offer"]

PATH = click.Path(path_type=Path)
DIRECTION = click.Choice(["maximize", "minimize"])

direction = click.option("--direction", type=DIRECTION, metavar="WAY", help="maximize or minimize.")
seed = click.option("--seed", type=click.IntRange(0), metavar="N", help="Seed of all random draws.")
out = click.option("--out", type=PATH, metavar="FOLDER", help="Folder of what is written.")
picture = click.option("--picture/--no-picture", help="Whether to draw a picture.")
quiet = click.option("--quiet", "-q", is_flag=True, help="Print only JSON.")


class _Command(click.Command):
    """A command whose result may be an exit status, and that may say something when it is interrupted."""

    status: Callable[[Any], int] | None = None
    interrupted: Callable[[Mapping[str, Any]], str] | None = None

    def invoke(self, ctx: click.Context) -> Any:
        try:
            result = super().invoke(ctx)
        except KeyboardInterrupt:
            if self.interrupted is not None:
                click.echo(self.interrupted(ctx.params), err=True)
            raise
        if self.status is not None:
            ctx.exit(self.status(result))
        return result


def offer(
    function: Callable[..., Any],
    help: str,
    *,
    name: str | None = None,
    status: Callable[[Any], int] | None = None,
    interrupted: Callable[[Mapping[str, Any]], str] | None = None,
) -> click.Command:
    """Return the command that calls a function with the options that are declared on it.

    The defaults stand in the function's signature and nowhere else; an option without one is required.

    Parameters
    ----------
    function
        Decorated by :func:`click.option` and :func:`click.argument`.
    help
        The text of the command, with examples.
    name
        By default that of the function.
    status
        From the function's result to the exit status; by default that is 0.
    interrupted
        From the options to what is said when Ctrl-C was pressed.

    >>> @click.option("--times", type=int)
    ... def twice(times=2): ...
    >>> offer(twice, "Do it twice.").params[0].default
    2
    """
    made = click.command(name or function.__name__, cls=_Command, help=help)(function)
    made.status, made.interrupted = status, interrupted
    defaults = inspect.signature(function).parameters
    for option in made.params:
        if option.name in defaults:
            default = defaults[option.name].default
            option.required = default is inspect.Parameter.empty
            if not option.required and default is not None:
                option.default = default
    return made


def again(*more: str) -> str:
    """Return the command line that was given, with more words; a token is not shown.

    >>> sys.argv = ["surefoot", "curate", "my data.csv", "--token", "sf_..."]
    >>> again("--yes")
    "surefoot curate 'my data.csv' --token ... --yes"
    """
    shown = ["surefoot", *sys.argv[1:], *more]
    for i, word in enumerate(shown):
        if word.startswith("--token="):
            shown[i] = "--token=..."
        elif shown[i - 1] == "--token":
            shown[i] = "..."
    return shlex.join(shown)
