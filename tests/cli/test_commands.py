"""The top of the command: lazy, open to other packages, and able to complete itself in a shell."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

import surefoot
from surefoot.cli import app
from surefoot.cli.commands import COMMANDS, LABORATORY

START = "import sys; sys.argv[0] = 'surefoot'; from surefoot.cli import main; main()"


def run(*words: str, folder: Path | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, with a folder of packages."""
    paths = [*([str(folder)] if folder else []), *filter(None, [os.environ.get("PYTHONPATH")])]
    settings = {
        **os.environ,
        "COLUMNS": "100",
        **({"PYTHONPATH": os.pathsep.join(paths)} if paths else {}),
        **variables,
    }
    return subprocess.run([sys.executable, "-c", START, *words], capture_output=True, text=True, env=settings)


@pytest.fixture
def packages(tmp_path):
    """A package with good commands and one with bad ones."""
    for name, points in {
        "sailing": "sail = sailing:sail\ntune = sailing:sail",
        "broken": "sink = broken:sink\nplain = sailing:plain\nreproduce = broken:sink",
    }.items():
        folder = tmp_path / f"{name}-1.5.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.5\n")
        (folder / "entry_points.txt").write_text(f"[surefoot.commands]\n{points}\n")
    (tmp_path / "sailing.py").write_text(
        "import click\n"
        "@click.command()\n@click.option('--knots', default=5)\n"
        "def sail(knots):\n    'Go to sea.'\n    print(knots, 'knots')\n"
        "def plain(): ...\n"
    )
    (tmp_path / "broken.py").write_text("import no_such_keel\n")
    return tmp_path


def test_a_command_of_another_package_is_one_of_ours(packages):
    said = run("--help", folder=packages)
    assert (said.returncode, said.stderr) == (0, "")
    ours, _, others = said.stdout.partition("Commands of other packages:")
    assert "tune" in ours
    assert [line.split(maxsplit=1) for line in others.splitlines()[1:4]] == [
        ["plain", "From broken 1.5."],
        ["sail", "From sailing 1.5."],
        ["sink", "From broken 1.5."],
    ]
    assert run("sail", "--knots", "7", folder=packages).stdout == "7 knots\n"
    assert "Go to sea." in run("sail", "-h", folder=packages).stdout
    assert "parameters of a Python function" in run("tune", "--help", folder=packages).stdout  # not taken by another


@pytest.mark.parametrize("more", [[], ["--help"], ["--any", "word"]])
def test_a_command_that_cannot_be_loaded_says_whose_it_is(more, packages):
    sink, plain = (run(name, *more, folder=packages) for name in ("sink", "plain"))
    why = "ModuleNotFoundError: No module named 'no_such_keel'"
    assert (
        sink.stderr == f"surefoot: 'surefoot sink' comes from broken 1.5, where broken:sink cannot be loaded: {why}\n"
    )
    assert "'surefoot plain' comes from broken 1.5, where sailing:plain cannot be loaded: TypeError: " in plain.stderr
    assert "is no click.Command" in plain.stderr
    assert (sink.returncode, plain.returncode, sink.stdout, plain.stdout) == (2, 2, "", "")


def test_the_traceback_of_a_command_that_cannot_be_loaded(packages):
    said = run("--debug", "sink", folder=packages).stderr
    assert "broken.py" in said
    assert "SurefootError: 'surefoot sink' comes from broken 1.5" in said


def test_without_the_laboratory_its_commands_say_what_to_install():
    """Where nothing of it is installed, and where only its files are gone."""
    gone = "import sys, importlib.metadata as m; m.entry_points = lambda **k: []\n"
    files = "import sys; sys.modules['surefoot_lab'] = None\n"
    for before in (gone, files):
        for name in LABORATORY:
            code = f"{before}sys.argv = ['surefoot', '{name}', '--list']\nfrom surefoot.cli import main; main()"
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
            said = f"surefoot: 'surefoot {name}' is a command of the laboratory: pip install surefoot-lab\n"
            assert (done.returncode, done.stderr) == (2, said)
    code = f"{gone}sys.argv = ['surefoot', '--help']\nfrom surefoot.cli import main; main()"
    assert "laboratory" not in subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout


