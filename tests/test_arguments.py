"""What an option may be: plain numbers come back, everything else is named in the error."""

from __future__ import annotations

import math

import numpy as np
import pytest

from surefoot.arguments import not_negative, one_of, open_unit, positive, whole

NO_NUMBER = [None, "1", True, np.array([0.5]), [0.5], math.nan]


@pytest.mark.parametrize("value", [0.5, np.float32(0.5), np.array(0.5)])
@pytest.mark.parametrize("check", [not_negative, positive, open_unit])
def test_numbers_come_back_as_floats(check, value):
    found = check(value, "share")
    assert type(found) is float
    assert found == 0.5


@pytest.mark.parametrize("value", NO_NUMBER)
@pytest.mark.parametrize("check", [not_negative, positive, open_unit])
def test_what_is_no_number_is_refused(check, value):
    with pytest.raises(ValueError, match=r"share must .*, got "):
        check(value, "share")


@pytest.mark.parametrize(
    ("check", "allowed", "refused"),
    [
        (not_negative, [0, 1e300], [-1e-300, math.inf]),
        (positive, [1e-300, 7], [0, math.inf]),
        (open_unit, [1e-300, 1 - 1e-16], [0, 1, -1, 2]),
    ],
)
def test_the_ends_of_the_ranges(check, allowed, refused):
    for value in allowed:
        assert check(value, "share") == value
    for value in refused:
        with pytest.raises(ValueError, match=f"got {value!r}"):
            check(value, "share")


@pytest.mark.parametrize("value", [1, 3.0, True, None, "2", math.nan])
def test_whole_numbers(value):
    assert whole(np.int64(2), "epochs", 2) == 2
    with pytest.raises(ValueError, match="epochs must be a whole number from 2 on, got "):
        whole(value, "epochs", 2)


@pytest.mark.parametrize("value", ["Max", 0, False, ["max"], np.array(["max", "min"])])
def test_words(value):
    assert one_of("max", "goal", ("max", "min")) == "max"
    assert one_of(None, "goal", ("max", None)) is None
    with pytest.raises(ValueError, match="goal must be 'max' or 'min', got "):
        one_of(value, "goal", ("max", "min"))
