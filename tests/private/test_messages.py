"""What crosses: exactly these fields, in strict JSON, read back bit for bit, and nothing else."""

from __future__ import annotations

import json
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from surefoot.errors import SurefootError
from surefoot.private import (
    Answer,
    Ask,
    Close,
    Curator,
    FullLift,
    GaussianRelease,
    Guarantee,
    LaplaceRelease,
    OutputRelease,
    PublishedProjection,
    Release,
    ResearchNoise,
)
from surefoot.private.messages import read

# Everything that may cross. A new field must be put here by hand, and thought about.
WIRE = {
    "release": {
        "schema",
        "message",
        "run",
        "shape",
        "rows",
        "noise",
        "asks",
        "repeats",
        "output_noise",
        "parameters",
        "guarantee",
    },
    "ask": {"schema", "message", "run", "step", "index"},
    "answer": {"schema", "message", "run", "step", "value"},
    "close": {"schema", "message", "run", "index"},
}
GUARANTEE = {
    "mechanism",
    "epsilon",
    "delta",
    "protects",
    "neighbor",
    "replacement",
    "features",
    "analytic",
    "claimed",
    "assumptions",
    "failures",
}
COMMON = {"epsilon", "delta", "neighbor", "center", "scale", "radius", "bounds", "outputs"}
PARAMETERS = {
    "GaussianRelease": COMMON | {"dimension", "projection_seed"},
    "LaplaceRelease": COMMON,
    "FullLift": COMMON | {"dimension"},
    "PublishedProjection": COMMON | {"dimension", "lift", "lifting", "normalize"},
}


def release(**options):
    rows = np.random.default_rng(0).normal(size=(4, 3))
    return Release(**{"run": "k", "rows": rows, "guarantee": Guarantee(mechanism="x"), **options})


def mechanisms():
    number = st.sampled_from([0.5, 3.0])
    common = {"epsilon": number, "delta": st.sampled_from([1e-6, 1e-3]), "neighbor": st.sampled_from([0.5, 1.0])}
    return st.one_of(
        st.builds(GaussianRelease, **common, dimension=st.sampled_from([None, 1, 2])),
        st.builds(LaplaceRelease, epsilon=number),
        st.builds(FullLift, **common, dimension=st.integers(1, 4)),
        st.builds(
            PublishedProjection,
            **common,
            dimension=st.integers(1, 6),
            lift=st.sampled_from(["threshold", "always", "never"]),
            accept_no_guarantee=st.just(True),
        ),
    )


@settings(max_examples=25, deadline=None)
@given(
    mechanism=mechanisms(),
    outputs=st.none() | st.builds(OutputRelease, bounds=st.just((0.0, 1.0)), epsilon=st.just(2.0), delta=st.just(1e-5)),
    repeats=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_a_curator_sends_only_what_is_on_the_list(mechanism, outputs, repeats, seed):
    X = np.random.default_rng(seed).uniform(-9.0, 9.0, (12, 3))
    mechanism = mechanism._using(Quick(seed))
    curator = Curator(X, X.sum(axis=1), mechanism, asks=3, outputs=outputs, repeats=repeats)
    sent = [curator.release().to_wire()]
    for step in range(3):
        sent.append(curator.handle(Ask(curator.run, step, step).to_wire()))
    curator.handle(Close(curator.run, 1).to_wire())
    for message in sent:
        assert set(message) == WIRE[message["message"]]
    assert set(sent[0]["guarantee"]) == GUARANTEE
    assert set(sent[0]["parameters"]) == PARAMETERS[mechanism.name]
    text = json.dumps(sent, allow_nan=False)
    for row in X:  # neither as numbers nor as bytes
        assert not any(repr(float(value)) in text for value in row)
    assert Release.from_wire(json.loads(text)[0]) == curator.release()


class Quick(ResearchNoise):
    """Reproducible noise that poses as the real one: the messages are what is tested here."""

    simulated = False


def test_classes_have_no_other_fields():
    assert {f.name for f in fields(Release)} == {
        "run",
        "rows",
        "noise",
        "asks",
        "repeats",
        "output_noise",
        "parameters",
        "guarantee",
        "simulated",
    }
    assert {f.name for f in fields(Ask)} == {"run", "step", "index"}
    assert {f.name for f in fields(Answer)} == {"run", "step", "value"}
    assert {f.name for f in fields(Close)} == {"run", "index"}
    assert {f.name for f in fields(Guarantee)} == GUARANTEE - {"replacement"}


@settings(max_examples=30, deadline=None)
@given(arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(1, 4)), elements=st.floats(-1e300, 1e300)))
def test_rows_cross_bit_for_bit(rows):
    sent = release(rows=rows, noise=0.25, asks=7, repeats=False, output_noise=0.1, parameters={"a": [1, None]})
    found = read(json.loads(json.dumps(sent.to_wire(), allow_nan=False)))
    assert found == sent
    assert found.rows.tobytes() == np.ascontiguousarray(rows).tobytes()


