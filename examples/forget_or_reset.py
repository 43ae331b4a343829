"""A signal source that wanders: forget gradually, start over now and then, or believe that nothing changes?

python examples/forget_or_reset.py [ROUNDS]        # writes forget_or_reset.png
"""

import sys

import numpy as np

from surefoot import GP, GPUCB, RGPUCB, SE, TVGPUCB, Candidates, widths
from surefoot.report.theme import canvas, color

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 120
angles = Candidates(np.linspace(0.0, 1.0, 81))  # where an antenna may point
rng = np.random.default_rng(4)
source = 0.5 + np.cumsum(rng.normal(0.0, 0.03, ROUNDS))
source = np.abs((source + 1.0) % 2.0 - 1.0)  # stays between 0 and 1


def strength(angle: np.ndarray, moment: int) -> np.ndarray:
    return np.exp(-(((angle - source[moment]) / 0.15) ** 2))


options = {"gp": GP(SE(0.15, variance=0.5), noise=1e-3), "width": widths.LogTime(), "seed": 0}
policies = {
    "TV-GP-UCB, forgets": TVGPUCB(angles, forgetting=0.05, **options),
    "R-GP-UCB, starts over": RGPUCB(angles, block=25, **options),
    "GP-UCB, believes in the past": GPUCB(angles, **options),
}
with canvas(8.0, 4.6) as figure:
    above, below = figure.subplots(2, 1, sharex=True)
    above.plot(source, color=color("muted"), linewidth=3.0, alpha=0.5, label="the source")
    for (name, policy), shade in zip(policies.items(), ("belief", "accent", "bad"), strict=True):
        asked, regret = [], []
        for moment in range(ROUNDS):
            query = policy.ask(time=float(moment)) if "time" in policy.context else policy.ask()
            policy.tell(query, float(strength(query.x[0], moment)) + 0.03 * rng.standard_normal())
            asked.append(query.x[0])
            regret.append(1.0 - float(strength(query.x[0], moment)))
        print(f"{name:30} mean loss {np.mean(regret):.3f}")
        above.plot(asked, ".", markersize=4, color=color(shade), label=name)
        below.plot(np.cumsum(regret), color=color(shade), label=name)
    above.set(ylabel="angle asked")
    below.set(xlabel="round", ylabel="loss, summed up", xlim=(0, ROUNDS))
    below.legend(loc="upper left")
    figure.savefig("forget_or_reset.png", facecolor=color("paper"))
print("wrote forget_or_reset.png")
