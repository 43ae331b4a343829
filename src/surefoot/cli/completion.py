"""``surefoot completion``: what a shell needs to complete commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from surefoot.cli.commands import app
from surefoot.cli.options import offer

__all__ = ["completion"]

SHELLS = ("bash", "zsh", "fish")


@click.argument("shell", type=click.Choice(SHELLS), help="Yours.")
def completion(shell: str) -> None:
    """Print the script for a shell.

    >>> completion("fish")
    function _surefoot_completion...
    """
    found = get_completion_class(shell)
    if found is None:
        raise ValueError(f"the shell is one of {', '.join(SHELLS)}, not {shell!r}")
    click.echo(found(app, {}, "surefoot", "_SUREFOOT_COMPLETE").source())


command = offer(
    completion,
    """Print the script that makes a shell complete commands and options.

    \b
    Examples:
      surefoot completion bash \\
        >> ~/.bashrc
      surefoot completion zsh \\
        >> ~/.zshrc
      surefoot completion fish > \\
        ~/.config/fish/completions/surefoot.fish
    """,
)
