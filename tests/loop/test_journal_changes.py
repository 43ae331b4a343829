"""A journal of another run is refused with what differs."""

from __future__ import annotations

import pytest

from surefoot import GPUCB, Choice, Float, Space


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"high": 2.0}, r"\(domain.rate.high was 1.0 and is 2.0\)"),
        ({"seed": 4}, r"\(seed was 3 and is 4\)"),
        ({"initial": 9}, r"\(initial was None and is 9\)"),
        ({"values": ["a", "b", "c"]}, r"\(domain.base.values was \['a', 'b'\] and is \['a', 'b', 'c'\]\)"),
        ({"high": 2.0, "seed": 4, "initial": 9, "confidence": 0.9}, "and 1 more"),
    ],
)
def test_the_field_that_differs_is_named(change, said, tmp_path):
    def make(high=1.0, values=("a", "b"), seed=3, **options):
        space = Space(rate=Float(0.0, high), base=Choice(list(values)))
        return GPUCB(space, seed=seed, journal=tmp_path / "a.jsonl", **options)

    make().close()
    with pytest.raises(ValueError, match=said):
        make(**change)
