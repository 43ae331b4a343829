"""The command: what it prints, where it writes, and how it fails."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

import surefoot
from surefoot import cli
from surefoot.loop.errors import MissingData, MissingExtra


def command(*words: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Run the entry point in this process and return its exit status."""
    monkeypatch.setattr(sys, "argv", ["surefoot", *words])
    with pytest.raises(SystemExit) as end:
        cli.main()
    return int(end.value.code or 0)


def test_version(monkeypatch, capsys):
    assert command("version", monkeypatch=monkeypatch) == 0
    assert capsys.readouterr().out == f"surefoot {surefoot.__version__}\n"


@pytest.mark.parametrize("words", [["--help"], ["demo", "--help"], ["reproduce", "-h"]])
@pytest.mark.parametrize("columns", ["30", "120"])
def test_help_fits_any_terminal(words, columns, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", columns)
    assert command(*words, monkeypatch=monkeypatch) == 0
    assert "surefoot" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["demo", "--trials", "0"], "trials must be at least 1, got 0"),
        (["reproduce", "no-such-family/no-such-experiment"], "no-such-family/no-such-experiment"),
    ],
)
def test_user_errors_are_one_line_and_status_2(words, said, monkeypatch, capsys):
    assert command(*words, monkeypatch=monkeypatch) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.err.startswith("surefoot: ")
    assert captured.err.count("\n") == 1
    assert "Traceback" not in captured.err


def test_usage_errors_are_status_2_without_traceback(monkeypatch, capsys):
    assert command("demo", "--trials", "many", monkeypatch=monkeypatch) == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("error", [MissingData("fetch it\nthere"), ValueError("got -1"), TypeError("got None")])
def test_errors_of_a_command_become_status_2(error, monkeypatch, capsys):
    def fail(**options: object) -> None:
        raise error

    monkeypatch.setattr("surefoot.lab.demo.demo", fail)
    assert command("demo", monkeypatch=monkeypatch) == 2
    assert capsys.readouterr().err == f"surefoot: {' '.join(str(error).split())}\n"


def test_bugs_and_debug_show_their_traceback(monkeypatch):
    def fail(**options: object) -> None:
        raise KeyError("a bug")

    monkeypatch.setattr("surefoot.lab.demo.demo", fail)
    monkeypatch.setattr(sys, "argv", ["surefoot", "demo"])
    with pytest.raises(KeyError):
        cli.main()
    monkeypatch.undo()
    monkeypatch.setattr(sys, "argv", ["surefoot", "--debug", "demo", "--trials", "0"])
    with pytest.raises(ValueError, match="trials"):
        cli.main()


def test_reproduce_lists_and_passes_its_options(monkeypatch, capsys):
    assert command("reproduce", "--list", monkeypatch=monkeypatch) == 0
    assert "gp-ucb" in capsys.readouterr().out
    seen: dict[str, object] = {}
    monkeypatch.setattr("surefoot.lab.command.reproduce", lambda ids, **options: seen.update(options, ids=ids))
    words = ["reproduce", "a/b", "c", "--full", "--minutes", "2.5", "--workers", "3", "--resume", "--out", "there"]
    assert command(*words, monkeypatch=monkeypatch) == 0
    assert seen == {
        "ids": ["a/b", "c"],
        "all": False,
        "list": False,
        "full": True,
        "minutes": 2.5,
        "workers": 3,
        "resume": True,
        "out": Path("there"),
    }


def test_help_imports_nothing_heavy():
    """``surefoot --help`` must not wait for SciPy, Matplotlib or scikit-learn."""
    code = (
        "import sys; sys.argv = ['surefoot', '--help']\n"
        "from surefoot.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print([name for name in ('numpy', 'scipy', 'matplotlib', 'sklearn', 'torch') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_closed_pipe_is_no_traceback():
    code = "import sys; sys.argv = ['surefoot', 'reproduce', '--list']; from surefoot.cli import main; main()"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    message = process.stderr.read()
    process.stderr.close()
    process.wait(timeout=60)
    assert "Traceback" not in message


# -- the demo --------------------------------------------------------------------------------------------------------


def test_demo_in_a_pipe_and_again_on_a_terminal(tmp_path):
    """It prints what fits, writes a page and a journal, and does the same when it is run again in the same folder."""
    from surefoot.lab.demo import SPACE, demo

    folder, printed, journals = tmp_path / "new", [], []
    for width, terminal in [(40, False), (100, True)]:
        text = io.StringIO()
        target = demo(trials=3, seed=1, out=folder, console=Console(file=text, width=width, force_terminal=terminal))
        assert target == folder / "index.html"
        html = target.read_text(encoding="utf-8")
        assert html.count("<svg") == html.count("</svg>") >= 2 + SPACE.dimension
        printed.append(text.getvalue())
        journals.append((folder / "journal.jsonl").read_text())
    assert journals[0] == journals[1]
    policy = surefoot.load(folder / "journal.jsonl")
    policy.close()
    assert len(policy.history) == 3
    assert "run   3/3" in printed[0]
    assert max(len(line) for line in printed[0].splitlines() if "index.html" not in line) <= 40
    for text in printed:
        assert "best" in text
        assert "unseen images" in text


@pytest.mark.parametrize("missing", ["sklearn", "matplotlib"])
def test_demo_says_what_to_install(missing, tmp_path, monkeypatch):
    from surefoot.lab.demo import demo

    for name in [name for name in sys.modules if name.split(".")[0] == missing]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingExtra, match=r"pip install 'surefoot\[demo\]'"):
        demo(trials=2, out=tmp_path / "never")
    assert not (tmp_path / "never").exists()
