"""The page on the architecture says what is there."""

from __future__ import annotations

import html
import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

import surefoot

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def rooms():
    pytest.importorskip("grimp")
    spec = importlib.util.spec_from_file_location("rooms", ROOT / "docs" / "rooms.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_picture_is_drawn_from_the_imports_of_today(rooms):
    kept = rooms.PICTURE.read_text(encoding="utf-8")
    assert rooms.draw() == kept, "run `python docs/rooms.py` and look at the picture"
    described = html.unescape(re.search(r'aria-label="([^"]*)"', kept)[1])
    assert f"![{described}](rooms.svg)" in PAGE


def test_every_layer_of_the_import_rules_is_a_room_of_the_picture(rooms):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    [contract] = project["tool"]["importlinter"]["contracts"]
    layers = [name.strip().removeprefix("surefoot.") for layer in contract["layers"] for name in layer.split("|")]
    assert set(layers) == set(rooms.ROOMS)


def test_arrows_are_left_out_only_where_they_follow(rooms):
    imported = {"a": {"b", "c"}, "b": {"c"}, "c": set(), "d": {"c"}}
    assert rooms.reduced(imported) == {"a": {"b"}, "b": {"c"}, "c": set(), "d": {"c"}}
    real = rooms.imports()
    assert {"loop", "belief", "domain"} <= real["policy"]
    assert "policy" not in real["loop"] | real["belief"] | real["domain"]
    few = rooms.reduced(real)
    for name in real:
        assert rooms.reachable(few, name) == rooms.reachable(real, name)


def test_files_and_names_of_the_page_exist():
    package = Path(surefoot.__file__).parent
    named = re.findall(r"`([a-z_]+/[\w/]+(?:\.py)?)`", PAGE)
    assert len(named) > 10
    assert not [name for name in named if not (package / name).exists() and not (ROOT / name).exists()]
    for file, names in re.findall(r"`([\w/]+\.py)`: `([\w.]+)`", PAGE):
        text = (package / file).read_text(encoding="utf-8")
        kind, *methods = names.split(".")
        assert re.search(rf"^class {kind}\b", text, flags=re.MULTILINE), names
        assert all(re.search(rf"^    def {method}\b", text, flags=re.MULTILINE) for method in methods), names
