"""``surefoot serve`` and ``surefoot token``."""

from __future__ import annotations

import re
import shlex
import shutil
import socket
import sqlite3
import subprocess
import sys

import httpx
import pytest
from running import Server

from surefoot import Client, cli
from surefoot.serve import Store, run, tokens


def command(*words: str, monkeypatch) -> int:
    monkeypatch.setattr(sys, "argv", ["surefoot", *words])
    with pytest.raises(SystemExit) as end:
        cli.main()
    return int(end.value.code or 0)


def test_tokens_are_made_listed_and_revoked(tmp_path, monkeypatch, capsys):
    url = f"sqlite:///{tmp_path / 'service.db'}"
    monkeypatch.setenv("SUREFOOT_DATABASE", url)
    assert command("token", "create", "--tenant", "physics", "--scope", "admin", monkeypatch=monkeypatch) == 0
    made = capsys.readouterr().out.strip()
    store = Store(url)
    assert tokens.authenticate(store, made).tenant == "physics"
    assert command("token", "list", monkeypatch=monkeypatch) == 0
    (line,) = capsys.readouterr().out.splitlines()
    id, tenant, scope, _, state, _ = line.split("\t")
    assert (tenant, scope, state) == ("physics", "admin", "valid")
    assert made.split("_")[1] == id
    assert made.split("_", 2)[2] not in line
    assert command("token", "revoke", id, monkeypatch=monkeypatch) == 0
    capsys.readouterr()
    assert command("token", "list", "--tenant", "physics", monkeypatch=monkeypatch) == 0
    assert "\trevoked\t" in capsys.readouterr().out
    with pytest.raises(run.tickets.Unauthorized):
        tokens.authenticate(store, made)
    store.close()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["serve", "--database", "nonsense"], "is not the URL of a database"),
        (["serve", "--database", "mysql://a/b"], "works on SQLite and PostgreSQL, not on mysql"),
        (["serve", "--certfile", "absent.pem"], "both a certificate and its key"),
        (["serve", "--certfile", "absent.pem", "--keyfile", "absent.key"], "there is no file absent.pem"),
        (["serve", "--log-level", "loud", "--migrate"], ""),
        (
            ["serve", "--database", "postgresql://me:secret@127.0.0.1:9/none"],
            "me:***@127.0.0.1:9/none cannot be used: con",
        ),
        (["serve", "--database", "sqlite:///absent/service.db"], "cannot be used: unable to open database file"),
        (["token", "list", "--database", "sqlite:///words.txt"], "cannot be used: file is not a database"),
        (["serve", "--certfile", "words.txt", "--keyfile", "words.txt"], "words.txt are no certificate and its key"),
        (["serve", "--database", "sqlite://", "--rate", "inf"], "rate must be a number of requests per second"),
        (["serve", "--database", "sqlite://", "--host", "192.0.2.1"], "cannot serve at 192.0.2.1:8000: "),
        (["serve", "--database", "sqlite://", "--host", "no host"], "cannot serve at no host:8000: "),
        (["token", "create", "--tenant", "", "--database", "sqlite://"], "the tenant of a token is 1 to 200"),
        (["token", "create", "--tenant", "a", "--scope", "root", "--database", "sqlite://"], "scope must be one of"),
        (["token", "revoke", "0", "--database", "sqlite://"], "there is no such token"),
    ],
)
def test_bad_input_is_one_line_and_status_2(words, said, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "words.txt").write_text("neither a database nor a certificate\n")
    status = command(*words, monkeypatch=monkeypatch)
    error = capsys.readouterr().err
    assert status == (2 if said else 0)
    assert said in error
    assert "Traceback" not in error


@pytest.mark.parametrize("words", [["serve"], ["token", "list"]])
def test_without_the_packages_of_the_service_it_says_what_to_install(words, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    for name in ("run", "listener"):
        monkeypatch.delitem(sys.modules, f"surefoot.serve.{name}", raising=False)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert command(*words, monkeypatch=monkeypatch) == 2
    assert capsys.readouterr().err == "surefoot: the service needs uvicorn: pip install 'surefoot[serve]'\n"
    assert not list(tmp_path.iterdir())  # no database was made


def test_a_port_that_is_taken_is_one_line_and_status_2(monkeypatch, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        words = ["serve", "--database", "sqlite://", "--port", str(taken.getsockname()[1])]
        assert command(*words, monkeypatch=monkeypatch) == 2
    said = capsys.readouterr()
    assert "ddress already in use" in said.err + said.out


def test_a_database_of_a_newer_release_is_left_alone(tmp_path, monkeypatch, capsys):
    url = f"sqlite:///{tmp_path / 'service.db'}"
    run.serve(database=url, migrate_only=True)
    with sqlite3.connect(tmp_path / "service.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0099'")
    assert command("serve", "--database", url, monkeypatch=monkeypatch) == 2
    assert "was it made by a newer release?" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["serve"], ["token"], ["token", "create"], ["token", "list"], ["token", "revoke"]])
@pytest.mark.parametrize("columns", [40, 120])
def test_help_fits_and_its_examples_parse(words, columns, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(columns))
    assert command(*words, "--help", monkeypatch=monkeypatch) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= columns
    joined = re.sub(r"\\\n\s+", "", text)
    examples = re.findall(rf"^ +(surefoot {' '.join(words)}\b.*)$", joined, flags=re.MULTILINE)
    assert examples or words == ["token"]
    seen = []
    for name in ("serve", "create_token", "tokens", "revoke_token"):
        answer = {"create_token": {"token": "sf_"}, "tokens": []}.get(name)
        monkeypatch.setattr(run, name, lambda answer=answer, **given: (seen.append(given), answer)[1])
    for line in examples:
        if words != ["token"]:
            assert command(*shlex.split(line)[1:], monkeypatch=monkeypatch) == 0
            assert seen.pop()


def test_a_service_with_a_certificate(tmp_path):
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl, to make a certificate, is not installed")
    made = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem"]
    made += ["-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(made, cwd=tmp_path, check=True, capture_output=True)
    files = ("--certfile", str(tmp_path / "cert.pem"), "--keyfile", str(tmp_path / "key.pem"))
    with Server(f"sqlite:///{tmp_path / 'service.db'}", tmp_path, *files) as server:
        assert server.url.startswith("https")
        with Client(server.url, token=server.token(), verify=str(tmp_path / "cert.pem")) as trusting:
            assert trusting.studies() == []
        with pytest.raises(Exception, match="CERTIFICATE_VERIFY_FAILED"):
            Client(server.url, token=server.token(), retries=0).studies()
        with pytest.raises(httpx.TransportError):
            httpx.get(server.url.replace("https", "http"))
        server.kill()
