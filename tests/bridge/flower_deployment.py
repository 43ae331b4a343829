"""A Flower deployment on loopback: certificates, node keys, one SuperLink, SuperNodes, runs; all of them children."""

from __future__ import annotations

import datetime
import ipaddress
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

BIN = Path(sys.executable).parent
NAME = "loopback"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until(condition: Callable[[], Any], seconds: float, what: str) -> Any:
    """Wait for a true value and return it."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(0.1)
    raise TimeoutError(f"{what}: not within {seconds} s")


def write_pem(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
    )
    path.chmod(0o600)


def certificates(folder: Path) -> None:
    """Write ca.crt, server.crt and server.key for 127.0.0.1."""
    begin = datetime.datetime.now(datetime.UTC) - datetime.timedelta(hours=1)
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    issuer = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "loopback authority")])
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])

    def signed(
        name: x509.Name, public: ec.EllipticCurvePublicKey, *extensions: tuple[x509.ExtensionType, bool]
    ) -> bytes:
        builder = x509.CertificateBuilder(issuer, name, public, x509.random_serial_number())
        builder = builder.not_valid_before(begin).not_valid_after(begin + datetime.timedelta(days=2))
        for extension, critical in extensions:
            builder = builder.add_extension(extension, critical)
        return builder.sign(ca_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    identifier = x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key())
    usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
    authority = signed(
        issuer, ca_key.public_key(), (x509.BasicConstraints(True, None), True), (usage, True), (identifier, False)
    )
    names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    origin = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier)
    (folder / "ca.crt").write_bytes(authority)
    (folder / "server.crt").write_bytes(signed(subject, key.public_key(), (names, False), (origin, False)))
    write_pem(folder / "server.key", key)


def node_key(path: Path) -> None:
    """Write a private key and, beside it, its public half in the form `flwr supernode register` reads."""
    key = ec.generate_private_key(ec.SECP384R1())
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption())
    )
    path.chmod(0o600)
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    path.with_suffix(".pub").write_bytes(public)


def descendants(pid: int) -> Iterator[int]:
    """All processes below one, by the parent named in /proc."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError):
                continue
            parents.setdefault(parent, []).append(int(entry.name))
    waiting = [pid]
    while waiting:
        for child in parents.get(waiting.pop(), []):
            yield child
            waiting.append(child)


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


class Deployment:
    """One SuperLink with TLS and node authentication, and its SuperNodes, in a folder of their own."""

    def __init__(self, folder: Path, environment: dict[str, str] | None = None) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.home.mkdir(parents=True)
        certificates(folder)
        self.port = free_port()
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        (self.home / "config.toml").write_text(
            f'[superlink]\ndefault = "{NAME}"\n\n[superlink.{NAME}]\naddress = "127.0.0.1:{self.port}"\n'
            f'root-certificates = "{folder / "ca.crt"}"\n'
        )
        self.environment = {
            **os.environ,
            "FLWR_HOME": str(self.home),
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
            **(environment or {}),
        }

    def _start(self, name: str, *command: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [str(BIN / command[0]), *command[1:]], stdout=log, stderr=log, env=self.environment, cwd=self.folder
            )

    def log(self, name: str) -> str:
        path = self.folder / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def start_superlink(self) -> None:
        self._start(
            "superlink",
            *("flower-superlink", "--host", "127.0.0.1", "--port", str(self.port)),
            *("--ssl-ca-certfile", str(self.folder / "ca.crt")),
            *("--ssl-certfile", str(self.folder / "server.crt"), "--ssl-keyfile", str(self.folder / "server.key")),
            *("--enable-supernode-auth", "--database", str(self.folder / "superlink.db")),
            "--disable-runtime-dependency-installation",
        )
        until(self._listens, 60, "the SuperLink listens")

    def _listens(self) -> bool:
        if self.processes["superlink"].poll() is not None:
            raise RuntimeError(f"the SuperLink ended:\n{self.log('superlink')[-3000:]}")
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def register(self, node: str) -> int:
        """Make a key for a node and tell the SuperLink about it; return the node's id."""
        node_key(self.folder / node)
        answer = self.flwr("supernode", "register", str(self.folder / f"{node}.pub"), NAME, "--format", "json")
        return int(json.loads(answer[answer.index("{") :])["node-id"])

    def start_node(self, node: str, config: str) -> None:
        if not (self.folder / node).exists():  # a key nobody registered
            node_key(self.folder / node)
        self._start(
            node,
            *("flower-supernode", "--superlink", f"127.0.0.1:{self.port}", "--port", str(free_port())),
            *("--root-certificates", str(self.folder / "ca.crt")),
            *("--auth-supernode-private-key", str(self.folder / node), "--node-config", config),
        )

    def flwr(self, *arguments: str, seconds: float = 120) -> str:
        done = subprocess.run(
            [str(BIN / "flwr"), *arguments],
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"flwr {' '.join(arguments)}: {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def run(self, app: Path, **config: Any) -> int:
        """Submit the app; return the run's id."""
        pairs = " ".join(f"{key.replace('_', '-')}={json.dumps(value)}" for key, value in config.items())
        answer = self.flwr("run", str(app), NAME, "--format", "json", *(["--run-config", pairs] if pairs else []))
        return int(json.loads(answer[answer.index("{") :])["run-id"])

    def status(self, run: int) -> str:
        answer = self.flwr("list", NAME, "--run-id", str(run), "--format", "json")
        (found,) = json.loads(answer[answer.index("{") :])["runs"]
        return str(found["status"])

    def serverapps(self) -> list[int]:
        """Processes that run a ServerApp."""
        superlink = self.processes["superlink"].pid
        return [pid for pid in descendants(superlink) if "flwr-serverapp" in command_of(pid)]

    def kill(self, name: str) -> None:
        """End a process and everything below it at once, without a farewell."""
        process = self.processes.pop(name)
        below = list(descendants(process.pid))
        process.kill()
        for pid in below:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        process.wait(10)

    def close(self) -> None:
        for name in list(self.processes):
            self.kill(name)
