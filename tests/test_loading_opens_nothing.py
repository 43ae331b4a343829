"""What is stored holds values: reading it opens no path, imports no module and looks no function up.

Every registered type is put into every option of every policy, with a journal hidden in it, and read in every way that
there is: a state, a saved file, the header of a journal, and a study of the service. An audit hook sees each look at
the place that the journal names.
"""

# Finding 1 of the review of 0.1.0

from __future__ import annotations

import importlib.util
import inspect
import itertools
import json
import math
import os
import secrets
import sys

import numpy as np
import pytest

import surefoot
import surefoot.federated
import surefoot.games
from surefoot import (
    GP,
    SE,
    AroundEstimate,
    Ball,
    Box,
    Candidates,
    Fidelity,
    Float,
    Groups,
    MoveTable,
    Paths,
    Policy,
    RandomSearch,
    RobustReport,
    Space,
    SurefootError,
    Task,
    UnknownParameters,
    WeightedBox,
    load,
    widths,
)
from surefoot.domain.product import WithValues
from surefoot.federated import Decay, FixedProbability, Regions, SharedFeatures, Weighting
from surefoot.games import EXP3, EXP3P, GPMW, Hedge, PolicyStrategy, PublishedWidth, RandomStrategy, SamplerStrategy
from surefoot.loop.record import Record
from surefoot.loop.state import _readers, pack
from surefoot.policy.transfer.models import Negated
from surefoot.stopping import OptimalStopping

MARK = f"never-looked-at-{secrets.token_hex(6)}"  # in the name of every place that nobody may touch
REFUSED = (ValueError, TypeError, SurefootError)


def shipped() -> dict[str, type[Policy]]:
    """All policies that can be made."""
    homes = (surefoot, surefoot.federated, surefoot.games)
    for room in homes:
        for name in room.__all__:
            getattr(room, name)
    ours = {name: kind for name, kind in Record.registry.items() if kind.__module__.startswith("surefoot.")}
    return {
        name: kind
        for name, kind in sorted(ours.items())
        if not inspect.isabstract(kind) and ".lab." not in kind.__module__
    }


SHIPPED = shipped()
TYPES = {
    name
    for name, read in _readers.items()
    if read.__module__.startswith("surefoot.") and not read.__module__.startswith(("surefoot.bridge", "surefoot_lab"))
}

BOX, GRID, SPACE = Box([(0.0, 1.0)]), Candidates([[0.0], [0.5], [1.0]]), Space(rate=Float(0.0, 1.0))
ROUTE = Paths([0.0, 1.0], MoveTable({0: [[1]], 1: [[0]]}), start=0, budget=4)
STORED = [
    pack(value)
    for value in (
        BOX,
        GRID,
        SPACE,
        ROUTE,
        WithValues([(0.0, 1.0)], [[3.0], [4.0]]),
        Ball(0.1),
        WeightedBox([0.1]),
        UnknownParameters([[0.0], [1.0]]),
        AroundEstimate(1.0, 0.6, [0.0, 1.0]),
        Groups(["a", "a", "b"]),
        widths.Constant(2.0),
        widths.Continuous(),
        widths.Finite(0.9),
        widths.Logarithmic(),
        widths.LogTime(),
        widths.RKHS(),
        GP(SE(0.2), noise=1e-4),
        SE(0.2),
        Task([[0.1], [0.9]], [1.0, 2.0]),
        Negated(Task([[0.1], [0.9]], [1.0, 2.0])),
        Fidelity(0.1),
        OptimalStopping(epochs=9),
        SharedFeatures(1, 4, lengthscale=0.2, noise=0.01, seed=0),
        Regions((1,)),
        Weighting(),
        Decay(),
        FixedProbability(),
        RandomStrategy(),
        SamplerStrategy(lambda rounds, count, rng: [0.5]),
        PolicyStrategy(RandomSearch(BOX, seed=0)),
        EXP3(),
        EXP3P(),
        GPMW(),
        Hedge(lambda X, actions: X[:, 0]),
        PublishedWidth(3),
        RobustReport(RandomSearch(BOX, seed=0), Ball(0.1)),
        RandomSearch(BOX, seed=0),
        np.array([0.5]),
        math.inf,
    )
]
NEEDED = {
    "epochs": 9,
    "tasks": [pack(Task([[0.1], [0.9]], [1.0, 2.0]))],
    "perturbation": pack(Ball(0.1)),
    "policy": pack(RandomSearch(BOX, seed=0)),
    "features": pack(SharedFeatures(1, 4, lengthscale=0.2, noise=0.01, seed=0)),
    "others": [pack(BOX)],
    "tau": 1,
}


