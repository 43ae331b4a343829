"""Build the wheel and the sdist, install the wheel in a new environment for the core and for each extra, and use it.

    python release/check.py                     # everything: gigabytes, about half an hour
    python release/check.py core serve          # some of it
    python release/check.py pythons             # the wheel without extras, on every Python of this machine from 3.11 on
    python release/check.py lab                 # the wheel of the laboratory, beside this one
    python release/check.py --list

What is used are the examples of the installed modules, so that they cannot fall behind, and the commands. One
environment at a time is on the disk, in a temporary folder. Exit status 1 when something does not work.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NEEDED = {  # what is no Python file and must be in the wheel
    "surefoot/py.typed",
    "surefoot/report/page.css",
    "surefoot/serve/migrations/script.py.mako",
    "surefoot/serve/static/index.html",
    "surefoot/serve/static/assets/app.js",
    "surefoot/serve/static/assets/licenses.txt",
}
TORCH = """
import numpy as np, torch
from surefoot.belief import GP, SE, GridPosterior
points = np.linspace(0.0, 1.0, 51)[:, None]
one, two = (GridPosterior(GP(SE(0.2), noise=1e-4), p) for p in (points, torch.from_numpy(points)))
one.append(25, 1.0), two.append(25, 1.0)
assert isinstance(two.mean, torch.Tensor) and np.allclose(one.mean, two.mean.numpy())
"""
SERVE = """
from fastapi.testclient import TestClient
from surefoot.serve import Store, create_app
store = Store("sqlite://")
store.migrate()
client = TestClient(create_app(store))
assert "<!doctype html>" in client.get("/").text.lower()
assert client.get("/assets/app.js").status_code == 200
assert client.get("/api/v1/studies").status_code == 401
"""
POSTGRES = """
import psycopg
from surefoot.serve import Store, Unavailable
store = Store("postgresql+psycopg://nobody@127.0.0.1:1/nothing")  # the driver is there, a server is not
try:
    store.migrate()
except (Unavailable, psycopg.OperationalError) as error:
    print(type(error).__name__)
except Exception as error:
    assert "psycopg" in f"{type(error)} {error}", error
else:
    raise SystemExit("nobody should be listening there")
"""
BARE = """
import importlib
from surefoot import MissingExtra
for bridge in ("optuna", "ray_tune", "sklearn", "botorch", "ax", "flower", "foolbox", "art", "gymnasium", "pettingzoo"):
    try:
        importlib.import_module(f"surefoot.bridge.{bridge}")
    except MissingExtra as error:
        assert "pip install" in str(error)
    else:
        raise SystemExit(f"surefoot.bridge.{bridge} was imported without its host")
"""
EXAMPLES = """
import doctest, importlib, pathlib, sys, surefoot
assert pathlib.Path(surefoot.__file__).is_relative_to(sys.prefix), surefoot.__file__
for name in sys.argv[1:]:
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    failed, attempted = doctest.testmod(importlib.import_module(name), optionflags=flags)
    if failed or not attempted:
        sys.exit(f"{name}: {failed} of {attempted} examples failed")
"""
ONCE = """
import surefoot
policy = surefoot.GPUCB(surefoot.Box([(0.0, 1.0)]), seed=0, journal="run.jsonl")
for _ in range(5):
    query = policy.ask()
    policy.tell(query, -((query.x[0] - 0.3) ** 2))
wanted = policy.ask().x
policy.close()
with surefoot.load("run.jsonl") as again:
    assert again.pending[0].x == wanted and again.recommend().mean <= 0.1
