"""Fields: the score of a map, the simulated transect, and the satellite field read from a file of the same form."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.errors import MissingData
from surefoot_lab import fields
from surefoot_lab.fields import baltic, f1_score, transect


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=30))
def test_f1_is_the_harmonic_mean_of_precision_and_recall(pairs):
    truth, found = (np.array(side) for side in zip(*pairs, strict=True))
    hits = (truth & found).sum()
    score = f1_score(truth, found)
    if truth.any() and found.any():
        precision, recall = hits / found.sum(), hits / truth.sum()
        expected = 2 * precision * recall / (precision + recall) if hits else 0.0
        assert score == pytest.approx(expected)
    else:
        assert score == float(not truth.any() and not found.any())
    assert score == f1_score(found, truth)


def test_f1_refuses_masks_of_different_sizes():
    with pytest.raises(ValueError, match=r"\(2,\) and \(3,\)"):
        f1_score([True, False], [True, False, True])


def test_the_transect_has_a_layer_and_a_fifth_above_the_threshold():
    field = transect(np.random.default_rng(4), side=30)
    assert field.above.mean() == pytest.approx(0.2, abs=0.01)
    depths = field.points[field.above, 1]
    assert 4 < np.median(depths) < 10  # the layer lies around 7 m
    assert field.gp.noise < 1e-5
    lengths = field.gp.kernel.lengthscale
    assert lengths[0] > 10 * lengths[1]  # far more alike along the lake than across its depth
    again = transect(np.random.default_rng(4), side=30)
    assert np.array_equal(field.values, again.values)


def test_a_transect_needs_room():
    with pytest.raises(ValueError, match="got 2"):
        transect(np.random.default_rng(0), side=2)


@pytest.fixture
def sea(tmp_path, monkeypatch):
    """A smooth field in the form of the data set, with noise and gaps."""
    rng = np.random.default_rng(0)
    row, column = np.mgrid[0:142, 0:290]
    days = [1.0 + d / 2 + np.sin(row / 15 + d) * np.cos(column / 20) for d in range(4)]
    clean = np.stack(days)
    valid = rng.random(clean.shape) < 0.95
    raw = np.exp(clean + 0.02 * rng.standard_normal(clean.shape))
    (tmp_path / "baltic_chlorophyll").mkdir()
    np.savez(
        tmp_path / "baltic_chlorophyll" / "baltic_chlorophyll.npz",
        chlorophyll=np.where(valid, raw, np.nan),
        valid=valid,
        latitude=np.arange(142.0),
        longitude=np.arange(290.0),
        time_unix=np.arange(4),
    )
    monkeypatch.setenv("SUREFOOT_DATA", str(tmp_path))
    monkeypatch.setattr(fields, "FITTED", 120)
    baltic.cache_clear()
    yield clean
    baltic.cache_clear()


def test_gaps_are_filled_and_noise_is_smoothed(sea):
    field = baltic(0, 3)
    i, j = fields.WINDOW
    truth = sea[0, i : i + 50, j : j + 50].T.ravel()  # longitude first
    assert np.abs(field.values - truth).max() < 0.06
    assert np.sqrt(np.mean((field.values - truth) ** 2)) < 0.012  # below the noise of a pixel
    assert field.gp.mean == pytest.approx(truth.mean(), abs=0.02)
    assert field.above.mean() == pytest.approx(0.2)
    assert field.points[1].tolist() == [0.0, pytest.approx(20 / 49)]  # depth fastest


def test_without_the_data_the_message_says_where_they_go(tmp_path, monkeypatch):
    monkeypatch.setenv("SUREFOOT_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    baltic.cache_clear()
    with pytest.raises(MissingData, match="baltic_chlorophyll"):
        baltic()
