"""A worker process of a shared study, and what the tests do with several of them.

As a script: ``python optuna_workers.py STORAGE STUDY TRIALS LOG [--hang]``.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import optuna
from optuna.storages import JournalStorage, RDBStorage, RetryHeartbeatStaleTrialCallback
from optuna.storages.journal import JournalFileBackend

from surefoot.bridge.optuna import BosPruner, SurefootSampler

EPOCHS = 8


def storage(where: str, *, retry: bool = False):
    """A database URL, or the path of a journal."""
    if "://" not in where:
        return JournalStorage(JournalFileBackend(where))
    options = {"connect_args": {"timeout": 60}} if where.startswith("sqlite") else {}
    again = RetryHeartbeatStaleTrialCallback() if retry else None
    return RDBStorage(
        where,
        engine_kwargs=options,
        heartbeat_interval=1,
        grace_period=2 if retry else 120,  # a busy machine must not make the living look dead
        heartbeat_stale_trial_callback=again,
    )


def load(where: str, name: str, **kwargs) -> optuna.Study:
    """Join the study, or begin it."""
    return optuna.create_study(
        storage=storage(where, **kwargs),
        study_name=name,
        load_if_exists=True,
        sampler=SurefootSampler(seed=0, repeats=False),
        pruner=BosPruner(epochs=EPOCHS, seed=0),
    )


def objective(trial: optuna.Trial, log: Path | None = None, hang: bool = False) -> float:
    """A short run in two parameters that reports its epochs and writes down that it was made."""
    x, kind = trial.suggest_float("x", 0.0, 1.0), trial.suggest_categorical("kind", ["a", "b", "c"])
    trial.set_user_attr("pid", os.getpid())
    if log is not None:
        with log.open("a") as file:
            file.write(json.dumps([trial.number, trial.params]) + "\n")
    for epoch in range(EPOCHS):
        value = (x - 0.3) ** 2 + "abc".index(kind) + 0.5**epoch
        trial.report(value, epoch)
        if hang:
            time.sleep(600)
        if trial.should_prune():
            raise optuna.TrialPruned
    return value


def start(where: str, name: str, trials: int, log: Path, *flags: str) -> subprocess.Popen[str]:
    """Start a worker in a process of its own."""
    command = [sys.executable, __file__, where, name, str(trials), str(log), *flags]
    limits = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    return subprocess.Popen(command, env={**os.environ, **limits}, stderr=subprocess.PIPE, text=True)


def run(where: str, workers: int, each: int, folder: Path, name: str = "shared") -> optuna.Study:
    """Let workers share a study, and check that every trial was made once and is in the storage once."""
    study = load(where, name)
    logs = [folder / f"worker{i}.log" for i in range(workers)]
    processes = [start(where, name, each, log) for log in logs]
    for process in processes:
        _, errors = process.communicate(timeout=240)
        assert process.returncode == 0, errors
    trials = study.get_trials()
    total = workers * each
    assert [trial.number for trial in trials] == list(range(total))  # none lost, none twice
    assert all(trial.state.is_finished() for trial in trials)
    assert not [trial for trial in trials if trial.state == optuna.trial.TrialState.FAIL]
    made = [json.loads(line) for log in logs for line in log.read_text().splitlines()]
    assert sorted(number for number, _ in made) == list(range(total))
    assert all(trials[number].params == params for number, params in made)
    assert len({trial.user_attrs["pid"] for trial in trials}) == workers
    points = [(trial.params["x"], trial.params["kind"]) for trial in trials]
    assert len(set(points)) == total  # no two workers chose the same point
    return study


def kill_in_mid_trial(where: str, folder: Path) -> None:
    """Kill a worker while it runs a trial; the next one finds the study in order and goes on."""
    name = "killed"
    study = load(where, name)
    study.optimize(objective, n_trials=4)
    process = start(where, name, 1, folder / "victim.log", "--hang")
    deadline = time.monotonic() + 120
    while not any(t.intermediate_values for t in study.trials[4:]):
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.1)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    victim = study.trials[4]
    assert victim.state == optuna.trial.TrialState.RUNNING
    if "://" in where:
        time.sleep(3)  # the grace period
        heir = load(where, name, retry=True)
        heir.optimize(objective, n_trials=4)
        assert heir.trials[4].state == optuna.trial.TrialState.FAIL
        again = [t for t in heir.trials[5:] if t.params == victim.params]
        assert len(again) == 1  # made again once, as the storage was told to
        assert again[0].state.is_finished()
    else:  # journals have no heart beat: somebody has to say that the worker is gone
        heir = load(where, name)
        heir.tell(4, state=optuna.trial.TrialState.FAIL)
        heir.optimize(objective, n_trials=4)
        assert all(t.params != victim.params for t in heir.trials[5:])  # remembered as failed
    assert len(heir.trials) == 9
    assert all(t.state.is_finished() for t in heir.trials)


def main() -> None:
    """Work on a study."""
    where, name, trials, log, *flags = sys.argv[1:]
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = load(where, name)
    study.optimize(lambda trial: objective(trial, Path(log), "--hang" in flags), n_trials=int(trials))


if __name__ == "__main__":
    main()
