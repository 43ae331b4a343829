"""Importing: fast, lazy, and without optional dependencies."""

from __future__ import annotations

import subprocess
import sys

import pytest

import surefoot

HEAVY = ("torch", "matplotlib", "sklearn", "click", "rich", "scipy.optimize", "scipy.stats", "scipy.linalg")


def python(code: str) -> list[str]:
    """Run code in a fresh interpreter and return the lines it printed."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_import_surefoot_is_lazy(record_property):
    code = (
        "import sys, time; start = time.perf_counter()\n"
        "import surefoot; print(time.perf_counter() - start)\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    seconds, imported = python(code)
    assert imported == "[]"
    record_property("import_seconds", float(seconds))  # reported, not asserted: machines differ


def test_advice_imports_no_optimizers_and_no_distributions():
    """``surefoot which`` looks at every policy, and does not wait for what only fits and verdicts need."""
    heavy = ("torch", "matplotlib", "sklearn", "scipy.optimize", "scipy.stats")
    code = (
        "import sys; from surefoot.cli.which import advise\n"
        "print(advise({'special': 'drift'}).use)\n"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    assert python(code) == ["surefoot.TVGPUCB", "[]"]


def test_the_lab_offers_the_decorator_and_not_the_module_of_its_name():
    """Whichever is imported first."""
    for first in ("", "import surefoot_lab.registry; ", "import surefoot_lab.runner; "):
        assert python(f"{first}from surefoot_lab import experiment; print(callable(experiment))") == ["True"]


@pytest.mark.parametrize(
    "use",
    [
        "surefoot.GPUCB(surefoot.Box.unit(2), seed=0).ask()",
        "p = surefoot.ExpectedImprovement(surefoot.Box.unit(2), seed=0); p.tell([0.5, 0.5], 1.0); p.recommend()",
        "surefoot.report.runs(surefoot.RandomSearch(surefoot.Box.unit(2), seed=0))",
    ],
)
def test_work_needs_no_optional_dependency(use):
    optional = ("torch", "matplotlib", "sklearn")
    code = f"import sys, surefoot\n{use}\nprint([name for name in {optional!r} if name in sys.modules])"
    assert python(code) == ["[]"]


def test_every_name_is_there_and_listed():
    for name in surefoot.__all__:
        assert getattr(surefoot, name) is not None
    assert set(surefoot.__all__) <= set(dir(surefoot))
    with pytest.raises(AttributeError, match="no_such_name"):
        surefoot.no_such_name  # noqa: B018


def test_names_for_type_checkers_are_the_lazy_ones():
    """The ``TYPE_CHECKING`` block and the table of lazy names must not drift apart."""
    import ast
    from pathlib import Path

    tree = ast.parse(Path(surefoot.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    listed = {alias.name for node in ast.walk(block) if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert listed == set(surefoot.__all__) - {"__version__"}
