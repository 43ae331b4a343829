"""The ``surefoot`` command: one module for the commands of each room, gathered here in the order of the help text.

Other packages add commands through the entry-point group ``surefoot.commands``: a name, and a function whose parameters
are declared as Typer reads them. The laboratory does.
"""

import contextlib
from importlib.metadata import entry_points

# isort: off
# The order of the help text.
from surefoot.cli.app import app, main
from surefoot.cli import guide
from surefoot.cli import tuning
from surefoot.cli import selection
from surefoot.cli import attack
from surefoot.cli import federation
from surefoot.cli import service
from surefoot.cli import private
from surefoot.cli import examples
# isort: on

__all__ = ["app", "attack", "examples", "federation", "guide", "main", "private", "selection", "service", "tuning"]

LABORATORY = {"reproduce", "evidence", "bench"}

for _point in sorted(entry_points(group="surefoot.commands"), key=lambda point: point.name):
    with contextlib.suppress(ImportError):  # what another package lacks is no trouble for the other commands
        app.command(_point.name)(_point.load())
        LABORATORY.discard(_point.name)


def _missing(name: str) -> None:
    from surefoot.errors import MissingExtra

    def command() -> None:
        raise MissingExtra(f"'surefoot {name}' is a command of the laboratory: pip install surefoot-lab")

    arguments = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
    app.command(name, hidden=True, context_settings=arguments)(command)


for _name in sorted(LABORATORY):
    _missing(_name)
