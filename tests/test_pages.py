"""The pages as a whole: links, what every policy needs, the reference, and the site that is built of them."""

from __future__ import annotations

import ast
import functools
import importlib.util
import inspect
import os
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

import markdown
import matplotlib
import matplotlib.pyplot as plt
import pytest
from markdown.extensions.toc import slugify

import surefoot
from surefoot.loop.policy import Policy
from surefoot.testing import PolicyContract

ROOT = Path(__file__).resolve().parents[1]
MADE = {"build", "dist", "node_modules", "results", "site"}  # by tools, not by hand
PAGES = [*sorted(ROOT.glob("*.md"))] + [
    page
    for folder in sorted(ROOT.iterdir())
    if folder.is_dir() and not folder.name.startswith(".") and folder.name not in MADE
    for page in sorted(folder.rglob("*.md"))
    if not MADE & set(page.parts)
]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
BRIEF = {"batches.py": "2"}  # how much an example that can be told measures here; others 6
DEAR = {"combined_batch_workers", "combined_drift_service", "combined_robust_space", "optuna_sampler"}
DEAR |= {"robust_design", "robustness_report", "search_cv", "serve_and_client", "stop_with_earlier_tasks"}
DEAR |= {"federated_three_processes"}  # seconds each, or processes of their own: `make test-all` runs them
PICTURES = {".png", ".svg", ".html", ".gif"}
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
POLICIES = sorted(
    name
    for name in surefoot.__all__
    if inspect.isclass(value := getattr(surefoot, name)) and issubclass(value, Policy) and value is not Policy
)


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def load(path: Path):
    """Import a file that belongs to no package."""
    spec = importlib.util.spec_from_file_location(f"loaded_{path.stem}", path)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


reference = load(ROOT / "docs" / "reference" / "pages.py")


# Links


def prose(text: str) -> str:
    """Return a page without its code, in which brackets mean something else."""
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL))


@functools.cache
def anchors(page: Path) -> set[str]:
    """Return what a link into a page may point at."""
    text = reference.on_page_markdown(page.read_text(encoding="utf-8"))
    text = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL)
    found = set(re.findall(r'\bid="([^"]+)"', text))
    for heading in re.findall(r"^#+ +(.*)$", text, flags=re.MULTILINE):
        words, _, own = heading.partition("{ #")
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", words)
        found.add(own.split()[0] if own else slugify(re.sub(r"[`*]", "", plain).strip(), "-"))
    return found


def targets(page: Path) -> list[str]:
    text = prose(page.read_text(encoding="utf-8"))
    inline = re.findall(r"\]\(<?([^)\s>]+)>?(?: +\"[^\"]*\")?\)", text)
    listed = re.findall(r"^\[[^\]]+\]: +(\S+)", text, flags=re.MULTILINE)
    return inline + listed + re.findall(r'\b(?:href|src)="([^"]+)"', text)


def broken(page: Path) -> list[str]:
    """Return the links of a page that lead nowhere; addresses elsewhere are looked at, not fetched."""
    bad = []
    for target in targets(page):
        if re.match(r"[a-z]+:", target):
            parts = urlsplit(target)
            if parts.scheme not in ("https", "http", "mailto") or not (parts.hostname or parts.scheme == "mailto"):
                bad.append(target)
            continue
        path, _, anchor = target.partition("#")
        found = (page.parent / path).resolve() if path else page
        inside = found.exists() and ROOT in [found, *found.parents]
        if not inside or (anchor and (found.suffix != ".md" or anchor not in anchors(found))):
            bad.append(target)
    return bad


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    assert not broken(page)


FAULTS = """
[a](gone.md)
[a](page.md#gone)
[a](#gone)
![a](gone.png)
<img src="gone.svg">
[a](https:///x)
[a](ftp://example.org/x)
[a](../../../../../../../../etc)
[a]: gone.md
"""


