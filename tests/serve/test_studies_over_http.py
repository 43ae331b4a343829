"""Studies over HTTP: the same answers as at home, each thing done once, everything rebuilt from events."""

from __future__ import annotations

import json

import httpx
import numpy as np
import pytest

import surefoot
from surefoot import GP, SE, Box, Candidates, Choice, Client, Dives, Float, Int, Outcome, Paths, Space
from surefoot.errors import Exhausted, NoData, NotSupported, PendingQuery
from surefoot.loop.events import timeless
from surefoot.serve import Conflict, NotFound

SPACE = Space(rate=Float(1e-4, 1e-1, log=True), depth=Int(1, 9), kind=Choice(["a", "b"]))


@pytest.fixture
def client(server):
    with Client(server.url, token=server.token()) as made:
        yield made


def loss(params) -> float:
    return abs(np.log10(params["rate"]) + 2.5) + 0.1 * params["depth"] + "ab".index(params["kind"])


def test_a_study_elsewhere_asks_and_answers_as_one_at_home(client):
    study = client.create("at home", SPACE, policy="GPUCB", direction="minimize", seed=3, confidence=0.9)
    home = surefoot.GPUCB(SPACE, seed=3, confidence=0.9)
    for _ in range(7):
        query, same = study.ask(), home.ask()
        assert query == same
        study.tell(query, loss(query.params))
        home.tell(same, -loss(query.params))
    assert study.recommend() == home.recommend().negated()
    assert study.ask(3) == home.ask(3)
    info = study.info()
    assert (info["told"], info["pending"], info["failed"], info["events"]) == (7, 3, 0, 17)
    assert info["best"] == min(loss(query.params) for query in home.queries[:7])
    assert Space.from_dict(info["domain"]) == SPACE


def test_what_numpy_makes_is_taken_as_at_home(client):
    study = client.create("numpy", Box([(0.0, 1.0)]), policy="TVGPUCB", forgetting=0.1, seed=np.int64(3))
    home = surefoot.TVGPUCB(Box([(0.0, 1.0)]), forgetting=0.1, seed=3)
    assert study.ask(np.int64(2), time=np.int64(1)) == home.ask(np.int64(2), time=np.int64(1))
    study.tell(np.int64(0), np.array([2.0]))
    assert timeless(study.trace())[-1] == {"event": "told", "id": 0, "value": 2.0}
    runs = client.create("runs", Box([(0.0, 1.0)]), policy="BOBOS", epochs=5)
    query = runs.ask()
    assert not runs.report(query, np.int64(1), np.float32(0.5)).stop
    with pytest.raises(ValueError, match="must be finite, got inf"):
        runs.report(query, 2, np.inf)


@pytest.mark.parametrize(
    ("wrong", "error", "said"),
    [
        (lambda client: client.create("x", Box([(0.0, 1.0)]), policy=surefoot.GPUCB), TypeError, "name of a policy"),
        (lambda client: client.create("x", {"rate": Float(0.0, 1.0)}), TypeError, "such as a Box or a Space"),
        (lambda client: client.study(5), ValueError, "5 is not the id of a study"),
        (
            lambda client: client.create("x", Box([(0.0, 1.0)])).tell(None, 1.0),
            ValueError,
            "finite coordinates, got None",
        ),
    ],
)
def test_what_cannot_be_sent_is_said_in_a_sentence(client, wrong, error, said):
    with pytest.raises(error, match=said):
        wrong(client)


def test_a_token_from_a_file_may_have_the_end_of_its_line(server):
    with Client(server.url, token=server.token() + "\n", retries=0) as client:
        assert isinstance(client.studies(), list)
    for token in ("", " ", "sf_\u00e9", "two\nlines"):
        with pytest.raises(ValueError, match="a token is one word of plain characters") as refused:
            Client(server.url, token=token)
        assert not token.strip() or token.strip() not in str(refused.value)


def test_outcomes_of_every_kind_arrive(client):
    study = client.create("kinds", Box([(0.0, 1.0)]), policy="SobolSearch", direction="minimize", seed=0)
    queries = study.ask(4)
    study.tell(queries[0], Outcome(2.0, noise=0.1, cost=3.0, time=4.0))
    study.tell(queries[1], None)
    study.tell(queries[2], float("nan"))
    study.cancel(queries[3])
    study.tell([0.25], 1.0)
    events = timeless(study.trace()[4:])
    assert events == [
        {"event": "told", "id": 0, "value": 2.0, "noise": 0.1, "cost": 3.0, "time": 4.0},
        {"event": "told", "id": 1, "value": None},
        {"event": "told", "id": 2, "value": None},
        {"event": "cancelled", "id": 3},
        {"event": "told", "x": [0.25], "value": 1.0},
    ]
    info = study.info()
    assert (info["told"], info["failed"], info["pending"], info["best"]) == (2, 2, 0, 1.0)
    assert timeless(study.trace(after=8)) == events[4:]


