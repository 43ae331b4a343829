"""Reports of a vehicle: each stop is a run, and the way is drawn."""

import numpy as np
import pytest

from surefoot import GP, SE, Dives, MacroGPO, Paths, report
from surefoot.report.run import runs

GRID = np.stack(np.meshgrid(np.arange(9.0), np.arange(9.0), indexing="ij"), axis=-1).reshape(-1, 2)


@pytest.fixture
def policy():
    paths = Paths(GRID, Dives((9, 9), 2), start=40)
    made = MacroGPO(paths, horizon=2, samples=5, gp=GP(SE(2.0), noise=1e-3), seed=0)
    made.tell(GRID[40], 0.5)
    for value in (1.0, 2.0, None):
        query = made.ask()
        made.tell(query, None if value is None else [value, None])
    made.ask()
    return made


def test_each_stop_is_a_run(policy):
    rows = runs(policy, direction="minimize")
    assert [row.status for row in rows] == ["measured", *["measured", "failed"] * 2, *["failed"] * 2, *["pending"] * 2]
    assert [row.id for row in rows] == [None, 0, 0, 1, 1, 2, 2, 3, 3]
    assert rows[1].value == -1.0
    assert rows[1].params == {"x0": policy.queries[0].x[0, 0], "x1": policy.queries[0].x[0, 1]}


def test_the_way_is_drawn(policy):
    axes = report.map2d(policy).axes[0]
    way = next(line for line in axes.lines if line.get_label() == "way")
    stops = [40, *(stop for query in policy.queries[:3] for stop in query.note["stops"])]
    assert np.column_stack([way.get_xdata(), way.get_ydata()]).tolist() == GRID[stops].tolist()  # not the pending move


def test_a_page_of_a_vehicle(policy, tmp_path):
    text = report.page(policy, tmp_path / "way.html").read_text(encoding="utf-8")
    assert "MacroGPO" in text
    assert text.count("<svg") >= 4
    empty = MacroGPO(policy.domain, seed=0)
    assert "Nothing was measured yet" in report.page(empty, tmp_path / "empty.html").read_text(encoding="utf-8")
