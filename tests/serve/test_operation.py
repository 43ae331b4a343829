"""What `docs/serve.md` tells an operator to type: every command is run as it stands there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from running import Postgres, Server

from surefoot import Box, Client
from surefoot.serve import Store, tokens

PAGE = (Path(__file__).parents[2] / "docs" / "serve.md").read_text()
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)


def typed(*beginnings: str) -> str:
    """The one block of the page whose lines begin like this."""
    found = [block for block in BLOCKS if [line.split(" ")[0] for line in block.splitlines()] == list(beginnings)]
    assert len(found) == 1, beginnings
    return found[0]


def run(script: str, folder: Path, **environment: str) -> str:
    binaries = {str(Path(sys.executable).parent), str(Path(Postgres.binary("pg_dump") or "/usr/bin/x").parent)}
    path = os.pathsep.join([*binaries, os.environ["PATH"]])
    done = subprocess.run(
        ["sh", "-e", "-c", script],
        cwd=folder,
        env={**os.environ, **environment, "PATH": path},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def told(server: Server, token: str) -> list[float]:
    with Client(server.url, token=token) as client:
        return [event["value"] for event in client.studies()[0].trace() if event["event"] == "told"]


def used(server: Server) -> str:
    """A token of a study with one tell."""
    token = server.token()
    with Client(server.url, token=token) as client:
        client.create("kept", Box([(0.0, 1.0)]), policy="SobolSearch", seed=0).tell([0.5], 1.0)
    return token


def later(server: Server, token: str) -> None:
    with Client(server.url, token=token) as client:
        client.studies()[0].tell([0.6], 2.0)


@pytest.mark.parametrize("way", [pytest.param("sqlite3", marks=pytest.mark.slow), "python"])
def test_backup_and_restore_of_sqlite(way, tmp_path):
    if way == "sqlite3" and shutil.which("sqlite3") is None:
        pytest.skip("sqlite3, the program, is not installed")
    with Server(f"sqlite:///{tmp_path / 'surefoot.db'}", tmp_path) as server:
        token = used(server)
        if way == "sqlite3":
            run(typed("sqlite3"), tmp_path)
        else:
            (script,) = re.findall(r"^```python\n(import sqlite3\n.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
            subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
        later(server, token)
        assert told(server, token) == [1.0, 2.0]
        server.kill()  # so that the log beside the database is there
        run(typed("rm", "cp"), tmp_path)
        server.start()
        assert told(server, token) == [1.0]


def test_backup_and_restore_of_postgresql(postgres, tmp_path):
    if Postgres.binary("pg_dump") is None or Postgres.binary("pg_restore") is None:
        pytest.skip("pg_dump and pg_restore are not installed")
    url = postgres.database("operated")
    with Server(url, tmp_path) as server:
        token = used(server)
        run(typed("pg_dump"), tmp_path, SUREFOOT_DATABASE=url)
        later(server, token)
        server.stop()
        run(typed("pg_restore"), tmp_path, SUREFOOT_DATABASE=url)
        server.start()
        assert told(server, token) == [1.0]


def test_the_commands_of_tokens(tmp_path):
    url = f"sqlite:///{tmp_path / 'surefoot.db'}"
    store = Store(url)
    store.migrate()
    store.add_token(
        {"id": "3f0c9a6b51d2e874", "tenant": "a", "name": "n", "scope": "read", "digest": "0" * 64, "created": ""}
    )
    lines = run(typed("surefoot", "surefoot", "surefoot", "surefoot"), tmp_path, SUREFOOT_DATABASE=url).splitlines()
    assert tokens.authenticate(store, lines[0]).tenant == "physics"
    assert lines[-2].startswith("sf_3f0c9a6b51d2e874_")
    assert lines[-1] == "3f0c9a6b51d2e874 is revoked"
    store.close()


def test_the_command_of_an_upgrade(tmp_path):
    pip, migrate = typed("pip", "surefoot").splitlines()
    assert pip == "pip install --upgrade 'surefoot[serve]'"  # the one that a test does not run
    run(migrate, tmp_path)
    assert (tmp_path / "surefoot.db").is_file()


def test_every_command_of_the_page_is_run_here():
    known = {("surefoot", "surefoot"), ("surefoot",) * 4, ("sqlite3",), ("rm", "cp"), ("pg_dump",), ("pg_restore",)}
    known.add(("pip", "surefoot"))
    assert {tuple(line.split(" ")[0] for line in block.splitlines()) for block in BLOCKS} == known
