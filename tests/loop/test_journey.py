"""Moves on record: outcomes of several values, and where they have led."""

import json

import numpy as np
import pytest

from surefoot import FAILED, Box, MoveTable, NotSupported, Outcome, Paths, RandomSearch
from surefoot.loop.events import as_outcome, outcome_fields, outcome_from
from surefoot.loop.journey import Journey
from surefoot.loop.types import Query

LINE = Paths(np.arange(5.0)[:, None], MoveTable({0: [[1, 2]], 2: [[3, 4], [1, 0]], 4: [[3, 2]]}), start=0, budget=7)


def move(id, *stops):
    return Query(id, LINE.points[list(stops)], note={"stops": list(stops)})


@pytest.mark.parametrize(
    "told", [[1.5, None], (1.5, float("nan")), np.array([1.5, np.nan]), Outcome(values=[1.5, None])]
)
def test_values_of_a_move_on_record(told):
    outcome = as_outcome(told, stops=2)
    assert outcome == Outcome(values=[1.5, None])
    assert (outcome.value, outcome.failed) == (1.5, False)
    text = json.dumps({"event": "told", "id": 0, **outcome_fields(outcome)}, allow_nan=False)
    assert outcome_from(json.loads(text)) == outcome


@pytest.mark.parametrize("told", [None, float("nan"), FAILED, [None, None], [np.nan, None]])
def test_a_move_that_failed_as_a_whole(told):
    outcome = as_outcome(told, stops=2)
    assert outcome.failed
    assert outcome == Outcome(values=[None, None])
    assert outcome_from({"event": "told", **outcome_fields(outcome)}) == outcome


def test_one_value_stays_as_it_was():
    assert outcome_fields(Outcome(1.0, cost=2.0)) == {"value": 1.0, "cost": 2.0}
    assert outcome_from({"event": "told", "value": None}) == FAILED
    assert Outcome(values=[1.0, None, 3.0], noise=0.1).negated() == Outcome(values=[-1.0, None, -3.0], noise=0.1)
    with pytest.raises(ValueError, match="not both"):
        Outcome(1.0, values=[1.0])
    with pytest.raises(ValueError, match="finite"):
        Outcome(values=[1.0, np.inf])
    policy = RandomSearch(Box.unit(1), seed=0)
    with pytest.raises(TypeError, match="2 values were told for one point"):
        policy.tell([0.5], Outcome(values=[1.0, 2.0]))
    with pytest.raises(NotSupported, match="only on Paths"):
        _ = policy.journey


def test_where_moves_have_led():
    queries = [move(0, 1, 2), move(1, 3, 4), move(2, 1, 0)]
    good, missed = Outcome(values=[1.0, 2.0]), Outcome(values=[None, None])
    assert Journey.of(LINE, queries, {}) == Journey(LINE, 0, 0, True)
    assert Journey.of(LINE, queries, {0: missed}) == Journey(LINE, 2, 2, True)
    late = {0: good, 2: good, 1: missed}  # a move that was thought to be cancelled, told after the next one
    assert Journey.of(LINE, queries, late) == Journey(LINE, 0, 6, True)
    assert Journey.of(LINE, queries, late).stages == 0  # one stop is left, a move takes two
