"""Tables: rows told to a policy, trials given back as rows, predictions, scores, and asks with fixed parameters."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot import (
    Box,
    Choice,
    ExpectedImprovement,
    Float,
    Int,
    MaxValueEntropySearch,
    RandomSearch,
    Space,
    ThompsonSampling,
    load,
)
from surefoot.domain.cells import first_space, missing, read_cells, value_in
from surefoot.domain.partial_space import PartialSpace
from surefoot.errors import NoData, NotSupported
from surefoot.loop.events import timeless
from surefoot.loop.table import rows_of

SPACE = Space(heat=Float(20.0, 90.0), steps=Int(1, 9), solvent=Choice(["water", "acetone", None]))
ROWS = [
    {"note": "first", "heat": "28.6", "steps": "3", "solvent": "Water", "yield": "0.61", "purity": "99"},
    {"note": "", "heat": 55, "steps": 4.0, "solvent": "acetone", "yield": "", "purity": ""},
    {"note": "", "heat": "1e1e", "steps": 4.0, "solvent": "acetone", "yield": "", "purity": ""},
]


def started(**options):
    policy = ExpectedImprovement(Space(x=Float(0.0, 1.0), y=Float(0.0, 1.0)), seed=0, **options)
    rng = np.random.default_rng(1)
    for x, y in rng.random((8, 2)):
        policy.tell({"x": x, "y": y}, -((x - 0.3) ** 2) - (y - 0.6) ** 2)
    return policy


def test_rows_with_text_extra_columns_failures_and_repeats():
    policy = ExpectedImprovement(SPACE, seed=0)
    more = [{**ROWS[0], "yield": word} for word in ("Failed", "0.61", None, float("nan"))]
    assert policy.tell_table([*ROWS[:2], *more], target="yield") == 3
    assert [o.value for o in policy.history] == [0.61, None, 0.61]
    assert policy.history[0].x.tolist() == [28.6, 3.0, 0.0]
    assert [query.params["solvent"] for query in policy.pending] == ["acetone", "water", "water"]


@pytest.mark.parametrize(
    ("change", "target", "said"),
    [
        ({"heat": "hot"}, "yield", r"row 2, column 'heat': 'hot' is not a number"),
        ({"heat": ""}, "yield", r"row 2, column 'heat': '' is missing"),
        ({"heat": "120"}, "yield", r"row 2: heat = 120.0 is outside \[20.0, 90.0\]"),
        ({"steps": "2.5"}, "yield", r"row 2, column 'steps': '2.5' is not an integer"),
        ({"solvent": "beer"}, "yield", r"row 2, column 'solvent': 'beer' is not one of"),
        ({"yield": "good"}, "yield", r"row 2, column 'yield': 'good' is not a number"),
        ({}, "heat", r"column 'heat' is a parameter"),
        ({}, "gain", r"there is no column 'gain'; the columns are note, heat"),
        ({}, None, r"say which column holds the results, target=...: one of 'note', 'yield', 'purity'"),
    ],
)
def test_errors_name_row_and_column_and_change_nothing(change, target, said):
    policy = ExpectedImprovement(SPACE, seed=0)
    with pytest.raises(ValueError, match=said):
        policy.tell_table([ROWS[0], {**ROWS[0], **change}], target=target)
    assert not policy.events


def test_a_grown_table_tells_only_what_is_new():
    policy = ExpectedImprovement(SPACE, seed=0)
    policy.tell_table(ROWS[:2], target="yield")
    grown = [*ROWS[:2], ROWS[0], {**ROWS[1], "yield": 0.7}]  # a repeat; the missing row is answered
    assert policy.tell_table(grown, target="yield", grown=True) == 2
    assert not policy.pending
    events = policy.events
    assert policy.tell_table([ROWS[0], ROWS[0], grown[-1]], target="yield", grown=True) == 0
    assert policy.events == events


def test_trials_by_number():
    policy = RandomSearch(Box([(0.0, 1.0)]), seed=0)
    first, second = policy.ask(2)
    rows = policy.to_rows()
    rows[1]["value"], rows[0]["status"] = 2.5, "failed"
    assert policy.tell_table(rows) == 2
    assert [(o.id, o.value) for o in policy.history] == [(first.id, None), (second.id, 2.5)]
    with pytest.raises(ValueError, match=r"row 1: trial 1 was told 2.5 before, not 3.0"):
        policy.tell_table([{"trial": 1, "x0": second.x[0], "value": 3.0}])
    with pytest.raises(ValueError, match=r"row 1: trial 0 was asked for at \[.*\], not here"):
        policy.tell_table([{"trial": 0, "x0": 0.123, "value": 3.0}])
    with pytest.raises(ValueError, match="row 1: there is no trial 7, 2 were asked for"):
        policy.tell_table([{"trial": 7, "x0": 0.123, "value": 3.0}])


def test_a_table_goes_there_and_back():
    policy = started()
    policy.tell({"x": 0.5, "y": 0.5}, None)
    policy.ask(2)
    other = ExpectedImprovement(policy.domain, seed=0)
    other.tell(policy.to_rows()[: len(policy.history)])
    assert [(o.x.tolist(), o.value) for o in other.history] == [(o.x.tolist(), o.value) for o in policy.history]


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_data_frames(package):
    frames = pytest.importorskip(package)
    policy = ExpectedImprovement(SPACE, seed=0)
    rows = [{"heat": 30.0, "steps": 3, "solvent": "water", "yield": 0.5}]
    rows += [{"heat": 40.0, "steps": 4, "solvent": "acetone", "yield": None}]
    policy.tell(frames.DataFrame(rows))
    assert [o.value for o in policy.history] == [0.5]
    assert len(policy.pending) == 1
    assert isinstance(policy.predict(frames.DataFrame(rows))[1].mean, float)
    other = ExpectedImprovement(SPACE, seed=0)
    frame = policy.to_frame()
    other.tell(frame[["heat", "steps", "solvent", "value", "status"]])
    assert len(other.history) == len(other.pending) == 1


def test_a_dict_of_columns_and_nonsense():
    assert rows_of({"a": [1, 2], "b": [3, 4]}) == [{"a": 1, "b": 3}, {"a": 2, "b": 4}]
    with pytest.raises(ValueError, match="differ in length"):
        rows_of({"a": [1], "b": [3, 4]})
    with pytest.raises(TypeError, match="a table is a list of dicts"):
        rows_of(3)


def test_expected_points_are_durable_and_count_as_pending(tmp_path):
    with ExpectedImprovement(SPACE, seed=0, journal=tmp_path / "a.jsonl") as policy:
        query = policy.expect({"heat": 30.0, "steps": 3, "solvent": "water"})
        assert policy.pending == [query]
        events = policy.events
    again = load(tmp_path / "a.jsonl")
    assert timeless(again.events) == timeless(events)
    assert again.pending == [query]
    again.close()


def test_predictions_are_those_of_the_recommendation_in_the_sign_of_the_user():
    for direction in ("maximize", "minimize"):
        policy = started(direction=direction)
        answer = policy.recommend()
        found = policy.predict(answer.params)
        assert found.mean == pytest.approx(answer.mean, rel=1e-6, abs=1e-9)
        assert answer.lower - 1e-9 <= found.lower < found.upper <= answer.upper + 1e-9  # that the best is lucky too
        several = policy.predict([answer.params, [0.1, 0.2]])
        assert several[0].params == answer.params
        assert all(p.lower < p.mean < p.upper for p in several)


def test_nothing_is_predicted_without_a_model_or_data():
    with pytest.raises(NoData):
        ExpectedImprovement(SPACE, seed=0).predict({"heat": 30, "steps": 2, "solvent": "water"})
    with pytest.raises(NotSupported, match="RandomSearch has no model"):
        RandomSearch(SPACE, seed=0).predict([])
    with pytest.raises(NotSupported, match="does not score points one by one"):
        ThompsonSampling(SPACE, seed=0).score([{"heat": 30, "steps": 2, "solvent": "water"}])


def test_the_next_query_scores_highest_of_all():
    policy = started()
    points = np.random.default_rng(3).random((200, 2))
    scores = policy.score(points)
    query = policy.ask()
    policy.cancel(query)
    assert policy.score([query.params])[0] >= scores.max() - 1e-9


@pytest.mark.parametrize("kind", [ExpectedImprovement, ThompsonSampling, MaxValueEntropySearch])
def test_fixed_parameters_stay(kind):
    policy = kind(SPACE, seed=0)
    for _ in range(8):  # the design and the rule
        query = policy.ask(fixed={"solvent": "acetone", "heat": "30.1"})
        assert (query.params["solvent"], query.params["heat"]) == ("acetone", 30.1)
        policy.tell(query, -abs(query.params["steps"] - 4))
    assert policy.ask().params["heat"] != 30.1


def test_what_cannot_be_fixed_is_refused_and_changes_nothing():
    policy = started()
    before = policy.state()
    for fixed, said in [({"z": 1}, "unknown parameter 'z'"), ({"x": 3}, "fixed x = 3 is outside")]:
        with pytest.raises(ValueError, match=said):
            policy.ask(fixed=fixed)
    with pytest.raises(NotSupported, match="only parameters of a Space"):
        ExpectedImprovement(Box.unit(1), seed=0).ask(fixed={"x0": 0.5})
    other = RandomSearch(SPACE, seed=0)
    with pytest.raises(NotSupported, match="RandomSearch cannot keep parameters fixed"):
        other.ask(fixed={"heat": 30.0})
    assert policy.state() == before
    assert not other.events


def test_a_part_of_a_space_is_a_domain():
    part = PartialSpace(SPACE, {"solvent": 1.0, "heat": 30.1})
    rng = np.random.default_rng(0)
    for X in (part.sample(20, rng), part.design(20, rng), part.decode(rng.random((20, 5))), part.enumerate()):
        assert part.contains(X).all()
        assert SPACE.contains(X).all()
    assert part.size == len(part.enumerate()) == 9
    assert not part.contains(SPACE.sample(20, rng)).any()
    E = part.project(rng.random((20, 5)))
    np.testing.assert_array_equal(part.project(E), E)


def test_files_of_spreadsheets(tmp_path):
    file = tmp_path / "past.csv"
    file.write_text("\ufeffheat ; solvent;yield;\n20,5;water; 0,61;\n;;;\n30;acetone;;\n", encoding="utf-8")
    assert read_cells(file) == (
        ["heat", "solvent", "yield"],
        [
            {"heat": "20.5", "solvent": "water", "yield": "0.61"},
            {"heat": "30", "solvent": "acetone", "yield": ""},
        ],
        [2, 4],
    )
    for text, said in [
        ("", "is empty"),
        ("a,a\n1,2\n", "two columns"),
        ("a,b\n1\n", "line 2 has 1 cells"),
        ("a,,b\n", "no name"),
    ]:
        file.write_text(text)
        with pytest.raises(ValueError, match=said):
            read_cells(file)
    with pytest.raises(ValueError, match="there is no file"):
        read_cells(tmp_path / "absent.csv")


def test_a_first_space():
    rows = [
        {
            "run": str(i),
            "date": f"2026-01-{i:02}",
            "by": "Ann",
            "rate": str(10.0**-i),
            "layers": str(i % 3 + 1),
            "units": str(4**i),
            "base": "ABC"[i % 3],
            "empty": "",
            "loss": str(i * 0.5),
        }
        for i in range(1, 7)
    ]
    guess = first_space(list(rows[0]), rows)
    assert guess.target == "loss"
    assert guess.parameters == {
        "rate": Float(1e-6, 0.1, log=True),
        "layers": Int(1, 3),
        "units": Int(4, 4**6, log=True),
        "base": Choice(["B", "C", "A"]),
    }
    assert [note.partition(":")[0] for note in guess.notes] == ["run", "date", "by", "empty", "loss"]
    with pytest.raises(ValueError, match="there is no column 'gain'"):
        first_space(["a"], [], "gain")
    with pytest.raises(ValueError, match="no column could be a parameter"):
        first_space(["a", "y"], [{"a": "1", "y": "2"}])


def test_cells():
    assert value_in(Choice([1, 2.5, True, None, "1e3"]), "2.50") == 2.5
    assert value_in(Choice([1, True]), True) is True
    assert value_in(Choice([None, "a"]), "") is None
    assert [missing(cell) for cell in (None, "NaN", " ", float("nan"), 0, "0")] == [True] * 4 + [False] * 2
