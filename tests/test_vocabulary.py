"""One word for one thing, and plain sentences: what users read, searched for phrases that made them stop."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import click
import pytest

from surefoot.cli.commands import COMMANDS, Commands, app

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in PAGES if "evidence" not in page.parts and page.name not in ("errata.md", "evidence.md")]

ODD = {  # a phrase, and what the field says
    r"know of each other\b(?!:)": "chosen together",
    r"habits of the house": "how to contribute",
    r"\bdear measurements": "expensive measurements",
    r"the like of them": "similar points",
    r"at home or behind": "in Python or through the service",
    r"\bTruVaR is welcome": "TruVaR works",
    r"[Nn]ames all random draws": "the seed of all random draws",
    r"the same seed asks the same": "the same seed gives the same points",
    r"[Ww]hat is believed about the objective": "the surrogate",
    r"\bup is rate\b": "rate grows upwards",
}
TRIALS = {  # in what the command prints and says of options, a trial is a trial
    r"\b[Bb]est runs\b": "best trials",
    r"\b\d+ runs: \d": "trials",
    r"\bno run has given\b": "no trial has given",
    r"\brun that failed\b": "a failed trial",
}


def found(text: str, phrases: dict[str, str]) -> list[str]:
    flat = " ".join(text.split())
    return [f"{match.group()!r}: say {better!r}" for odd, better in phrases.items() for match in re.finditer(odd, flat)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_pages(page):
    assert not found(page.read_text(encoding="utf-8"), ODD)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_texts(name):
    def texts(command: click.Command) -> list[str]:
        said = [command.help or "", *(getattr(option, "help", None) or "" for option in command.params)]
        return said + [text for inner in getattr(command, "commands", {}).values() for text in texts(inner)]

    command = Commands().get_command(click.Context(app), name)
    assert command is not None
    assert not found(" ".join(texts(command)), ODD | (TRIALS if name in ("tune", "show", "suggest", "ask") else {}))


def strings(path: Path) -> list[str]:
    """What a module may print: its strings, f-strings joined, docstrings left out."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    pieces = []
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            pieces.append("".join(p.value if isinstance(p, ast.Constant) else "1" for p in node.values))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            pieces.append(node.value)
    return pieces


def test_messages():
    said = [
        f"{path.relative_to(ROOT)}: {wrong}"
        for path in sorted((ROOT / "src").rglob("*.py"))
        for text in strings(path)
        for wrong in found(text, ODD | (TRIALS if path.parent.name == "cli" and path.stem != "demo" else {}))
    ]
    assert not said


def test_docstrings_of_options_say_seed():
    """The reference pages are made of docstrings."""
    wrong = [
        f"{path.relative_to(ROOT)}: {odd}"
        for path in sorted((ROOT / "src").rglob("*.py"))
        for odd in found(path.read_text(encoding="utf-8"), {key: ODD[key] for key in list(ODD)[1:8]})
    ]
    assert not wrong


def test_the_phrases_are_found_where_they_stand():
    assert found("three points that know\nof each other", ODD)
    assert found("Best runs", TRIALS)
