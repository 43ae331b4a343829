"""Spaces: round trips, validation, TOML, neighbors."""

from __future__ import annotations

import json
import math
import tomllib

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from surefoot.domain import Box, Choice, Float, Int, Parameter, Space, domain_from_dict

SPACE = Space(
    rate=Float(1e-5, 1e-1, log=True), mix=Float(-1.0, 2.0), depth=Int(1, 10), kernel=Choice(["rbf", "poly", "cosine"])
)
GOOD = {"rate": 0.01, "mix": 0.1 + 0.2, "depth": 3, "kernel": "poly"}

positive = st.floats(1e-12, 1e12)
anything = st.floats(-1e12, 1e12)
whole = st.integers(-(10**6), 10**6)


def interval(bounds: st.SearchStrategy, kind: type, log: bool) -> st.SearchStrategy[Parameter]:
    return st.tuples(bounds, bounds).map(lambda pair: kind(min(pair), max(pair), log))


scalars = st.one_of(st.text(max_size=3), st.booleans(), st.integers(-3, 3), st.none())
choices = st.lists(scalars, min_size=1, max_size=4, unique_by=lambda v: (type(v), v)).map(Choice)
parameters = st.one_of(
    interval(anything, Float, False),
    interval(positive, Float, True),
    interval(whole, Int, False),
    interval(st.integers(1, 10**9), Int, True),
    choices,
)
spaces = st.dictionaries(st.text(min_size=1, max_size=4), parameters, min_size=1, max_size=4).map(Space)


@given(spaces, st.integers(0, 2**32))
@example(Space({"n": Int(44920267, 45910385, log=True)}), 16)  # the last value is rounded beyond 1
@settings(max_examples=60, deadline=None)
def test_generated_points_make_every_round_trip(space: Space, seed: int) -> None:
    rng = np.random.default_rng(seed)
    free = space.decode(rng.normal(0.5, 0.5, (5, space.encoded_dimension)))
    X = np.vstack([space.sample(5, rng), space.design(4, rng), space.design(3, rng, "lhs"), free])
    assert space.contains(X).all()
    E = space.encode(X)
    assert (space.lower <= E).all()
    assert (space.upper >= E).all()
    np.testing.assert_array_equal(space.decode(E), X)
    np.testing.assert_allclose(space.project(E), E, atol=1e-12)
    for x in X:
        params = space.params(x)
        np.testing.assert_array_equal(space.point(params), x)
        np.testing.assert_array_equal(space.validate(json.loads(json.dumps(params))), x)


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_parameters_come_back_bit_for_bit(data: st.DataObject) -> None:
    params = {
        "rate": data.draw(st.floats(1e-5, 1e-1)),
        "mix": data.draw(st.floats(-1.0, 2.0)),
        "depth": data.draw(st.integers(1, 10)),
        "kernel": data.draw(st.sampled_from(["rbf", "poly", "cosine"])),
    }
    x = SPACE.validate(params)
    assert SPACE.params(x) == params
    shortened = SPACE.decode(SPACE.encode(x[None, :]))
    np.testing.assert_allclose(shortened[0], x, rtol=1e-12, atol=1e-13)
    np.testing.assert_array_equal(SPACE.decode(SPACE.encode(shortened)), shortened)


@given(st.integers(1, 99999), st.integers(-3, 4))
def test_written_decimals_survive_the_unit_cube(digits: int, exponent: int) -> None:
    value = float(f"{digits}e{exponent - 5}")
    space = Space(a=Float(1e-9, 1e5, log=True), b=Float(0.0, 1e5), c=Float(-1e5, 2e5 / 3))
    x = space.validate([value, value, -value])
    np.testing.assert_array_equal(space.decode(space.encode(x[None, :]))[0], x)


@given(spaces)
@settings(max_examples=100, deadline=None)
def test_description_survives_json(space: Space) -> None:
    again = domain_from_dict(json.loads(json.dumps(space.to_dict(), allow_nan=False)))
    assert again == space
    assert again.to_dict() == space.to_dict()
    assert hash(again) == hash(space)


