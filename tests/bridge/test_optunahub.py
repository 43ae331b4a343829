"""The folders for OptunaHub: its layout, its loader, and the examples that come with them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("optuna", reason="needs Optuna: pip install 'surefoot[optuna]'")
pytest.importorskip("optunahub.hub", reason="needs OptunaHub: pip install optunahub")

import optuna
import optunahub
import yaml

from surefoot.bridge.optuna import BosPruner, SurefootSampler

ROOT = Path(__file__).resolve().parents[2]
REGISTRY = ROOT / "optunahub"
PACKAGES = {"samplers/surefoot": SurefootSampler, "pruners/surefoot_bos": BosPruner}
FENCE = re.compile(r"^```python\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)


def test_every_folder_is_listed_here():
    assert {str(path.parent.relative_to(REGISTRY)) for path in REGISTRY.rglob("__init__.py")} == set(PACKAGES)


@pytest.mark.parametrize("package", PACKAGES)
def test_the_hub_loads_the_installed_class(package):
    """No copy of the code: what the hub loads is what ``surefoot`` has."""
    module = optunahub.load_local_module(package, registry_root=str(REGISTRY))
    assert module.__all__ == [PACKAGES[package].__name__]
    assert getattr(module, module.__all__[0]) is PACKAGES[package]


@pytest.mark.parametrize("package", PACKAGES)
def test_the_page_says_what_the_hub_asks(package):
    text = (REGISTRY / package / "README.md").read_text(encoding="utf-8")
    _, front, page = re.split(r"^---$", text, maxsplit=2, flags=re.MULTILINE)
    facts = yaml.safe_load(front)
    assert set(facts) == {"author", "title", "description", "tags", "optuna_versions", "license"}
    assert package.split("/")[0].removesuffix("s") in facts["tags"]
    assert facts["optuna_versions"] == [optuna.__version__]
    assert facts["license"] == "MIT License"
    assert re.findall(r"^## (.*)$", page, re.MULTILINE) == [
        "Abstract",
        "Class or Function Names",
        "Installation",
        "Example",
        "Others",
    ]
    assert f"- {PACKAGES[package].__name__}\n" in page
    assert (REGISTRY / package / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


@pytest.mark.parametrize("package", PACKAGES)
def test_the_blocks_of_the_page_run(package, monkeypatch):
    """As they stand, but that the folder is loaded from here and not from the hub."""

    def load_module(package):
        return optunahub.load_local_module(package, registry_root=str(REGISTRY))

    monkeypatch.setattr(optunahub, "load_module", load_module)
    namespace: dict[str, object] = {}
    for block in FENCE.findall((REGISTRY / package / "README.md").read_text(encoding="utf-8")):
        exec(block, namespace)
    assert len(namespace["study"].trials) == 20


@pytest.mark.parametrize("package", PACKAGES)
def test_the_example_runs(package, tmp_path):
    command = [sys.executable, str(REGISTRY / package / "example.py")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
