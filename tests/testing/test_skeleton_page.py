"""The page "How to add a policy", followed to the letter: its files are saved and its commands are run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "add-a-policy.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
NAME = re.compile(r"`(\w+\.py)`:\n\n\Z")


def followed(folder: Path) -> list[str]:
    """Save each block of Python under the name that the line above it gives, and return the commands."""
    text = PAGE.read_text(encoding="utf-8")
    commands = []
    for block in BLOCK.finditer(text):
        language, content = block.groups()
        if language == "python":
            name = NAME.search(text[: block.start()])
            assert name, f"the line above this block does not name its file: {content[:60]!r}"
            (folder / name[1]).write_text(content, encoding="utf-8")
        else:
            assert language == "sh", language
            commands += content.splitlines()
    return commands


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("page")
    return made, followed(made)


def test_the_page_installs_uses_and_tests(folder):
    made, commands = folder
    assert commands == [
        "pip install surefoot pytest",
        "python use_target_search.py",
        "pytest test_target_search.py",
        "pytest test_shrinking.py",
    ]
    lines = [len((made / name).read_text().splitlines()) for name in ("target_search.py", "test_target_search.py")]
    assert sum(lines) < 60, "a policy with its test should fit on a screen"


@pytest.mark.parametrize("number", [1, 2, 3])
def test_its_commands_succeed(folder, number):
    """With this environment's programs, which stand for the ones that the first command installs."""
    made, commands = folder
    program, *arguments = commands[number].split()
    command = [sys.executable, *([] if program == "python" else ["-m", program]), *arguments]
    plain = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "COV_"))}
    done = subprocess.run(command, cwd=made, env=plain, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    if program == "pytest":
        passed = int(re.search(r"(\d+) passed", done.stdout).group(1))
        assert passed > (60 if "target" in arguments[0] else 20), "most tests run on each domain the policy declares"


def test_the_fault_that_the_page_suggests_is_found(folder, tmp_path):
    """A draw that no seed names is noticed."""
    made, _ = folder
    module = (made / "target_search.py").read_text(encoding="utf-8")
    faulty = module.replace(
        "return AboveTarget(self.target)", "return AboveTarget(self.target + np.random.default_rng().normal())"
    )
    assert faulty != module
    (tmp_path / "target_search.py").write_text(faulty, encoding="utf-8")
    (tmp_path / "test_target_search.py").write_text((made / "test_target_search.py").read_text(), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-k", "seed_decides", "test_target_search.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "test_the_seed_decides_everything" in done.stdout
