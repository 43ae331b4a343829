"""Runs followed step by step, and weights of tasks: what the pictures and the page say about them."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import surefoot
from surefoot import Box, RandomSearch, report
from surefoot.report.learning_curves import lengths
from surefoot.report.view import RunView, few

EPOCHS = 10


class StepByStep(RandomSearch):
    """Random search that watches its runs and gives up those that are worse than 0.3 after four steps."""

    steps = True

    @property
    def stopped(self):
        ended = {id: (max(curve), curve[max(curve)]) for id, curve in self._reports.items()}
        return {id: "worse than 0.3" for id, (step, value) in ended.items() if step == 4 and value < 0.3}


def follow(policy, sign=1.0, runs=8):
    for _ in range(runs):
        query = policy.ask()
        for step in range(1, EPOCHS + 1):
            value = query.x[0] * (1.0 - 0.5**step)
            policy.report(query, step, sign * value)
            if step == 4 and value < 0.3:
                break
        policy.tell(query)
    policy.report(policy.ask(), 1, sign * 0.2)
    return policy


@pytest.fixture(scope="module")
def followed():
    return follow(StepByStep(Box.unit(2), seed=0))


def test_reports_are_a_copy(followed):
    reports = followed.reports()
    assert len(reports) == 9
    reports[0][1] = 99.0
    assert followed.reports()[0][1] != 99.0
    assert RandomSearch(Box.unit(1), seed=0).reports() == {}


@pytest.mark.parametrize(("direction", "sign"), [("maximize", 1.0), ("minimize", -1.0)])
def test_curves_draw_what_was_reported(followed, direction, sign):
    axes = report.curves(followed, direction=direction, label="score").axes[0]
    lines = [line for line in axes.lines if line.get_marker() != "x"]
    crosses = [line for line in axes.lines if line.get_marker() == "x"]
    assert len(lines) == 9
    assert len(crosses) == len(followed.stopped) > 0
    for line, curve in zip(lines, followed.reports().values(), strict=True):
        np.testing.assert_allclose(line.get_ydata(), sign * np.array(list(curve.values())))
        np.testing.assert_array_equal(line.get_xdata(), list(curve))
    assert {line.get_xdata()[-1] for line in crosses} == {4.0}
    assert axes.get_ylabel() == "score"


def test_steps_without_a_value_leave_a_gap():
    policy = StepByStep(Box.unit(1), seed=0)
    query = policy.ask()
    for step, value in ((1, 0.5), (2, None), (3, 0.7)):
        policy.report(query, step, value)
    (line,) = report.curves(policy).axes[0].lines
    np.testing.assert_array_equal(line.get_ydata(), [0.5, np.nan, 0.7])


def test_lengths_count_steps(followed):
    collections = lengths(followed).axes[0].collections
    heights = sorted(float(segment[1, 1]) for lines in collections for segment in lines.get_segments())
    assert heights == sorted(float(max(curve)) for curve in followed.reports().values())


def test_there_is_nothing_to_draw_without_reports():
    policy = RandomSearch(Box.unit(1), seed=0)
    policy.tell([0.5], 1.0)
    for picture in (report.curves, lengths):
        with pytest.raises(ValueError, match="RandomSearch has no run that was reported"):
            picture(policy)
    with pytest.raises(ValueError, match="RandomSearch has no history of task weights"):
        report.task_weights(policy)


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_page_of_a_journal_tells_which_runs_were_stopped(direction, tmp_path):
    sign = -1.0 if direction == "minimize" else 1.0
    policy = follow(StepByStep(Box.unit(2), seed=0, direction=direction, journal=tmp_path / "run.jsonl"), sign)
    policy.close()
    with surefoot.load(tmp_path / "run.jsonl") as again:
        html = report.page(again, tmp_path / "run.html").read_text(encoding="utf-8")
        rows = report.runs(again)
    stopped = len(again.stopped)
    used = sum(len(curve) for curve in policy.reports().values())
    assert f"{stopped} of 9 runs were stopped early, which saved {6 * stopped} of {used + 6 * stopped} steps" in html
    assert html.count("<td>worse than 0.3</td>") == html.count("<td>stopped</td>") == stopped
    assert "<h2>Learning curves</h2>" in html
    assert [row.curve for row in rows] == list(policy.reports().values())
    assert [row.stopped is not None for row in rows] == [id in again.stopped for id in range(9)]


def test_pages_of_other_policies_have_no_such_sections(tmp_path):
    policy = RandomSearch(Box.unit(1), seed=0)
    policy.tell([0.5], 1.0)
    html = report.page(policy, tmp_path / "run.html").read_text(encoding="utf-8")
    assert not re.search("Learning curves|Previous tasks|why stopped", html)


class _Task:
    def __init__(self, name):
        self.name = name


def weighed(history, names=()):
    class _Weighing(RandomSearch):
        tasks, weight_history = tuple(_Task(name) for name in names), history

    policy = _Weighing(Box.unit(1), seed=0)
    policy.tell([0.5], 1.0)
    return policy


def test_task_weights_are_drawn_and_named(tmp_path):
    history = np.array([[0.4, 0.3, 0.3], [0.1, 0.6, 0.3]])
    policy = weighed(history, ["last year", None])
    axes = report.task_weights(policy).axes[0]
    assert {tuple(line.get_ydata()) for line in axes.lines} == {tuple(column) for column in history.T}
    assert [text.get_text() for text in axes.texts] == ["task 1", "this task", "last year"]  # the heaviest first
    assert "<h2>Previous tasks</h2>" in report.page(policy, tmp_path / "run.html").read_text(encoding="utf-8")


def test_names_of_tasks_do_not_cover_each_other():
    history = np.full((3, 30), 1.0 / 30)
    heights = [text.xy[1] for text in report.task_weights(weighed(history)).axes[0].texts]
    assert len(heights) == 6
    assert min(np.diff(sorted(heights))) > 0.07 / 30
    assert min(heights) >= 0.0


def test_an_empty_history_is_none(tmp_path):
    policy = weighed([])
    assert "Previous tasks" not in report.page(policy, tmp_path / "run.html").read_text(encoding="utf-8")


@given(st.lists(st.floats(-10, 10), max_size=60), st.integers(2, 20))
def test_few_keeps_the_best_and_the_order(values, most):
    quality = np.array(values)
    kept = few(quality, most)
    assert len(kept) == min(len(values), most)
    assert (np.diff(kept) > 0).all()
    left = np.setdiff1d(np.arange(len(values)), kept)
    if len(left):
        assert np.sum(quality[kept] >= quality[left].max()) >= most // 2


def test_one_look_serves_all_pictures(followed, tmp_path, monkeypatch):
    """A page asks the policy once for its belief and once for its answer, however many pictures it has."""
    policy = surefoot.ExpectedImprovement(Box.unit(4), seed=0)
    for i in range(6):
        policy.tell(policy.ask(), float(i))
    calls = []
    for name in ("posterior", "recommend"):
        original = getattr(type(policy), name)
        monkeypatch.setattr(
            type(policy), name, lambda self, name=name, original=original: (calls.append(name), original(self))[1]
        )
    made = []
    original_view = RunView.__init__
    monkeypatch.setattr(RunView, "__init__", lambda self, *a, **k: (made.append(1), original_view(self, *a, **k))[1])
    html = report.page(policy, tmp_path / "run.html").read_text(encoding="utf-8")
    assert html.count("<svg") >= 7
    assert len(made) == 1
    assert calls.count("recommend") == 1
    assert calls.count("posterior") == 1  # by the view; the answer has the average
    view = RunView(policy)
    assert RunView.of(view) is view
    assert RunView.of(view, "minimize") is not view


def test_pages_of_thousands_of_runs_stay_small(tmp_path):
    policy = RandomSearch(Box.unit(6), seed=0)
    rng = np.random.default_rng(0)
    for x, value in zip(rng.random((3000, 6)), rng.random(3000), strict=True):
        policy.tell(x, value)
    path = report.page(policy, tmp_path / "run.html")
    html = path.read_text(encoding="utf-8")
    assert path.stat().st_size < 2e6
    assert html.count("<tr class=") == 3000
    assert "an even sample of the others" in html
    shown = report.trace(policy).axes[0].collections[0].get_offsets()[:, 1]
    assert shown.max() == policy.data()[1].max()