def test_what_is_sent_again_is_done_once(client, server):
    study = client.create("again", Box([(0.0, 1.0)]), policy="SobolSearch", seed=0)
    send = httpx.Client(
        base_url=f"{server.url}/api/v1/studies/{study.id}", headers={"Authorization": f"Bearer {server.token()}"}
    )
    first = send.post("/ask", json={"n": 2, "key": "k1"}).json()
    assert send.post("/ask", json={"n": 2, "key": "k1"}).json() == first
    assert send.post("/ask", json={"n": 1, "key": "k1"}).status_code == 409
    point = {"x": [0.5], "value": 1.0, "key": "k2"}
    assert [send.post("/tell", json=point).status_code for _ in range(3)] == [200] * 3
    told = {"query": 0, "value": 2.0}
    assert [send.post("/tell", json=told).status_code for _ in range(2)] == [200] * 2
    other = send.post("/tell", json={"query": 0, "value": 3.0})
    assert (other.status_code, other.json()["error"]) == (409, "Conflict")
    assert study.info()["events"] == 4
    many = {"tells": [{"x": [0.1], "value": 1.0}, {"query": 1, "value": 5.0}], "key": "k3"}
    assert [send.post("/tell-many", json=many).status_code for _ in range(2)] == [200] * 2
    assert study.info()["events"] == 6


def test_many_tells_are_all_told_or_none(client):
    study = client.create("together", Box([(0.0, 1.0)]), policy="SobolSearch", seed=0)
    queries = study.ask(3)
    with pytest.raises(ValueError, match="tell 2: query 9 was not asked"):
        study.tell_many([(queries[0], 1.0), (queries[1], 2.0), (9, 3.0)])
    assert study.info()["told"] == 0
    study.tell_many(zip(queries, [1.0, None, 3.0], strict=True))
    info = study.info()
    assert (info["told"], info["failed"], info["pending"], info["best"]) == (2, 1, 0, 3.0)
    assert [event["event"] for event in study.trace()] == ["asked"] * 3 + ["told"] * 3


def test_reports_that_contradict_are_refused_and_change_nothing(client):
    study = client.create("steps", Box([(0.0, 1.0)]), policy="BOBOS", seed=0, epochs=20)
    query = study.ask()
    study.report(query, 2, 0.5)
    before = study.trace()
    with pytest.raises(Conflict, match="step 2 of query 0 was already reported with another value"):
        study.report(query, 2, 0.7)
    with pytest.raises(ValueError, match="step 1 of query 0 comes after step 2"):
        study.report(query, 1, 0.5)
    with pytest.raises(ValueError, match="query 9 was not asked"):
        study.report(9, 1, 0.5)
    assert study.trace() == before


def test_more_than_the_service_gives_at_once_and_what_was_told_are_refused(client):
    study = client.create("limits", Box([(0.0, 1.0)]), policy="SobolSearch", seed=0)
    with pytest.raises(ValueError, match="at most 1000 queries at once, got n = 1001"):
        study.ask(1001)
    assert study.trace() == []
    study.tell(study.ask(), 1.0)
    before = study.trace()
    with pytest.raises(Conflict, match="query 0 was already told; it cannot be cancelled"):
        study.cancel(0)
    assert study.trace() == before


def test_runs_are_followed_and_stopped(client):
    options = {"epochs": 20}
    study = client.create("steps", Box([(0.0, 1.0)]), policy="BOBOS", direction="minimize", seed=0, **options)
    home = surefoot.BOBOS(Box([(0.0, 1.0)]), direction="minimize", seed=0, **options)
    stopped = 0
    for run in range(4):
        query, same = study.ask(), home.ask()
        for epoch in range(1, 21):
            value = 0.1 + 0.3 * run + 0.5**epoch
            advice = study.report(query, epoch, value)
            assert advice == home.report(same, epoch, value)
            if advice.stop:
                stopped += 1
                break
        study.tell(query)
        home.tell(same)
    assert study.info()["stopped"] == len(home.stopped)
    assert study.info()["best"] == min(o.value for o in home.history)


def test_policies_refuse_over_http_as_at_home(client):
    study = client.create("refusals", Candidates([[0.0], [1.0]]), policy="RandomSearch", seed=0)
    with pytest.raises(NoData):
        study.recommend()
    study.ask(2)
    with pytest.raises(Exhausted):
        study.ask()
    with pytest.raises(NotSupported, match="takes no context"):
        study.ask(time=1.0)
    with pytest.raises(NotSupported):
        study.report(0, 1, 0.5)
    with pytest.raises(ValueError, match="is not one of the 2 candidates"):
        study.tell([0.5], 1.0)
    assert study.info()["events"] == 2
    with pytest.raises(NotFound):
        client.study("0" * 32)
    with pytest.raises(ValueError, match="there is no policy 'GradientDescent'"):
        client.create("none", Box([(0.0, 1.0)]), policy="GradientDescent")