@pytest.mark.parametrize("fault", FAULTS.split("\n")[1:-1])
def test_a_broken_link_is_noticed(fault, tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("# A page's `title`\n\n[fine](page.md#a-pages-title) [fine](https://example.org/a#b)\n", "utf-8")
    assert not broken(page)
    page.write_text(f"# Another\n\n{fault}\n\n`[not](a-link.md)`\n", encoding="utf-8")
    anchors.cache_clear()
    assert len(broken(page)) == 1


def test_the_bibliography_is_in_order():
    text = (ROOT / "docs" / "bibliography.md").read_text(encoding="utf-8")
    keys = re.findall(r'<a id="([a-z0-9]+)"></a>', text)
    assert keys == sorted(set(keys))


# Policies: page, example with a picture, contract


@pytest.mark.parametrize("example", [path for path in EXAMPLES if path.stem not in DEAR], ids=name_of)
def test_examples_run(example, tmp_path, monkeypatch, capfd):
    """Each from a folder of its own; one that says it draws leaves a picture or a page."""
    assert len(example.read_text(encoding="utf-8").splitlines()) < 60
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(example), *brief(example)])
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with matplotlib.rc_context():
        try:
            runpy.run_path(str(example), run_name="__main__")
        except SystemExit as leaving:  # its host is not installed, and it says so
            assert not leaving.code  # noqa: PT017
        plt.close("all")
    assert capfd.readouterr().out.strip()
    assert pictures(tmp_path) == draws(example)


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=name_of)
def test_examples_run_as_a_reader_starts_them(example, tmp_path):
    assert len(example.read_text(encoding="utf-8").splitlines()) < 60
    command, folders = [sys.executable, str(example), *brief(example)], {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, env=folders, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert pictures(tmp_path) == draws(example)


def brief(example: Path) -> list[str]:
    return [BRIEF.get(example.name, "6")] if "int(sys.argv[1])" in example.read_text(encoding="utf-8") else []


def pictures(folder: Path) -> bool:
    return any(path.suffix in PICTURES and path.stat().st_size > 2000 for path in folder.rglob("*"))


@functools.cache
def drawn() -> dict[str, set[str]]:
    """Return for every policy the examples that use it and leave a picture."""
    found: dict[str, set[str]] = {}
    for path in (ROOT / "examples").glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        used = {each.id for each in ast.walk(tree) if isinstance(each, ast.Name)}
        called = {each.attr for each in ast.walk(tree) if isinstance(each, ast.Attribute)}
        if draws(path):
            for name in used | called:
                found.setdefault(name, set()).add(path.name)
    return found


def draws(example: Path) -> bool:
    """Say whether an example claims to leave a picture; that it does is tested where the examples run."""
    calls = [each for each in ast.walk(ast.parse(example.read_text(encoding="utf-8"))) if isinstance(each, ast.Call)]
    return any(ast.unparse(each.func).rpartition(".")[2] in ("savefig", "page") for each in calls)


@functools.cache
def contracts() -> dict[str, list[type]]:
    """Return for every policy the contract suites that run in `make test`."""
    found: dict[str, list[type]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*contract.py")):
        if path.parent.name == "testing":
            continue  # tests of the suite itself
        for suite in vars(load(path)).values():
            slow = any(mark.name == "slow" for mark in getattr(suite, "pytestmark", []))
            if inspect.isclass(suite) and issubclass(suite, PolicyContract) and hasattr(suite, "policy") and not slow:
                found.setdefault(suite.policy.__name__, []).append(suite)
    return found


def page_of(name: str) -> Path:
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name.replace("GPUCB", "GpUcb")).lower()
    return ROOT / "docs" / "policies" / f"{PAGE_OF.get(name, words)}.md"


def test_there_are_policies():
    assert len(POLICIES) >= 33
    assert set(PAGE_OF) <= set(POLICIES)


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_has_a_page(name):
    """GPUCB has docs/policies/gp-ucb.md, with the parts a reader looks for, and the front page leads there."""
    page = page_of(name)
    text = page.read_text(encoding="utf-8")
    for part in (name, "**What.**", "**When.**", "**Maths.**", "**Options.**", "**Differences.**", "```python"):
        assert part in text, f"{page.name} lacks {part}"
    assert f"policies/{page.name}" in (ROOT / "docs" / "index.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_has_an_example_with_a_picture(name):
    """And its page names it."""
    assert drawn().get(name), f"no script in examples/ uses {name} and leaves a picture"
    text = page_of(name).read_text(encoding="utf-8")
    assert any(f"`examples/{script}`" in text for script in drawn()[name]), f"the page names none of {drawn()[name]}"


def test_examples_that_pages_name_exist():
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    named = {name for page in pages for name in re.findall(r"\bexamples/[\w./-]*\w", page.read_text(encoding="utf-8"))}
    assert len(named) > 25
    assert not [name for name in sorted(named) if not (ROOT / name).exists()]


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_keeps_the_contract(name):
    assert contracts().get(name), f"no contract suite of `make test` is about {name}"


# The reference


def test_every_room_has_a_page():
    rooms = {path.parent.name for path in (ROOT / "src" / "surefoot").glob("*/__init__.py")}
    for room in rooms:
        text = (ROOT / "docs" / "reference" / f"{room}.md").read_text(encoding="utf-8")
        assert f"<!-- room: surefoot.{room} -->" in text
        assert f"({room}.md)" in (ROOT / "docs" / "reference" / "index.md").read_text(encoding="utf-8")


def constructed(module, name: str, node: ast.ClassDef) -> bool:
    """Say whether users make objects of a class: a package or a bridge offers it, and it is no protocol or error."""
    bases = {ast.unparse(base).rpartition(".")[2] for base in node.bases}
    offered = reference.shortest(module.name, name) != module.name or module.name.startswith("surefoot.bridge.")
    return offered and not any(re.match(r"ABC$|Protocol\b|\w*(Error|Exception)$", base) for base in bases)


def test_public_names_are_listed_and_documented_with_examples_of_what_users_call():
    """The source is read, not imported: bridges count whether their hosts are installed or not."""
    unlisted, silent, bare = [], [], []
    for path in sorted((ROOT / "src" / "surefoot").rglob("*.py")):
        private = path.stem.startswith("_") and path.stem != "__init__"
        if private or {"experiments", "migrations"} & set(path.parts):
            continue  # of one family; run by the laboratory or by Alembic: nobody imports them
        text = path.read_text(encoding="utf-8")
        if "__all__" not in text and re.search(r"^(?:def|class) [^_]", text, flags=re.MULTILINE):
            unlisted.append(str(path))
    for module in reference.modules().values():
        for name in module.public:
            made = module.made.get(name)
            if not isinstance(made, ast.FunctionDef | ast.ClassDef):
                continue
            doc = ast.get_docstring(made) or ""
            if not doc.strip():
                silent.append(f"{module.name}.{name}")
            if ">>> " not in doc and (isinstance(made, ast.FunctionDef) or constructed(module, name, made)):
                bare.append(f"{module.name}.{name}")
    assert not unlisted, "no __all__"
    assert not silent, "no docstring"
    assert not bare, "no example"


def test_a_docstring_becomes_markdown():
    doc = """Return x_1 * y for a [0, 1] scale, with *care* and ``code_here``.

    See :class:`~surefoot.loop.types.LevelSet`.

    Parameters
    ----------
    x : array, shape (n,)
        What it is,
        over two lines.
    **options
        The rest.

    >>> 1 + 1
    2

    >>> "a"
    'a'
    """
    assert reference.prose(doc).splitlines() == [
        r"Return x\_1 \* y for a \[0, 1] scale, with *care* and ``code_here``.",
        "",
        "See ``LevelSet``.",
        "",
        "**Parameters**",
        "",
        "`x` : array, shape (n,)",
        ":   What it is,",
        "    over two lines.",
        "",
        "`**options`",
        ":   The rest.",
        "",
        "```pycon",
        ">>> 1 + 1",
        "2",
        "",
        '>>> "a"',
        "'a'",
        "```",
    ]


def test_a_name_is_shown_with_its_call_and_its_shortest_home():
    module = reference.modules()["surefoot.policy.ucb.gp_ucb"]
    text = reference.entry(module, "GPUCB")
    assert "```python\nGPUCB(domain, *, width=None, **options)\n```" in text
    assert "`from surefoot import GPUCB`" in text
    assert "`from surefoot.policy.ucb.gp_ucb import UpperConfidence`" in reference.entry(module, "UpperConfidence")


def test_errata_name_what_exists():
    """Classes, functions, modules and experiments that the errata point at are there."""
    text = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")
    known = {name for module in reference.modules().values() for name in module.public}
    known |= {part for module in reference.modules() for part in module.split(".")} | {"published"}
    codes = set(re.findall(r"`([^`]+)`", text))
    called = {re.match(r"[\w.]+", code).group() for code in codes if re.match(r"[A-Za-z_][\w.]*(\(.*\))?$", code)}
    words = {part for name in called for part in name.split(".")} - {"if", "branch", "constant_sum"}
    assert len(words) > 40
    assert not words - known
    folder = ROOT / "lab" / "src" / "surefoot_lab" / "experiments"
    ids = {path.relative_to(folder).with_suffix("").as_posix().replace("_", "-") for path in folder.glob("*/*.py")}
    assert set(re.findall(r"surefoot reproduce ([\w/-]+)", text)) <= ids


# The site


def build(config: Path, folder: Path):
    """Build the documentation as ``make docs`` does."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(config), "-d", str(folder)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=300, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    )


def test_the_site(tmp_path):
    """It builds without warnings, has every page and every public name, and fetches nothing from elsewhere."""
    done = build(ROOT / "mkdocs.yml", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    made = {page.relative_to(tmp_path).with_suffix(".md"): page for page in tmp_path.rglob("*.html")}
    assert set(made) >= {page.relative_to(ROOT / "docs") for page in (ROOT / "docs").rglob("*.md")}
    for page in made.values():
        text = page.read_text(encoding="utf-8")
        fetched = re.findall(r"<(?:script|img|iframe|source)[^>]*\bsrc=[\"']?([^\"'\s>]+)", text)
        fetched += re.findall(r"<link[^>]*rel=[\"']?(?:stylesheet|preconnect|icon)[^>]*href=[\"']?([^\"'\s>]+)", text)
        assert fetched
        assert not [target for target in fetched if re.match(r"(?:https?:)?//", target)], page
        assert not re.search(r"<!-- (room|names|scripts):", text), page
        assert eaten(text) == [], page
        if page.parent.name == "reference":
            assert not re.search(r":(class|func|mod|data|meth):`|^-{4,}$", text, flags=re.MULTILINE), page
    for module in reference.modules().values():
        room = reference.page_of(module.name)
        text = (tmp_path / "reference" / f"{room}.html").read_text(encoding="utf-8") if module.public else ""
        lost = [name for name in module.public if name in module.made and f'id="{module.name}.{name}"' not in text]
        assert not lost, module.name


def eaten(html: str) -> list[str]:
    """Return where emphasis begins or ends inside a word: signs of a formula that Markdown took for marks."""
    text = re.sub(r"<(pre|code|script|style)\b.*?</\1>", "", html, flags=re.DOTALL)
    found = re.finditer(r"[\w)}\]]<(?:em|strong)>|</(?:em|strong)>[\w({_^]", text)
    return [text[max(0, m.start() - 40) : m.end() + 40] for m in found]


# Finding 24 of the review of 0.1.0
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_formula_loses_its_stars_or_bars_to_markdown(page):
    html = markdown.markdown(page.read_text(encoding="utf-8"), extensions=["tables", "fenced_code", "attr_list"])
    assert eaten(html) == []


def test_a_formula_that_loses_its_stars_is_found():
    assert eaten(markdown.markdown("the threshold h = y*_{t−1} − ξ, where y* is the best"))
    assert not eaten(
        markdown.markdown(r"the threshold h = y\*_{t−1} − ξ, where y\* is the *best*, R_T/T and `y*_a, b*`")
    )


def test_the_build_notices_broken_links(tmp_path):
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    without = re.sub(r"^hooks:\n(?:  .*\n)+", "", config, flags=re.MULTILINE)  # the reference takes most of the time
    assert without != config
    (tmp_path / "mkdocs.yml").write_text(without, encoding="utf-8")
    with (tmp_path / "docs" / "index.md").open("a", encoding="utf-8") as page:
        page.write("\n[gone](gone.md) [gone](contract.md#no-such-heading)\n")
    done = build(tmp_path / "mkdocs.yml", tmp_path / "site")
    assert done.returncode != 0
    assert "gone.md" in done.stderr
    assert "no-such-heading" in done.stderr