@pytest.mark.parametrize(
    ("words", "absent"),
    [
        (["--help"], ["numpy", "rich", "surefoot.cli.tune"]),
        (["version"], ["numpy", "rich", "surefoot.cli.tune"]),
        (["tune", "--help"], ["surefoot.cli.attack", "surefoot.cli.which", "surefoot_lab", "matplotlib", "httpx"]),
        (["token", "--help"], ["numpy", "rich", "sqlalchemy", "fastapi"]),
    ],
)
def test_only_what_is_called_is_imported(words, absent):
    code = (
        f"import sys; sys.argv = ['surefoot', *{words!r}]\nfrom surefoot.cli import main\n"
        f"try: main()\nexcept SystemExit: pass\nprint([name for name in {absent!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_every_command_of_the_table_is_there():
    context = click.Context(app)
    for name in app.list_commands(context):
        command = app.get_command(context, name)
        assert command is not None
        assert command.name == name
        assert (command.get_short_help_str() or command.help).strip()
    assert app.list_commands(context)[: len(COMMANDS)] == list(COMMANDS)


def test_it_runs_as_a_module():
    done = subprocess.run([sys.executable, "-m", "surefoot", "version"], capture_output=True, text=True)
    assert done.stdout == f"surefoot {surefoot.__version__}\n"
    wrong = subprocess.run([sys.executable, "-m", "surefoot", "nonsense"], capture_output=True, text=True)
    assert wrong.returncode == 2
    assert "Usage: python -m surefoot" in wrong.stderr


# -- completion ------------------------------------------------------------------------------------------------------


@pytest.fixture
def shell(tmp_path):
    """Variables for a shell that finds ``surefoot``."""
    program = tmp_path / "bin" / "surefoot"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{START}" "$@"\n')
    program.chmod(0o755)
    return {**os.environ, "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"}


def completed(words: str, shell: dict[str, str]) -> list[str]:
    """What Bash offers at the end of a line, by the script that the command prints."""
    line = ["surefoot", *words.split(" ")]
    quoted = " ".join(f"'{word}'" for word in line)
    script = (
        'eval "$(surefoot completion bash)"\n'
        f"COMP_WORDS=({quoted}); COMP_CWORD={len(line) - 1}\n"
        '_surefoot_completion surefoot\nprintf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=shell, check=True)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="Bash is not here")
def test_bash_completes(shell):
    assert completed("t", shell) == ["tune", "tell", "token"]
    assert completed("tune --tr", shell) == ["--trials", "--trial-timeout", "--transfer"]
    assert completed("token re", shell) == ["revoke"]
    assert completed("tune objective.py:f --direction m", shell) == ["maximize", "minimize"]
    assert completed("--ver", shell) == ["--version"]


@pytest.mark.parametrize("name", ["zsh", "fish"])
def test_other_shells_complete(name):
    """The script says how the shell asks, and the command answers when it is asked so."""
    script = run("completion", name).stdout
    assert f"_SUREFOOT_COMPLETE={name}_complete" in script
    asked = {"COMP_WORDS": "surefoot at", "COMP_CWORD": "1" if name == "zsh" else "at"}
    answer = run(**asked, _SUREFOOT_COMPLETE=f"{name}_complete").stdout
    assert "attack" in answer
    assert COMMANDS["attack"] in answer
    if shutil.which(name):
        checked = subprocess.run([name, "-n", "-c", script] if name == "zsh" else [name, "-c", script], text=True)
        assert checked.returncode == 0


def test_another_shell_is_refused():
    assert run("completion", "csh").returncode == 2