def test_reads_toml() -> None:
    text = """
    [parameters.rate]
    type = "float"
    low = 1e-5
    high = 1
    log = true
    [parameters.depth]
    type = "int"
    low = 1
    high = 10
    [parameters."a kernel"]
    type = "choice"
    values = ["rbf", "poly", 3, true]
    """
    space = Space.from_dict(tomllib.loads(text))
    assert space == Space(
        {"rate": Float(1e-5, 1.0, log=True), "depth": Int(1, 10), "a kernel": Choice(["rbf", "poly", 3, True])}
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rate": 1.0}, r"rate = 1\.0 is outside \[1e-05, 0\.1\]"),
        ({"rate": math.nan}, "rate = nan is outside"),
        ({"rate": True}, "rate = True is not a number"),
        ({"rate": "0.01"}, "rate = '0.01' is not a number"),
        ({"rate": 10**400}, "is outside"),
        ({"depth": 2.5}, "depth = 2.5 is not an integer"),
        ({"depth": True}, "depth = True is not an integer"),
        ({"depth": math.inf}, "depth = inf is not an integer"),
        ({"depth": 11}, r"depth = 11 is outside \[1, 10\]"),
        ({"kernel": "linear"}, "kernel = 'linear' is not one of"),
        ({"kernel": ["rbf"]}, "is not one of"),
        ({"kernel": np.array([1.0, 2.0])}, "is not one of"),
        ({"rates": 0.1}, "unknown parameter 'rates'"),
        ({3: 0.1}, "unknown parameter 3"),
    ],
)
def test_wrong_parameters_are_named(change: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SPACE.validate({**GOOD, **change})


def test_missing_parameters_are_named() -> None:
    with pytest.raises(ValueError, match="'depth' is missing"):
        SPACE.point({"rate": 0.01, "mix": 0.0, "kernel": "rbf"})


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ([1.0, 0.0, 3.0, 0.0], r"rate = 1\.0 is outside Float"),
        ([0.01, 0.0, 3.5, 0.0], r"depth = 3\.5 is outside Int"),
        ([0.01, 0.0, 3.0, 3.0], r"kernel = 3\.0 is outside an index into"),
        ([0.01, 0.0, 3.0, 0.5], r"kernel = 0\.5"),
        ([0.01, 0.0, 3.0], "shape"),
        ([0.01, np.nan, 3.0, 0.0], "mix = nan is not finite"),
    ],
)
def test_wrong_coordinates_are_named(x: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SPACE.validate(x)
    if len(x) == 4:
        assert not SPACE.contains([x]).any()


@pytest.mark.parametrize(
    "make",
    [
        lambda: Float(1.0, 0.0),
        lambda: Float(0.0, np.inf),
        lambda: Float(0.0, 1.0, log=True),
        lambda: Float(-1e308, 1e308),
        lambda: Float("0", 1.0),  # type: ignore[arg-type]
        lambda: Int(0.5, 2),  # type: ignore[arg-type]
        lambda: Int(3, 2),
        lambda: Int(0, 2**41),
        lambda: Int(0, 5, log=True),
        lambda: Choice([]),
        lambda: Choice("abc"),
        lambda: Choice(["a", "a"]),
        lambda: Choice([1, 1.0]),
        lambda: Choice([math.nan]),
        lambda: Choice([[1, 2]]),  # type: ignore[list-item]
        lambda: Space(),
        lambda: Space({"": Int(0, 1)}),
        lambda: Space({"a": Int(0, 1)}, a=Int(0, 1)),
        lambda: Space.from_dict({"parameters": {"a": {"type": "real", "low": 0, "high": 1}}}),
        lambda: Space.from_dict({"parameters": {"a": {"type": "int", "low": 0, "top": 1}}}),
        lambda: Space.from_dict({"parameters": {"a": {"low": 0, "high": 1}}}),
        lambda: Space.from_dict({"parameter": {}}),
        lambda: Space.from_dict({"domain": "Space"}),
    ],
)
def test_bad_descriptions_are_refused(make: object) -> None:
    with pytest.raises(ValueError):
        make()  # type: ignore[operator]


def test_a_space_is_made_of_parameters() -> None:
    with pytest.raises(TypeError, match="must be a Float, an Int or a Choice"):
        Space(a=(0.0, 1.0))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="mapping"):
        Space([Float(0.0, 1.0)])  # type: ignore[arg-type]


