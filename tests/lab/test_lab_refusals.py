"""What baselines and commands of the lab refuse, by the value that was given."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot import GP, Box, Candidates, Dives, Paths
from surefoot.lab.baselines.contextual import ContextualGPUCB
from surefoot.lab.baselines.curve_extrapolation import CurveExtrapolation
from surefoot.lab.baselines.drift import SlidingWindowGPUCB
from surefoot.lab.baselines.median import MedianRule
from surefoot.lab.baselines.recorded import recorded_rule
from surefoot.lab.select import Sheet, objective_of

BOX, LINE = Box.unit(1), Candidates([[0.0], [1.0]])


def sheet(weights):
    return Sheet(["a"], [], ["a"], np.array([[0.0], [1.0]]), weights=np.array(weights))


REFUSED = {
    "a process without time": (lambda: ContextualGPUCB(LINE), "gp="),
    "a threshold of 1": (lambda: CurveExtrapolation(BOX, epochs=10, threshold=1.0), r"1\.0"),
    "never": (lambda: CurveExtrapolation(BOX, epochs=10, every=0), "every"),
    "a window of nothing": (lambda: SlidingWindowGPUCB(BOX, window=0), "window"),
    "half a start": (lambda: MedianRule(BOX, epochs=10, startup=0.5), r"0\.5"),
    "a method nobody recorded": (
        lambda: recorded_rule("luck", Paths(np.arange(9.0)[:, None], Dives((9,), 2), start=4), gp=GP(), seed=0),
        "'luck'",
    ),
    "weights that coverage ignores": (
        lambda: objective_of(sheet([1.0, 1.0]), "coverage"),
        "coverage takes no --weights",
    ),
    "weights of nothing": (lambda: objective_of(sheet([0.0, 0.0]), "facility"), "all 0"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_is_refused_by_its_value(what):
    call, words = REFUSED[what]
    with pytest.raises(ValueError, match=words):
        call()
