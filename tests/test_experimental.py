"""The mark on young names: seen by readers, silent at run time."""

from __future__ import annotations

import doctest
import importlib
import warnings
from pathlib import Path

import pytest

import surefoot
from surefoot.experimental import NOTE, experimental, is_experimental, marked

DOCS = Path(__file__).resolve().parents[1] / "docs"
PACKAGES = ["", ".attack", ".federated", ".games", ".private", ".select", ".stopping"]


def names() -> dict[str, object]:
    """Every marked public name, and what it stands for."""
    homes = [importlib.import_module(f"surefoot{package}") for package in PACKAGES]
    return {name: getattr(home, name) for home in homes for name in marked(home)}


def test_the_reader_sees_the_mark_and_keeps_the_examples():
    found = names()
    assert {"RMBOBOS", "RobustBatch"} <= set(found)
    for name, thing in found.items():
        paragraphs = (thing.__doc__ or "").split("\n\n")
        assert paragraphs[1] == NOTE, name
        assert doctest.DocTestParser().get_examples(thing.__doc__), name


@pytest.mark.parametrize("name", marked(surefoot))
def test_its_page_says_so(name):
    young = [
        page.name for page in DOCS.rglob("*.md") if "*Experimental: " in (text := page.read_text()) and name in text
    ]
    assert young, f"no page about {name} says that it is experimental"


def test_a_marked_policy_is_silent_and_remains_registered():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        policy = surefoot.RobustBatch(surefoot.Candidates([0.0, 0.5, 1.0]), tau=1, initial=0, seed=0)
    assert surefoot.Policy.from_state(policy.state()).ask() == policy.ask()


def test_a_mark_stays_with_its_name():
    @experimental
    class Parent:
        """Do something."""

    class Child(Parent):
        """Do something else."""

    assert [is_experimental(Parent), is_experimental(Child)] == [True, False]
    assert [NOTE in Parent.__doc__, NOTE in Child.__doc__] == [True, False]


def test_a_name_without_documentation_is_marked_as_well():
    def silent():
        pass

    assert experimental(silent).__doc__ == NOTE
    assert is_experimental(silent)
