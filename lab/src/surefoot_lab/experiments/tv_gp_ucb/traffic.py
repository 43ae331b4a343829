"""Where does the traffic flow fastest? One of 50 speed sensors is read every five minutes.

Windows of 84 readings, 6-13 h and 13-20 h, of working days: Thursday, Friday and Monday train, Tuesday and Wednesday
test. One repetition is one first sensor on one draw of 50 of the 207 sensors, 20 first sensors per draw, in the four
test windows. What is independent is a window, and within them a drop: draws of sensors and first sensors see the same
ones again, and are averaged. Published: 357 sensors of another road, one month, rate 0.04.
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
    Unit,
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


def _per_window(judge: Callable[[Array], float], label: str) -> Reading:
    """One number per test window, from the gaps TV-GP-UCB less GP-UCB of all draws of sensors."""

    def values(replicates: Replicates) -> Array:
        subsets = np.array([float(traces[SETTING]["subset"]) for traces in replicates])
        found = []
        for w in range(WINDOWS if len(replicates) else 0):
            gaps = np.array([float(t[TV][f"window_{w}"]) - float(t[UCB][f"window_{w}"]) for t in replicates])
            found.append(judge(np.array([gaps[subsets == subset].mean() for subset in np.unique(subsets)])))
        return np.array(found, dtype=np.float64)

    return across(values, label)


def _much_worse(gap: Array) -> float:
    """Whether the gap is above zero by more than two standard errors."""
    return float(len(gap) > 1 and gap.mean() > 2.0 * gap.std(ddof=1) / np.sqrt(len(gap)))


def _per_drop(method: str) -> Reading:
    """The regret after each drop of a sensor, a mean over the draws and starts that see it."""

    def values(replicates: Replicates) -> Array:
        found: dict[str, list[float]] = {}
        for traces in replicates:
            for name, value in traces[method].metrics.items():
                if name.startswith("after_drop_"):
                    found.setdefault(name, []).append(float(value))
        return np.array([np.mean(found[name]) for name in sorted(found)], dtype=np.float64)

    return across(values, f"after_drop[{method}], per drop")


def _per_quiet_window(method: str) -> Reading:
    """The average regret in each window, over the draws of sensors for which it is quiet."""

    def values(replicates: Replicates) -> Array:
        table = [[float(t[method].metrics.get(f"quiet_{w}", np.nan)) for t in replicates] for w in range(WINDOWS)]
        return np.array([np.nanmean(row) for row in table if np.isfinite(row).any()], dtype=np.float64)

    return across(values, f"quiet[{method}], per window")


claims = [
    Share(
        "TV-GP-UCB has less regret than GP-UCB in most test windows, significantly more in none",
        [
            _per_window(lambda gap: float(gap.mean() < 0.0), "windows where TV-GP-UCB is ahead") > 0.5,
            _per_window(_much_worse, "windows where TV-GP-UCB is significantly behind") < 0.1,
        ],
        note="'none' is judged as less than one in ten: no share can be shown to be 0",
    ),
    Order(
        "after the best sensor drops by more than 12 mph, TV-GP-UCB has less regret over the next 10 steps",
        _per_drop(TV) < _per_drop(UCB),
    ),
    Equal(
        "equal in windows in which the best sensors hardly change",
        (_per_quiet_window(TV), _per_quiet_window(UCB)),
        margin=0.5,
        marks=("doubtful",),
        note=f"windows in which one sensor is within {QUIET:g} mph of the best on average",
    ),
    Number("maximum-likelihood rate 0.04", {Metric("forgetting")[SETTING]: 0.04}, marks=("needs-original",)),
]


@lru_cache(maxsize=2)
def _trained(root: int, subset: int) -> tuple[Sensors, list[Array], NDArray[np.intp]]:
    """The belief of one draw of sensors, its test windows, and which sensors they are."""
    speed = datasets.load("metr_la")["speed"]
    count = min(SUBSET, speed.shape[1])
    chosen = np.sort(stream(root, "sensors", subset).choice(speed.shape[1], count, replace=False))

    def windows(days: tuple[int, ...]) -> list[Array]:
        starts = [288 * day + shift for day in days for shift in (72, 72 + STEPS)]
        return [speed[start : start + STEPS, chosen] for start in starts]

    return Sensors.trained(windows(TRAIN), NOISE, LogTime(0.2, 0.4)), windows(TEST), chosen


def _drops(values: Array) -> NDArray[np.intp]:
    """Steps at which the sensor that was best one step before has fallen by more than 12 mph."""
    best = values[:-1].argmax(axis=1)
    steps = np.arange(len(best))
    return np.flatnonzero(values[steps, best] - values[steps + 1, best] > DROP) + 1


@experiment(
    "tv-gp-ucb/traffic",
    source="Bogunovic 2019 (thesis), section 5.4.2, Fig. 5.3c-f",
    data=Data("substitute", ("metr_la",), instead_of="I-880 South"),
    unit=Unit.single("set of four test windows"),
    quick=Budget(FIRST),
    full=Budget(50 * FIRST, minutes=30),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """The fastest of 50 traffic sensors, read every five minutes."""
    subset = replicate.index // FIRST
    sensors, windows, chosen = _trained(replicate.root, subset)
    first = int(replicate.rng("first").integers(sensors.domain.size))
    found: dict[str, list[Trace]] = {TV: [], UCB: [], RANDOM: []}
    for values in windows:
        still, seed = np.zeros(len(values)), replicate.integer
        found[TV].append(sensors.follow(sensors.tracking(seed), values, still, first))
        found[UCB].append(sensors.follow(sensors.static(seed), values, still, first))
        found[RANDOM].append(regrets(values, replicate.rng("random").integers(values.shape[1], size=len(values))))
    quiet = [float((v.max(axis=1)[:, None] - v).mean(axis=0).min()) < QUIET for v in windows]
    traces = {method: _summary(windows, quiet, chosen, made) for method, made in found.items()}
    rate = sensors.rate
    traces[SETTING] = Trace(subset=subset, forgetting=rate.forgetting, lower=rate.lower, upper=rate.upper)
    return traces


def _summary(windows: list[Array], quiet: list[bool], chosen: NDArray[np.intp], made: list[Trace]) -> Trace:
    """The average regret of each window, of the quiet ones, and after each drop; its course over all windows."""
    ends = [float(trace["average_regret"][-1]) for trace in made]
    numbers = {f"window_{w}": end for w, end in enumerate(ends)}
    numbers |= {f"quiet_{w}": end for w, (end, still) in enumerate(zip(ends, quiet, strict=True)) if still}
    for w, (values, trace) in enumerate(zip(windows, made, strict=True)):
        for t in _drops(values):
            fallen = chosen[values[t - 1].argmax()]  # two draws that have this sensor see the same drop
            numbers[f"after_drop_{w}_{t}_{fallen}"] = float(trace["regret"][t : t + NEXT].mean())
    return Trace(average_regret=np.mean([trace["average_regret"] for trace in made], axis=0), **numbers)
