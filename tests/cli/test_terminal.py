from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from surefoot.cli.terminal import along, chart, sparkline

series = arrays(np.float64, st.integers(1, 60), elements=st.floats(allow_infinity=False, width=64))


@given(series)
@example(np.array([5e-324, 0.0]))
@example(np.array([1.7e308, -1.7e308]))
def test_a_sparkline_has_a_character_per_value_and_keeps_their_order(values):
    line = sparkline(values)
    assert len(line) == len(values)
    assert all((mark == " ") == np.isnan(value) for mark, value in zip(line, values, strict=True))
    known = [(value, mark) for value, mark in zip(values, line, strict=True) if mark != " "]
    assert [mark for _, mark in sorted(known)] == sorted(mark for _, mark in known)


@given(series, st.integers(1, 70), st.integers(1, 8))
def test_charts_fill_their_rectangle(values, width, height):
    lines = chart(values, width=width, height=height)
    if np.isnan(values).all():
        assert lines == []
    else:
        assert len(lines) == height
        assert len({len(line) for line in lines}) == 1
        assert len(lines[0]) == max(width, lines[0].index("┤") + 3)


def test_a_thinned_sparkline_keeps_both_ends():
    values = np.arange(1000.0)
    assert sparkline(values, 8) == sparkline(np.arange(8.0))
    assert len(sparkline(values, 1)) == 1


def test_a_chart_shows_the_last_value_of_a_long_series():
    values = np.r_[np.zeros(999), 1.0]
    assert chart(values, width=30, height=3)[0].endswith("█")


def test_plain_characters_where_the_terminal_has_no_other():
    assert sparkline([0.0, 1.0], ascii=True).isascii()
    assert all(line.isascii() for line in chart([0.0, 1.0], ascii=True))


@pytest.mark.parametrize("values", [[3.0, 3.0], [1e308, -1e308], [0.0]])
def test_extremes(values):
    assert len(sparkline(values)) == len(values)
    assert len(chart(values, height=2)) == 2


def test_along_takes_the_best_of_each_part():
    assert along([0.0, 0.0, 1.0], [0.0, 5.0, 5.0], bins=2) == sparkline([5.0, 5.0])
    assert along([0.0, 1.0], [1.0, 2.0], bins=3) == "▁ █"
