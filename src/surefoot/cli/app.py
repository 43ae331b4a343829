"""The ``surefoot`` command.

Errors a user can do something about (a wrong value, missing data, a missing extra) are one line on standard error and
exit status 2; anything else is a bug and shows its traceback, as does every error with ``surefoot --debug``. An
interrupted command exits with status 130. Modules are imported by the command that needs them, so that
``surefoot --help`` answers at once.
"""

from __future__ import annotations

import io
import shutil
import sys
from enum import StrEnum
from typing import Annotated

import typer

from surefoot import __version__

__all__ = ["app", "main"]

app = typer.Typer(
    name="surefoot",
    help="Bayesian optimization on rough ground: where to measure next.",
    epilog="surefoot COMMAND --help explains a command, with examples.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # panels cut the texts short on a narrow terminal; plain help wraps them
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Direction(StrEnum):
    """Which way is better."""

    maximize = "maximize"
    minimize = "minimize"


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"surefoot {__version__}")
        raise typer.Exit


@app.callback()
def _surefoot(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of every error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Bayesian optimization on rough ground: where to measure next."""


def main() -> None:
    """Run the command line; the entry point of the ``surefoot`` script.

    >>> import sys
    >>> sys.argv = ["surefoot", "version"]
    >>> try:
    ...     main()
    ... except SystemExit as end:
    ...     print("status", end.code)
    surefoot 0...
    status 0
    """
    from surefoot.errors import SurefootError

    for stream in (sys.stdout, sys.stderr):  # a terminal that cannot show a character shows a question mark
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        app(terminal_width=max(min(shutil.get_terminal_size().columns, 100) - 2, 20))  # of the help texts
    except (SurefootError, ValueError, TypeError, OSError) as error:
        if "--debug" in sys.argv[1:]:
            raise
        typer.echo(f"surefoot: {' '.join(str(error).split()) or type(error).__name__}", err=True)
        raise SystemExit(2) from None
