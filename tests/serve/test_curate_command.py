"""``surefoot curate`` against ``surefoot serve``: two processes, TLS, and a proxy that records what crosses."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import os
import re
import shlex
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from rich.console import Console
from running import Server

from surefoot import cli
from surefoot.cli.curate import curate
from surefoot.cli.records import bounds_from, read
from surefoot.errors import BudgetSpent, SurefootError
from surefoot.private import PublicScale
from surefoot.serve import ServiceError

BOUNDS = {"salary_secret": (10_000.0, 200_000.0), "age_secret": (18.0, 90.0)}
NAMES = ["salary_secret", "age_secret", "patient_name", "wages", "hidden_lab", "secret_objective", "Zoltan"]
OBJECTIVE = """
import os, time

def secret_objective(row):
    with open("measured.log", "a") as log:
        log.write(row["patient_name"] + "\\n")
    time.sleep(float(os.environ.get("PAUSE", "0")))
    return -((row["salary_secret"] - 120000) / 50000) ** 2 - ((row["age_secret"] - 40) / 15) ** 2

def endless(row):
    return float("inf")

def sometimes(row):
    if row["age_secret"] > 60:
        raise RuntimeError("no such patient")
    return None if row["age_secret"] > 50 else row["age_secret"]
"""


@pytest.fixture
def folder(tmp_path):
    """A private table and its objective."""
    rng = np.random.default_rng(5)
    rows = np.column_stack([rng.uniform(20_000, 190_000, 150), rng.uniform(20, 88, 150)])
    lines = ["patient_name,salary_secret,age_secret"]
    lines += [f"Zoltan-{i},{a:.9f},{b:.12f}" for i, (a, b) in enumerate(rows)]
    (tmp_path / "wages.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "hidden_lab.py").write_text(OBJECTIVE)
    return tmp_path


def words(url: str, *more: str) -> list[str]:
    limits = [word for name, (low, high) in BOUNDS.items() for word in ("--bounds", f"{name}={low}:{high}")]
    return [
        *("curate", "wages.csv", "--objective", "hidden_lab.py:secret_objective", "--server", url),
        *("--epsilon", "3", "--delta", "1e-5", *limits, *more),
    ]


def process(folder, token: str, given: list[str], **environment: str) -> subprocess.Popen[str]:
    code = "from surefoot.cli import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", code, *given],
        cwd=folder,
        env={**os.environ, "SUREFOOT_TOKEN": token, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(running: subprocess.Popen[str]) -> str:
    out, err = running.communicate(timeout=120)
    assert running.returncode == 0, err
    return out


# -- what crosses ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl, to make a certificate, is not installed")
    place = tmp_path_factory.mktemp("certificate")
    made = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem"]
    made += ["-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(made, cwd=place, check=True, capture_output=True)
    return place / "cert.pem", place / "key.pem"


class Proxy:
    """Ends TLS on both sides, passes everything on, and keeps a copy."""

    def __init__(self, certificate, port: int) -> None:
        cert, key = map(str, certificate)
        self.streams: list[bytearray] = []  # one for each connection and direction
        self.port = port
        self._outer = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._outer.load_cert_chain(cert, key)
        self._inner = ssl.create_default_context(cafile=cert)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"https://127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                plain, _ = self._socket.accept()
                threading.Thread(target=self._serve, args=(plain,), daemon=True).start()

    def _serve(self, plain: socket.socket) -> None:
        with contextlib.suppress(OSError):
            one = self._outer.wrap_socket(plain, server_side=True)
            two = self._inner.wrap_socket(
                socket.create_connection(("127.0.0.1", self.port)), server_hostname="127.0.0.1"
            )
            for source, sink in ((one, two), (two, one)):
                threading.Thread(target=self._pass_on, args=(source, sink), daemon=True).start()

    def _pass_on(self, source: ssl.SSLSocket, sink: ssl.SSLSocket) -> None:
        kept = bytearray()
        self.streams.append(kept)
        with contextlib.suppress(OSError):
            while part := source.recv(65536):
                kept += part
                sink.sendall(part)
            sink.close()

    def close(self) -> None:
        self._socket.close()


def decoded(crossed: bytes) -> bytes:
    """Everything that looks like base64, as bytes."""
    runs = re.findall(rb"[A-Za-z0-9+/]{8,}={0,2}", crossed)
    return b"\n".join(base64.b64decode(run + b"=" * (-len(run) % 4)) for run in runs if len(run.rstrip(b"=")) % 4 != 1)


def leaks(crossed: bytes, values: np.ndarray) -> list[float]:
    """The values that crossed, as a number in decimal or binary form, in the open or in base64."""
    inside = crossed + decoded(crossed)
    found = []
    for value in values.ravel().tolist():
        texts = [repr(value), f"{value:.9f}", f"{value:.6f}", f"{value:.8g}"]
        binary = [struct.pack("<d", value), struct.pack(">d", value)]
        if any(form in inside for form in (*(text.encode() for text in texts), *binary)):
            found.append(value)
    return found


def test_the_search_for_leaks_can_find_some():
    values = np.random.default_rng(0).uniform(1.0, 2.0, (3, 2))
    packed = base64.b64encode(b"x" + values.astype("<f8").tobytes())  # shifted by a byte
    assert leaks(b'{"rows": "' + packed + b'"}', values) == values.ravel().tolist()
    assert leaks(json.dumps(values.tolist()).encode(), values) == values.ravel().tolist()
    assert leaks(f"{values[1, 0]:.8g}".encode(), values) == [values[1, 0]]
    assert leaks(base64.b64encode((values + 1e-9).tobytes()), values) == []


def test_nothing_private_crosses(folder, certificate, tmp_path_factory, monkeypatch):
    files = ("--certfile", str(certificate[0]), "--keyfile", str(certificate[1]))
    home = tmp_path_factory.mktemp("service")
    with Server(f"sqlite:///{home / 'service.db'}", home, *files) as server:
        proxy = Proxy(certificate, server.port)
        given = words(proxy.url, "--ca", str(certificate[0]), "--asks", "8")
        said = finished(process(folder, server.token(), given))
        monkeypatch.setattr("surefoot.serve.transport.pauses", lambda *_: iter(()))
        with pytest.raises(ServiceError, match="CERTIFICATE_VERIFY_FAILED"):
            run(folder, server, monkeypatch, server=proxy.url, state="other", ledger="other.ledger")
        server.stop()
        proxy.close()
    crossed = b"\n".join(map(bytes, proxy.streams))
    records = read(folder / "wages.csv", list(BOUNDS))
    scale = PublicScale.within(list(BOUNDS.values()), 25.0)
    scaled = scale.apply(records.values)
    assert len(crossed) > 10_000
    assert b"content-encoding" not in crossed.lower()  # nothing is compressed: the search below sees everything
    assert crossed.count(b"/answer HTTP/1.1") == 8
    assert leaks(crossed, records.values) == []
    assert leaks(crossed, scaled) == []
    kept = (home / "service.db").read_bytes() + server.log.read_bytes()
    for name in NAMES:
        assert name.encode() not in crossed
        assert name.encode() not in decoded(crossed)
        assert name.encode() not in kept  # nor does the service know it from elsewhere
    assert leaks(kept, records.values) == []
    # What did cross are the rows in another order, with noise of the stated size.
    chunk = re.search(rb'\{"rows":\s*"([A-Za-z0-9+/=]+)"', crossed)
    released = np.frombuffer(base64.b64decode(chunk[1]), dtype="<f8").reshape(scaled.shape)
    events = [json.loads(line) for line in (folder / "wages.csv.curator.jsonl").read_text().splitlines()]
    order = next(event["order"] for event in events if event.get("event") == "released")
    noise = released - scaled[order]
    assert np.std(noise) == pytest.approx(1.495, rel=0.2)
    assert np.abs(noise).min() > 1e-9
    assert np.sqrt(np.mean(np.square(released - scaled))) > 5.0  # not in the order of the table
    # The outcome is for this side only.
    assert re.search(r"^use line \d+, measured -?\d.*Zoltan-\d+", said, flags=re.MULTILINE)
    assert len((folder / "measured.log").read_text().split()) == 8
    assert "for your eyes only" in said
    assert "budget: " in said
    assert len((folder / "wages.csv.ledger.jsonl").read_text().splitlines()) == 2  # its header and one release
    assert not list(folder.glob("other*"))  # whom one does not trust costs nothing


# -- going on ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_killed_run_goes_on_and_measures_nothing_twice(folder, sqlite_server, monkeypatch):
    given = words(sqlite_server.url, "--asks", "10", "--no-preflight")
    log, token = folder / "measured.log", sqlite_server.token("owner")
    running = process(folder, token, given, PAUSE="0.2")
    deadline = time.monotonic() + 60
    while not (log.exists() and len(log.read_text().split()) >= 4) and time.monotonic() < deadline:
        time.sleep(0.02)
    running.kill()  # while it measures
    running.communicate()
    assert len(log.read_text().split()) >= 4
    said = finished(process(folder, token, [*given, "--quiet"]))
    outcome = json.loads(said)
    assert outcome["answered"] == 10
    measured = log.read_text().split()
    assert len(set(measured)) == 10
    assert len(measured) <= 11  # what was being measured when it was killed, and nothing else, is measured again
    assert len((folder / "wages.csv.ledger.jsonl").read_text().splitlines()) == 2
    again, said = run(folder, sqlite_server, monkeypatch, asks=10)  # all is done: the same outcome, nothing is asked
    assert (again.line, again.answered) == (outcome["line"], 10)
    assert f"use line {outcome['line']}" in said
    assert log.read_text().split() == measured


def run(folder, service, monkeypatch, **changes):
    monkeypatch.chdir(folder)
    screen = Console(file=io.StringIO(), width=200)
    options = {
        "objective": "hidden_lab.py:secret_objective",
        "server": service.url,
        "token": service.token("owner"),
        "epsilon": 3.0,
        "delta": 1e-5,
        "bounds": [f"{name}={low}:{high}" for name, (low, high) in BOUNDS.items()],
        "asks": 6,
        "look": False,
        "console": screen,
    }
    return curate(folder / "wages.csv", **{**options, **changes}), screen.file.getvalue()


def test_the_budget_is_for_all_releases(folder, sqlite_server, monkeypatch):
    run(folder, sqlite_server, monkeypatch, budget=4.0)
    with pytest.raises(BudgetSpent):
        run(folder, sqlite_server, monkeypatch, budget=4.0, state="second.jsonl")
    with pytest.raises(ValueError, match="a budget cannot be changed"):
        run(folder, sqlite_server, monkeypatch, budget=8.0, state="second.jsonl")


def test_failures_noise_on_values_and_minimizing(folder, sqlite_server, monkeypatch):
    result, said = run(folder, sqlite_server, monkeypatch, objective="hidden_lab.py:sometimes", asks=12)
    assert result.answered == 12
    assert result.failed == said.count("failed")
    assert 0 < result.failed < 12
    strict = {"stop_on_error": True, "state": "b.jsonl", "ledger": "b.ledger", "asks": 40}
    with pytest.raises(SurefootError, match="the objective raised RuntimeError: no such patient"):
        run(folder, sqlite_server, monkeypatch, objective="hidden_lab.py:sometimes", **strict)
    noisy = {"values": (-20.0, 0.0), "values_epsilon": 2.0, "direction": "minimize"}
    result, said = run(
        folder, sqlite_server, monkeypatch, **noisy, state="c.jsonl", ledger="c.ledger", policy="RandomSearch"
    )
    assert result.answered == 6
    assert "in the clear" not in said
    assert "of 5 spent" in said


def test_an_objective_that_is_never_finite(folder, sqlite_server, monkeypatch):
    asked = {"objective": "hidden_lab.py:endless", "asks": 2}
    result, said = run(folder, sqlite_server, monkeypatch, **asked)
    assert (result.line, result.value, result.failed) == (None, None, 2)
    assert "nothing could be measured, so there is no row to use" in said
    again, said = run(folder, sqlite_server, monkeypatch, **asked, quiet=True)
    assert json.loads(said) == {"line": None, "value": None, "answered": again.answered}
    with pytest.raises(SurefootError, match="ValueError: the objective returned an infinite value"):
        run(folder, sqlite_server, monkeypatch, **asked, stop_on_error=True, state="b.jsonl", ledger="b.ledger")


def test_another_service_or_a_lost_run_is_noticed(folder, sqlite_server, monkeypatch):
    with pytest.raises(SurefootError):
        run(folder, sqlite_server, monkeypatch, objective="hidden_lab.py:sometimes", stop_on_error=True, asks=60)
    place = folder / "wages.csv.curator.jsonl.run"
    kept = json.loads(place.read_text())
    place.write_text(json.dumps({**kept, "id": "0" * 16}))
    with pytest.raises(ValueError, match="does not know this run"):
        run(folder, sqlite_server, monkeypatch, asks=60)
    place.write_text(json.dumps({**kept, "server": "https://elsewhere.example"}))
    with pytest.raises(ValueError, match="names another run or service"):
        run(folder, sqlite_server, monkeypatch, asks=60)
    place.unlink()
    result, _ = run(folder, sqlite_server, monkeypatch, asks=60)  # the same release, sent again
    assert result.answered == 60


# -- input -------------------------------------------------------------------------------------------------------------


def command(*given: str, monkeypatch) -> int:
    monkeypatch.setattr(sys, "argv", ["surefoot", *given])
    with pytest.raises(SystemExit) as end:
        cli.main()
    return int(end.value.code or 0)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"--bounds": None}, "public bounds are needed for every column to release"),
        ({"--bounds": "age_secret"}, "bounds are written COLUMN=LOWER:UPPER"),
        ({"--bounds": "age_secret=90:18"}, "a lower and a larger upper limit"),
        ({"--bounds": "age_secret=a:b"}, "must be two numbers"),
        ({"--bounds": "height=0:3"}, "there is no column 'height'"),
        ({"--bounds": "patient_name=0:3"}, "line 2: column 'patient_name' does not hold a finite number"),
        ({"--epsilon": "0"}, "epsilon must be positive and finite, got 0.0"),
        ({"--delta": "2"}, "delta"),
        ({"--radius": "-1"}, "radius must be positive and finite, got -1.0"),
        ({"--neighbor": "0"}, "neighbor must be positive"),
        ({"--server": "http://bo.example"}, "is not encrypted"),
        ({"--server": "bo.example"}, "begins with http:// or https://"),
        ({"--ca": "absent.pem"}, "there is no file absent.pem"),
        ({"--policy": "gradient"}, "there is no policy 'gradient'"),
        ({"--policy": "my.module:Policy"}, "policies that it knows by name"),
        ({"--objective": "hidden_lab.py:absent"}, "has no 'absent'"),
        ({"--objective": "hidden_lab.py:os"}, "the objective must be a function of a row, got module"),
        ({"--asks": "1000"}, "1000 asks need as many rows"),
        ({"--values-epsilon": "1"}, "needs both"),
    ],
)
def test_bad_input_is_one_line_and_status_2(change, said, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    options = {"--objective": "hidden_lab.py:secret_objective", "--server": "http://127.0.0.1:9", "--token": "sf_x"}
    options |= {"--epsilon": "3", "--delta": "1e-5", "--bounds": "age_secret=18:90"}
    given = [word for pair in {**options, **change}.items() if pair[1] is not None for word in pair]
    assert command("curate", "wages.csv", *given, "--no-preflight", monkeypatch=monkeypatch) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not list(folder.glob("wages.csv.*"))  # no file was made


# Finding 16 of the review of 0.1.0
def test_a_mistyped_bound_stops_before_anything_is_spent(folder, sqlite_server, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    mistyped = ["--bounds", "salary_secret=10000:200000", "--bounds", "age_secret=18:60"]
    given = ["curate", "wages.csv", "--objective", "hidden_lab.py:secret_objective", "--server", sqlite_server.url]
    given += ["--token", sqlite_server.token("owner"), "--epsilon", "3", "--delta", "1e-5", "--asks", "3"]
    before = sorted(folder.iterdir())
    assert command(*given, *mistyped, "--no-preflight", monkeypatch=monkeypatch) == 2
    error = capsys.readouterr().err
    assert re.search(
        r"\d\d\.\d % of column age_secret lie outside --bounds age_secret=18:60 and would be clipped", error
    )
    assert "nothing was released or charged" in error
    assert "--bounds COLUMN=LOW:HIGH" in error
    assert "--yes" in error
    assert "salary_secret" not in error  # its bounds hold
    assert error.count("\n") == 1
    assert [path for path in sorted(folder.iterdir()) if path.name != "__pycache__"] == before  # no file, no ledger
    assert command(*given, *mistyped, "--dry-run", monkeypatch=monkeypatch) == 0
    assert "% of column age_secret lie outside" in capsys.readouterr().out
    right = [*mistyped[:3], "age_secret=18:90"]
    assert command(*given, *right, "--no-preflight", monkeypatch=monkeypatch) == 0  # the budget is still there
    assert "use line" in capsys.readouterr().out
    # The release is made: what differs is named by the options of the command, and how to go on is said.
    assert command(*given, *mistyped, "--yes", "--no-preflight", monkeypatch=monkeypatch) == 2
    error = capsys.readouterr().err
    assert "was made and paid for with other settings: --bounds" in error
    assert "--state" in error
    assert "surefoot.load" not in error
    other = ["--state", "other.jsonl", "--no-preflight"]
    assert command(*given, *mistyped, "--yes", *other, monkeypatch=monkeypatch) == 2
    assert "Nothing was released. --budget is set by the first command" in capsys.readouterr().err
    assert command(*given, *right, *other, "--budget", "9", monkeypatch=monkeypatch) == 2
    assert "give --budget 3.0, and the same --delta" in capsys.readouterr().err


def test_with_yes_a_clipped_column_is_released(folder, sqlite_server, monkeypatch):
    narrow = ["salary_secret=10000:200000", "age_secret=18:60"]
    with pytest.raises(ValueError, match="would be clipped"):
        run(folder, sqlite_server, monkeypatch, bounds=narrow, quiet=True)
    result, said = run(folder, sqlite_server, monkeypatch, bounds=narrow, yes=True)
    assert result.answered == 6
    assert "% of column age_secret lie outside" in said
    again, said = run(folder, sqlite_server, monkeypatch, bounds=narrow)  # it was agreed to, and is made: it goes on
    assert again.line == result.line
    assert "lie outside" not in said


def test_a_dry_run_leaves_nothing(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    before = sorted(folder.iterdir())
    given = words("https://bo.example", "--token", "sf_x", "--dry-run", "--asks", "5")
    assert command(*given, monkeypatch=monkeypatch) == 0
    said = capsys.readouterr().out
    assert "150 rows of 2 features" in said
    assert "expected loss: original rows" in said
    assert [path for path in sorted(folder.iterdir()) if path.name != "__pycache__"] == before


def test_a_table_of_few_rows_needs_no_number_of_asks(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    table = folder / "wages.csv"
    table.write_text("".join(table.read_text().splitlines(keepends=True)[:13]))
    given = words("https://bo.example", "--token", "sf_x", "--dry-run")
    assert command(*given, monkeypatch=monkeypatch) == 0
    assert "12 rows of 2 features" in capsys.readouterr().out
    assert command(*given, "--asks", "13", monkeypatch=monkeypatch) == 2
    assert "13 asks need as many rows; there are 12" in capsys.readouterr().err


def test_a_broken_module_of_our_own_is_no_missing_extra(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setitem(sys.modules, "surefoot.cli.curate", None)
    with pytest.raises(ImportError, match="curate"):
        command(*words("https://bo.example", "--token", "sf_x", "--dry-run"), monkeypatch=monkeypatch)


def test_without_the_packages_of_the_service_nothing_is_released(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    before = sorted(folder.iterdir())
    monkeypatch.setitem(sys.modules, "httpx", None)
    given = words("https://bo.example", "--token", "sf_x", "--no-preflight")
    assert command(*given, monkeypatch=monkeypatch) == 2
    error = capsys.readouterr().err
    assert "pip install 'surefoot[serve]'" in error
    assert error.count("\n") == 1
    assert [path for path in sorted(folder.iterdir()) if path.name != "__pycache__"] == before


def test_bounds_in_a_file(tmp_path):
    file = tmp_path / "limits.toml"
    file.write_text('age = [18, 90]\n"net income" = [0.0, 1e5]\n')
    assert bounds_from([str(file), "a=b=0:1"]) == {"age": (18, 90), "net income": (0, 1e5), "a=b": (0, 1)}
    with pytest.raises(ValueError, match="two pairs of bounds"):
        bounds_from([str(file), "age=0:1"])
    file.write_text("age = 18")
    with pytest.raises(ValueError, match="must be two numbers, got 18"):
        bounds_from([str(file)])
    file.write_text("age = [")
    with pytest.raises(ValueError, match=r"limits\.toml: "):
        bounds_from([str(file)])


def test_lines_are_those_of_the_file(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text('who,x\n\n"two\nlines",1\nother,2\n\n')
    found = read(file, ["x"])
    assert found.lines == [3, 5]  # where they begin
    assert found.rows == [{"who": "two\nlines", "x": 1.0}, {"who": "other", "x": 2.0}]
    for content, message in (
        ("x\n", "no rows"),
        ("x,x\n1,2\n", "same name"),
        ("x\n1\n2,3\n", "line 3 has 2 fields"),
        ("x\n1\ninf\n", "line 3: column 'x' does not hold a finite number"),
    ):
        file.write_text(content)
        with pytest.raises(ValueError, match=message):
            read(file, ["x"])
    file.write_bytes(b"x\n\xff\xfe\n")
    with pytest.raises(ValueError, match=r"t\.csv is not a CSV file in UTF-8$"):
        read(file, ["x"])


@pytest.mark.parametrize("columns", [40, 120])
def test_help_fits_and_its_examples_parse(columns, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("SUREFOOT_TOKEN", "sf_x")
    assert command("curate", "--help", monkeypatch=monkeypatch) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= columns
    examples = re.findall(r"^ +(surefoot curate\b.*)$", re.sub(r"\\\n\s+", "", text), flags=re.MULTILINE)
    assert len(examples) == 2
    seen = []
    monkeypatch.setattr("surefoot.cli.curate.command.callback", lambda **options: seen.append(options))
    for line in examples:
        assert command(*shlex.split(line)[1:], monkeypatch=monkeypatch) == 0
    assert [options["dry_run"] for options in seen] == [False, True]


@pytest.mark.parametrize("token", [["--token", "sf_secret"], ["--token=sf_secret"]])
def test_an_interrupted_command_says_how_to_go_on(token, monkeypatch, capsys):
    def interrupted(**options):
        raise KeyboardInterrupt

    monkeypatch.setattr("surefoot.cli.curate.command.callback", interrupted)
    given = words("https://bo.example", *token)
    assert command(*given, monkeypatch=monkeypatch) == 130
    error = capsys.readouterr().err
    assert "surefoot curate wages.csv" in error
    assert "sf_secret" not in error
