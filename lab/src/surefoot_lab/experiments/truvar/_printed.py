"""Algorithm 3 as it is printed, to show what the truncation level does to its score.

The printed score truncates β σ² at η where the proof, and the test that ends an epoch, need η². With η < 1 every
variance is under the printed level long before the epoch can end, and the score is the same for all points. This loop
exists to count the rounds in which the printed form cannot tell points apart.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from surefoot.belief.gp import GP
from surefoot.belief.grid import GridPosterior

Array = NDArray[np.float64]

TARGET, RATIO, SCALE = 1.0, 0.1, 0.5


def flat_rounds(gp: GP, points: Array, values: Array, rounds: int, printed: bool, rng: np.random.Generator) -> int:
    """Return in how many rounds the score was flat: as printed, or truncated at η² and with a loop over epochs.

    Flat scores are resolved by a random potential maximizer. Potential maximizers never return, in both forms.
    """
    power = 1 if printed else 2
    belief = GridPosterior(gp, points, capacity=rounds)
    everything = np.arange(len(points))
    inside = np.ones(len(points), dtype=bool)
    eta, started, flat = TARGET, 1, 0
    for t in range(1, rounds + 1):
        beta = SCALE * math.log(len(points) * started**2)
        now = np.maximum(beta * belief.var[inside], eta**power).sum()
        after = np.maximum(beta * belief.lookahead(everything)[:, inside], eta**power).sum(axis=1)
        score = now - after  # equation 3.5
        if score.max() <= 1e-12 * now:
            flat += 1
            chosen = int(rng.choice(np.flatnonzero(inside)))
        else:
            chosen = int(score.argmax())
        belief.append(chosen, float(values[chosen]))
        half = math.sqrt(beta) * belief.std
        inside &= belief.mean + half >= (belief.mean - half)[inside].max()
        while half[inside].max() <= eta * (1.0 + 1e-9) and eta > 1e-6:
            eta, started = eta * RATIO, t + 1
            half = math.sqrt(SCALE * math.log(len(points) * started**2)) * belief.std
            if printed:  # one epoch per round at most: "if", line 5 of Algorithm 3
                break
    return flat
