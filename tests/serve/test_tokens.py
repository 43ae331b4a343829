"""Tokens expire and get new secrets; an administrator sees one tenant, the operator all; keys of deleted studies."""

from __future__ import annotations

import sys

import httpx
import pytest
import sqlalchemy as sa

from surefoot import Box, Client, cli
from surefoot.serve import Store, Unauthorized, tokens
from surefoot.serve.migrate import migrate
from surefoot.serve.tables import answers, studies
from surefoot.serve.tables import tokens as token_table

LONG_AGO = "2020-01-01T00:00:00.000+00:00"


def command(*words: str, monkeypatch) -> int:
    monkeypatch.setattr(sys, "argv", ["surefoot", *words])
    with pytest.raises(SystemExit) as end:
        cli.main()
    return int(end.value.code or 0)


def get(server, path: str, token: str) -> httpx.Response:
    return httpx.get(f"{server.url}/api/v1{path}", headers={"Authorization": f"Bearer {token}"}, timeout=30.0)


# Finding 9 of the review of 0.1.0
def test_a_token_that_expired_is_refused_and_says_when(server):
    made = tokens.create(server.store, "expiring", "n", "write", "90d")
    assert made["expires"] > made["created"]
    assert get(server, "/studies", made["token"]).status_code == 200
    server.store.change_token(made["id"], expires=LONG_AGO)
    refused = get(server, "/studies", made["token"])
    assert refused.status_code == 401
    assert refused.headers["WWW-Authenticate"] == "Bearer"
    assert refused.json()["detail"] == f"this token expired at {LONG_AGO}; ask for a new one"
    guessed = get(server, "/studies", made["token"][:-1] + "-")
    assert guessed.json()["detail"] == "this token is not valid"  # only who has the secret learns anything
    with Client(server.url, token=made["token"]) as client, pytest.raises(Unauthorized, match="expired at 2020"):
        client.studies()


# Finding 9 of the review of 0.1.0
def test_a_new_secret_is_valid_at_once_and_the_old_one_for_a_time_of_grace(server):
    first = tokens.create(server.store, "rotating", "n", "write")
    second = tokens.rotate(server.store, first["id"], grace="1h")
    assert {row["token"].split("_")[1] for row in (first, second)} == {first["id"]}
    assert [get(server, "/studies", one["token"]).status_code for one in (first, second)] == [200, 200]
    server.store.change_token(first["id"], previous_until=LONG_AGO)
    refused = get(server, "/studies", first["token"])
    assert refused.status_code == 401
    assert "the old one ended at 2020-01-01" in refused.json()["detail"]
    third = tokens.rotate(server.store, first["id"], grace="0s")
    found = [get(server, "/studies", one["token"]).status_code for one in (first, second, third)]
    assert found == [401, 401, 200]
    server.store.revoke(first["id"])
    assert get(server, "/studies", third["token"]).status_code == 401
    with pytest.raises(ValueError, match="is revoked; make a new one"):
        tokens.rotate(server.store, first["id"])


def test_an_expired_token_gets_a_new_secret_with_a_new_time_only(server):
    made = tokens.create(server.store, "renewing", "n", "write", "90d")
    server.store.change_token(made["id"], expires=LONG_AGO)
    with pytest.raises(ValueError, match="has expired; say how long the new secret is valid, as --expires 90d"):
        tokens.rotate(server.store, made["id"])
    renewed = tokens.rotate(server.store, made["id"], expires="30d")
    assert get(server, "/studies", renewed["token"]).status_code == 200


@pytest.mark.parametrize("expires", ["", "90", "d", "-1d", "1.5d", "0d", "1y", "999999d", "90d ", "٩d"])
def test_a_time_that_is_none(expires, sqlite_server):
    with pytest.raises(ValueError, match="a duration is a number and one of s, m, h, d"):
        tokens.create(Store("sqlite://"), "a", "n", "read", expires)
    headers = {"Authorization": f"Bearer {sqlite_server.token()}"}
    body = {"name": "x", "scope": "read", "expires": expires}
    assert httpx.post(f"{sqlite_server.url}/api/v1/tokens", headers=headers, json=body).status_code == 422


def test_tokens_made_over_http_expire_too(server):
    headers = {"Authorization": f"Bearer {server.token(tenant='expiring over http')}"}
    url = f"{server.url}/api/v1/tokens"
    made = httpx.post(url, headers=headers, json={"name": "x", "scope": "read", "expires": "12h"}).json()
    assert made["expires"] > made["created"]
    listed = {row["id"]: row for row in httpx.get(url, headers=headers).json()["tokens"]}
    assert listed[made["id"]] == {key: value for key, value in made.items() if key != "token"}
    refused = httpx.post(url, headers=headers, json={"name": "x", "scope": "operator"})
    assert refused.status_code == 422  # that one is made by whoever has the database


