"""The command: what it prints, where it writes, and how it fails."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import traceback
from pathlib import Path

import pytest

import surefoot
from surefoot import cli
from surefoot.cli.target import find
from surefoot.errors import MissingData


def command(*words: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Run the entry point in this process and return its exit status."""
    monkeypatch.setattr(sys, "argv", ["surefoot", *words])
    with pytest.raises(SystemExit) as end:
        cli.main()
    return int(end.value.code or 0)


@pytest.mark.parametrize("words", [["version"], ["--version"]])
def test_version(words, monkeypatch, capsys):
    assert command(*words, monkeypatch=monkeypatch) == 0
    assert capsys.readouterr().out == f"surefoot {surefoot.__version__}\n"


COMMANDS = [
    "which",
    "suggest",
    "space",
    "tune",
    "ask",
    "tell",
    "show",
    "select",
    "attack",
    "federate",
    "audit",
    "serve",
    "worker",
    "demo",
    "bench",
    "reproduce",
    "evidence",
]
OURS = (
    "which",
    "suggest",
    "space",
    "tune",
    "ask",
    "tell",
    "show",
    "select",
    "attack",
    "audit",
    "curate",
    "demo",
    "worker",
)
BODIES = [
    *(f"surefoot.cli.{name}.command.callback" for name in OURS),
    *(f"surefoot.cli.federate.{name}" for name in ("federate", "plan", "start_flower")),
    "surefoot.serve.run.serve",
    *(f"surefoot_lab.{name}" for name in ("bench.bench", "bench_device.bench_device", "command.reproduce")),
    "surefoot_lab.evidence.evidence",
]


@pytest.mark.parametrize("words", [["--help"], ["version", "-h"], *([name, "--help"] for name in COMMANDS)])
@pytest.mark.parametrize("columns", [40, 120])
def test_help_fits_any_terminal(words, columns, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(columns))
    assert command(*words, monkeypatch=monkeypatch) == 0
    text = capsys.readouterr().out
    assert "surefoot" in text
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= columns
    assert "…" not in text


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_examples_that_parse(name, monkeypatch, capsys):
    """Every example in a help text is a line that the command understands."""
    assert command(name, "--help", monkeypatch=monkeypatch) == 0
    text = re.sub(r"\\\n\s+", "", capsys.readouterr().out)
    examples = re.findall(rf"^ +(?:\w+=\w+ )?(surefoot {name}\b.*)$", text, flags=re.MULTILINE)
    assert examples
    for line in examples:
        seen: list[object] = []
        for body in BODIES:
            monkeypatch.setattr(body, lambda *given, **options: seen.append((given, options)) or [])  # noqa: B023
        assert command(*shlex.split(line)[1:], monkeypatch=monkeypatch) == 0, line
        assert len(seen) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["demo", "--trials", "0"], "trials must be at least 1, got 0"),
        (["reproduce", "no-such-family/no-such-experiment"], "no-such-family/no-such-experiment"),
        (["tune", "absent.py:f", "--space", "space.toml", "--trials", "3"], "there is no file absent.py"),
        (["tune", "math:nothing", "--space", "space.toml", "--trials", "3"], "math has no 'nothing'"),
        (["tune", "nonsense", "--space", "space.toml", "--trials", "3"], "expected MODULE:NAME"),
        (["tune", "math:sqrt", "--space", "absent.toml", "--trials", "3"], "there is no space file absent.toml"),
        (["tune", "math:sqrt", "--space", "bad.toml", "--trials", "3"], "bad.toml: parameter 'x': bounds are inverted"),
        (
            ["tune", "math:sqrt", "--space", "space.toml", "--trials", "3", "--policy", "best"],
            "there is no policy 'best'",
        ),
        (["tune", "math:sqrt", "--space", "space.toml", "--trials", "3", "--option", "x"], "key=value, got 'x'"),
        (["tune", "math:sqrt", "--space", "space.toml", "--trials", "3", "--resume"], "--resume: there is no run in"),
        (["tune", "math:sqrt", "--space", "space.toml", "--trials", "2", "--no-page"], "all 2 trials failed; the last"),
        (
            ["tune", "broken.py:f", "--space", "space.toml", "--trials", "3"],
            "failed: NameError: name 'oops' is not defined",
        ),
        (["show", "absent.jsonl"], "there is no journal or saved state at absent.jsonl"),
        (["bench", "--quick", "--json", "absent/bench.json"], "there is no folder absent"),
        (["bench", "--size", "small"], "--part, --size and --minutes go with --device cpu or --device cuda"),
        (["bench", "--device", "cpu", "--quick"], "--quick is for asks; with --device say --size small"),
    ],
)
def test_user_errors_are_one_line_and_status_2(words, said, tmp_path, monkeypatch, capsys):
    (tmp_path / "space.toml").write_text('x = {type = "float", low = 0, high = 1}')
    (tmp_path / "bad.toml").write_text('x = {type = "float", low = 1, high = 0}')
    (tmp_path / "broken.py").write_text("oops")
    monkeypatch.chdir(tmp_path)
    assert command(*words, monkeypatch=monkeypatch) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.err.startswith("surefoot: ")
    assert captured.err.count("\n") == 1
    assert "Traceback" not in captured.err


