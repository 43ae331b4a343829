"""Training runs that can be abandoned, without and with what an earlier data set taught: the pages of both runs.

python examples/stop_with_earlier_tasks.py [RUNS]        # writes two pages and two pictures of learning curves
"""

import math
import sys
from collections.abc import Iterator

from surefoot import BOBOS, RMBOBOS, Float, Space, Task, optimize
from surefoot.report import curves, page
from surefoot.report.theme import color

space = Space(rate=Float(1e-4, 1.0, log=True), decay=Float(1e-6, 1e-1, log=True))
EPOCHS, RUNS = 25, int(sys.argv[1]) if len(sys.argv) > 1 else 12


def training(best_rate: float):
    """Stands for training on one data set: accuracy after each epoch, which levels off at what the settings allow."""

    def train(params: dict[str, float]) -> Iterator[float]:
        off = math.log10(params["rate"] / best_rate) ** 2 + 0.2 * (math.log10(params["decay"]) + 3.0) ** 2
        for epoch in range(1, EPOCHS + 1):
            yield 0.95 - 0.12 * off - 0.5 * math.exp(-epoch / (3.0 + off))

    return train


def final(train, params: dict[str, float]) -> float:
    *_, last = train(params)
    return last


earlier = training(best_rate=0.02)
rows = [{"rate": 10.0 ** -(i % 4 + 0.5), "decay": 10.0 ** -(i // 4 + 1.5)} for i in range(16)]
task = Task(rows, [final(earlier, row) for row in rows], name="last year's data")

today = training(best_rate=0.01)
for name, policy, options in (("alone", BOBOS, {}), ("with_earlier_task", RMBOBOS, {"tasks": [task]})):
    found = optimize(today, space, RUNS, policy=policy, epochs=EPOCHS, seed=2, **options)
    used, saved = found.policy.epochs_used, found.policy.epochs_saved
    print(f"{name:17} {used} epochs used, {saved} saved; use {found.params}: {found.value:.3f}")
    curves(found.policy, label="accuracy").savefig(f"curves_{name}.png", facecolor=color("paper"))
    print("pictures:", page(found.policy, f"run_{name}.html", title=f"Training, {name.replace('_', ' ')}"))
