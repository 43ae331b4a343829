"""The wheel alone, in an environment without any extra: everything works there, or says in one line what to install."""

# Finding 17 of the review of 0.1.0

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

EVERY_NAME = """
import importlib, pathlib, sys
import surefoot
from surefoot import *
assert pathlib.Path(surefoot.__file__).is_relative_to(sys.prefix), surefoot.__file__
for name in surefoot.__all__:
    assert name in globals(), name
missing = {}
for file in sorted(pathlib.Path(surefoot.__file__).parent.rglob("__init__.py")):
    package = ".".join(["surefoot", *file.parent.relative_to(pathlib.Path(surefoot.__file__).parent).parts])
    if package.endswith("migrations"):
        continue
    try:
        room = importlib.import_module(package)
    except MissingExtra as error:
        missing[package] = str(error)
        continue
    for name in getattr(room, "__all__", ()):
        try:
            getattr(room, name)
        except MissingExtra as error:
            missing[f"{package}.{name}"] = str(error)
assert all("pip install" in text for text in missing.values()), missing
assert {name for name in missing if not name.startswith("surefoot.bridge.")} == {
    "surefoot.serve.Store", "surefoot.serve.create_app", "surefoot.testing.PolicyContract"
}, missing
assert "pytest" not in sys.modules
"""
HELP = """
import pydoc, surefoot
text = pydoc.render_doc(surefoot)
assert "testing" in text and "Bayesian optimization on rough ground" in text
for room in (surefoot.testing, surefoot.serve):
    try:
        pydoc.render_doc(room)
    except surefoot.MissingExtra as error:
        assert "pip install" in str(error)
"""
EVERY_COMMAND = """
import contextlib, io
import click
from surefoot.cli import app
def walk(command, words):
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        try:
            app([*words, "--help"])
        except SystemExit as end:
            assert not end.code, words
    assert "Usage" in said.getvalue(), words
    context = click.Context(command)
    names = command.list_commands(context) if isinstance(command, click.Group) else []
    return sum(walk(command.get_command(context, name), [*words, name]) for name in names) + 1
print(walk(app, []))
"""
MISTYPED = """
import surefoot
state = surefoot.RandomSearch(surefoot.Box.unit(1), seed=0).state()
for name in ("RandomSerch", "testing", "serve", "pytest", "report"):
    try:
        surefoot.Policy.from_state({**state, "policy": name})
    except ValueError as error:
        assert f"{name!r} is not a registered Policy" in str(error), error
    else:
        raise SystemExit(name)
try:
    surefoot.RandomSerch
except AttributeError as error:
    assert "RandomSerch" in str(error)
try:
    surefoot.optimize(lambda x: 0.0, surefoot.Box.unit(1), budget=2, policy="typo")
except (TypeError, ValueError) as error:
    assert "typo" in str(error), error
"""
SPACE = '[x]\ntype = "float"\nlow = 0.0\nhigh = 1.0\n'
OBJECTIVE = 'def f(parameters):\n    return -(parameters["x"] - 0.3) ** 2\n'
TABLE = "a,b\n0,0\n1,0\n0,1\n1,1\n"
TUNE = ["tune", "objective.py:f", "--space", "space.toml", "--trials", "4", "--seed", "0"]


def run(*words: str | Path, folder: Path) -> subprocess.CompletedProcess:
    settings = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1", "OMP_NUM_THREADS": "1"}
    # Without the last, every process here would compile what it imports of NumPy and SciPy anew.
    for name in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "COVERAGE_PROCESS_START", "PYTHONDONTWRITEBYTECODE"):
        settings.pop(name, None)
    words = [str(word) for word in words]
    return subprocess.run(words, cwd=folder, env=settings, capture_output=True, text=True, timeout=300)


def done(*words: str | Path, folder: Path) -> str:
    """What a program says that succeeds."""
    outcome = run(*words, folder=folder)
    assert outcome.returncode == 0, f"{outcome.stdout[-2000:]}\n{outcome.stderr[-4000:]}"
    return outcome.stdout


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """Where the programs of an environment are that holds the wheel and what it requires, and a folder to work in."""
    folder = tmp_path_factory.mktemp("bare")
    done(sys.executable, "-m", "venv", "environment", folder=folder)
    programs = folder / "environment" / ("Scripts" if os.name == "nt" else "bin")
    pip = [programs / "python", "-m", "pip"]
    reached = run(*pip, "download", "--quiet", "--no-deps", "--dest", "reached", "hatchling", folder=folder)
    if reached.returncode:
        pytest.skip(f"pip reaches no index: {(reached.stderr.strip().splitlines() or ['?'])[-1]}")
    done(*pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", "wheels", ROOT, folder=folder)
    [wheel] = (folder / "wheels").glob("*.whl")
    done(*pip, "install", "--quiet", "--no-compile", "-c", ROOT / "constraints.txt", wheel, folder=folder)
    installed = done(*pip, "list", "--format", "freeze", folder=folder)
    assert not [name for name in ("pytest", "matplotlib", "scikit-learn", "fastapi") if f"{name}==" in installed]
    for name, text in (("space.toml", SPACE), ("objective.py", OBJECTIVE), ("table.csv", TABLE)):
        (folder / name).write_text(text, encoding="utf-8")
    return programs, folder


@pytest.mark.slow
# One test, so that workers that share the tests do not make an environment each.
def test_a_bare_install_works(bare):
    programs, folder = bare
    python = [programs / "python", "-W", "ignore", "-c"]
    for code in (EVERY_NAME, HELP, MISTYPED):
        done(*python, code, folder=folder)
    assert int(done(*python, EVERY_COMMAND, folder=folder)) >= 17

    surefoot = programs / "surefoot"
    assert "Commands:" in done(surefoot, "--help", folder=folder)
    assert "Recommended" in done(surefoot, *TUNE, "--journal", "run.jsonl", folder=folder)
    assert "Recommended" in done(surefoot, "show", "run.jsonl", folder=folder)
    assert "2 of 4 rows" in done(surefoot, "select", "table.csv", "--k", "2", "--tau", "1", folder=folder)
    assert "surefoot.TVGPUCB" in done(surefoot, "which", "--json", "special=drift", folder=folder)

    refused = {
        (*TUNE, "--policy", "typo"): "there is no policy 'typo'; there are ",
        ("show", "run.jsonl", "--page", "run.html"): "pip install 'surefoot[plot]'",
        ("demo", "--trials", "3"): "pip install 'surefoot[demo]'",
        ("serve",): "pip install 'surefoot[serve]'",
        ("token", "list"): "pip install 'surefoot[serve]'",
    }
    for words, said in refused.items():
        outcome = run(surefoot, *words, folder=folder)
        assert said in " ".join(outcome.stderr.split()), (words, outcome.stdout, outcome.stderr)
        assert (outcome.returncode, "Traceback" in outcome.stderr) == (2, False), words
