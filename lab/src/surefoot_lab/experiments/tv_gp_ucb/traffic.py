"""Where does the traffic flow fastest? One of 50 speed sensors is read every five minutes.

Windows of 84 readings, 6-13 h and 13-20 h, of working days: Thursday, Friday and Monday train, Tuesday and Wednesday
test. One repetition is one first sensor on one draw of 50 of the 207 sensors, 20 first sensors per draw, in the four
test windows. Published: 357 sensors of another road, one month, rate 0.04.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from surefoot.loop.streams import stream
from surefoot.loop.widths import LogTime
from surefoot_lab import (
    Budget,
    Data,
    Equal,
    Metric,
    Number,
    Order,
    Replicate,
    Share,
    Trace,
    across,
    datasets,
    experiment,
)
from surefoot_lab.experiments.tv_gp_ucb._sensors import Sensors, regrets
from surefoot_lab.readings import Reading, Replicates

NOISE, STEPS, FIRST = 5.0, 84, 20
SUBSET = 50
DROP, NEXT = 12.0, 10  # mph; steps after a drop
QUIET = 1.0  # mph that always reading the best sensor of a quiet window would lose
TRAIN, TEST = (0, 1, 4), (5, 6)  # days since Thursday, 1 March 2012
TV, UCB, RANDOM, SETTING = "TV-GP-UCB", "GP-UCB", "random", "setting"
WINDOWS = len(TEST) * 2

Array = NDArray[np.float64]


def _per_window(judge: Callable[[Array, Array], float], label: str) -> Reading:
    """One number per test window and draw of sensors, from the regrets of its repetitions."""

    def values(replicates: Replicates) -> Array:
        subsets = np.array([float(traces[SETTING]["subset"]) for traces in replicates])
        found = []
        for subset in np.unique(subsets):
            own = [traces for traces, s in zip(replicates, subsets, strict=True) if s == subset]
            for w in range(WINDOWS):
                pair = [np.array([float(t[m][f"window_{w}"]) for t in own]) for m in (TV, UCB)]
                found.append(judge(*pair))
        return np.array(found, dtype=np.float64)

    return across(values, label)


def _much_worse(tracking: Array, static: Array) -> float:
    """Whether the first is above the second by more than two standard errors of the paired difference."""
    gap = tracking - static
    return float(len(gap) > 1 and gap.mean() > 2.0 * gap.std(ddof=1) / np.sqrt(len(gap)))


claims = [
    Share(
        "TV-GP-UCB has less regret than GP-UCB in most test windows, significantly more in none",
        [
            _per_window(lambda a, b: float(a.mean() < b.mean()), "windows where TV-GP-UCB is ahead") > 0.5,
            _per_window(_much_worse, "windows where TV-GP-UCB is significantly behind") < 0.1,
        ],
        note="'none' is judged as less than one in ten: no share can be shown to be 0",
    ),
    Order(
        "after the best sensor drops by more than 12 mph, TV-GP-UCB has less regret over the next 10 steps",
        Metric("after_drop")[TV] < Metric("after_drop")[UCB],
    ),
    Equal(
        "equal in windows in which the best sensors hardly change",
        (Metric("quiet")[TV], Metric("quiet")[UCB]),
        margin=0.5,
        marks=("doubtful",),
        note=f"windows in which one sensor is within {QUIET:g} mph of the best on average",
    ),
    Number("maximum-likelihood rate 0.04", {Metric("forgetting")[SETTING]: 0.04}, marks=("needs-original",)),
]


@lru_cache(maxsize=2)
def _trained(root: int, subset: int) -> tuple[Sensors, list[Array]]:
    """The belief of one draw of sensors, and its test windows."""
    speed = datasets.load("metr_la")["speed"]
    count = min(SUBSET, speed.shape[1])
    chosen = np.sort(stream(root, "sensors", subset).choice(speed.shape[1], count, replace=False))

    def windows(days: tuple[int, ...]) -> list[Array]:
        starts = [288 * day + shift for day in days for shift in (72, 72 + STEPS)]
        return [speed[start : start + STEPS, chosen] for start in starts]

    return Sensors.trained(windows(TRAIN), NOISE, LogTime(0.2, 0.4)), windows(TEST)


def _drops(values: Array) -> NDArray[np.intp]:
    """Steps at which the sensor that was best one step before has fallen by more than 12 mph."""
    best = values[:-1].argmax(axis=1)
    steps = np.arange(len(best))
    return np.flatnonzero(values[steps, best] - values[steps + 1, best] > DROP) + 1


@experiment(
    "tv-gp-ucb/traffic",
    source="Bogunovic 2019 (thesis), section 5.4.2, Fig. 5.3c-f",
    data=Data("substitute", ("metr_la",), instead_of="I-880 South"),
    quick=Budget(FIRST),
    full=Budget(50 * FIRST, minutes=30),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """The fastest of 50 traffic sensors, read every five minutes."""
    subset = replicate.index // FIRST
    sensors, windows = _trained(replicate.root, subset)
    first = int(replicate.rng("first").integers(sensors.domain.size))
    found: dict[str, list[Trace]] = {TV: [], UCB: [], RANDOM: []}
    for values in windows:
        still, seed = np.zeros(len(values)), replicate.integer
        found[TV].append(sensors.follow(sensors.tracking(seed), values, still, first))
        found[UCB].append(sensors.follow(sensors.static(seed), values, still, first))
        found[RANDOM].append(regrets(values, replicate.rng("random").integers(values.shape[1], size=len(values))))
    quiet = [float((v.max(axis=1)[:, None] - v).mean(axis=0).min()) < QUIET for v in windows]
    traces = {method: _summary(windows, quiet, made) for method, made in found.items()}
    rate = sensors.rate
    traces[SETTING] = Trace(subset=subset, forgetting=rate.forgetting, lower=rate.lower, upper=rate.upper)
    return traces


def _summary(windows: list[Array], quiet: list[bool], made: list[Trace]) -> Trace:
    """The average regret of each window, of the quiet ones, and after drops; its course over all windows."""
    ends = [float(trace["average_regret"][-1]) for trace in made]
    calm = [end for end, still in zip(ends, quiet, strict=True) if still]
    after = [
        trace["regret"][t : t + NEXT].mean()
        for values, trace in zip(windows, made, strict=True)
        for t in _drops(values)
    ]
    return Trace(
        average_regret=np.mean([trace["average_regret"] for trace in made], axis=0),
        after_drop=np.mean(after) if after else np.nan,
        quiet=np.mean(calm) if calm else np.nan,
        **{f"window_{w}": end for w, end in enumerate(ends)},
    )
