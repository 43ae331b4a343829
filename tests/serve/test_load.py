"""Many workers, killed servers, a database that goes away: no tell lost or doubled, each worker's in order."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from running import Postgres, Server

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import serve_load


def test_workers_share_a_study(server):
    load = serve_load.run(server, workers=8, pairs=6, shared=True)
    assert len(load.asks) == 48


def test_workers_have_studies_of_their_own(server):
    load = serve_load.run(server, workers=3, pairs=5, shared=False)
    assert len(load.acknowledged) == 15


def test_a_lost_tell_would_be_noticed(sqlite_server):
    """The check itself can fail."""
    load = serve_load.run(sqlite_server, workers=2, pairs=2, shared=True)
    client = serve_load.Client(sqlite_server.url, token=sqlite_server.token(tenant="check"))
    study = client.create("lossy", serve_load.BOX, policy="SobolSearch", seed=0)
    study.tell(study.ask(), 0.0)
    claimed = serve_load.Load(acknowledged=[(study.id, 0, 0.0), (study.id, 1, 1e-6)])
    with pytest.raises(AssertionError, match="what is kept"):
        serve_load.check(client, [study.id], claimed, workers=1, pairs=2)
    assert load.seconds > 0


@pytest.mark.slow
def test_a_server_killed_in_mid_run_loses_nothing(tmp_path):
    with Server(f"sqlite:///{tmp_path / 'load.db'}", tmp_path) as server:
        load = serve_load.run(server, workers=4, pairs=10, shared=True, disturb=serve_load.killer(server, times=1))
    assert len(load.acknowledged) == 40  # and run() has checked what the server holds against them


@pytest.mark.slow
class TestFull:
    @pytest.mark.parametrize("database", ["sqlite", "postgres"])
    def test_fifty_workers_and_kills(self, database, tmp_path, request):
        url = f"sqlite:///{tmp_path / 'load.db'}"
        if database == "postgres":
            url = request.getfixturevalue("postgres").database("fifty")
        with Server(url, tmp_path, "--log-level", "warning") as server:
            serve_load.run(server, workers=50, pairs=200, shared=True)
            serve_load.run(server, workers=50, pairs=40, shared=False)
            kills = serve_load.killer(server, times=5)
            load = serve_load.run(server, workers=50, pairs=100, shared=True, disturb=kills)
        assert len(load.acknowledged) == 5000

    def test_postgres_restarts_in_mid_run(self, tmp_path):
        if (why := Postgres.unavailable()) is not None:
            pytest.skip(why)
        cluster = Postgres()
        try:
            with Server(cluster.database("restarts"), tmp_path, "--log-level", "warning") as server:
                load = serve_load.run(server, workers=20, pairs=60, shared=True, disturb=serve_load.restarter(cluster))
            assert len(load.acknowledged) == 1200
        finally:
            cluster.remove()
