"""The pictures: what they show, in the user's direction."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from surefoot import Box, Choice, ExpectedImprovement, Float, MissingExtra, RandomSearch, Space, report
from surefoot.private import ResearchNoise
from surefoot.private.audit import audit
from surefoot.report.attack import image_grid
from surefoot.report.audit import audits
from surefoot.report.plots import influence
from surefoot.report.view import View, coordinates


@pytest.fixture(scope="module")
def policy():
    chosen = ExpectedImprovement(Box([(0.0, 1.0), (0.0, 10.0)]), seed=0)
    for _ in range(10):
        query = chosen.ask()
        chosen.tell(query, -((query.x[1] - 4.0) ** 2))
    return chosen


@pytest.mark.parametrize(("direction", "sign"), [("maximize", 1.0), ("minimize", -1.0)])
def test_trace_draws_the_best_so_far(policy, direction, sign):
    axes = report.trace(policy, direction=direction, label="cost").axes[0]
    (line,) = axes.lines
    best = sign * np.maximum.accumulate(policy.data()[1])
    low, high = View(policy, direction).window()
    np.testing.assert_allclose(line.get_ydata(), np.clip(best, low, high))
    assert axes.get_ylabel() == "cost"


def test_slices_draw_the_posterior(policy):
    axes = report.slices(policy, coordinates=[1]).axes[0]
    curve = next(line for line in axes.lines if len(line.get_xdata()) > 2)
    points = np.column_stack([np.full(121, policy.recommend().x[0]), curve.get_xdata()])
    np.testing.assert_allclose(curve.get_ydata(), policy.posterior().mean(points))
    flipped = report.slices(policy, coordinates=[1], direction="minimize").axes[0]
    np.testing.assert_allclose(
        next(line for line in flipped.lines if len(line.get_xdata()) > 2).get_ydata(), -curve.get_ydata()
    )
    assert len(report.slices(policy).axes) == 2


def test_influence_ranks_what_matters(policy):
    assert influence(policy) == [1, 0]


def test_parallel_has_one_line_per_run(policy):
    axes = report.parallel(policy).axes[0]
    lines = [line for line in axes.lines if len(line.get_xdata()) == 3]
    assert len(lines) == 10 + 1  # the best is drawn twice


@pytest.mark.parametrize("what", ["mean", "std"])
def test_map_needs_two_numbers(policy, what):
    assert report.map2d(policy, what=what).axes[0].get_xlabel() == "x0"
    with pytest.raises(ValueError, match="what"):
        report.map2d(policy, what="median")
    with pytest.raises(ValueError, match="coordinate"):
        report.map2d(policy, coordinates=(0, 2), what=what)
    mixed = RandomSearch(Space(a=Float(0.0, 1.0), b=Choice(["x", "y"])), seed=0)
    mixed.tell({"a": 0.5, "b": "x"}, 1.0)
    with pytest.raises(ValueError, match="two coordinates"):
        report.map2d(mixed, what=what)


def test_far_worse_values_do_not_hide_the_good_ones():
    policy = RandomSearch(Box.unit(1), seed=0)
    for value in [-1e6, *np.linspace(0.9, 1.0, 20)]:
        policy.tell(policy.ask(), value)
    low, high = View(policy).window()
    assert 0.5 < low < 0.9
    assert high == 1.0
    assert "1 far worse value" in report.trace(policy).axes[0].get_title(loc="left")


def test_a_window_of_no_values():
    assert View(RandomSearch(Box.unit(1), seed=0)).window() == (0.0, 1.0)


def test_grids_stay_inside_their_coordinate():
    space = Space(rate=Float(1e-7, 0.3, log=True), kernel=Choice(["a", "b", "c"]))
    for coordinate in coordinates(space):
        grid = coordinate.grid(121)
        assert grid.min() == coordinate.low
        assert grid.max() == coordinate.high
        unit = coordinate.unit(grid)
        assert unit.min() == 0.0
        assert unit.max() == pytest.approx(1.0)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_an_audit_without_a_claim_has_no_tick(sign):
    def mechanism(x, noise, n):
        return noise.gaussian(np.full(n, x), 1.0)

    found = audit(mechanism, 0.0, sign, delta=1e-3, trials=3000, noise=ResearchNoise(0))
    bars, curve = audits({"gaussian": found}).axes
    assert [text.get_text() for text in bars.texts] == ["no claim"]
    assert not bars.lines
    measured = curve.lines[0]
    assert (measured.get_ydata() >= measured.get_xdata()).mean() > 0.9  # the likelier input is the other one


@pytest.mark.parametrize(("pairs", "titles"), [(0, 0), (0, 1), (1, 0), (2, 1)])
def test_every_pair_of_images_has_a_title(pairs, titles):
    image = np.zeros((4, 4))
    with pytest.raises(ValueError, match=f"got {pairs} pairs, {titles} titles"):
        image_grid([(image, image)] * pairs, ["a 3 for an 8"] * titles)


def test_missing_matplotlib_says_what_to_install(policy, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r"surefoot\[plot\]"):
        report.trace(policy)
