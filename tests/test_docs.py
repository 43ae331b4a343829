"""What is written about the code: every module says what it is for, every code block of a page runs."""

from __future__ import annotations

import importlib
import pkgutil
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

import surefoot
from surefoot.errors import MissingExtra
from surefoot.loop.policy import Policy

ROOT = Path(__file__).resolve().parents[1]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
FILES = {"add-a-policy.md"}  # a page whose blocks are files: tests/testing/test_skeleton_page.py
FENCE = re.compile(r"^```python\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def modules() -> list[ModuleType]:
    """Import every module of the package."""
    made = [surefoot]
    for found in pkgutil.walk_packages(surefoot.__path__, "surefoot.", onerror=lambda name: None):
        try:
            made.append(importlib.import_module(found.name))
        except (ImportError, MissingExtra):
            # A bridge needs its host, which the development tools do not include; its own tests import it.
            assert found.name.startswith("surefoot.bridge."), found.name
    return made


def test_every_module_says_what_it_is_for():
    assert not [module.__name__ for module in modules() if not (module.__doc__ or "").strip()]


def test_every_listed_name_exists_and_lists_are_sorted_sets():
    for module in modules():
        names = list(getattr(module, "__all__", ()))
        assert len(names) == len(set(names)), module.__name__
        assert all(hasattr(module, name) for name in names), module.__name__


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name not in FILES and FENCE.search(page.read_text())], ids=name_of
)
@pytest.mark.filterwarnings("error:.*the old name goes with:DeprecationWarning")
def test_code_blocks_run(page, tmp_path, monkeypatch, capsys):
    """The blocks of a page run one after the other, as a reader would type them."""
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    module = ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)  # where the blocks' own classes look for themselves
    namespace = vars(module)
    blocks = list(FENCE.finditer(text))
    assert len(blocks) == text.count("```python"), "a block that the pattern misses would not be run"
    for block in blocks:
        lines = text[: block.start(1)].count("\n")  # so that a traceback points into the page
        exec(compile("\n" * lines + block.group(1), name_of(page), "exec"), namespace)
    policy = namespace.get("policy")
    if isinstance(policy, Policy):
        policy.close()