"""
OLDEST = 11  # minor version of Python 3
IMPORT = "import time; start = time.perf_counter(); import surefoot; print(time.perf_counter() - start)"


@dataclass(frozen=True)
class Check:
    """What is installed, and what is done with it."""

    extras: tuple[str, ...]
    examples: tuple[str, ...] = ()
    code: str = ""
    commands: tuple[str, ...] = ()
    constraints: str = "constraints.txt"


def bridge(extra: str, module: str | None = None, constraints: str = "constraints.txt") -> Check:
    """Return the check of a bridge: the examples at the top of it run."""
    return Check((extra,), (f"surefoot.bridge.{module or extra}",), constraints=constraints)


CHECKS = {
    "core": Check(
        (),
        ("surefoot", "surefoot.policy.ucb.gp_ucb", "surefoot.select"),
        BARE,
        ("surefoot --help", "surefoot version", "surefoot which --json special=drift"),
    ),
    "plot": Check(("plot",), ("surefoot.report.plots", "surefoot.report.run_page")),
    "demo": Check(
        ("demo",), ("surefoot.report.run_page", "surefoot.bridge.sklearn"), commands=("surefoot demo --trials 3",)
    ),
    "torch": Check(("torch",), code=TORCH),
    "optuna": bridge("optuna"),
    "ray": bridge("ray", "ray_tune"),
    "sklearn": bridge("sklearn"),
    "botorch": bridge("botorch"),
    "ax": bridge("ax"),
    "flower": bridge("flower", constraints="constraints-flower.txt"),
    "private": Check(
        ("private",),
        (
            "surefoot.private.noise",
            "surefoot.private.accounting",
            "surefoot.private.mechanisms",
            "surefoot.federated.secure.rehearsal",
        ),
    ),
    "serve": Check(
        ("serve",),
        ("surefoot.serve.app", "surefoot.serve.store", "surefoot.serve.migrate"),
        SERVE,
        ("surefoot serve --help",),
    ),
    "postgres": Check(("serve", "postgres"), code=POSTGRES),
    "foolbox": bridge("foolbox"),
    "art": bridge("art"),
    "gymnasium": bridge("gymnasium"),
    "pettingzoo": bridge("pettingzoo"),
    "docs": Check(("docs",), commands=(f"mkdocs build --strict --quiet -f {ROOT / 'mkdocs.yml'} -d {{folder}}/site",)),
}


def run(command: list[str], folder: Path) -> str:
    """Run a command; what it said when it fails is the error."""
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "SDL_VIDEODRIVER": "dummy"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=3600)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[:4])} ...\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}")
    return done.stdout


def new_environment(folder: Path, python: str = sys.executable) -> Path:
    """Make an environment and return where its programs are."""
    run([python, "-m", "venv", str(folder)], folder.parent)
    return folder / "bin"


def interpreters() -> dict[str, str]:
    """Return every Python of this machine that Surefoot supports, one for each minor version; pyenv's too."""
    names = [f"python3.{minor}" for minor in range(OLDEST, OLDEST + 9)]
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    places = [sys.executable, *filter(None, map(shutil.which, names))]
    places += [str(path) for name in names for path in sorted(versions.glob(f"*/bin/{name}"))]
    found: dict[str, str] = {}
    for place in places:
        code = "import sys, ensurepip, venv; print('python%d.%d' % sys.version_info[:2])"
        done = subprocess.run([place, "-c", code], capture_output=True, text=True)
        if not done.returncode and (name := done.stdout.strip()) in names:
            found.setdefault(name, place)
    return dict(sorted(found.items()))


