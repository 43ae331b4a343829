"""``surefoot version``."""

from __future__ import annotations

import click

from surefoot import __version__
from surefoot.cli.options import offer

__all__ = ["version"]


def version() -> None:
    """Print the version.

    >>> version()
    surefoot 0...
    """
    click.echo(f"surefoot {__version__}")


command = offer(version, "Print the version.")
