"""Where a new user stands: an empty folder, the installed programs, and a count of what was typed.

The fast tests use the programs that are installed beside this Python; the slow ones a fresh environment that holds the
wheel and only the extra that a journey names.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import surefoot

ROOT = Path(__file__).resolve().parents[2]
ALONE = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class Desk:
    """An empty folder and a terminal in it.

    ``surefoot`` and ``python`` are what a person types; ``typed`` is how many commands that were.
    """

    def __init__(self, folder: Path, python: str | Path, path: str | None) -> None:
        self.folder, self.program, self.typed = folder, str(python), 0
        self.settings = {**os.environ, **ALONE, "COLUMNS": "100"}
        self.settings.pop("PYTHONPATH", None)
        if path is not None:
            self.settings["PYTHONPATH"] = path

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, encoding="utf-8")

    def read(self, name: str) -> str:
        return (self.folder / name).read_text(encoding="utf-8")

    def _run(self, *words: str, status: int = 0) -> subprocess.CompletedProcess[str]:
        self.typed += 1
        done = subprocess.run(
            [self.program, *words], cwd=self.folder, env=self.settings, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == status, f"{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
        assert "Traceback" not in done.stderr
        return done

    def surefoot(self, *words: str, status: int = 0) -> str:
        """Type ``surefoot ...`` and return what it prints; with another status, what it says on standard error."""
        done = self._run("-m", "surefoot", *words, status=status)
        return done.stderr if status else done.stdout

    def python(self, name: str) -> str:
        """Type ``python NAME`` and return what it prints."""
        return self._run("-W", "ignore", name).stdout


@pytest.fixture(params=["installed", pytest.param("wheel", marks=pytest.mark.slow)])
def desk(request, tmp_path, wheel_python):
    """A terminal in an empty folder."""
    folder = tmp_path / "empty"
    folder.mkdir()
    if request.param == "wheel":
        return Desk(folder, wheel_python(getattr(request.module, "EXTRA", "")), None)
    return Desk(folder, sys.executable, str(Path(surefoot.__file__).resolve().parents[1]))


@pytest.fixture(scope="session")
def wheel_python(tmp_path_factory):
    """A function from an extra to the Python of an environment with the wheel and that extra, made once each."""
    made: dict[str, Path] = {}
    settings = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME")}

    def run(*words: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*map(str, words)], env=settings, capture_output=True, text=True, timeout=600)

    def python(extra: str) -> Path:
        if extra not in made:
            folder = tmp_path_factory.mktemp("wheel")
            program = folder / "env" / "bin" / "python"
            assert run(sys.executable, "-m", "venv", folder / "env").returncode == 0
            built = run(program, "-m", "pip", "wheel", "-q", "--no-deps", "--wheel-dir", folder, ROOT)
            if built.returncode:
                pytest.skip(f"pip builds no wheel: {(built.stderr.strip().splitlines() or ['?'])[-1]}")
            [wheel] = folder.glob("*.whl")
            what = f"{wheel}[{extra}]" if extra else wheel
            done = run(program, "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt", what)
            assert done.returncode == 0, done.stderr[-2000:]
            made[extra] = program
        return made[extra]

    return python
