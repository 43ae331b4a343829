"""The trials of a study as the events of a policy.

A trial that has all parameters of a group was *asked*, in the order of the trials' numbers. A completed one was *told*
its value, a failed one that it failed, a running one is pending. The same trials give the same events in any process.

>>> import optuna
>>> group = Group({"x": optuna.distributions.FloatDistribution(0.0, 1.0)})
>>> trial = optuna.create_trial(params={"x": 0.25}, distributions=group.distributions, value=3.0)
>>> events(group, [trial], sign=-1.0)
[{'event': 'asked', 'id': 0, 'x': [0.25], 'note': {'initial': True}}, {'event': 'told', 'id': 0, 'value': 3.0}]
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from surefoot.bridge.optuna.space import Group
from surefoot.loop.types import LARGEST

__all__ = ["ASKED", "PRUNED", "epochs", "events", "first_step", "running_blank", "sign_of", "study_seed"]

Array = NDArray[np.float64]

ASKED = "surefoot:asked"
"""The system attribute in which a trial remembers what its policy said: per group the names, the point and the note."""

PRUNED = ("value", "failed", "ignore")
"""What a pruned trial can count as."""


def sign_of(study: Study) -> float:
    """Return the factor that turns a study's values into scores, of which more is better.

    >>> import optuna
    >>> sign_of(optuna.create_study(direction="minimize"))
    -1.0
    """
    if len(study.directions) != 1:
        raise ValueError(f"Surefoot optimizes one objective, and this study has {len(study.directions)}")
    return 1.0 if study.directions[0] == StudyDirection.MAXIMIZE else -1.0


def study_seed(study: Study, trials: Sequence[FrozenTrial]) -> int:
    """Return a seed that all processes of a study agree on without a word: from its name and its first trial.

    >>> import optuna
    >>> study = optuna.create_study()
    >>> study_seed(study, []) == study_seed(study, [])
    True
    """
    started = next((trial.datetime_start for trial in trials if trial.datetime_start is not None), None)
    words = np.frombuffer(f"{study.study_name}\0{started}".encode(), dtype=np.uint8)
    return int(np.random.SeedSequence(words.tolist()).generate_state(1, np.uint32)[0])


def first_step(trials: Iterable[FrozenTrial]) -> int:
    """Return the lowest step that any run of a study has reported: what its authors count from; 1 if there is none.

    >>> import optuna
    >>> first_step([optuna.create_trial(value=0.0, intermediate_values={0: 0.1, 1: 0.2})])
    0
    """
    return min((step for trial in trials for step in trial.intermediate_values), default=1)


def epochs(trial: FrozenTrial, *, sign: float, first: int = 1, interval: int = 1) -> dict[int, float]:
    """Return the scores a run reported, by epoch counted from 1; NaN where it reported no finite number.

    >>> import optuna
    >>> run = optuna.create_trial(value=0.0, intermediate_values={0: 0.9, 10: 0.5, 20: float("inf")})
    >>> epochs(run, sign=-1.0, first=0, interval=10)
    {1: -0.9, 2: -0.5, 3: nan}
    """
    found: dict[int, float] = {}
    for step, value in sorted(trial.intermediate_values.items()):
        epoch = round((step - first) / interval) + 1  # of two reports in one epoch the later one counts
        if epoch >= 1:
            found[epoch] = sign * value if abs(value) <= LARGEST else math.nan
    return found


def events(
    group: Group,
    trials: Sequence[FrozenTrial],
    *,
    sign: float,
    pruned: str = "value",
    steps: int | None = None,
    timed: bool = False,
) -> list[dict[str, Any]]:
    """Return what the trials say to a policy over this group's domain.

    Parameters
    ----------
    group : Group
        The parameters concerned; trials that lack one, or lie outside its range by now, say nothing.
    trials : sequence of FrozenTrial
        In the order of their numbers.
    sign : float
        1 or −1: whether more is better, or less.
    pruned : {"value", "failed", "ignore"}
        What a pruned trial says: its last value, though none worse than the worst completed one (an early loss may be
        orders of magnitude away from all final ones); that it failed; nothing.
    steps : int, optional
        The length of a run, for a policy that follows runs: it also hears of every epoch, and the last value of a
        pruned trial as it is.
    timed : bool
        Whether the policy has a clock: the number of a trial is its time.

    >>> import optuna
    >>> group = Group({"x": optuna.distributions.FloatDistribution(0.0, 1.0)})
    >>> running = optuna.create_trial(
    ...     params={"x": 0.5}, distributions=group.distributions, state=TrialState.RUNNING, intermediate_values={0: 0.9}
    ... )
    >>> [event["event"] for event in events(group, [running], sign=1.0, steps=20)]
    ['asked', 'reported']
    """
    points = {trial.number: _asked(group, trial) for trial in trials}
    values = {trial.number: _value(trial) for trial in trials}
    completed = [sign * v for t in trials if t.state == TrialState.COMPLETE and (v := values[t.number]) is not None]
    worst = min(completed, default=-math.inf) if steps is None else -math.inf
    measured = {
        x.tobytes() for n, (x, _) in points.items() if x is not None and values[n] is not None
    }  # a run that failed and was made again has not failed
    first = first_step(trials) if steps is not None else 1
    out: list[dict[str, Any]] = []
    id = 0
    for trial in trials:
        x, note = points[trial.number]
        state = trial.state
        if x is None or state == TrialState.WAITING or (state == TrialState.PRUNED and pruned == "ignore"):
            continue
        time = {"time": float(trial.number)} if timed else {}
        out.append({"event": "asked", "id": id, "x": x.tolist(), **time, **({"note": note} if note else {})})
        for epoch, value in (epochs(trial, sign=1.0, first=first) if steps is not None else {}).items():
            if epoch <= (steps or 0):
                known = None if math.isnan(value) else value
                out.append({"event": "reported", "id": id, "step": epoch, "value": known})
        last = values[trial.number]
        if state == TrialState.PRUNED:
            last = None if pruned == "failed" or last is None else sign * max(sign * last, worst)
        if state == TrialState.FAIL and x.tobytes() in measured:
            out.append({"event": "cancelled", "id": id})
        elif state.is_finished():
            out.append({"event": "told", "id": id, "value": last})
        id += 1
    return out


def running_blank(trials: Iterable[FrozenTrial], before: int) -> int:
    """Count the running trials with a lower number that have no parameters yet: others are choosing them just now.

    >>> running_blank([], before=3)
    0
    """
    return sum(
        trial.state == TrialState.RUNNING
        and trial.number < before
        and not trial.params
        and ASKED not in trial.system_attrs
        for trial in trials
    )


def _value(trial: FrozenTrial) -> float | None:
    """The value of a finished trial; None where it failed, or gave no number that a model can use."""
    if trial.state not in (TrialState.COMPLETE, TrialState.PRUNED) or not trial.values:
        return None
    return trial.values[0] if abs(trial.values[0]) <= LARGEST else None


def _asked(group: Group, trial: FrozenTrial) -> tuple[Array | None, Mapping[str, Any]]:
    """The point of a trial and the policy's note about it; before its parameters are stored, the point it was given."""
    kept = [ask for ask in trial.system_attrs.get(ASKED, ()) if ask["names"] == group.names]
    given = np.array(kept[0]["x"], dtype=np.float64) if kept else None
    x = group.find(trial.params)
    if x is None and trial.state == TrialState.RUNNING and given is not None and group.domain.contains(given[None])[0]:
        x = given
    same = x is not None and given is not None and np.array_equal(x, given)
    return x, kept[0]["note"] if same else {"initial": True}  # chosen by somebody else: no choice of the rule
