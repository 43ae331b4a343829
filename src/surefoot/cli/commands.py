"""The ``surefoot`` command: which commands there are, where they come from, and how they fail.

A command is imported when it is called, so that ``surefoot --help`` answers at once. Another package adds one through
the entry-point group ``surefoot.commands``: its name, and where a :class:`click.Command` is found.

Errors a user can do something about (a wrong value, missing data, a missing extra) are one line on standard error and
exit status 2; anything else is a bug and shows its traceback, as does every error with ``surefoot --debug``. An
interrupted command exits with status 130.
"""

from __future__ import annotations

import io
import shutil
import sys
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import click
from click.shell_completion import CompletionItem

from surefoot import __version__
from surefoot.errors import MissingExtra, SurefootError

__all__ = ["Commands", "main"]

COMMANDS = {
    "which": "Find the class that fits a problem.",
    "suggest": "Suggest the next points from a table.",
    "space": "Write a first space for a table.",
    "tune": "Find good parameters of a Python function.",
    "ask": "Ask a study for the next points.",
    "tell": "Tell a study what was measured.",
    "show": "Look at a journal.",
    "select": "Choose rows that serve although some are lost.",
    "attack": "Test how robust a classifier is.",
    "federate": "Simulate or plan a private federation.",
    "serve": "Serve studies over HTTP.",
    "worker": "Run trials of a study of the service.",
    "token": "Make, list, renew and revoke tokens of the service.",
    "audit": "Attack the privacy of every mechanism.",
    "curate": "Let a service optimize over private data.",
    "demo": "Tune a real model and write a page.",
    "completion": "Print what makes a shell complete commands.",
    "version": "Print the version.",
}
"""The commands, each ``command`` of a module of this package, in the order of the help."""

LABORATORY = {
    "reproduce": "Run experiments and judge their claims.",
    "evidence": "Keep records of results in the documentation.",
    "bench": "Measure how long an ask takes.",
}
"""The commands of surefoot-lab."""


class Commands(click.Group):
    """All commands, none of which is imported before it is called.

    >>> context = click.Context(app)
    >>> app.list_commands(context)[:2], app.get_command(context, "tune").name, app.get_command(context, "tuna")
    (['which', 'suggest'], 'tune', None)
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, in the order of the help."""
        return [name for lines in _sections().values() for name in lines]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import a command; one that cannot be says why when it is called."""
        if name in COMMANDS:
            found: click.Command = import_module(f"surefoot.cli.{name}").command
            return found
        if name in _others():
            return _loaded(_others()[name])
        return _refusing(name, _absent(name)) if name in LABORATORY else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what the commands are for, from tables alone."""
        for title, lines in _sections().items():
            if lines:
                with formatter.section(title):
                    formatter.write_dl(list(lines.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete a command or an option."""
        lines = {name: text for lines in _sections().values() for name, text in lines.items()}
        commands = [CompletionItem(name, help=text) for name, text in lines.items() if name.startswith(incomplete)]
        return commands + click.Command.shell_complete(self, ctx, incomplete)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; Ctrl-C is status 130."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise click.exceptions.Exit(130) from None


@cache
def _others() -> dict[str, EntryPoint]:
    """What other packages add; no name of ours can be taken."""
    points = sorted(entry_points(group="surefoot.commands"), key=lambda point: point.name)
    return {point.name: point for point in points if point.name not in COMMANDS}


def _sections() -> dict[str, dict[str, str]]:
    """The commands that are here and what they are for, by the headings of the help."""
    rest = {name: f"From {_package(point)}." for name, point in _others().items() if name not in LABORATORY}
    laboratory = {name: text for name, text in LABORATORY.items() if name in _others()}
    return {"Commands": COMMANDS, "Commands of the laboratory": laboratory, "Commands of other packages": rest}


def _package(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else point.module


def _absent(name: str) -> Exception:
    return MissingExtra(f"'surefoot {name}' is a command of the laboratory: pip install surefoot-lab")


def _loaded(point: EntryPoint) -> click.Command:
    """What a package offers, or a command that says which package it is and why it offers none."""
    try:
        found = point.load()
        if not isinstance(found, click.Command):
            raise TypeError(f"{found!r} is no click.Command")
        return found
    except Exception as error:
        home = point.module.partition(".")[0]
        if point.name in LABORATORY and isinstance(error, ImportError) and str(error.name).partition(".")[0] == home:
            return _refusing(point.name, _absent(point.name))
        said = f"'surefoot {point.name}' comes from {_package(point)}, where {point.value} cannot be loaded"
        refusal = SurefootError(f"{said}: {type(error).__name__}: {error}")
        refusal.__cause__ = error
        return _refusing(point.name, refusal)


def _refusing(name: str, error: Exception) -> click.Command:
    """A command that takes any words and raises an error."""

    def refuse() -> None:
        raise error

    anything = {"allow_extra_args": True, "ignore_unknown_options": True}
    return click.Command(name, callback=refuse, context_settings=anything, add_help_option=False, hidden=True)


@click.group(
    "surefoot",
    cls=Commands,
    epilog="surefoot COMMAND --help explains a command, with examples.",
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
)
@click.option("--debug", is_flag=True, help="Show the traceback of every error.")
@click.version_option(__version__, prog_name="surefoot", message="%(prog)s %(version)s", help="Print the version.")
def app(debug: bool) -> None:
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
    for stream in (sys.stdout, sys.stderr):  # a terminal that cannot show a character shows a question mark
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        app(terminal_width=max(min(shutil.get_terminal_size().columns, 100) - 2, 20))  # of the help texts
    except (SurefootError, ValueError, TypeError, OSError) as error:
        if "--debug" in sys.argv[1:]:
            raise
        click.echo(f"surefoot: {' '.join(str(error).split()) or type(error).__name__}", err=True)
        raise SystemExit(2) from None
