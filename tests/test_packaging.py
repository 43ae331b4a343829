"""What is published says the same everywhere; `make test-packaging` builds and installs it."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import surefoot
import surefoot_lab

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PROJECT["project"]["optional-dependencies"]
DEVELOPMENT = {"dev", "bench"}  # what `make test` and `make bench` install and use


@pytest.fixture(scope="module")
def check():
    """The script that checks the packages."""
    spec = importlib.util.spec_from_file_location("check_packages", ROOT / "release" / "check.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look for the module they are made in
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def test_one_version_everywhere():
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## \[(.*?)\] - (.*)$", changes, re.MULTILINE)
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev0)?", surefoot.__version__)
    # Between releases the version is that of the next one, and what is cited is the last.
    assert (
        ("## [Unreleased]" in changes) == surefoot.__version__.endswith(".dev0") == (newest[1] != surefoot.__version__)
    )
    assert f"\nversion: {newest.group(1)}\n" in citation
    assert f"\ndate-released: {newest.group(2)}\n" in citation


def test_the_laboratory_belongs_to_its_release():
    laboratory = tomllib.loads((ROOT / "lab" / "pyproject.toml").read_text(encoding="utf-8"))
    assert surefoot_lab.__version__ == surefoot.__version__
    assert [each for each in laboratory["project"]["dependencies"] if each.endswith(f"=={surefoot.__version__}")]


def test_cited_papers_are_in_the_bibliography():
    """Title for title, so that one list of facts cannot drift from the other."""
    shelf = " ".join((ROOT / "docs" / "bibliography.md").read_text(encoding="utf-8").split()).lower()
    titles = re.findall(r'^    title: "(.*)"$', (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(titles) == 15
    assert not [title for title in titles if f"*{title.lower()}.*" not in shelf]


def test_every_extra_is_installed_and_used_by_the_check(check):
    assert set(check.CHECKS) == ({"core"} | set(EXTRAS)) - DEVELOPMENT
    for name, what in check.CHECKS.items():
        assert name == "core" or name in what.extras
        assert what.examples or what.code or what.commands, name
        for module in what.examples:
            path = ROOT.joinpath("src", *module.split("."))
            assert path.with_suffix(".py").is_file() or (path / "__init__.py").is_file(), module


def test_files_that_the_wheel_needs_are_there(check):
    assert not [name for name in check.NEEDED if not (ROOT / "src" / name).is_file()]


def test_constraints_allow_what_the_extras_ask_for():
    """A version that is pinned lies within the range that an extra names."""
    packaging = pytest.importorskip("packaging.requirements")
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    pinned = dict(re.findall(r"^([\w-]+)==(\S+)$", text, re.MULTILINE))
    wanted = [*PROJECT["project"]["dependencies"], *(each for extra in EXTRAS.values() for each in extra)]
    asked = [packaging.Requirement(each) for each in wanted]
    checked = [requirement for requirement in asked if requirement.name in pinned]
    assert len(checked) > 20
    assert not [str(it) for it in checked if not it.specifier.contains(pinned[it.name])]


def test_the_wheel_is_tried_on_every_python_of_the_machine(check):
    found = check.interpreters()
    mine = "python{}.{}".format(*sys.version_info)
    assert found[mine] == sys.executable
    assert f">=3.{check.OLDEST}" == PROJECT["project"]["requires-python"]
    assert all(int(name.removeprefix("python3.")) >= check.OLDEST for name in found)
    listed = {text.rsplit(" ", 1)[1] for text in PROJECT["project"]["classifiers"] if "Python :: 3." in text}
    assert f"3.{check.OLDEST}" == min(listed, key=lambda version: int(version[2:]))


def test_an_unknown_extra_is_refused_in_one_line():
    command = [sys.executable, str(ROOT / "release" / "check.py"), "nonsense"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "no such extra: nonsense" in done.stderr


def test_help_lists_every_target():
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.search(r"^\.PHONY: ((?:.*\\\n)*.*)$", text, re.MULTILINE).group(1).replace("\\\n", " ").split()
    documented = re.findall(r"^([a-z-]+):.*## ", text, re.MULTILINE)
    assert sorted(targets) == sorted(documented)