def test_the_commands(tmp_path, monkeypatch, capsys):
    url = f"sqlite:///{tmp_path / 'service.db'}"
    monkeypatch.setenv("SUREFOOT_DATABASE", url)
    assert command("token", "create", "--tenant", "physics", "--expires", "90d", monkeypatch=monkeypatch) == 0
    first = capsys.readouterr().out.splitlines()[-1]
    id = first.split("_")[1]
    assert command("token", "rotate", id, "--grace", "12h", monkeypatch=monkeypatch) == 0
    said = capsys.readouterr()
    second = said.out.splitlines()[-1]
    assert "the old secret is valid until 20" in said.err
    store = Store(url)
    assert [tokens.authenticate(store, one).token for one in (first, second)] == [id, id]
    assert command("token", "list", monkeypatch=monkeypatch) == 0
    assert "\tvalid until 20" in capsys.readouterr().out
    store.change_token(id, expires=LONG_AGO)
    assert command("token", "list", monkeypatch=monkeypatch) == 0
    assert f"\texpired {LONG_AGO}\t" in capsys.readouterr().out
    for words, why in (
        ((id,), "has expired"),
        (("0",), "there is no such token"),
        ((id, "--grace", "x"), "a duration"),
    ):
        assert command("token", "rotate", *words, monkeypatch=monkeypatch) == 2
        assert why in capsys.readouterr().err
    store.close()


# Finding 9 of the review of 0.1.0
def test_metrics_of_all_tenants_are_the_operator_s(server):
    mine, other = (server.token(tenant=tenant) for tenant in ("counted", "counted too"))
    assert get(server, "/outsourced", other).status_code == 200
    assert get(server, "/studies", mine).status_code == 200
    seen = get(server, "/metrics", mine).text
    assert 'route="/studies",status="200"} 1' in seen
    assert "/outsourced" not in seen
    assert "surefoot_policies_cached" not in seen
    operator = server.token(tenant="operations", scope="operator")
    everything = get(server, "/metrics", operator).text
    assert 'route="/outsourced",status="200"}' in everything
    assert "surefoot_policies_cached" in everything
    assert get(server, "/studies", operator).json()["studies"] == []  # it opens no other tenant's studies
    for scope in ("read", "write"):
        assert get(server, "/metrics", server.token(tenant="counted", scope=scope)).status_code == 403


# Finding 9 of the review of 0.1.0
@pytest.mark.parametrize("path", ["/studies", "/outsourced"])
def test_the_key_of_a_deleted_study_begins_a_new_one(server, path):
    headers = {"Authorization": f"Bearer {server.token(tenant='keys')}"}
    body = {"name": "x", "policy": "SobolSearch", "key": "once"}
    body |= {"asks": 3} if path == "/outsourced" else {"domain": {"domain": "Box", "bounds": [[0.0, 1.0]]}}
    with httpx.Client(base_url=f"{server.url}/api/v1", headers=headers, timeout=30.0) as http:
        first = http.post(path, json=body)
        assert http.post(path, json=body).json()["id"] == first.json()["id"]
        assert http.delete(f"{path}/{first.json()['id']}").status_code == 204
        second = http.post(path, json=body)
        assert second.status_code == 201
        assert second.json()["id"] != first.json()["id"]
        assert http.get(f"{path}/{second.json()['id']}").status_code == 200


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_tokens_and_keys_of_the_first_tables_are_brought_up_to_date(database, tmp_path, request):
    url = f"sqlite:///{tmp_path / 'service.db'}"
    if database == "postgres":
        url = request.getfixturevalue("postgres").database("tokens_of_old")
    store = Store(url)
    migrate(store.engine, "0001")
    secret = "A" * 43
    old = {"id": "0" * 16, "tenant": "a", "name": "n", "scope": "admin", "digest": tokens._digest(secret)}
    study = dict.fromkeys(("id", "tenant", "name", "policy", "direction", "domain", "options", "seed", "state"), "kept")
    study |= dict.fromkeys(("version", "told", "failed", "pending", "stopped"), 0)
    keys = [{"scope": "create:a", "key": id, "request": "r", "answer": f'{{"id":"{id}"}}'} for id in ("kept", "gone")]
    keys.append({"scope": "kept", "key": "ask", "request": "r", "answer": '{"ids":[0]}'})
    with store.writing() as connection:
        for table, rows in (
            (token_table, [{**old, "created": LONG_AGO}]),
            (studies, [{**study, "kind": "study", "created": LONG_AGO, "updated": LONG_AGO}]),
            (answers, keys),
        ):
            for row in rows:
                columns, marks = ", ".join(row), ", ".join(f":{name}" for name in row)
                connection.execute(sa.text(f"INSERT INTO {table.name} ({columns}) VALUES ({marks})"), row)
    migrate(store.engine)
    assert tokens.authenticate(store, f"sf_{'0' * 16}_{secret}").tenant == "a"
    assert tokens.listed(store.tokens()[0])["expires"] is None
    with store.reading() as connection:
        left = connection.execute(sa.select(answers.c.scope, answers.c.key)).all()
    assert sorted(tuple(row) for row in left) == [("create:a", "kept"), ("kept", "ask")]
    store.close()


def test_a_client_says_what_the_service_says(sqlite_server):
    made = tokens.create(sqlite_server.store, "said", "n", "write", "90d")
    with Client(sqlite_server.url, token=made["token"]) as client:
        study = client.create("x", Box([(0.0, 1.0)]), policy="SobolSearch")
        sqlite_server.store.change_token(made["id"], expires=LONG_AGO)
        with pytest.raises(Unauthorized, match="ask for a new one"):
            study.ask()
