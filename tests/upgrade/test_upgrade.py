"""What version 0.1.0 wrote is read and goes on as 0.1.0 would have gone on; ``v0_1/make.py`` made the files."""

from __future__ import annotations

import base64
import contextlib
import copy
import gzip
import json
import os
import socket
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from v0_1.cases import AGAIN, DOMAINS, answer, crowd, point, tasks, told

import surefoot
from surefoot import BudgetSpent, Policy, Task, load
from surefoot.federated import Coordinator, Message, SharedFeatures, Weighting
from surefoot.private import Curator, GaussianEvent, GaussianRelease, Ledger, Modeler, OutputRelease
from surefoot.private.messages import Answer


def read(name):
    return json.loads(gzip.decompress((Path(__file__).parent / "v0_1" / f"{name}.json.gz").read_bytes()))


WRITTEN = read("policies")
CASES = pytest.mark.parametrize("case", WRITTEN["policies"], ids=lambda case: f"{case['name']} {case['kind']}")
RUNS = read("runs")
PARTIES = read("parties")


def agree(found, expected, where="it"):
    """Numbers agree within what another machine may make of them; what is new beside them is let be."""
    if isinstance(expected, dict):
        for key, value in expected.items():
            agree(found[key], value, f"{where}[{key!r}]")
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for number, (one, other) in enumerate(zip(found, expected, strict=True)):
            agree(one, other, f"{where}[{number}]")
    elif isinstance(expected, float) and found is not None:
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-6), where
    else:
        assert found == expected, where


# -- policies ---------------------------------------------------------------------------------------------------------


@CASES
def test_a_state_of_0_1_goes_on(case):
    policy = Policy.from_state(copy.deepcopy(case["state"]), **AGAIN.get(case["name"], {}))
    settled = case["settled"]
    assert len(policy.history) == settled["measured"]
    assert not policy.pending
    agree(answer(policy), settled["answer"])
    agree(point(policy.ask(**settled["context"])), settled["next"])


