"""The dialogue of ``surefoot which``: asks what makes a difference, and prints the answer.

On a terminal a reply that is not understood, or that contradicts the others, is asked for again. From a pipe it is an
error, and when the pipe is at its end the remaining questions take their defaults.
"""

from __future__ import annotations

import json as json_format
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

import click
from rich.console import Console
from rich.text import Text

from surefoot.cli.options import offer
from surefoot.cli.which.advice import Suggestion, advise, checked, default, read_answers
from surefoot.cli.which.table import ENTRIES, QUESTIONS, Question

__all__ = ["which"]


@click.argument("words", nargs=-1, metavar="[KEY=VALUE]...", help="What is known already; see --list.")
@click.option("--answers", multiple=True, metavar="KEY=VALUE", help="The same, for scripts; repeatable.")
@click.option("--json", is_flag=True, help="Ask nothing; print the answer as JSON.")
@click.option("--snippet", is_flag=True, help="Ask nothing; print only the program.")
@click.option("--list", "listing", is_flag=True, help="Print the questions and all answers, and stop.")
def which(
    words: Sequence[str] = (),
    *,
    answers: Sequence[str] = (),
    json: bool = False,
    snippet: bool = False,
    listing: bool = False,
    console: Console | None = None,
    stdin: TextIO | None = None,
) -> Suggestion | None:
    """Ask what is special about a problem and say which class to use; its arguments are the options.

    >>> import io
    >>> screen = Console(file=io.StringIO(), width=80)
    >>> which(["goal=best"], console=screen, stdin=io.StringIO("drift\\n1\\n\\n")).use
    'surefoot.TVGPUCB'
    """
    screen = console or Console(highlight=False)
    given = read_answers([*words, *answers])
    if listing:
        _listing(screen)
        return None
    if json or snippet:
        answer = advise(given)
        text = json_format.dumps(answer.to_dict(), indent=2, ensure_ascii=False) + "\n" if json else answer.snippet
        screen.out(text, end="", highlight=False)
        return answer
    source = stdin or sys.stdin
    answer = advise(given, reply=lambda question, answers: _ask(question, answers, screen, source))
    _show(answer, screen)
    return answer


def _ask(question: Question, answers: Mapping[str, str], screen: Console, source: TextIO | None) -> str:
    usual = default(question, answers)
    _say("", question.text, screen, style="bold")
    _choices(question.choices, screen, numbered=True)
    prompt = f"[{list(question.choices).index(usual) + 1}] > "
    interactive = source is not None and source.isatty()
    while True:
        reply = _line(prompt, screen, source, interactive)
        try:
            value = checked(question, reply, answers) if reply else usual
        except ValueError as error:
            if not interactive:
                raise
            _say("", f"{str(error)[0].upper()}{str(error)[1:]}.", screen, style="yellow")
            continue
        screen.print()
        return value


def _line(prompt: str, screen: Console, source: TextIO | None, interactive: bool) -> str:
    """One reply; nothing at the end of the input."""
    if interactive and source is sys.stdin:
        try:
            return input(prompt).strip()  # with the editing keys of the terminal
        except EOFError:
            screen.print()
            return ""
    reply = source.readline().strip() if source is not None else ""
    screen.out(f"{prompt}{reply}", highlight=False)  # nobody has typed it here
    return reply


def _choices(choices: Mapping[str, str], screen: Console, *, numbered: bool = False) -> None:
    width = max(map(len, choices))
    for number, (word, meaning) in enumerate(choices.items(), start=1):
        _say(f"{number:2} " * numbered + f"{word:{width}}  ", meaning, screen)


def _say(head: str, text: str, screen: Console, style: str = "") -> None:
    """Print a text beside its head, folded to the width of the screen."""
    lines = textwrap.wrap(
        text,
        max(screen.width, 30),
        initial_indent=f"  {head}" if head else "",
        subsequent_indent=" " * min(len(head) + 2, screen.width // 2) if head else "",
        break_long_words=False,
        break_on_hyphens=False,
    )
    for line in lines:
        screen.print(Text(line, style=style), soft_wrap=True)


def _listing(screen: Console) -> None:
    """All questions and answers, for those who write scripts."""
    for question in QUESTIONS:
        screen.print(Text(f"{question.key}=", style="bold") + Text(question.text, style="not bold"))
        # What matters depends on the answers before it, and may be the name of a class.
        _choices(question.choices or {entry.word: entry.name for entry in ENTRIES}, screen)


def _show(answer: Suggestion, screen: Console) -> None:
    screen.print(Text("Use ") + Text(answer.use, style="bold green"), soft_wrap=True)
    _say("", answer.why, screen)
    screen.print()
    rows = [("It needs", "; ".join(answer.needs))]
    if answer.abilities is not None:
        rows.append(("It can do", _declared(answer.abilities)))
    rows += [("Install", answer.install), ("Read", answer.page)]
    _choices(dict(rows), screen)
    screen.print()
    screen.out(answer.snippet, highlight=False)
    if answer.alternatives:
        screen.print(Text("Or else", style="bold"))
        for other in answer.alternatives:
            _say("- ", f"{other['use']}: {other['when']}", screen)
        screen.print()
    words = " ".join(f"{key}={value}" for key, value in answer.answers.items())
    _say("", f"The same without questions: surefoot which {words}", screen, style="dim")


def _declared(can: Mapping[str, Any]) -> str:
    """What the class declares, as a sentence."""
    parts = [", ".join(can["domains"]), "several points under way" if can["parallel"] else "one point at a time"]
    parts += [f"asked with the {name}" for name in can["context"]]
    parts += ["runs followed step by step"] * bool(can["steps"]) + ["a choice of precision"] * bool(can["fidelities"])
    return "; ".join(parts)


command = offer(
    which,
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
    """,
)