def whole(name: str) -> dict:
    """A configuration that the policy can be made of."""
    parameters = SHIPPED[name].__signature__.parameters.values()
    config = {p.name: NEEDED[p.name] for p in parameters if p.default is p.empty and p.name != "domain"}
    if "fraction" in SHIPPED[name].__signature__.parameters and name != "TruVaR":  # it or a threshold
        config["fraction"] = 0.5
    if name == "RGPUCB":
        config["block"] = 5.0
    if "domain" not in SHIPPED[name].__signature__.parameters:
        return config
    return {**config, "domain": pack(BOX if Box in SHIPPED[name].domains else ROUTE)}


def state(name: str, **config) -> dict:
    return {"schema": 1, "policy": name, "config": {**whole(name), **config}, "seed": 1, "events": [], "cache": {}}


def evil(path: str, kind: str = "RandomSearch") -> dict:
    """A policy with a journal, as it would be stored."""
    config = {**whole(kind), "journal": path}
    return {"$type": "Policy", "value": {"policy": kind, "config": config, "seed": 1}}


def hidden(path: str) -> list:
    """A policy with a journal, where nobody looks for it."""
    inside = {**whole("RobustReport"), "policy": evil(path)}
    deep = {"$type": "Policy", "value": {"policy": "RobustReport", "config": inside, "seed": 1}}
    game = {"$type": "PolicyStrategy", "value": {"policy": evil(path), "draws": 1}}
    return [evil(path), deep, game, [evil(path)], {"part": evil(path)}, {"$type": "array", "value": [evil(path)]}]


def spoiled(stored: dict, path: str) -> list:
    """A stored value with a path, or a policy that has a journal, in the place of each of its parts and beside them."""
    value = stored["value"]
    if not isinstance(value, dict):
        return [{**stored, "value": part} for part in (path, evil(path))]
    parts = [{**value, name: part} for name in (*value, "journal", "path", "file") for part in (path, evil(path))]
    return [stored, *({**stored, "value": part} for part in parts)]


