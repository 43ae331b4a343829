"""What crosses a boundary: enumerated fields, strict JSON, nothing malformed."""

import json
from dataclasses import fields

import numpy as np
import pytest

from surefoot.errors import SurefootError
from surefoot.federated import Broadcast, Message

HASH = "0123456789abcdef" * 4


def message(**changes):
    return Message(**{"agent": 1, "round": 2, "features": HASH, "vector": [0.1, -0.2, 1e-300], **changes})


def broadcast(**changes):
    content = {"round": 2, "features": HASH, "parts": (2, 1), "vectors": [[0.1, 0.2], [0.3, 0.4]], **changes}
    return Broadcast(**content)


def test_the_fields_that_cross_are_these_and_no_others():
    """A new field is a decision about privacy: whoever adds one changes this test."""
    assert [field.name for field in fields(Message)] == ["agent", "round", "features", "vector"]
    assert [field.name for field in fields(Broadcast)] == [
        "round",
        "features",
        "parts",
        "vectors",
        "silence",
        "coin",
        "simulated",
    ]
    assert set(message().to_wire()) == {"schema", "kind", "agent", "round", "features", "vector"}
    assert set(vars(message())) == {"agent", "round", "features", "vector"}


@pytest.mark.parametrize(
    "sent",
    [message(), broadcast(), broadcast(vectors=None, silence="budget"), broadcast(coin=True, parts=[1, 2])],
)
def test_wire_forms_are_strict_json_and_exact(sent):
    again = type(sent).from_wire(json.loads(json.dumps(sent.to_wire(), allow_nan=False)))
    assert again == sent
    assert again.to_wire() == sent.to_wire()
    assert hash(again) == hash(sent)


def test_different_things_are_different():
    assert message() != message(vector=[0.1, -0.2, 0.0])
    assert message() != broadcast()


@pytest.mark.parametrize(
    "change",
    [
        {"agent": -1},
        {"agent": 1.5},
        {"agent": True},
        {"round": "2"},
        {"features": "abc"},
        {"features": None},
        {"vector": [[1.0]]},
        {"vector": "ab"},
        {"vector": [1.0, None, {}]},
        {"vector": 3.0},
    ],
)
def test_malformed_messages(change):
    with pytest.raises(ValueError, match=next(iter(change))):
        message(**change)


@pytest.mark.parametrize(
    "change",
    [
        {"parts": []},
        {"parts": (0, 1)},
        {"parts": 2},
        {"vectors": [[0.1, 0.2]]},
        {"vectors": [[0.1], [np.nan]]},
        {"vectors": None},
        {"silence": "coin"},
        {"vectors": None, "silence": "tired"},
        {"coin": 1},
        {"round": -1},
    ],
)
def test_malformed_broadcasts(change):
    with pytest.raises(ValueError):
        broadcast(**change)


def test_wires_with_more_less_or_other_content_are_refused():
    wire = message().to_wire()
    with pytest.raises(ValueError, match="'x'"):
        Message.from_wire({**wire, "x": [0.5]})  # a point has no place in it
    with pytest.raises(ValueError, match="'vector'"):
        Message.from_wire({key: value for key, value in wire.items() if key != "vector"})
    with pytest.raises(ValueError, match="not a broadcast"):
        Broadcast.from_wire(wire)
    with pytest.raises(ValueError, match="newer"):
        Message.from_wire({**wire, "schema": 99})
    with pytest.raises(ValueError, match="mapping"):
        Message.from_wire([1, 2])


def test_noise_from_a_seed_does_not_cross():
    with pytest.raises(SurefootError, match="protects nobody"):
        broadcast(simulated=True).to_wire()
    assert broadcast(simulated=True).to_fields()["simulated"]


def test_a_log_line_shows_no_vector():
    assert "0.1" not in repr(message())


def test_arrays_are_read_only():
    with pytest.raises(ValueError, match="read-only"):
        message().vector[0] = 1.0


@pytest.mark.parametrize("vector", [["1.0", "2.0"], [True, False], [1.0, None], [10**400, 1]])
def test_what_only_reads_as_numbers_is_refused(vector):
    with pytest.raises(ValueError, match="vector must be an array of numbers"):
        Message.from_wire({**message().to_wire(), "vector": vector})


def test_a_round_that_no_federation_reaches_is_refused():
    with pytest.raises(ValueError, match="no federation has"):
        message(round=10**30)


def test_a_message_of_a_newer_schema_is_refused():
    wire = Message(agent=2, round=0, features="ab" * 32, vector=[0.5, -1.0]).to_wire()
    with pytest.raises(ValueError, match="newer than the 1 this release"):
        Message.from_wire({**wire, "schema": 2})
