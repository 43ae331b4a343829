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
from surefoot.report.view import RunView, coordinates


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
    np.testing.assert_allclose(line.get_ydata(), best)
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
    low, high = RunView(policy).window()
    assert 0.5 < low < 0.9
    assert high == 1.0
    assert report.trace(policy).axes[0].get_title(loc="left") == "1 value below the axis, lowest -1e6"


def heights(axes):
    """All heights that are drawn as values: points and corners of lines, in the units of the axis."""
    points = [c.get_offsets()[:, 1] for c in axes.collections if c.get_offset_transform() == axes.transData]
    lines = [np.asarray(line.get_ydata(), dtype=float) for line in axes.lines if line.get_transform() == axes.transData]
    found = np.concatenate([np.ma.filled(np.ma.asarray(part, dtype=float), np.nan) for part in [*points, *lines]])
    return found[~np.isnan(found)]


# Finding 15 of the review of 0.1.0
@pytest.mark.parametrize(
    ("sign", "where"), [(1.0, "below the axis, lowest -1e6"), (-1.0, "above the axis, highest 1e6")]
)
def test_no_chart_draws_a_value_that_nobody_measured(sign, where):
    direction = "maximize" if sign > 0 else "minimize"
    policy = RandomSearch(Box.unit(2), seed=0)
    policy.tell(policy.ask(), None)  # this one failed: it has no height at all
    for value in [-1e6, -5e4, -3e5, *np.linspace(0.9, 1.0, 20)]:
        policy.tell(policy.ask(), value)
    measured = sign * policy.data()[1]
    for figure in (report.trace(policy, direction=direction), report.slices(policy, direction=direction)):
        for axes in figure.axes:
            assert set(heights(axes)) <= set(measured)
            assert axes.get_title(loc="left") == f"3 values {where}"
            low, high = sorted(axes.get_ylim())
            carets = [
                c for c in axes.collections if c.get_offset_transform() != axes.transData and len(c.get_offsets())
            ]
            assert sum(len(c.get_offsets()) for c in carets) == 3 + 1  # and the failed one
            assert -1e3 < low < high < 1e3
    axes = report.parallel(policy, direction=direction, label="score").axes[0]
    assert axes.get_title(loc="left") == f"3 values {where.replace('the axis', 'score')}"
    ends = np.array([line.get_ydata()[-1] for line in axes.lines if len(line.get_ydata()) == 3])
    assert np.isnan(ends).sum() == 3
    assert sum(note.arrow_patch is not None for note in axes.texts) == 3


# Finding 15 of the review of 0.1.0
def test_learning_curves_keep_their_values_and_say_what_is_cut_off():
    class Followed(RandomSearch):
        steps = True

    policy = Followed(Box.unit(1), seed=0)
    reported = set()
    for last in (-1e6, *np.linspace(0.9, 1.0, 12)):
        query = policy.ask()
        for step, value in enumerate((0.5 * last, last), start=1):
            policy.report(query, step, value)
            reported.add(value)
        policy.tell(query)
    axes = report.curves(policy).axes[0]
    assert set(heights(axes)) <= reported
    assert axes.get_title(loc="left") == "2 values below the axis, lowest -1e6"
    assert sum(len(c.get_offsets()) for c in axes.collections) == 1  # the end of that run, at the edge
    assert axes.get_ylim()[0] > -10


def test_a_map_that_leaves_out_what_is_far_worse_says_how_far_it_goes():
    policy = ExpectedImprovement(Box.unit(2), seed=0, automatic=1)  # which leaves no value out
    for x in np.random.default_rng(0).random((24, 2)):
        policy.tell(x, -1e4 if x[0] > 0.9 else -((x[0] - 0.3) ** 2))
    figure = report.map2d(policy)
    assert figure.axes[0].get_title(loc="left").startswith("down to -")
    assert figure.axes[1].get_title(loc="left") == ""
    filled = figure.axes[0].collections[0]
    assert filled.extend in ("min", "both")


def test_a_window_of_no_values():
    assert RunView(RandomSearch(Box.unit(1), seed=0)).window() == (0.0, 1.0)


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
