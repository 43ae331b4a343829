"""A roboticist: a boat that plans its dives, is switched off, and goes on from its journal."""

from __future__ import annotations

PROGRAM = """


import numpy as np
import surefoot
from surefoot import GP, SE, Dives, MacroGPO, Paths

cells = np.stack(np.meshgrid(np.arange(9.0), np.arange(9.0), indexing="ij"), axis=-1).reshape(-1, 2)
plankton = np.exp(-((cells - [2.0, 6.0]) ** 2).sum(axis=1) / 10.0)
sea = Paths(cells, Dives((9, 9), 2), start=40, budget=8)
policy = MacroGPO(sea, horizon=2, samples=10, gp=GP(SE(2.0), noise=1e-4), seed=0, journal="boat.jsonl")
for _ in range(2):
    if policy.journey.stages:
        dive = policy.ask()
        policy.tell(dive, plankton[dive.note["stops"]])
print(len(policy.history), "moves,", policy.journey.stages, "left, best stop", policy.recommend().x.tolist())
policy.close()
"""


def test_a_boat_goes_on_from_its_journal(desk):
    desk.write("boat.py", PROGRAM)
    assert desk.python("boat.py").startswith("2 moves, 2 left, best stop")
    assert desk.python("boat.py").startswith("4 moves, 0 left, best stop")
    assert "4 moves, 0 left" in desk.python("boat.py")
    assert desk.typed == 3
