"""Policies whose answer is a level set: the picture, the page and the command's lines."""

from __future__ import annotations

import json

import numpy as np
import pytest

from surefoot import GP, GPLSE, SE, Candidates, Float, Space, TruVaR
from surefoot.cli.show import answer
from surefoot.report import level_set, page
from surefoot.report.levels import drawable
from surefoot.report.view import RunView

LINE = Candidates(np.linspace(0.0, 1.0, 40))
SIDE = np.linspace(0.0, 1.0, 9)
PLANE = Candidates(np.stack(np.meshgrid(SIDE, SIDE), axis=-1).reshape(-1, 2))


def run(policy, steps=8):
    for _ in range(steps):
        query = policy.ask()
        policy.tell(query, float(np.sin(4.0 * query.x).sum()))
    return policy


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
@pytest.mark.parametrize("domain", [LINE, PLANE, Space(rate=Float(0.1, 1.0), depth=Float(0.1, 1.0))])
def test_the_picture_shows_all_three_kinds_and_the_page_counts_them(domain, direction, tmp_path):
    policy = run(TruVaR(domain, goal="level", threshold=0.4, gp=GP(SE(0.3), noise=1e-4), points=64, seed=0))
    view = RunView(policy, direction)
    counts = view.answer.counts()
    names = level_set(view).axes[0].get_legend_handles_labels()[1]
    assert {name for name, count in counts.items() if count} <= set(names)
    text = page(policy, tmp_path / "run.html", direction=direction).read_text(encoding="utf-8")
    assert "Above and below the threshold" in text
    assert "What is known of each point." in text
    assert "dashed line marks" not in text
    lines = [str(line) for line in answer(view)]
    assert json.loads(lines[1]) == {**counts, "threshold": 0.4 if direction == "maximize" else -0.4}


def test_more_coordinates_have_no_such_picture_but_a_page(tmp_path):
    policy = run(GPLSE(Space(a=Float(0, 1), b=Float(0, 1), c=Float(0, 1)), threshold=0.0, points=64, seed=0), 6)
    assert not drawable(policy)
    with pytest.raises(ValueError, match="one or two coordinates"):
        level_set(policy)
    assert "undecided" in page(policy, tmp_path / "run.html").read_text(encoding="utf-8")


def test_nothing_measured(tmp_path):
    policy = GPLSE(LINE, threshold=0.0, seed=0)
    assert not drawable(policy)
    assert "Nothing was measured yet" in page(policy, tmp_path / "run.html").read_text(encoding="utf-8")
