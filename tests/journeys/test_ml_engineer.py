"""An engineer with a training function: a space file, one command, and another day."""

from __future__ import annotations

import json

OBJECTIVE = """
import math

def train(params):
    off = abs(math.log10(params["rate"]) + 2) + 0.1 * abs(params["layers"] - 3)
    for epoch in range(1, 7):
        yield 1.0 / (1.0 + off) - 0.5**epoch
"""
SPACE = """
rate = {type = "float", low = 1e-4, high = 1.0, log = true}
layers = {type = "int", low = 1, high = 6}
"""


def test_tune_two_at_a_time_and_go_on_the_next_day(desk):
    desk.write("objective.py", OBJECTIVE)
    desk.write("space.toml", SPACE)
    words = ["tune", "objective.py:train", "--space", "space.toml", "--no-page", "--seed", "0"]
    text = desk.surefoot(*words, "--trials", "6", "--workers", "2")
    assert "trial 5 (6/6)" in text
    assert "journal: surefoot-tune/run-1.jsonl" in text
    text = desk.surefoot(*words, "--trials", "12", "--resume", "--quiet")
    found = json.loads(text)
    assert 1e-3 < found["rate"] < 1e-1
    shown = desk.surefoot("show", "surefoot-tune/run-1.jsonl", "--top", "3")
    assert "12 trials: 12 measured" in shown
    assert desk.typed == 3
    assert sorted(p.name for p in desk.folder.iterdir() if p.name != "__pycache__") == [
        "objective.py",
        "space.toml",
        "surefoot-tune",
    ]


def test_what_is_mistyped_is_said_in_one_line(desk):
    desk.write("objective.py", OBJECTIVE)
    desk.write("space.toml", SPACE)
    said = desk.surefoot("tune", "objective.py:trian", "--space", "space.toml", "--trials", "3", status=2)
    assert said == "surefoot: objective.py has no 'trian'; did you mean 'train'?\n"
    desk.write("call.py", "import surefoot\ntry:\n    surefoot.optimize(print, surefoot.Box.unit(1), 3, n_jobs=2)\n"
               "except TypeError as error:\n    print(error)\n")  # fmt: skip
    assert "did you mean 'workers'?" in desk.python("call.py")
