"""Many processes on one study: SQLite, a journal and a real PostgreSQL lose nothing; a killed worker is survived."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import optuna
import pytest
from optuna_workers import kill_in_mid_trial, load, run

from surefoot.loop.events import timeless

optuna.logging.set_verbosity(optuna.logging.WARNING)


@pytest.fixture(params=["sqlite", "journal"])
def where(request, tmp_path):
    return f"sqlite:///{tmp_path / 'study.db'}" if request.param == "sqlite" else str(tmp_path / "study.log")


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
class TestFiles:
    @pytest.mark.parametrize("where", ["sqlite", pytest.param("journal", marks=pytest.mark.slow)], indirect=True)
    def test_workers_share_a_study(self, where, tmp_path):
        run(where, workers=2, each=5, folder=tmp_path)

    @pytest.mark.parametrize("where", [pytest.param("sqlite", marks=pytest.mark.slow), "journal"], indirect=True)
    def test_a_killed_worker_leaves_a_study_that_goes_on(self, where, tmp_path):
        kill_in_mid_trial(where, tmp_path)

    def test_another_process_sees_the_same_study(self, where, tmp_path):
        first = load(where, "again")
        first.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0, step=0.05) ** 2, n_trials=5)
        second = load(where, "again")
        one, two = (study.sampler.policy(study) for study in (first, second))
        assert timeless(one.events) == timeless(two.events)
        assert one.seed == two.seed


def binary(name: str) -> str | None:
    """A program of PostgreSQL, from the path or from where distributions put it."""
    there = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), reverse=True)
    return shutil.which(name) or next((str(path) for path in there), None)


def somebody() -> str | None:
    """PostgreSQL refuses to run as root: who else could it be? None for whoever runs the tests."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    user = next((name for name in ("postgres", "nobody") if name in known), None)
    if user is None or shutil.which("runuser") is None:
        pytest.skip("PostgreSQL refuses to run as root, and there is no other user to run it as")
    return user


@pytest.fixture(scope="module")
def postgres():
    """A new PostgreSQL cluster on a free port of this machine."""
    initdb, control = binary("initdb"), binary("pg_ctl")
    if initdb is None or control is None:
        pytest.skip("PostgreSQL (initdb, pg_ctl) is not installed")
    pytest.importorskip("psycopg")
    user = somebody()
    folder = Path(tempfile.mkdtemp(prefix="postgres"))
    if user is not None:
        shutil.chown(folder, user)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]

    def call(*command: str) -> None:
        whole = list(command) if user is None else ["runuser", "-u", user, "--", *command]
        done = subprocess.run(whole, cwd=folder, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr

    data = str(folder / "data")
    call(initdb, "-D", data, "-U", "surefoot", "-A", "trust", "--no-sync")
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off"
    call(control, "-D", data, "-w", "-l", str(folder / "server.log"), "-o", options, "start")
    try:
        yield f"postgresql+psycopg://surefoot@127.0.0.1:{port}/postgres"
    finally:
        call(control, "-D", data, "-w", "-m", "immediate", "stop")
        shutil.rmtree(folder)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
class TestPostgres:
    def test_eight_workers_lose_and_duplicate_no_trial(self, postgres, tmp_path):
        study = run(postgres, workers=8, each=5, folder=tmp_path)
        assert study.best_value < 0.1

    def test_a_killed_worker_leaves_a_study_that_goes_on(self, postgres, tmp_path):
        kill_in_mid_trial(postgres, tmp_path)