def test_time_is_a_context(client):
    study = client.create("drift", Box([(0.0, 1.0)]), policy="TVGPUCB", seed=0, forgetting=0.1)
    home = surefoot.TVGPUCB(Box([(0.0, 1.0)]), seed=0, forgetting=0.1)
    for moment in (1.0, 2.5, 7.0):
        query, same = study.ask(time=moment), home.ask(time=moment)
        assert query == same
        assert query.time == moment
        study.tell(query, moment)
        home.tell(same, moment)


def test_a_level_set_crosses_the_wire(client):
    points = np.linspace(0.0, 1.0, 30)[:, None]
    study = client.create("levels", Candidates(points), policy="GPLSE", seed=0, threshold=0.5)
    home = surefoot.GPLSE(Candidates(points), seed=0, threshold=0.5)
    for _ in range(6):
        query = study.ask()
        study.tell(query, float(query.x[0]))
        home.tell(home.ask(), float(query.x[0]))
    assert study.recommend() == home.recommend()


def test_the_trace_is_a_journal(client, server, tmp_path):
    study = client.create("journal", SPACE, policy="ExpectedImprovement", direction="minimize", seed=1)
    for _ in range(5):
        query = study.ask()
        study.tell(query, loss(query.params))
    answer = httpx.get(
        f"{server.url}/api/v1/studies/{study.id}/trace?raw=true",
        headers={"Authorization": f"Bearer {server.token()}"},
    ).json()
    path = tmp_path / "run.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in [answer["header"], *answer["events"]]))
    with surefoot.load(path) as home:
        assert home.journal.direction == "minimize"
        assert home.ask() == study.ask()


def test_closed_and_deleted(client):
    study = client.create("short", Box([(0.0, 1.0)]), policy="SobolSearch", seed=0)
    study.tell(study.ask(), 1.0)
    study.close()
    for act in (study.ask, lambda: study.tell([0.5], 1.0), lambda: study.cancel(0)):
        with pytest.raises(Conflict, match="this study is closed"):
            act()
    assert study.recommend().mean == 1.0
    assert study.info()["state"] == "closed"
    study.delete()
    with pytest.raises(NotFound):
        study.info()
    with pytest.raises(NotFound):
        study.delete()


def test_lists_have_pages(server):
    with Client(server.url, token=server.token(tenant="pages")) as client:
        made = [client.create(f"study {i}", Box([(0.0, 1.0)]), policy="SobolSearch").id for i in range(5)]
        assert [study.id for study in client.studies()] == made[::-1]
        get = httpx.Client(headers={"Authorization": f"Bearer {server.token(tenant='pages')}"})
        seen, after = [], ""
        while True:
            page = get.get(f"{server.url}/api/v1/studies?limit=2{after}").json()
            seen += [study["name"] for study in page["studies"]]
            if page["next"] is None:
                break
            after = f"&after={page['next']}"
        assert seen == [f"study {i}" for i in range(4, -1, -1)]


def test_the_view_holds_what_a_page_draws(client):
    study = client.create("view", SPACE, policy="GPUCB", direction="minimize", seed=0)
    empty = study.view()
    assert (empty["trials"], empty["slices"], empty["map"], empty["recommendation"]) == ([], [], None, None)
    for _ in range(6):
        query = study.ask()
        study.tell(query, loss(query.params))
    study.ask()
    shown = study.view()
    values = [trial["value"] for trial in shown["trials"][:6]]
    assert shown["best"]["value"] == np.minimum.accumulate(values).tolist()
    assert shown["trials"][6]["state"] == "pending"
    assert [axis["name"] for axis in shown["axes"]] == ["rate", "depth", "kind"]
    assert shown["axes"][2]["labels"] == ["a", "b"]
    for part in shown["slices"]:
        mean, lower, upper = (np.array(part[name]) for name in ("mean", "lower", "upper"))
        assert len(part["grid"]) == len(mean)
        assert (lower <= mean).all()
        assert (mean <= upper).all()
    assert np.shape(shown["map"]["mean"]) == (len(shown["map"]["v"]), len(shown["map"]["u"]))
    assert shown["recommendation"]["mean"] == study.recommend().mean
    assert np.shape(shown["parallel"]["lines"]) == (6, 3)
    assert shown["study"]["pending"] == 1
    home = study.trace()
    assert [event["value"] for event in home if event["event"] == "told"] == values


