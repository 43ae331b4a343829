"""Find the best settings of an oven in 25 bakes, survive a crash on the way, and look at the run.

python examples/quickstart.py
"""

import math
import tempfile
from pathlib import Path

import surefoot
from surefoot import Choice, Float, Int, Space

space = Space(
    temperature=Float(150.0, 260.0),
    yeast=Float(0.1, 10.0, log=True),  # grams: varies over orders of magnitude
    minutes=Int(10, 60),
    flour=Choice(["wheat", "rye", "spelt"]),
)


def taste(temperature: float, yeast: float, minutes: int, flour: str) -> float:
    """Stand for something expensive: a training run, a simulation, a real loaf of bread."""
    heat = ((temperature - 220.0) / 30.0) ** 2 + ((minutes - 35.0 - (temperature - 220.0) / -4.0) / 12.0) ** 2
    rise = (math.log10(yeast) - 0.2) ** 2
    return 10.0 - heat - 4.0 * rise - {"wheat": 1.0, "rye": 0.0, "spelt": 0.5}[flour]


folder = Path(tempfile.mkdtemp())
journal = folder / "bread.jsonl"

# The loop in your own hands: ask where to measure, measure, tell.
policy = surefoot.ExpectedImprovement(space, seed=7, journal=journal)
for _ in range(10):
    query = policy.ask()
    policy.tell(query, taste(**query.params))
policy.close()

# The computer was switched off here. Everything told is in the journal; the run goes on where it stopped.
policy = surefoot.load(journal)
while len(policy.history) < 25:
    query = policy.ask()
    policy.tell(query, taste(**query.params))

best = policy.recommend()
print("bake", best.params)
print(f"expect {best.mean:.2f}, between {best.lower:.2f} and {best.upper:.2f}")
policy.close()

try:
    print("pictures:", surefoot.report.page(policy, folder / "bread.html", title="Bread", label="taste"))
except surefoot.MissingExtra as missing:
    print(missing)
