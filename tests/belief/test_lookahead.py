"""Look-ahead sums against variances that are worked out one measurement at a time."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.belief import GP, SE, GridPosterior, Matern
from surefoot.belief import lookahead as module
from surefoot.belief.lookahead import Lookahead

RNG = np.random.default_rng(0)
POINTS = RNG.random((150, 2))
MEASURED = RNG.integers(150, size=12).tolist()
ROWS = np.flatnonzero(RNG.random(150) < 0.6)
GPS = [GP(SE([0.2, 0.4], variance=3.0), noise=1e-2), GP(Matern(1.5, 0.3), noise=1e-3)]


def measured(gp, points=POINTS):
    grid = GridPosterior(gp, points)
    for i in MEASURED:
        grid.append(i, float(i % 7))
    return grid


def brute(gp, noise, scale, floor):
    """Append each candidate in turn, and look."""
    before = np.maximum(scale * measured(gp).var[ROWS], floor).sum()
    found = []
    for x in range(len(POINTS)):
        grid = measured(gp)
        grid.append(x, 0.0, noise)
        found.append(before - np.maximum(scale * grid.var[ROWS], floor).sum())
    return np.array(found)


@pytest.mark.parametrize("gp", GPS)
@pytest.mark.parametrize("floor", [0.0, 0.4])
def test_gains_are_those_of_appended_measurements(gp, floor, monkeypatch):
    noises = [1e-3, 0.5]
    expected = np.array([brute(gp, noise, 4.0, floor) for noise in noises])
    look = Lookahead(measured(gp), ROWS)
    np.testing.assert_allclose(look.gains(noise=noises, scale=4.0, floor=floor), expected, atol=1e-9)
    some = [3, 77, 140]
    np.testing.assert_allclose(look.gains(some, noises, scale=4.0, floor=floor), expected[:, some], atol=1e-9)
    posterior = gp.condition(POINTS[MEASURED], [float(i % 7) for i in MEASURED])
    other = Lookahead(posterior, POINTS[ROWS])
    np.testing.assert_allclose(other.mean, look.mean, atol=1e-9)
    np.testing.assert_allclose(other.gains(POINTS, noises, scale=4.0, floor=floor), expected, atol=1e-8)
    monkeypatch.setattr(module, "BLOCK", 64 * 7)
    monkeypatch.setattr(module, "TALL", 7)  # many blocks, the last ones not full
    np.testing.assert_allclose(look.gains(noise=noises, scale=4.0, floor=floor), expected, atol=1e-9)


def test_rows_that_drop_out_give_back_their_floor():
    look = Lookahead(measured(GPS[0]), ROWS)
    everything = look.anticipated(lambda mean, half: half >= 0.0, scale=4.0, floor=0.4)
    np.testing.assert_allclose(everything, look.gains(scale=4.0, floor=0.4), atol=1e-9)
    nothing = look.anticipated(lambda mean, half: half < 0.0, scale=4.0, floor=0.4)
    np.testing.assert_allclose(nothing, np.maximum(4.0 * look.var, 0.4).sum())


def test_where_nothing_is_left_to_learn_nothing_is_gained():
    grid = GridPosterior(GP(SE(0.2), noise=1e-12), POINTS)
    grid.append(5, 1.0, 0.0)
    assert Lookahead(grid, ROWS).gains([5], [0.0])[0, 0] == 0.0
    assert Lookahead(grid, ROWS).gains(floor=10.0).max() == 0.0


def test_bad_input():
    look = Lookahead(measured(GPS[0]), ROWS)
    for noise in ([-1.0], [np.nan], [np.inf]):
        with pytest.raises(ValueError, match="noise is a variance"):
            look.gains(noise=noise)
    with pytest.raises(ValueError, match="indices must lie"):
        look.gains([150])
    with pytest.raises(ValueError, match="columns are needed"):
        Lookahead(GP().condition(), POINTS).gains()


@pytest.mark.parametrize("gp", GPS)
def test_tensors_give_the_same(gp):
    torch = pytest.importorskip("torch")
    plain, tensor = (Lookahead(measured(gp, points), ROWS) for points in (POINTS, torch.asarray(POINTS)))
    expected = plain.gains(noise=[0.1, 0.2], scale=4.0, floor=0.4)
    np.testing.assert_allclose(tensor.gains(noise=[0.1, 0.2], scale=4.0, floor=0.4), expected, atol=1e-10)


@pytest.mark.parametrize("gp", GPS)
def test_the_compiled_pass_computes_the_same(gp, monkeypatch):
    """What is compiled on a device, here without the compiler."""
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch, "compile", lambda function, **_: function)
    monkeypatch.setattr(Lookahead, "_fuses", lambda self, size: True)
    monkeypatch.setattr(module, "FUSED_BLOCK", 64 * 90)
    module._tail.cache_clear()
    expected = Lookahead(measured(gp), ROWS)
    monkeypatch.setattr(Lookahead, "_fuses", lambda self, size: self.fused)
    fused = Lookahead(measured(gp, torch.asarray(POINTS)), ROWS, fused=True)
    for noise in (None, [0.1, 0.2]):
        plain = expected.gains(noise=noise, scale=4.0, floor=0.4)
        np.testing.assert_allclose(fused.gains(noise=noise, scale=4.0, floor=0.4), plain, atol=1e-10)
    module._tail.cache_clear()


def test_on_a_device():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    points = torch.asarray(POINTS, device="cuda")
    expected = Lookahead(measured(GPS[0]), ROWS).gains(scale=4.0, floor=0.4)
    for fused in (False, True):
        found = Lookahead(measured(GPS[0], points), ROWS, fused=fused).gains(scale=4.0, floor=0.4)
        np.testing.assert_allclose(found, expected, atol=1e-9)
