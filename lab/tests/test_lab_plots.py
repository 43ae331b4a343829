from __future__ import annotations

import sys

import numpy as np
import pytest

import planted
from surefoot.errors import MissingExtra
from surefoot_lab import Trace
from surefoot_lab.plots import _mean_and_error, draw
from surefoot_lab.results import Results
from surefoot_lab.runner import run


def test_means_and_errors_of_ragged_series():
    mean, error = _mean_and_error([np.array([1.0, 2.0, np.nan]), np.array([3.0, 2.0])])
    assert np.array_equal(mean, [2.0, 2.0, np.nan], equal_nan=True)
    assert error[:2].tolist() == [1.0, 0.0]


def test_one_picture_per_series(tmp_path):
    results = Results.fresh(planted.run_truths, "quick")
    results.replicates = {0: {"a": Trace(regret=[1.0, 2.0], cost=[3.0, 4.0, 5.0], number=2.0, single=[1.0])}}
    assert sorted(path.name for path in draw(results, tmp_path)) == ["cost.png", "regret.png"]


def test_without_matplotlib_the_numbers_are_still_written(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match="plot"):
        draw(Results.fresh(planted.run_truths, "quick"), tmp_path)
    assert run(planted.run_truths, out=tmp_path, workers=0)["repetitions"] == 40
    assert not list((tmp_path / "planted/truths").glob("*.png"))
