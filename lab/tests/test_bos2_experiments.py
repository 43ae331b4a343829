"""The experiments of BOS², at a fraction of their budgets: every claim reads something."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot_lab.experiments.bos2.stopping_behaviour import FACED, SHAPES
from surefoot_lab.registry import Replicate, find


def test_linear_toy():
    found = find("bos2/linear-toy")
    traces = [found.run(Replicate(i, settings={"budget": 60})) for i in range(3)]
    judged = {claim.name: claim.judge(traces) for claim in found.claims}
    assert all(test["n"] for entry in judged.values() for test in entry["tests"])
    assert next(e for e in judged.values() if e["form"] == "EXACT")["verdict"] == "holds"


def test_stopping_behaviour():
    found = find("bos2/stopping-behaviour")
    traces = [found.run(Replicate(i, settings={"paths": 4_000})) for i in range(6)]
    judged = [claim.judge(traces) for claim in found.claims]
    assert not [entry["name"] for entry in judged if entry["verdict"] == "fails"]
    assert np.mean([t["stagnating, y* = -5"]["stopped"] for t in traces]) == 1.0
    # The loops are what their names say: with noise, nearly always.
    assert np.mean([t["fast, y* = -5"]["wins"] for t in traces]) == 1.0
    assert np.mean([t["stagnating, y* = -8"]["wins"] for t in traces]) == 0.0


@pytest.mark.parametrize("shape", FACED)
def test_shapes_do_what_they_say(shape):
    ends = {"stagnating": -11.0, "slow": -8.2, "fast": -3.6}
    assert SHAPES[shape][-1] == pytest.approx(ends[shape], abs=0.1)
