"""``surefoot which``."""

from __future__ import annotations

from typing import Annotated

import typer

from surefoot.cli.app import app

__all__: list[str] = []


@app.command(short_help="Find the class that fits a problem.")
def which(
    known: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE", help="What is known already; see --list.")
    ] = None,
    answers: Annotated[
        list[str] | None, typer.Option("--answers", metavar="KEY=VALUE", help="The same, for scripts; repeatable.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Ask nothing; print the answer as JSON.")] = False,
    snippet: Annotated[bool, typer.Option("--snippet", help="Ask nothing; print only the program.")] = False,
    listing: Annotated[bool, typer.Option("--list", help="Print the questions and all answers, and stop.")] = False,
) -> None:
    """Ask what is special about a problem, and say which class to use, why, and how.

    At most five questions; Enter takes the default, and questions that make no difference are not asked. Replies are
    numbers, words, or the beginnings of words. With --json and --snippet nothing is asked: what is not said takes its
    default.

    \b
    Examples:
      surefoot which
      surefoot which special=drift
      surefoot which --json --answers \\
        goal=region special=costs
      surefoot which --snippet \\
        special=epochs,tasks
    """
    from surefoot.cli.which.dialogue import which as run

    run([*(known or []), *(answers or [])], json=json, snippet=snippet, listing=listing)
