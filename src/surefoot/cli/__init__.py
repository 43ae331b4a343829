"""The ``surefoot`` command: one module for the commands of each room, gathered here in the order of the help text."""

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
from surefoot.cli import evidence
# isort: on

__all__ = ["app", "attack", "evidence", "federation", "guide", "main", "private", "selection", "service", "tuning"]