def test_large_candidates_are_kept_whole(client):
    points = np.random.default_rng(0).random((6000, 2))
    study = client.create("many", Candidates(points), policy="RandomSearch", seed=0)
    query = study.ask()
    assert np.array_equal(query.x, points[query.index])


def test_a_vehicle_makes_one_move_at_a_time(client):
    grid = np.stack(np.meshgrid(np.arange(5.0), np.arange(5.0), indexing="ij"), axis=-1).reshape(-1, 2)
    domain = Paths(grid, Dives((5, 5), 2), start=12, budget=8)
    options = {"gp": GP(SE(1.5), noise=0.01), "horizon": 1, "samples": 4}
    study = client.create("dives", domain, policy="MacroGPO", seed=0, direction="minimize", **options)
    home = surefoot.MacroGPO(domain, seed=0, **options)
    for _ in range(2):
        query, same = study.ask(), home.ask()
        assert query == same
        with pytest.raises(PendingQuery):
            study.ask()
        study.tell(query, [1.5, None])
        home.tell(same, [-1.5, None])
    assert study.trace()[-1]["values"] == [1.5, None]
    assert study.view()["total"] == 4


def test_a_policy_inside_a_policy_and_earlier_tasks(client):
    tasks = [surefoot.Task([[0.1], [0.5], [0.9]], [1.0, 2.0, 0.5], name="last year")]
    study = client.create("tasks", Box([(0.0, 1.0)]), policy="RMGPUCB", seed=0, tasks=tasks)
    home = surefoot.RMGPUCB(Box([(0.0, 1.0)]), seed=0, tasks=tasks)
    assert study.ask() == home.ask()


# Finding 14 of the review of 0.1.0
def test_telling_an_asked_point_by_its_parameters_closes_its_query(client):
    study = client.create("restarted", Space(depth=Int(1, 5)), policy="RandomSearch", direction="minimize", seed=0)
    for number in range(6):
        query = study.ask()
        study.tell(dict(query.params), float(query.params["depth"]))
        info = study.info()
        assert (info["pending"], info["told"]) == (0, number + 1)
    assert info["best"] == min(event["value"] for event in study.trace() if event["event"] == "told")


def test_options_that_hold_values_are_in_the_sign_of_the_values(client):
    line = Candidates(np.linspace(0.0, 1.0, 11))
    options = {"threshold": 0.25, "gp": GP(SE(0.3), noise=1e-4)}
    study = client.create("limit", line, policy="GPLSE", direction="minimize", seed=0, **options)
    home = surefoot.GPLSE(line, direction="minimize", seed=0, **options)
    for _ in range(6):
        query, same = study.ask(), home.ask()
        assert query == same
        study.tell(query, query.x[0] ** 2)
        home.tell(same, query.x[0] ** 2)
    assert study.recommend() == home.recommend()
    assert study.recommend().threshold == 0.25
    shown = client.study(study.id).info()
    assert shown["direction"] == "minimize"
    assert shown["options"]["threshold"] == 0.25
    assert "direction" not in shown["options"]
    with pytest.raises(ValueError, match="'direction' stands beside the options"):
        client._transport.send(
            "POST",
            "/studies",
            {"name": "x", "policy": "GPUCB", "domain": line.to_dict(), "options": {"direction": "minimize"}},
        )


def test_a_minimized_study_of_0_1_has_its_options_turned():
    """Its row says nothing of the direction among the options: those, and its events, are of the negated function."""
    from surefoot.serve.live import Live
    from surefoot.serve.rows import built, of_negated
    from surefoot.serve.store import Store
    from surefoot.serve.studies import described, trace

    store = Store("sqlite://")
    store.migrate()
    live = Live(store, cached=2)
    line = Candidates(np.linspace(0.0, 1.0, 11)).to_dict()
    id = live.create("t", name="old", policy="GPLSE", domain=line, options={"threshold": -0.25}, seed=0)
    store.update(id, direction="minimize")
    live = Live(store, cached=2)
    row = store.study("t", id)
    assert of_negated(row)
    assert described({**row, "best": None})["options"] == {"threshold": 0.25}
    assert built(row).config()["threshold"] == 0.25
    live.use("t", id, lambda study: study.policy.tell([0.5], 2.0))
    assert [event["value"] for event in store.events(id)] == [-2.0]
    row = store.study("t", id)
    assert (row["best"], described(row)["best"]) == (-2.0, 2.0)
    assert [event["value"] for event in trace(store, row, 0, 9)["events"]] == [2.0]
    again = Live(store, cached=2)
    assert again.use("t", id, lambda study: [run.value for run in study.policy.history]) == [2.0]