def test_numpy_values_and_true_beside_one() -> None:
    space = Space(a=Float(0, 1), b=Int(0, 5), c=Choice([1, True, "x"]))
    x = space.point({"a": np.float32(0.5), "b": np.int64(3), "c": np.bool_(True)})
    assert space.params(x) == {"a": 0.5, "b": 3, "c": True}
    assert [type(v) for v in space.params(x).values()] == [float, int, bool]
    assert space.params(space.point({"a": 0, "b": 3.0, "c": 1}))["c"] is not True


def test_axes_of_one_value_encode_to_zero() -> None:
    space = Space(a=Float(3.0, 3.0), b=Int(2, 2), c=Choice(["only"]), d=Float(2.0, 2.0, log=True))
    assert space.encode(space.sample(2, np.random.default_rng(0))).tolist() == [[0.0] * 4] * 2
    assert space.upper.tolist() == [0.0] * 4
    assert space.extent().tolist() == [1.0] * 4
    assert space.size == 1
    assert space.params(space.decode([[0.7, 0.7, 0.7, 0.7]])[0]) == {"a": 3.0, "b": 2, "c": "only", "d": 2.0}


def test_size_and_enumeration() -> None:
    space = Space(a=Int(-1, 1), b=Choice(["u", "v"]), c=Float(0.5, 0.5))
    X = space.enumerate()
    assert space.size == X.shape[0] == np.unique(X, axis=0).shape[0] == 6
    assert space.contains(X).all()
    assert SPACE.size is None
    for domain in (SPACE, Box.unit(2)):
        with pytest.raises(ValueError, match="cannot be listed"):
            domain.enumerate()


@pytest.mark.parametrize("log", [False, True])
def test_integers_and_choices_are_drawn_evenly(log: bool) -> None:
    space = Space(a=Int(1, 4, log=log), b=Choice(["u", "v", "w"]))
    X = space.design(4096, np.random.default_rng(0))
    edges = np.log(np.arange(5) + 0.5) if log else np.arange(5.0)
    expected = np.diff(edges) / (edges[-1] - edges[0])
    shares = np.bincount(X[:, 0].astype(int), minlength=5)[1:] / 4096
    np.testing.assert_allclose(shares, expected, atol=0.002)
    np.testing.assert_allclose(np.bincount(X[:, 1].astype(int)) / 4096, 1 / 3, atol=0.002)


def test_project_rounds_what_is_discrete_and_clips_the_rest() -> None:
    P = SPACE.project([[1.5, 0.123, 0.27, 0.2, 0.4, 0.3]])
    np.testing.assert_allclose(P, [[1.0, 0.123, 2 / 9, 0.0, 1.0, 0.0]])
    assert SPACE.continuous.tolist() == [True, True, False, False, False, False]


@given(st.integers(0, 2**32))
@settings(max_examples=30, deadline=None)
def test_neighbors_differ_in_one_discrete_parameter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    space = Space(rate=Float(0, 1), a=Int(1, 1000, log=True), b=Int(0, 3), c=Choice(["u", "v", "w"]))
    x = space.sample(1, rng)[0]
    for generator in (None, rng):
        N = space.neighbors(x, generator)
        assert space.contains(N).all()
        assert ((x != N).sum(axis=1) == 1).all()
        assert np.unique(N, axis=0).shape == N.shape
        assert (N[:, 0] == x[0]).all()
        assert set(N[N[:, 3] != x[3], 3]) == {0.0, 1.0, 2.0} - {x[3]}
        for i in (1, 2):
            wanted = {v for v in (x[i] - 1, x[i] + 1) if space.contains([[0.0, 1, v, 0] if i == 2 else [0.0, v, 0, 0]])}
            assert wanted <= set(N[:, i])