@pytest.mark.parametrize(
    "words",
    [
        ["demo", "--trials", "many"],
        ["tune", "math:sqrt", "--trials", "3"],
        ["tune", "math:sqrt", "--space", "space.toml", "--trials", "0"],
        ["tune", "math:sqrt", "--space", "space.toml", "--trials", "3", "--direction", "up"],
        ["show"],
        ["show", "run.jsonl", "--top", "0"],
        ["nonsense"],
    ],
)
def test_usage_errors_are_status_2_without_traceback(words, monkeypatch, capsys):
    assert command(*words, monkeypatch=monkeypatch) == 2
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    assert "Usage: surefoot" in captured.err


@pytest.mark.parametrize("error", [MissingData("fetch it\nthere"), ValueError("got -1"), TypeError("got None")])
def test_errors_of_a_command_become_status_2(error, monkeypatch, capsys):
    def fail(**options: object) -> None:
        raise error

    monkeypatch.setattr("surefoot.cli.demo.command.callback", fail)
    assert command("demo", monkeypatch=monkeypatch) == 2
    assert capsys.readouterr().err == f"surefoot: {' '.join(str(error).split())}\n"


def test_bugs_and_debug_show_their_traceback(monkeypatch):
    def fail(**options: object) -> None:
        raise KeyError("a bug")

    monkeypatch.setattr("surefoot.cli.demo.command.callback", fail)
    monkeypatch.setattr(sys, "argv", ["surefoot", "demo"])
    with pytest.raises(KeyError):
        cli.main()
    monkeypatch.undo()
    monkeypatch.setattr(sys, "argv", ["surefoot", "--debug", "demo", "--trials", "0"])
    with pytest.raises(ValueError, match="trials"):
        cli.main()


def test_debug_shows_where_the_import_of_an_objective_failed(tmp_path, monkeypatch):
    (tmp_path / "space.toml").write_text('x = {type = "float", low = 0, high = 1}')
    (tmp_path / "broken.py").write_text("def f(params): ...\noops")
    monkeypatch.chdir(tmp_path)
    words = ["--debug", "tune", "broken.py:f", "--space", "space.toml", "--trials", "1"]
    monkeypatch.setattr(sys, "argv", ["surefoot", *words])
    with pytest.raises(ValueError, match="broken") as caught:
        cli.main()
    assert isinstance(caught.value.__cause__, NameError)
    assert traceback.extract_tb(caught.value.__cause__.__traceback__)[-1].lineno == 2


