"""Tune a heater's controller while the plant ages: what was measured last month says little about today.

python examples/drifting_controller.py
"""

import numpy as np

from surefoot import GP, GPUCB, SE, TVGPUCB, Box, widths

rng = np.random.default_rng(0)
box = Box([(0.5, 6.0), (0.0, 2.0)])  # gain, integral action


def comfort(setting, day: float) -> float:
    """Return minus the mean error of a day. The heater's power swings with the seasons and falls with the years."""
    power = 1.2 + 0.7 * np.cos(day / 30.0) - 0.002 * day
    gain, integral = setting * power  # what counts is the gain of the whole loop
    slow, hunting = 1.0 / (0.3 + gain), 0.02 * gain**2
    return -(slow + hunting + 0.2 * (integral - 0.9) ** 2)


def tune(policy, days) -> tuple[np.ndarray, np.ndarray]:
    """Try one setting a day; return the answer of each evening and the error it has on the day after."""
    answers, errors = [], []
    for day in days:
        query = policy.ask(time=day) if "time" in policy.context else policy.ask()
        policy.tell(query, comfort(query.x, day) + 0.02 * rng.standard_normal())
        answers.append(policy.recommend().x)
        errors.append(-comfort(answers[-1], day + 1.0))
    return np.array(answers), np.array(errors)


days = np.cumsum(1.0 + 2.0 * (rng.random(120) < 0.2))  # some days are missed
options = {"gp": GP(SE([2.0, 1.0], variance=0.1), noise=4e-4, mean=-0.7), "width": widths.LogTime(), "seed": 1}
policy = TVGPUCB(box, forgetting=0.03, **options)
settings, errors = tune(policy, days)
_, without = tune(GPUCB(box, **options), days)

half = len(days) // 2
print(f"mean error in the second half: {errors[half:].mean():.3f}; without forgetting {without[half:].mean():.3f}")
drift = policy.estimate()
print(f"drift per day, estimated: {drift.forgetting:.3f}, between {drift.lower:.3f} and {drift.upper:.3f}")
print("today use gain and integral action", policy.recommend().x.round(2))

try:
    import matplotlib.pyplot as plt
except ImportError:
    raise SystemExit("a picture needs matplotlib: pip install 'surefoot[plot]'") from None
figure, (above, below) = plt.subplots(2, sharex=True)
above.plot(days, settings, label=["gain", "integral action"])
below.plot(days, np.column_stack([errors, without]), label=["TV-GP-UCB", "GP-UCB"])
below.set(xlabel="day", ylabel="error of the next day")
above.legend()
below.legend()
figure.savefig("drifting_controller.png")
print("wrote drifting_controller.png")