def digests(wheel: Path) -> dict[str, str]:
    """Return what is in a wheel, file by file."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: hashlib.sha256(archive.read(name)).hexdigest() for name in archive.namelist()}


def build(folder: Path) -> Path:
    """Build the sdist and, from the sources and from the sdist, the wheel; look into both and return the wheel."""
    tools = new_environment(folder / "tools")
    pip = [str(tools / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "build", "twine"]
    run(pip, folder)
    python = str(tools / "python")
    run([python, "-m", "build", "--wheel", "--outdir", "from-sources", str(ROOT)], folder)
    run([python, "-m", "build", "--outdir", "dist", str(ROOT)], folder)  # the sdist, and the wheel from it
    [wheel], [other] = (list((folder / name).glob("*.whl")) for name in ("dist", "from-sources"))
    [sdist] = (folder / "dist").glob("*.tar.gz")
    run([python, "-m", "twine", "check", "--strict", str(wheel), str(sdist)], folder)
    inside = digests(wheel)
    if differs := sorted(dict(inside.items() ^ digests(other).items())):
        raise RuntimeError(f"the sdist builds another wheel than the sources: {', '.join(differs)}")
    package = {name for name in inside if not re.match(r"surefoot-[^/]*\.dist-info/", name)}
    sources = {
        str(path.relative_to(ROOT / "src"))
        for path in (ROOT / "src" / "surefoot").rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    if package != sources or not package >= NEEDED:
        raise RuntimeError(f"in the wheel or in the sources only: {sorted((package ^ sources) | (NEEDED - package))}")
    with tarfile.open(sdist) as archive:
        names = {name.split("/", 1)[-1] for name in archive.getnames()}
    for wanted in ("tests/test_import.py", "CITATION.cff", "LICENSE", "mkdocs.yml", "web/package.json", "Makefile"):
        if wanted not in names:
            raise RuntimeError(f"the sdist lacks {wanted}")
    if found := [name for name in names if re.search(r"node_modules|\.venv|__pycache__|(^|/)(build|site|dist)/", name)]:
        raise RuntimeError(f"the sdist holds {found[:5]}")
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.2f} MB, {len(package)} files; the sdist builds the same bytes")
    print(f"{sdist.name}: {sdist.stat().st_size / 1e6:.2f} MB, {len(names)} files")
    return wheel


def install_and_use(name: str, check: Check, wheel: Path, folder: Path) -> None:
    """Install the wheel with its extra in a new environment and use it there; print what that took."""
    start = time.perf_counter()
    programs = new_environment(folder / "environment")
    extras = f"[{','.join(check.extras)}]" if check.extras else ""
    pip = [str(programs / "python"), "-m", "pip"]
    options = ["--quiet", "--disable-pip-version-check", "--no-compile", "-c", str(ROOT / check.constraints)]
    run([*pip, "install", *options, f"surefoot{extras} @ {wheel.as_uri()}"], folder)
    installed = time.perf_counter() - start
    packages = json.loads(run([*pip, "list", "--format", "json", "--disable-pip-version-check"], folder))
    size = sum(file.lstat().st_size for file in (folder / "environment").rglob("*") if file.is_file())
    python = [str(programs / "python"), "-I", "-W", "ignore", "-c"]
    if check.examples:
        run([*python, EXAMPLES, *check.examples], folder)
    if check.code:
        run([*python, check.code], folder)
    for command in check.commands:
        program, *arguments = command.format(folder=folder).split()
        run([str(programs / program), *arguments], folder)
    imported = min(float(run([*python, IMPORT], folder)) for _ in range(5))
    print(
        f"{name:<11} {len(packages):>3} packages {size / 1e6:>6.0f} MB   installed in {installed:>4.0f} s, "
        f"`import surefoot` {imported * 1000:.0f} ms",
        flush=True,
    )


def try_on(python: str, wheel: Path, folder: Path) -> None:
    """Install the wheel without an extra under another Python, and ask once."""
    programs = new_environment(folder / "environment", python)
    options = ["--quiet", "--disable-pip-version-check", "--no-compile", "-c", str(ROOT / "constraints.txt")]
    run([str(programs / "python"), "-m", "pip", "install", *options, str(wheel)], folder)
    run([str(programs / "python"), "-I", "-W", "error::DeprecationWarning:surefoot", "-c", ONCE], folder)
    version = run([str(programs / "python"), "-VV"], folder).split("(")[0].strip()
    print(f"{version}: {run([str(programs / 'surefoot'), 'version'], folder).strip()}", flush=True)


def pythons(wheel: Path, folder: Path) -> None:
    """Try the wheel on every Python."""
    for name, python in interpreters().items():
        (folder / name).mkdir()
        try_on(python, wheel, folder / name)
        shutil.rmtree(folder / name)


def laboratory(wheel: Path, folder: Path) -> None:
    """Build the wheel of the laboratory, install it with the one it belongs to, and list what it can reproduce."""
    programs = new_environment(folder / "environment")
    pip = [str(programs / "python"), "-m", "pip", "--disable-pip-version-check", "--quiet"]
    run([*pip, "wheel", "--no-deps", "--wheel-dir", "wheels", str(ROOT / "lab")], folder)
    [built] = (folder / "wheels").glob("surefoot_lab-*.whl")
    run([*pip, "install", "--no-compile", "-c", str(ROOT / "constraints.txt"), str(wheel), str(built)], folder)
    listed = run([str(programs / "surefoot"), "reproduce", "--list"], folder)
    print(f"{built.name}: {built.stat().st_size / 1e6:.2f} MB, lists {len(listed.splitlines())} lines", flush=True)


def main() -> int:
    """Check what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="core or an extra; all of them if none is named")
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    asked = parser.parse_args()
    others = {"pythons": pythons, "lab": laboratory}
    known = [*CHECKS, *others]
    if unknown := sorted(set(asked.names) - set(known)):
        parser.error(f"no such extra: {', '.join(unknown)}; there are {', '.join(known)}")
    if asked.list:
        print("\n".join(known))
        return 0
    failed = []
    with tempfile.TemporaryDirectory(prefix="surefoot-") as made:
        wheel = build(Path(made))
        for name in asked.names or known:
            with tempfile.TemporaryDirectory(prefix=f"{name}-", dir=made) as folder:
                try:
                    if name in others:
                        others[name](wheel, Path(folder))
                    else:
                        install_and_use(name, CHECKS[name], wheel, Path(folder))
                except RuntimeError as error:
                    failed.append(name)
                    print(f"{name:<11} FAILED\n{error}", flush=True)
    print(f"{len(failed)} of {len(asked.names or known)} failed: {', '.join(failed)}" if failed else "all work")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