@pytest.mark.parametrize(("journal", "said"), [([], "--resume"), (["--journal", "run.jsonl"], "--resume")])
def test_an_interrupted_command_is_status_130(journal, said, monkeypatch, capsys):
    def interrupt(*given: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("surefoot.cli.tune.command.callback", interrupt)
    words = ["tune", "math:sqrt", "--space", "space.toml", "--trials", "3", *journal]
    assert command(*words, monkeypatch=monkeypatch) == 130
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.out == ""
    monkeypatch.setattr("surefoot.cli.demo.command.callback", interrupt)
    assert command("demo", monkeypatch=monkeypatch) == 130


def test_tune_and_show_pass_their_options(monkeypatch, capsys):
    seen: dict[str, object] = {}
    monkeypatch.setattr(
        "surefoot.cli.tune.command.callback", lambda target, **options: seen.update(options, target=target)
    )
    words = [
        "tune",
        "m:f",
        "--space",
        "s.toml",
        "--trials",
        "5",
        "--journal",
        "j",
        "--resume",
        "--direction",
        "minimize",
    ]
    words += ["--policy", "p", "--option", "a=1", "--option", "b=2", "--seed", "4", "--epochs", "6", "--out", "o"]
    words += ["--transfer", "old.jsonl", "--transfer", "studies", "--workers", "2"]
    assert command(*words, "--stop-on-error", "--quiet", monkeypatch=monkeypatch) == 0
    assert seen == {
        "target": "m:f",
        "space": Path("s.toml"),
        "trials": 5,
        "journal": Path("j"),
        "resume": True,
        "workers": 2,
        "timeout": None,
        "trial_timeout": None,
        "stop": None,
        "direction": "minimize",
        "policy": "p",
        "options": ("a=1", "b=2"),
        "seed": 4,
        "epochs": 6,
        "transfer": (Path("old.jsonl"), Path("studies")),
        "out": Path("o"),
        "page": True,
        "stop_on_error": True,
        "quiet": True,
    }
    assert command("tune", "m:f", "--space", "s", "--trials", "1", "--no-page", monkeypatch=monkeypatch) == 0
    assert seen["page"] is False
    seen.clear()
    monkeypatch.setattr("surefoot.cli.show.command.callback", lambda path, **options: seen.update(options, path=path))
    assert command("show", "j", "--page", "p.html", "--top", "3", monkeypatch=monkeypatch) == 0
    assert seen == {"path": Path("j"), "page": Path("p.html"), "top": 3, "direction": None}


def test_reproduce_lists_and_passes_its_options(monkeypatch, capsys):
    assert command("reproduce", "--list", monkeypatch=monkeypatch) == 0
    assert "gp-ucb" in capsys.readouterr().out
    seen: dict[str, object] = {}
    monkeypatch.setattr("surefoot_lab.command.reproduce", lambda ids, **options: seen.update(options, ids=ids))
    words = ["reproduce", "a/b", "c", "--full", "--minutes", "2.5", "--workers", "3", "--resume", "--out", "there"]
    assert command(*words, monkeypatch=monkeypatch) == 0
    assert seen == {
        "ids": ("a/b", "c"),
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


# -- the documentation -----------------------------------------------------------------------------------------------

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("page", ["README.md", "docs/command.md", "examples/tune/objective.py"])
def test_commands_in_the_documentation_are_understood(page, monkeypatch):
    seen: list[str] = []
    for body in BODIES:
        monkeypatch.setattr(body, lambda *given, **options: [])
    monkeypatch.setattr("surefoot.cli.tune.command.callback", lambda target, **options: seen.append(target))
    text = (ROOT / page).read_text(encoding="utf-8")
    lines = re.findall(r"^(?:\w+=\w+ )?(surefoot [a-z-].*)$", text, flags=re.MULTILINE)
    assert len([line for line in lines if line.startswith("surefoot tune ")]) >= 2
    for line in lines:
        assert command(*shlex.split(line, comments=True)[1:], monkeypatch=monkeypatch) == 0, line
    for target in seen:
        assert callable(find(str(ROOT / "examples" / "tune" / target)))
    sys.modules.pop("objective", None)


def test_the_example_of_the_documentation_runs(monkeypatch, capsys):
    monkeypatch.chdir(ROOT / "examples" / "tune")
    monkeypatch.setattr(sys, "path", list(sys.path))
    words = ["--space", "space.toml", "--seed", "0", "--no-page"]
    assert command("tune", "objective.py:accuracy", *words, "--trials", "5", monkeypatch=monkeypatch) == 0
    assert "5 trials: 5 measured" in capsys.readouterr().out
    words += ["--epochs", "40", "--trials", "10", "--quiet"]
    assert command("tune", "objective.py:train", *words, monkeypatch=monkeypatch) == 0
    assert set(json.loads(capsys.readouterr().out)) == {"learning_rate", "hidden", "activation"}
    sys.modules.pop("objective", None)