@CASES
def test_a_journal_of_0_1_goes_on(case, tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_text(case["journal"], encoding="utf-8")
    waiting = case["waiting"]
    with load(path, **AGAIN.get(case["name"], {})) as policy:
        agree([point(query) for query in policy.pending], waiting["pending"])
        agree({str(id): [list(one) for one in steps.items()] for id, steps in policy.reports().items()}, reports(case))
        found = [[o.id, o.x.tolist(), o.outcome.value, o.outcome.values] for o in policy.history]
        agree(json.loads(json.dumps(found)), waiting["history"])
        if not crowd(policy):
            (query,) = policy.pending
            policy.tell(query, told(policy, query.x))
        agree(point(policy.ask(**waiting["context"])), waiting["next"])
        events = policy.events
    assert path.read_text(encoding="utf-8").startswith(case["journal"]), "what is there is never written again"
    with load(path, **AGAIN.get(case["name"], {})) as again:
        assert again.events == events


def reports(case):
    return {id: [list(one) for one in steps] for id, steps in case["waiting"]["reports"].items()}


def test_every_policy_that_0_1_shipped_is_among_the_files_and_keeps_its_name():
    kinds = {case["state"]["policy"] for case in WRITTEN["policies"]}
    shipped = {
        name
        for home in (surefoot, surefoot.federated, surefoot.games)
        for name in home.__all__
        if isinstance(kind := getattr(home, name, None), type) and issubclass(kind, Policy) and kind is not Policy
    }
    assert kinds <= shipped
    assert len(kinds) == 34


@pytest.mark.parametrize("case", WRITTEN["told while pending"], ids=lambda case: case["policy"])
def test_points_told_by_their_coordinates_while_pending(case, tmp_path):
    """0.1.0 kept both outcomes, and the queries that were not told by number pending."""
    path = tmp_path / "run.jsonl"
    path.write_text(case["journal"])
    with load(path) as policy:
        agree([[o.id, o.x.tolist(), o.outcome.value] for o in policy.history], case["history"])
        assert {query.id for query in policy.pending} <= set(case["pending"])
        policy.tell(policy.ask(), 0.0)
    load(path).close()


# -- runs -------------------------------------------------------------------------------------------------------------


def named(run):
    return "-".join(run[key] for key in ("by", "case", "direction", "policy") if key in run)


every_run = pytest.mark.parametrize("run", RUNS["runs"], ids=named)
optimized = pytest.mark.parametrize("run", [run for run in RUNS["runs"] if run["by"] == "optimize"], ids=named)
tuned = pytest.mark.parametrize("run", [run for run in RUNS["runs"] if run["by"] == "tune"], ids=named)


@optimized
def test_a_run_of_optimize_goes_on_in_the_users_sign(run, tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_text(run["journal"])
    sign = 1.0 if run["direction"] == "minimize" else -1.0
    given = {"policy": getattr(surefoot, run["policy"]), "direction": run["direction"], "seed": 4, "journal": path}
    result = surefoot.optimize(lambda x: pytest.fail("the budget is spent"), DOMAINS["Box"], 7, **given)
    found = {name: getattr(result.recommendation, name) for name in ("mean", "lower", "upper")}
    agree({"x": result.x.tolist(), **found}, run["recommended"])
    asked = []

    def objective(x):
        asked.append(x.tolist())
        return sign * (3.0 + float((x**2).sum()))

    surefoot.optimize(objective, DOMAINS["Box"], 8, **given)
    agree(asked, [run["next"]])


@tuned
def test_a_run_of_the_command_is_resumed_in_the_users_sign(run, tmp_path, monkeypatch):
    from surefoot.lab.tune import tune

    monkeypatch.chdir(tmp_path)
    (tmp_path / "space.toml").write_text(RUNS["space"])
    (tmp_path / "objective.py").write_text(RUNS["objective"])
    path = tmp_path / "run.jsonl"
    path.write_text(run["interrupted"])
    options = dict(run["options"])
    if run["case"] == "transfer":
        (plain,) = [other for other in RUNS["runs"] if other.get("case") == "plain"]
        (tmp_path / "tune-plain.jsonl").write_text(plain["journal"])
        options["transfer"] = [tmp_path / "tune-plain.jsonl"]
    function = "curve" if run["case"] == "epochs" else "loss"
    options |= {"journal": path, "resume": True, "direction": run["direction"], "out": None, "quiet": True}
    result = tune(f"{tmp_path}/objective.py:{function}", space="space.toml", seed=4, **options)
    agree({"params": result.params, "mean": result.value}, run["recommended"])


@every_run
def test_a_minimized_run_of_0_1_can_be_learnt_from(run, tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_text(run["journal"])
    task = Task.from_journal(path)
    assert len(task) == sum(number is not None for _, number in run["history"])


@every_run
def test_a_loaded_journal_speaks_in_the_users_sign(run, tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_text(run["journal"])
    with load(path) as policy:
        assert policy.direction == run["direction"]
        agree([None if o.failed else o.value for o in policy.history], [number for _, number in run["history"]])
        found = policy.recommend()
        expected = run["recommended"]
        agree({name: getattr(found, name) for name in ("mean", "lower", "upper")}, numbers_of(expected))
        successes = [o.value for o in policy.history if not o.failed]
        assert (min if run["direction"] == "minimize" else max)(successes) == run["best"]
        agree(policy.domain.params(found.x) or found.x.tolist(), expected.get("params") or expected["x"])


def numbers_of(expected):
    return {name: value for name, value in expected.items() if name in ("mean", "lower", "upper")}


# -- parties ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", list(PARTIES["ledgers"]))
def test_a_ledger_of_0_1_goes_on(method, tmp_path):
    written = PARTIES["ledgers"][method]
    path = tmp_path / "ledger.jsonl"
    path.write_text(written["file"], encoding="utf-8")
    with Ledger(epsilon=30.0, delta=1e-5, path=path, method=method) as ledger:
        assert ledger.head == written["head"]
        assert len(ledger.entries) == written["entries"]
        assert ledger.spent() == pytest.approx(written["spent"], rel=1e-6)
        ledger.charge(GaussianEvent(5.0))
        with pytest.raises(BudgetSpent):
            ledger.charge(GaussianEvent(0.01))
    assert path.read_text(encoding="utf-8").startswith(written["file"])


@pytest.mark.parametrize("written", PARTIES["curators"], ids=lambda written: written["direction"])
def test_a_curator_and_a_modeler_of_0_1_go_on(written, tmp_path):
    for name in ("ledger", "curator"):
        (tmp_path / f"{name}.jsonl").write_text(written[name])
    folder = tmp_path / "modeler"
    folder.mkdir()
    for name, text in written["modeler"].items():
        (folder / name).write_text(text)
    rows = np.array(written["rows"])
    mechanism = GaussianRelease(epsilon=3.0, delta=1e-5, bounds=[(0.0, 1.0)] * 2)
    outputs = OutputRelease(bounds=(0, 4), epsilon=1.0, delta=1e-5) if written["outputs"] else None
    options = {"asks": 6, "outputs": outputs, "direction": written["direction"], "path": tmp_path / "curator.jsonl"}
    with (
        Ledger(epsilon=9.0, delta=1e-4, path=tmp_path / "ledger.jsonl") as ledger,
        Curator(rows, None, mechanism, ledger=ledger, **options) as curator,
        Modeler.load(folder) as modeler,
    ):
        assert ledger.spent() == pytest.approx(written["spent"], rel=1e-6)
        assert curator.release() == modeler.release
        assert ledger.spent() == pytest.approx(written["spent"], rel=1e-6), "the same rows, at no further charge"
        assert [[ask.step, ask.index] for ask, _ in curator.pending] == [written["waiting"]]
        ask = modeler.ask()
        assert [ask.step, ask.index] == written["waiting"]
        curator.settle(ask, 0.5)
        modeler.tell(Answer(ask.run, ask.step, 0.5))
        assert modeler.ask().index == written["next"]
        assert modeler.recommend().index == written["recommended"]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("written", PARTIES["coordinators"], ids=lambda written: written["name"])
def test_a_coordinator_of_0_1_goes_on(written, tmp_path):
    files = {name: tmp_path / f"{name}.jsonl" for name in ("journal", "vectors", "ledger") if name in written}
    for name, path in files.items():
        path.write_text(written[name])
    options = {
        "mean": {},
        "regions": {"regions": 2, "weighting": Weighting(high=60.0)},
        "private": {"noise_multiplier": 1.0, "sampling": 0.5},
    }[written["name"]]
    features = SharedFeatures(2, 8, lengthscale=0.2, noise=0.01, seed=0)
    with contextlib.ExitStack() as stack:
        if "ledger" in files:
            place = files.pop("ledger")
            options["ledger"] = stack.enter_context(Ledger(epsilon=90.0, delta=1e-4, path=place))
            assert len(options["ledger"].entries) == 1
        coordinator = stack.enter_context(Coordinator(features, agents=5, **options, **files))
        assert coordinator.release(0).to_fields() == written["first"]
        vector = np.random.default_rng(1).standard_normal((5, 8))[4]
        assert not coordinator.collect(Message(1, 1, features.hash, vector)), "it has this one"
        if written["next"] is not None:
            agree(coordinator.release(1).to_fields(), written["next"])


# -- the service ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def written():
    for name in ("fastapi", "sqlalchemy", "alembic", "httpx", "uvicorn"):
        pytest.importorskip(name)
    return read("service")


@pytest.fixture
def store(written, tmp_path):
    from surefoot.serve.store import Store

    (tmp_path / "service.db").write_bytes(gzip.decompress(base64.b64decode(written["database"])))
    opened = Store(f"sqlite:///{tmp_path / 'service.db'}")
    opened.migrate()
    yield opened
    opened.close()


@pytest.fixture
def address(store):
    """The service on a free port of this machine."""
    import uvicorn

    from surefoot.serve.app import create_app
    from surefoot.serve.settings import Settings

    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(create_app(store, Settings(rate=0.0)), log_level="warning"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        while not server.started and thread.is_alive():
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        thread.join()


def test_a_database_of_0_1_is_served_on_in_the_users_sign(written, address):
    with surefoot.Client(address, token=written["tokens"]["write"]) as client:
        assert {study.id for study in client.studies()} == {entry["id"] for entry in written["studies"]}
        repeated = written["repeated"]
        assert client.study(repeated["id"])._post("ask", repeated["body"]) == repeated["answer"], "asked with its key"
        for entry in written["studies"]:
            study = client.study(entry["id"])
            name = entry["info"]["name"]
            agree(study.info(), {key: value for key, value in entry["info"].items() if key != "options"}, name)
            agree(study.trace(), entry["events"], name)
            if "recommend" in entry:
                agree(study._get("/recommend"), {k: v for k, v in entry["recommend"].items() if k != "rule"}, name)
            if "next" in entry:
                agree(study._post("ask", entry["ask"])["queries"], entry["next"], name)
                study.cancel(entry["next"][0]["id"])


def test_tokens_of_0_1_open_what_they_opened(written, address):
    tokens = written["tokens"]
    (first, *_) = written["studies"]
    for name in ("admin", "write", "read"):
        with surefoot.Client(address, token=tokens[name]) as client:
            assert client.study(first["id"]).name == first["info"]["name"]
    with surefoot.Client(address, token=tokens["revoked"]) as client, pytest.raises(surefoot.SurefootError):
        client.studies()
    with surefoot.Client(address, token=tokens["other"]) as client:
        assert client.studies() == []
    with surefoot.Client(address, token=tokens["read"]) as client, pytest.raises(surefoot.SurefootError):
        client.study(first["id"]).ask()


@pytest.mark.parametrize("which", ["finished", "interrupted"])
def test_a_folder_of_the_curate_command_goes_on(which, written, address, tmp_path, monkeypatch):
    from surefoot.lab.curate import curate

    folder = tmp_path / "people"
    folder.mkdir()
    for name, text in written["folders"][which].items():
        (folder / name).write_text(text.replace(written["folders"]["server"], address))
    monkeypatch.chdir(folder)
    charged = (folder / "people.csv.ledger.jsonl").read_text()
    options = {"epsilon": 3.0, "delta": 1e-5, "bounds": ["age=18:90"], "asks": 6, "direction": "minimize"}
    token = written["tokens"]["write"]
    with open(os.devnull, "w") as silence, contextlib.redirect_stdout(silence):
        done = curate(
            "people.csv", objective="ages.py:near", server=address, token=token, look=False, quiet=True, **options
        )
    assert done.answered == 6
    assert (folder / "people.csv.ledger.jsonl").read_text() == charged, "going on costs nothing"
    if which == "finished":
        assert done.line == written["curated"]["line"]


def test_tasks_of_0_1_are_as_they_were():
    """The earlier tasks of a policy are stored in its configuration."""
    (case,) = [one for one in WRITTEN["policies"] if (one["name"], one["kind"]) == ("RGPE", "Box")]
    policy = Policy.from_state(copy.deepcopy(case["state"]))
    for found, made in zip(policy.tasks, tasks(DOMAINS["Box"]), strict=True):
        assert np.allclose(found.X, made.X)
        assert np.array_equal(found.y, made.y)
