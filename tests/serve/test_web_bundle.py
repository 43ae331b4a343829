"""The built page that ships in the package: made from the sources beside it, small, and in need of nobody else."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest

from surefoot.report.theme import variables

WEB = Path(__file__).parents[2] / "web"
STATIC = Path(str(files("surefoot.serve"))) / "static"
REBUILD = "rebuild it with `make web`"


def fingerprint() -> str:
    """What web/build.mjs writes into the page: a hash over the names and contents of its sources."""
    names = [path.relative_to(WEB).as_posix() for path in (WEB / "src").rglob("*") if path.is_file()]
    names += ["build.mjs", "package.json", "package-lock.json", "tsconfig.json"]
    made = hashlib.sha256()
    for name in sorted(names):
        made.update(name.encode() + b"\0" + (WEB / name).read_bytes() + b"\0")
    return made.hexdigest()


def test_the_bundle_is_made_from_these_sources():
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    written = re.search(r'<meta name="sources" content="([0-9a-f]{64})">', page)
    assert written is not None
    assert written[1] == fingerprint(), f"web/ has changed since the page was built: {REBUILD}"


def test_addresses_change_with_contents():
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    found = dict(re.findall(r'(?:src|href)="assets/([a-z.]+)\?v=([0-9a-f]+)"', page))
    assert set(found) == {"app.js", "app.css", "theme.js", "icon.svg"}
    for name, version in found.items():
        content = (STATIC / "assets" / name).read_bytes()
        assert hashlib.sha256(content).hexdigest().startswith(version), f"{name}: {REBUILD}"


@pytest.mark.skipif(not (WEB / "node_modules").is_dir() or shutil.which("node") is None, reason="needs npm ci in web/")
def test_a_new_build_is_the_same_to_the_byte(tmp_path):
    subprocess.run(["node", "build.mjs", str(tmp_path)], cwd=WEB, check=True, capture_output=True, timeout=60)
    built = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    shipped = {path.relative_to(STATIC): path.read_bytes() for path in STATIC.rglob("*") if path.is_file()}
    assert built == shipped


def test_small_and_alone():
    assets = [path for path in STATIC.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in assets) < 150_000
    for path in assets:
        if path.suffix == ".txt":
            continue
        text = path.read_text(encoding="utf-8")
        elsewhere = set(re.findall(r"(?:https?:)?//[a-z0-9.-]+\.[a-z]{2,}[^\s\"'`]*", text))
        # Names of XML languages look like addresses; nobody goes there.
        assert {address for address in elsewhere if "www.w3.org/" not in address} == set(), path.name


def test_nothing_a_strict_policy_would_refuse():
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    assert re.findall(r"<script(?![^>]*\bsrc=)", page) == []
    assert re.findall(r"<style|\bstyle=|\bon[a-z]+=|javascript:", page) == []
    script = (STATIC / "assets" / "app.js").read_text(encoding="utf-8")
    assert re.findall(r"\beval\(|new Function\b|document\.write", script) == []
    sources = "".join(path.read_text(encoding="utf-8") for path in (WEB / "src").rglob("*.ts*"))
    assert "dangerouslySetInnerHTML" not in sources
    assert "innerHTML" not in sources


def test_the_colors_are_those_of_the_report():
    text = (WEB / "src" / "colors.css").read_text(encoding="utf-8")
    assert text.count(variables("light")) == 1
    assert text.count(variables("dark")) == 2  # by the system's theme and by the reader's own choice
    assert set(re.findall(r"--[a-z0-9]+:#[0-9a-f]{6}", text)) == {
        entry for theme in ("light", "dark") for entry in variables(theme).split(";") if entry
    }


def test_the_lock_file_names_no_registry():
    assert "http" not in re.sub(r'"(url|funding|homepage)": [^\n]*', "", (WEB / "package-lock.json").read_text("utf-8"))


def test_the_license_of_what_is_inside_comes_along():
    text = (STATIC / "assets" / "licenses.txt").read_text(encoding="utf-8")
    assert "Preact" in text
    assert "The MIT License" in text