@pytest.mark.parametrize(
    "message", [Ask("k", 3, 0), Answer("k", 3, 0.1), Answer("k", 3, None), Close("k", 2), Close("k", None)]
)
def test_small_messages_cross(message):
    assert read(json.loads(json.dumps(message.to_wire(), allow_nan=False))) == message


def test_a_simulated_release_does_not_cross():
    with pytest.raises(SurefootError, match="protects nothing"):
        release(simulated=True).to_wire()


@pytest.mark.parametrize(
    "change",
    [
        {"extra": 1},
        {"rows": "%%%"},
        {"rows": "AAAA"},
        {"shape": [4]},
        {"shape": [4, -3]},
        {"shape": [4, True]},
        {"noise": -1.0},
        {"noise": "1"},
        {"asks": 0},
        {"asks": 1.5},
        {"repeats": 1},
        {"guarantee": {"mechanism": "x", "sigma_min": 3.0}},
        {"schema": 99},
        {"schema": None},
        {"message": "ask"},
        {"run": ""},
        {"run": "x" * 1000},
        {"run": "a\nb"},
        {"parameters": {"x": float("nan")}},
    ],
)
def test_what_is_not_exactly_a_release_is_refused(change):
    with pytest.raises(ValueError):
        Release.from_wire({**release().to_wire(), **change})


@pytest.mark.parametrize("rows", [np.zeros(3), np.zeros((0, 2)), np.zeros((2, 0)), [[0.0, float("nan")]]])
def test_released_rows_are_a_finite_table(rows):
    with pytest.raises(ValueError, match="released rows are finite"):
        Release("k", rows)


@pytest.mark.parametrize(
    "wire",
    [
        {},
        [],
        {"schema": 1, "message": "ask", "run": "k", "step": 0},
        {"schema": 1, "message": "ask", "run": "k", "step": 0, "index": 0, "row": [1.0]},
        {"schema": 1, "message": "ask", "run": "k", "step": True, "index": 0},
        {"schema": 1, "message": "ask", "run": "k", "step": 0, "index": -1},
        {"schema": 1, "message": "answer", "run": "k", "step": 0, "value": "1"},
        {"schema": 1, "message": "answer", "run": "k", "step": 0, "value": float("inf")},
        {"schema": 1, "message": "close", "run": 3, "index": 0},
        {"schema": 1, "message": ["ask"], "run": "k"},
    ],
)
def test_what_is_no_message_is_refused(wire):
    with pytest.raises(ValueError):
        read(wire)


def test_releases_are_read_only():
    with pytest.raises(ValueError):
        release().rows[0, 0] = 1.0
    assert "[" not in repr(release())


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"mechanism": 3},
        {"mechanism": "x", "failures": [{"bad": 1}]},
        {"mechanism": "x", "failures": 5},
        {"mechanism": "x", "epsilon": "1", "delta": 0.1},
        {"mechanism": "x", "epsilon": True, "delta": False},
        {"mechanism": "x", "features": 5},
        {"mechanism": "x", "features": ["a"]},
        {"mechanism": "x", "claimed": [1]},
        {"mechanism": "x", "neighbor": "a"},
    ],
)
def test_a_malformed_guarantee_is_a_value_error(wrong):
    with pytest.raises(ValueError, match="guarantee"):
        Guarantee.from_dict(wrong)
