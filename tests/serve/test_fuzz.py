"""A writer who means no good, against a real server: no file is made, and no request is a server's error."""

from __future__ import annotations

import httpx
import pytest
from fuzzing import Writer, files, nested
from running import Server


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def fuzzed(request, tmp_path):
    """A server in a folder of its own, and another folder beside it."""
    here, beside = tmp_path / "server", tmp_path / "beside"
    here.mkdir()
    beside.mkdir()
    url = f"sqlite:///{here / 'service.db'}"
    if request.param == "postgres":
        url = request.getfixturevalue("postgres").database(f"fuzz_{request.node.originalname[5:40]}")
    with Server(url, here) as server:
        headers = {"Authorization": f"Bearer {server.token(scope='write')}"}
        with httpx.Client(base_url=f"{server.url}/api/v1", headers=headers, timeout=120.0) as http:
            before = files(here, beside)
            yield http, beside
            assert http.get("/health").status_code == 200
        assert files(here, beside) == before


# Finding 1 of the review of 0.1.0
def test_no_policy_within_an_option_makes_a_file(fuzzed, request):
    http, beside = fuzzed
    writer = Writer(0, beside)
    every = 1 if "sqlite" in request.node.name else 7  # what is refused does not reach a database
    for attempt in list(nested(beside))[::every]:
        writer.send(http, attempt)


def test_random_options_of_every_policy_break_nothing(fuzzed):
    http, beside = fuzzed
    writer = Writer(1, beside, heavy=False)
    for _ in range(100):
        writer.send(http, writer.next())


@pytest.mark.slow
def test_many_random_options_break_nothing(fuzzed):
    http, beside = fuzzed
    for seed in range(2, 12):
        writer = Writer(seed, beside)
        for _ in range(500):
            writer.send(http, writer.next())
