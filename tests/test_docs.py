"""The documentation: every public name has an example, every code block runs, every link leads somewhere."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import surefoot
from surefoot.loop.policy import Policy

ROOT = Path(__file__).resolve().parents[1]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
FENCE = re.compile(r"^```python\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def modules() -> list[ModuleType]:
    """Import every module of the package."""
    found = pkgutil.walk_packages(surefoot.__path__, "surefoot.")
    return [surefoot, *(importlib.import_module(module.name) for module in found)]


def public_names() -> dict[str, object]:
    """Return every class and function that some ``__all__`` lists, under the place it was made."""
    names: dict[str, object] = {}
    for module in modules():
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if inspect.isclass(value) or inspect.isroutine(value):
                names[f"{value.__module__}.{value.__qualname__}"] = value
    return names


def test_every_public_name_has_an_example():
    """Examples run with the tests (``--doctest-modules``); here we see that there is one."""
    parser = doctest.DocTestParser()
    bare = [
        name
        for name, value in sorted(public_names().items())
        if not parser.get_examples(inspect.cleandoc(value.__doc__ or ""))
    ]
    assert not bare, f"{len(bare)} public names without an example: {bare}"


def test_every_module_says_what_it_is_for():
    assert not [module.__name__ for module in modules() if not (module.__doc__ or "").strip()]


def test_every_listed_name_exists_and_lists_are_sorted_sets():
    for module in modules():
        names = list(getattr(module, "__all__", ()))
        assert len(names) == len(set(names)), module.__name__
        assert all(hasattr(module, name) for name in names), module.__name__


@pytest.mark.parametrize("page", [page for page in PAGES if FENCE.search(page.read_text())], ids=name_of)
def test_code_blocks_run(page, tmp_path, monkeypatch, capsys):
    """The blocks of a page run one after the other, as a reader would type them."""
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    namespace: dict[str, object] = {"__name__": "page"}
    blocks = list(FENCE.finditer(text))
    assert len(blocks) == text.count("```python"), "a block that the pattern misses would not be run"
    for block in blocks:
        lines = text[: block.start(1)].count("\n")  # so that a traceback points into the page
        exec(compile("\n" * lines + block.group(1), name_of(page), "exec"), namespace)
    policy = namespace.get("policy")
    if isinstance(policy, Policy):
        policy.close()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        found = (page.parent / path).resolve() if path else page
        assert found.exists(), target
        if anchor:
            content = found.read_text(encoding="utf-8")
            headings = [
                re.sub(r"[^\w]+", "-", line.strip("# ").lower()) for line in re.findall(r"^#+ .*", content, re.M)
            ]
            assert f'id="{anchor}"' in content or anchor in headings, target


@pytest.mark.parametrize("example", EXAMPLES, ids=name_of)
def test_examples_run(example, tmp_path):
    assert len(example.read_text(encoding="utf-8").splitlines()) < 60
    done = subprocess.run([sys.executable, str(example)], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_every_policy_has_a_page():
    """GPUCB has docs/policies/gp-ucb.md, with the parts a reader looks for."""
    names = [
        name
        for name in surefoot.__all__
        if inspect.isclass(value := getattr(surefoot, name)) and issubclass(value, Policy)
    ]
    for name in set(names) - {"Policy"}:
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name.replace("GPUCB", "GpUcb")).lower()
        page = ROOT / "docs" / "policies" / f"{words}.md"
        text = page.read_text(encoding="utf-8")
        for part in ("**What.**", "**When.**", "**Maths.**", "**Options.**", "**Differences.**", "```python"):
            assert part in text, f"{page.name} lacks {part}"
        assert f"policies/{page.name}" in (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
