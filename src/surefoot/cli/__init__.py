"""The ``surefoot`` command: one module for each command, and :mod:`surefoot.cli.commands`, which knows them all."""

from surefoot.cli.commands import app, main

__all__ = ["app", "main"]
