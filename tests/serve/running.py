"""A real server in a process of its own, and a real PostgreSQL, for the tests of the service."""

from __future__ import annotations

import contextlib
import functools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx

from surefoot.serve import tokens
from surefoot.serve.store import Store


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def environment() -> dict[str, str]:
    """What a process needs to import what this one does, wherever it runs."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(os.path.abspath(path) for path in sys.path if path)}


class Server:
    """``surefoot serve`` on a free port; it can be killed and started again.

    ``settings`` are those that the command has no option for, as the arguments of ``Settings``; ``descriptors`` is how
    many files and sockets the process may have open.
    """

    def __init__(
        self, database: str, folder: Path, *options: str, settings: str = "", descriptors: int | None = None
    ) -> None:
        self.database, self.folder, self.options = database, folder, options
        self.settings, self.descriptors = settings, descriptors
        self.port = free_port()
        self.scheme = "https" if "--certfile" in options else "http"
        self.url = f"{self.scheme}://127.0.0.1:{self.port}"
        self.log = folder / f"server-{self.port}.log"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> Server:
        code = "from surefoot.cli import main; main()"
        if self.settings:
            given = f"database={self.database!r}, port={self.port}, settings=Settings(rate=0.0, {self.settings})"
            code = f"from surefoot.serve import Settings, run; run.serve({given})"
        if self.descriptors is not None:
            code = f"import resource as r; r.setrlimit(r.RLIMIT_NOFILE, ({self.descriptors},) * 2); {code}"
        words = [sys.executable, "-c", code, "serve", "--port", str(self.port), "--database", self.database]
        words += ["--rate", "0", *self.options]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(words, stdout=log, stderr=log, cwd=self.folder, env=environment())
        deadline = time.monotonic() + 60.0
        while time.monotonic() < deadline:
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(f"{self.url}/api/v1/health", timeout=5.0, verify=False).status_code == 200:
                    return self
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        raise AssertionError(self.log.read_text())

    def kill(self) -> None:
        """As the power does: no goodbye."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(timeout=40)
            except subprocess.TimeoutExpired:
                self.kill()

    @functools.cached_property
    def store(self) -> Store:
        """The same database, from here."""
        return Store(self.database, pool=2)

    @functools.cache  # noqa: B019 - servers live as long as the tests
    def token(self, tenant: str = "physics", scope: str = "admin") -> str:
        return tokens.create(self.store, tenant, "test", scope)["token"]

    def __enter__(self) -> Server:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


class Postgres:
    """A new cluster on a free port; ``unavailable`` says why there cannot be one."""

    def __init__(self) -> None:
        self.user = self._user()
        self.folder = Path(tempfile.mkdtemp(prefix="postgres"))
        if self.user is not None:
            shutil.chown(self.folder, self.user)
        self.port = free_port()
        self._call("initdb", "-D", "data", "-U", "surefoot", "-A", "trust", "--no-sync")
        self.start()

    @staticmethod
    def binary(name: str) -> str | None:
        there = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), reverse=True)
        return shutil.which(name) or next((str(path) for path in there), None)

    @staticmethod
    def _user() -> str | None:
        """PostgreSQL refuses to run as root: somebody else does it."""
        if os.geteuid() != 0:
            return None
        known = {entry.pw_name for entry in pwd.getpwall()}
        return next(name for name in ("postgres", "nobody") if name in known)

    @classmethod
    def unavailable(cls) -> str | None:
        if cls.binary("initdb") is None or cls.binary("pg_ctl") is None:
            return "PostgreSQL (initdb, pg_ctl) is not installed"
        if os.geteuid() == 0 and shutil.which("runuser") is None:
            return "PostgreSQL refuses to run as root, and there is no runuser"
        return None

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories=''"
        self._call("pg_ctl", "-D", "data", "-w", "-l", "server.log", "-o", options, "start")

    def stop(self, mode: str = "immediate") -> None:
        self._call("pg_ctl", "-D", "data", "-w", "-m", mode, "stop")

    def database(self, name: str) -> str:
        """The URL of a new database."""
        self._call(
            "psql",
            "-h",
            "127.0.0.1",
            "-p",
            str(self.port),
            "-U",
            "surefoot",
            "postgres",
            "-c",
            f"CREATE DATABASE {name}",
        )
        return f"postgresql://surefoot@127.0.0.1:{self.port}/{name}"

    def remove(self) -> None:
        with contextlib.suppress(AssertionError):
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _call(self, name: str, *words: str) -> None:
        command = [str(self.binary(name)), *words]
        whole = command if self.user is None else ["runuser", "-u", self.user, "--", *command]
        done = subprocess.run(whole, cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
        assert done.returncode == 0, (done.stdout + done.stderr).decode()
