"""A bridge without its host says what to install."""

from __future__ import annotations

import importlib
import importlib.util
import sys

import pytest

from surefoot.errors import MissingExtra

BRIDGES = {
    "optuna": ("optuna", "optuna"),
    "ray_tune": ("ray", "ray"),
    "sklearn": ("sklearn", "sklearn"),
    "botorch": ("botorch", "botorch"),
    "ax": ("ax", "ax"),
    "foolbox": ("foolbox", "foolbox"),
    "art": ("art", "art"),
    "gymnasium": ("gymnasium", "gymnasium"),
    "pettingzoo": ("pettingzoo", "pettingzoo"),
    "flower": ("flwr", "flower"),
}


@pytest.mark.parametrize("bridge", BRIDGES)
def test_a_bridge_without_its_host(bridge, monkeypatch):
    host, extra = BRIDGES[bridge]
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == host else real(name, *rest))
    monkeypatch.delitem(sys.modules, f"surefoot.bridge.{bridge}", raising=False)
    with pytest.raises(MissingExtra, match=rf"pip install 'surefoot\[{extra}\]'"):
        importlib.import_module(f"surefoot.bridge.{bridge}")
