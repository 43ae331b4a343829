"""The documentation: every public name has an example, every code block runs, every link leads somewhere."""

from __future__ import annotations

import doctest
import importlib
import inspect
import os
import pkgutil
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import surefoot
from surefoot.loop.errors import MissingExtra
from surefoot.loop.policy import Policy

ROOT = Path(__file__).resolve().parents[1]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
FENCE = re.compile(r"^```python\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)


PAGE_OF = {
    "BOBOS": "bo-bos",
    "RMBOBOS": "rm-bo-bos",
    "RMGPUCB": "rm-gp-ucb",
    "RMGPTS": "rm-gp-ucb",
    "RobustReport": "stable-opt",
    "MaxiMinGPUCB": "stable-opt",
    "RGPUCB": "tv-gp-ucb",
    "TVGPUCB": "tv-gp-ucb",
    "TruVaR": "truvar",
    "GPLSE": "level-sets",
    "Straddle": "level-sets",
    "VarianceSampling": "level-sets",
    "RandomLevelSet": "level-sets",
    "DBGPUCB": "batch",
    "GPUCBPE": "batch",
    "LocalPenalization": "batch",
    "QEI": "batch",
    "Player": "r2b2",
}  # names that no rule spells


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
                re.sub(r"[^\w]+", "-", line.lower()).strip("-") for line in re.findall(r"^#+ .*", content, re.M)
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
        page = ROOT / "docs" / "policies" / f"{PAGE_OF.get(name, words)}.md"
        text = page.read_text(encoding="utf-8")
        for part in ("**What.**", "**When.**", "**Maths.**", "**Options.**", "**Differences.**", "```python"):
            assert part in text, f"{page.name} lacks {part}"
        assert f"policies/{page.name}" in (ROOT / "docs" / "index.md").read_text(encoding="utf-8")


def test_the_skeleton_of_a_policy_keeps_the_contract(tmp_path):
    """The blocks of "How to add a policy", as a file of their own, pass the whole suite."""
    blocks = [
        block.group(1) for block in FENCE.finditer((ROOT / "docs" / "add-a-policy.md").read_text(encoding="utf-8"))
    ]
    module, tests = blocks[0], [block for block in blocks if "PolicyContract)" in block]
    assert len((module + tests[0]).splitlines()) < 60
    assert len(tests) == 2
    (tmp_path / "test_added.py").write_text("\n\n".join(blocks), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "test_added.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout
    passed = int(re.search(r"(\d+) passed", done.stdout).group(1))
    assert passed > 60  # most tests run on each of three domains


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    return build(ROOT / "mkdocs.yml", folder), folder


def build(config, folder):
    """Build the documentation as ``make docs`` does."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(config), "-d", str(folder)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    )


def test_the_documentation_builds_without_warnings(site):
    done, folder = site
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    assert {page.relative_to(folder).with_suffix(".md") for page in folder.rglob("*.html")} >= {
        page.relative_to(ROOT / "docs") for page in (ROOT / "docs").rglob("*.md")
    }


def test_the_documentation_fetches_nothing(site):
    """No script, style, font or picture comes from elsewhere."""
    for page in site[1].rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        fetched = re.findall(r"<(?:script|img|iframe|source)[^>]*\bsrc=[\"']?([^\"'\s>]+)", text)
        fetched += re.findall(r"<link[^>]*rel=[\"']?(?:stylesheet|preconnect|icon)[^>]*href=[\"']?([^\"'\s>]+)", text)
        assert fetched
        assert not [target for target in fetched if re.match(r"(?:https?:)?//", target)], page


@pytest.mark.parametrize("fault", ["[gone](gone.md)", "[gone](contract.md#no-such-heading)"])
def test_the_build_notices_a_broken_link(fault, tmp_path):
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    with (tmp_path / "docs" / "index.md").open("a", encoding="utf-8") as page:
        page.write(f"\n{fault}\n")
    done = build(tmp_path / "mkdocs.yml", tmp_path / "site")
    assert done.returncode != 0
    assert "gone" in done.stderr or "no-such-heading" in done.stderr