class Watch:
    """What the process looks at: every look at a marked place is noted."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.on = False
        sys.addaudithook(self._event)

    def _event(self, event: str, arguments: tuple) -> None:
        if self.on and event != "object.__getattr__":
            self.note(event, *arguments)

    def note(self, event: str, *arguments: object) -> None:
        for argument in arguments:
            if isinstance(argument, (str, bytes, os.PathLike)) and MARK in os.fsdecode(argument):
                self.seen.append(f"{event} {os.fsdecode(argument)[:200]}")


@pytest.fixture(scope="session")
def hook():
    return Watch()  # a hook cannot be taken away again


@pytest.fixture
def watch(hook, monkeypatch):
    """Looks at marked places while a test runs; a question whether a file is there is a look too."""
    for name in ("stat", "lstat", "access"):
        real = getattr(os, name)

        def asked(path, *args, _real=real, _name=name, **kwargs):
            if hook.on:
                hook.note(_name, path)
            return _real(path, *args, **kwargs)

        monkeypatch.setattr(os, name, asked)
    hook.seen.clear()
    hook.on = True
    yield hook
    hook.on = False
    assert hook.seen == []


@pytest.fixture
def places(tmp_path):
    """A journal that is there, and a place where nothing is."""
    folder = tmp_path / MARK
    folder.mkdir()
    there = folder / "there.jsonl"
    with RandomSearch(BOX, seed=9, journal=there) as policy:
        policy.tell(policy.ask(), 1.0)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    yield [str(there), str(folder / "deeper" / "new.jsonl")]
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def refusal(name: str, option: str, form: object) -> str:
    """Read a state with this in an option; whatever is wrong with it is a refusal and not a bug."""
    try:
        Policy.from_state(state(name, **{option: form}))
    except REFUSED as error:
        return f"{type(error).__name__}: {error}"
    return ""


def options() -> list[tuple[str, str]]:
    return [(name, option) for name, kind in SHIPPED.items() for option in kind.__signature__.parameters]


def test_there_is_a_sample_of_every_type_and_of_every_policy():
    assert {stored["$type"] for stored in STORED} >= TYPES
    assert len(SHIPPED) >= 36
    for name in SHIPPED:
        assert type(Policy.from_state(state(name))).__name__ == name


def test_the_watch_sees_a_look(hook, places):
    hook.on = True
    os.path.getsize(places[0])
    with open(places[0]):
        pass
    hook.on = False
    assert [line.split()[0] for line in hook.seen] == ["open"]
    hook.seen.clear()


@pytest.mark.parametrize("name", SHIPPED)
def test_a_journal_inside_a_configuration_is_refused_wherever_it_is(name, places, watch):
    for option in SHIPPED[name].__signature__.parameters:
        said = []
        for path in places:
            forms = [evil(path)] if option in ("seed", "journal") else hidden(path)
            said.append([refusal(name, option, form) for form in forms])
        assert all(" is no part of a stored configuration" in text for text in said[0])
        assert said[0] == said[1]  # nobody learns which of the two is there
        assert not any(MARK in text for text in said[0])


@pytest.mark.parametrize("option", ["journal", "seed"])
def test_a_state_names_no_journal_and_no_second_seed(option, tmp_path, places, watch):
    for path in places:
        edited = state("GPUCB", **{option: path})
        (tmp_path / "state.json").write_text(json.dumps(edited))
        for read in (lambda: Policy.from_state(edited), lambda: load(tmp_path / "state.json")):  # noqa: B023
            with pytest.raises(ValueError, match=f"'{option}' is no part of a stored configuration"):
                read()


def test_a_header_of_a_journal_names_no_other_journal(tmp_path, places, watch):
    """And a journal that is refused is not locked, nor changed."""
    file = tmp_path / "run.jsonl"
    for path, form in itertools.product(places, range(len(hidden("")))):
        for config in ({"journal": path}, {"gp": hidden(path)[form]}):
            header = {key: value for key, value in state("GPUCB", **config).items() if key not in ("events", "cache")}
            file.write_text(json.dumps({**header, "direction": "maximize"}) + "\n")
            before = file.read_bytes()
            with pytest.raises(ValueError, match="'journal' is no part of a stored configuration"):
                load(file)
            assert file.read_bytes() == before
    assert set(os.listdir(tmp_path)) == {"run.jsonl", MARK}


def test_every_type_in_some_option_of_every_policy(places, watch):
    """Each (policy, option) meets a few of them; all of them with ``make test-all``."""
    forms = [form for stored in STORED for form in spoiled(stored, places[1])]
    some = itertools.cycle(forms)
    for name, option in options():
        for form in itertools.islice(some, 20):
            refusal(name, option, form)


@pytest.mark.slow
@pytest.mark.parametrize("name", SHIPPED)
def test_every_type_in_every_option_of_every_policy(name, places, watch):
    for option, stored in itertools.product(SHIPPED[name].__signature__.parameters, STORED):
        for form in spoiled(stored, places[1]):
            refusal(name, option, form)


def test_code_is_not_looked_up(watch):
    """Not even of a module that is there."""
    for name, option in options():
        for stored in ({"$code": f"{MARK}.run"}, {"$code": "os.system"}, {"$type": f"{MARK}.Run", "value": {}}):
            if option not in ("seed", "journal"):
                said = refusal(name, option, stored)
                assert "stored by name only" in said or "unknown type" in said
    for name in (f"{MARK}.Policy", f"{MARK}:Policy", "os.system", "testing", "load"):
        with pytest.raises(ValueError, match="is not a registered Policy"):
            Policy.from_state({**state("GPUCB"), "policy": name})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"policy": ["GPUCB"]}, "not a whole state"),
        ({"config": []}, "not a whole state"),
        ({"events": {}}, "not a whole state"),
        ({"config": {"domain": {"$type": "Box", "value": {"domain": "Box"}}}}, "this state cannot be read"),
        ({"config": {"domain": {"$type": "Box"}}}, "option 'domain': a stored 'Box' has no value"),
        ({"config": {"domain": {"$type": ["Box"], "value": {}}}}, "unknown type"),
        ({"config": {"domain": {"$type": "Policy", "value": {}}}}, "its name, its own configuration and its seed"),
        ({"cache": {"fits": [7]}}, "cannot be read|not"),
    ],
)
def test_an_edited_state_is_refused_with_a_sentence(change, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Policy.from_state({**state("GPUCB"), **change})


def test_what_is_nested_too_deeply_is_refused_with_a_sentence(tmp_path):
    deep: object = 1.0
    for _ in range(5000):
        deep = [deep]
    kernel = SE(0.2).to_dict()
    for _ in range(2000):
        kernel = {"kernel": "Sum", "left": kernel, "right": SE(0.2).to_dict()}
    gp = {"$type": "GP", "value": {**GP().to_dict(), "kernel": kernel}}
    for edited in (state("GPUCB", gp=deep), state("GPUCB", gp=gp), {**state("GPUCB"), "events": [deep]}):
        with pytest.raises(ValueError, match="nested too deeply"):
            Policy.from_state(edited)
    for text in ("[" * 100_000, '{"schema": 1, "direction": ' + "[" * 100_000):
        (tmp_path / "run.jsonl").write_text(text + "\n")
        with pytest.raises(ValueError):
            load(tmp_path / "run.jsonl")


def test_a_run_goes_on_under_the_former_name_of_its_policy(tmp_path, monkeypatch):
    """Finding 9: whoever renames a policy keeps the old name as an alias."""
    file = tmp_path / "run.jsonl"
    with RandomSearch(BOX, seed=3, journal=file) as policy:
        policy.tell(policy.ask(), 1.0)
        wanted = RandomSearch.from_state(policy.state()).ask()
    file.write_text(file.read_text().replace('"policy":"RandomSearch"', '"policy":"UniformSearch"'))
    with pytest.raises(ValueError, match="'UniformSearch' is not a registered Policy"):
        Policy.from_state({**policy.state(), "policy": "UniformSearch"})
    monkeypatch.setitem(Record.registry, "UniformSearch", RandomSearch)
    with load(file) as again:
        assert again.ask() == wanted
    assert len(load(file).queries) == 2
    assert file.read_text().count("UniformSearch") == 1


# -- the service -------------------------------------------------------------------------------------------------------

serving = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("fastapi", "sqlalchemy", "alembic", "httpx")),
    reason="the service is not installed",
)


@pytest.fixture(scope="module")
def client():
    from fastapi.testclient import TestClient

    from surefoot.serve import Settings, Store, create_app, tokens

    store = Store("sqlite://")
    store.migrate()
    secret = tokens.create(store, "physics", "test", "write")["token"]
    with TestClient(create_app(store, Settings(rate=0.0)), raise_server_exceptions=False) as made:
        made.headers["Authorization"] = f"Bearer {secret}"
        yield made


def created(client, name: str, options: dict):
    """The answer to a study with these options beside those that the policy needs."""
    config = {**whole(name), **options}
    domain = config.pop("domain", pack(BOX))
    body = {"name": "x", "policy": name, "domain": domain.get("value", domain), "options": config, "seed": 1}
    answer = client.post("/api/v1/studies", json=body)
    assert answer.status_code in (201, 422), (name, options, answer.text)
    return answer


@serving
def test_a_study_names_no_journal_at_any_depth(client, places, watch):
    """Nor does an answer tell whether a file is there."""
    forms = [hidden(path) for path in places]
    turn = itertools.cycle(range(len(forms[0])))
    for name, kind in SHIPPED.items():
        for option in {*kind.__signature__.parameters, "no_such_option"} - {"domain", "seed", "journal"}:
            form = next(turn)
            answers = [created(client, name, {option: both[form]}) for both in forms]
            assert answers[0].status_code == 422
            assert answers[0].json() == answers[1].json()
            assert MARK not in answers[0].text


@serving
def test_the_domain_of_a_study_holds_no_policy(client, places, watch):
    for path in places:
        for domain in (evil(path), {**BOX.to_dict(), "journal": path}, {**BOX.to_dict(), "bounds": evil(path)}):
            body = {"name": "x", "policy": "RandomSearch", "domain": domain}
            assert client.post("/api/v1/studies", json=body).status_code == 422


@serving
def test_outsourced_runs_name_no_journal_either(client, places, watch):
    for path in places:
        for options in ({"journal": path}, {"path": path}, *({"gp": form} for form in hidden(path))):
            body = {"name": "x", "policy": "GPUCB", "asks": 2, "options": options}
            assert client.post("/api/v1/outsourced", json=body).status_code == 422, options


@serving
@pytest.mark.slow
@pytest.mark.parametrize("name", SHIPPED)
def test_every_type_in_every_option_of_a_study(name, client, places, watch):
    for option, stored in itertools.product(SHIPPED[name].__signature__.parameters, STORED):
        if option not in ("seed", "domain"):
            for form in (stored, spoiled(stored, places[1])[-1]):
                created(client, name, {option: form})


@serving
def test_some_types_in_some_options_of_a_study(client, places, watch):
    some = itertools.cycle([form for stored in STORED for form in spoiled(stored, places[1])])
    for name, option in options():
        if option not in ("seed", "domain"):
            created(client, name, {option: next(some)})
