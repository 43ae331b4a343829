"""An experiment of Ray Tune that can be killed and restored; also a program that runs it.

python ray_experiment.py ADDRESS FOLDER
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ray
from ray import tune

from surefoot.bridge.ray_tune import SurefootSearch, SurefootStopping

EPOCHS = 12
GOOD = [0.95, 0.9, 0.85, 0.8]
BAD = [0.1, 0.15, 0.2]
SPACE = {"net": {"x": tune.uniform(0.0, 1.0)}, "data": "none"}


def trainable(folder: Path) -> Callable[[dict[str, Any]], None]:
    """Return a function whose bad runs wait at their second epoch until a file named "go" is there."""

    def train(config: dict[str, Any]) -> None:
        import time

        x = config["net"]["x"]
        for epoch in range(1, EPOCHS + 1):
            while epoch == 2 and x < 0.5 and not (folder / "go").exists():
                time.sleep(0.05)
            tune.report({"loss": 1.0 - x * (1.0 - 0.5**epoch)})

    return train


def tuner(folder: Path) -> tune.Tuner:
    """Return the experiment: four good runs, then bad ones, then some that the policy chooses."""
    first = [{"net": {"x": x}} for x in GOOD + BAD]
    return tune.Tuner(
        trainable(folder),
        param_space=SPACE,
        tune_config=tune.TuneConfig(
            metric="loss",
            mode="min",
            num_samples=9,
            search_alg=SurefootSearch(points_to_evaluate=first, seed=0),
            scheduler=SurefootStopping(epochs=EPOCHS, bounds=(0.0, 1.0), complete=4, seed=0),
            max_concurrent_trials=2,
            reuse_actors=True,
        ),
        run_config=tune.RunConfig(name="experiment", storage_path=str(folder), verbose=0),
    )


if __name__ == "__main__":
    ray.init(address=sys.argv[1], log_to_driver=False)
    tuner(Path(sys.argv[2])).fit()
