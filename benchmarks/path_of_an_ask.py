"""How far an ask goes: functions called, files touched, and calls from one file into another.

What a reader has to follow, not how long it takes. ``python benchmarks/path_of_an_ask.py``
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import surefoot
from surefoot import GPUCB, Choice, Float, Int, Space

HOME = str(Path(surefoot.__file__).parent)


def followed(act: Callable[[], Any]) -> tuple[int, int, int]:
    """Return how many functions of Surefoot one call runs, in how many files, and how often it changes the file."""
    functions: set[Any] = set()
    crossings = 0

    def watch(frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal crossings
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(HOME):
            return
        functions.add(code)
        caller = frame.f_back
        if caller is not None and caller.f_code.co_filename.startswith(HOME):
            crossings += caller.f_code.co_filename != code.co_filename

    sys.setprofile(watch)
    try:
        act()
    finally:
        sys.setprofile(None)
    return len(functions), len({code.co_filename for code in functions}), crossings


def main() -> None:
    """Print the three numbers of an ask and a tell of GP-UCB on a space with a journal, and of an ask for Optuna."""
    space = Space(rate=Float(1e-3, 1.0, log=True), depth=Int(1, 8), kind=Choice(["a", "b"]))
    with tempfile.TemporaryDirectory() as folder:
        policy = GPUCB(space, seed=0, journal=Path(folder) / "run.jsonl")
        for i in range(8):
            policy.tell(policy.ask(), float(i % 3))
        asked: list[Any] = []
        print("GPUCB.ask ", *followed(lambda: asked.append(policy.ask())))
        print("GPUCB.tell", *followed(lambda: policy.tell(asked[0], 1.0)))
        policy.close()
    try:
        import optuna

        from surefoot.bridge.optuna import SurefootSampler
    except ImportError:
        return
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=SurefootSampler(policy=GPUCB, seed=0), direction="maximize")

    def objective(trial: Any) -> float:
        rate, depth = trial.suggest_float("rate", 1e-3, 1.0, log=True), trial.suggest_int("depth", 1, 8)
        return float(rate * depth) + len(trial.suggest_categorical("kind", ["a", "b"]))

    study.optimize(objective, n_trials=8)
    trials: list[Any] = []

    def asked_by_optuna() -> None:
        trials.append(study.ask())
        objective(trials[0])

    print("Optuna ask", *followed(asked_by_optuna))


if __name__ == "__main__":
    main()
