"""Requests of a writer who means no good: every option of every policy, every stored type in each other, nonsense."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx

import surefoot
from surefoot.loop.policy import Policy
from surefoot.loop.state import _readers

Request = tuple[str, str, Any]  # method, path, body

POLICIES = {
    name: kind
    for name in surefoot.__all__
    if inspect.isclass(kind := getattr(surefoot, name)) and issubclass(kind, Policy) and not inspect.isabstract(kind)
}
DOMAINS = [
    {"domain": "Box", "bounds": [[0.0, 1.0]]},
    {"domain": "Box", "bounds": [[0.0, 1.0]] * 4},
    {"domain": "Candidates", "points": [[0.0], [0.5], [1.0]]},
    {"parameters": {"rate": {"type": "float", "low": 1e-4, "high": 1.0, "log": True}, "n": {"type": "int"}}},
    {"parameters": {"n": {"type": "int", "low": 1, "high": 9}, "kind": {"type": "choice", "choices": ["a", "b"]}}},
]
GOOD = {
    "gp": {"$type": "GP", "value": surefoot.GP(surefoot.SE([0.2]), noise=0.01).to_dict()},
    "width": {"$type": "Constant", "value": {"width": "Constant", "value": 2.0}},
    "perturbation": {"$type": "Ball", "value": surefoot.Ball(0.1).to_dict()},
    "epochs": 5,
    "threshold": 0.5,
    "initial": 0,
    "tasks": [],
}
NUMBERS = [-1, 0, 1, 2, 7, 30, -0.5, 0.0, 1e-300, 0.3, 1.0, 1e150, 1e300]
LARGE = [10**3, 10**6, 10**9, 10**18]  # samples, features, horizons: asks that would take for ever
WORDS = ["", "auto", "greedy", "cuda", "cpu", "x" * 500, "../../x", "__class__", "Ü", "minimize", "{0}"]


def policies(path: str) -> Iterator[dict[str, Any]]:
    """A policy within a policy, in several ways of writing it, each with a journal."""
    box = {"$type": "Box", "value": DOMAINS[0]}
    config = {"domain": box, "journal": path}
    for inner in ("RandomSearch", "GPUCB", "StableOpt"):
        yield {"$type": "Policy", "value": {"policy": inner, "config": config, "seed": 1}}
    yield {"$type": "Policy", "value": {"policy": "RandomSearch", "config": config, "seed": 1, "events": []}}
    within = {"$type": "Policy", "value": {"policy": "RandomSearch", "config": config, "seed": 1}}
    yield {
        "$type": "Policy",
        "value": {"policy": "RobustReport", "config": {"policy": within, "journal": path}, "seed": 1},
    }


class Writer:
    """An endless source of requests; ``folder`` is where they try to make files.

    With ``heavy`` some of them ask for more work than any machine can do.
    """

    def __init__(self, seed: int, folder: Path, *, heavy: bool = True) -> None:
        self.random, self.folder, self.heavy = random.Random(seed), folder, heavy
        self.numbers = [*NUMBERS, *(LARGE if heavy else [])]
        self.studies: list[str] = []

    @property
    def path(self) -> str:
        """The name of a file that nobody may make."""
        name = f"made-{self.random.getrandbits(32)}/deep/journal.jsonl"
        return self.random.choice([name, str(self.folder / name)])

    def value(self, depth: int = 0) -> Any:
        """Any value that an option may be said to have."""
        pick = self.random.random()
        if depth > 3 or pick < 0.3:
            return self.random.choice(self.numbers)
        if pick < 0.45:
            return self.random.choice([*WORDS, self.path, None, True, False])
        if pick < 0.55:
            return [self.value(depth + 1) for _ in range(self.random.randrange(4))]
        if pick < 0.6:
            return {self.random.choice(WORDS): self.value(depth + 1) for _ in range(3)}
        if pick < 0.7:
            return self.random.choice(list(policies(self.path)))
        if pick < 0.85:
            return self.random.choice(list(GOOD.values()))
        kind = self.random.choice([*_readers, "Policy", "float", "array", "os", "Journal"])
        inside = {
            self.random.choice(["value", "domain", "path", "journal", "kernel", kind.lower()]): self.value(depth + 1)
        }
        return {"$type": kind, "value": self.random.choice([inside, self.value(depth + 1)])}

    def options(self, kind: type[Policy]) -> dict[str, Any]:
        """Some options of a policy, a few of them as they should be."""
        names = [name for name in inspect.signature(kind).parameters if name not in ("domain", "seed")]
        chosen = self.random.sample(names, min(self.random.randrange(4), len(names)))
        given = {name: GOOD[name] for name in names if name in GOOD and self.random.random() < 0.5}
        return {**given, **{name: self.value() for name in chosen}}

    def study(self) -> Request:
        """A study to begin."""
        name = self.random.choice(list(POLICIES))
        domain = self.random.choice(DOMAINS) if self.random.random() < 0.9 else {"domain": self.value()}
        body = {"name": "x", "policy": name, "domain": domain, "options": self.options(POLICIES[name])}
        body["direction"] = self.random.choice(["maximize", "minimize"])
        return "POST", "/studies", body

    def run(self) -> Request:
        """An outsourced run to begin."""
        name = self.random.choice(list(POLICIES))
        return "POST", "/outsourced", {"name": "x", "policy": name, "asks": 3, "options": self.options(POLICIES[name])}

    def step(self) -> Request:
        """Something to do with a study that was begun."""
        id = self.random.choice(self.studies)
        any_point = [self.random.choice(self.numbers) for _ in range(self.random.choice([1, 1, 4]))]
        what, body = self.random.choice(
            [
                ("ask", {"n": self.random.choice([1, 1, 2, 5, *([1000] if self.heavy else [])])}),
                ("ask", {"time": self.random.choice(self.numbers), "at": self.random.choice([None, any_point])}),
                (
                    "tell",
                    {"query": self.random.randrange(4), "value": self.random.choice([*self.numbers, None, [1.0, 2.0]])},
                ),
                ("tell", {"x": [0.5] * self.random.choice([1, 4]), "value": self.random.choice(self.numbers)}),
                ("tell", {"x": any_point, "value": 0.5, "noise": self.random.choice(self.numbers)}),
                ("tell", {"params": {"rate": self.value(9), "n": self.value(9)}, "value": 1.0}),
                ("report", {"query": 0, "step": self.random.randrange(9), "value": self.random.choice(self.numbers)}),
                ("cancel", {"query": self.random.randrange(4)}),
            ]
        )
        return "POST", f"/studies/{id}/{what}", body

    def look(self) -> Request:
        """A study to look at."""
        return (
            "GET",
            f"/studies/{self.random.choice(self.studies)}/{self.random.choice(['recommend', 'view', 'trace'])}",
            None,
        )

    def nonsense(self) -> Request:
        """A long body, of the kinds that cost most."""
        size = self.random.choice([10_000, 1_000_000, 4_000_000])
        bomb = self.random.choice([b"[]", b"0.5", b"{}", b'"\\u0041"', b"[[[[]]]]"])
        path = self.random.choice(["/studies", "/outsourced", "/studies/0/tell-many", "/studies/0/tell"])
        return "POST", path, b'{"x":[' + bomb + (b"," + bomb) * (size // (len(bomb) + 1) - 5) + b"]}"

    def next(self) -> Request:
        """One request."""
        kinds: list[Callable[[], Request]] = [self.study, self.study, self.study, self.run]
        if self.studies:
            kinds += [self.step, self.step, self.step, self.look]
        return self.random.choice(kinds)() if self.random.random() < 0.97 else self.nonsense()

    def send(self, http: httpx.Client, request: Request) -> httpx.Response:
        """Send a request, and check the answer."""
        method, path, body = request
        given = {"content": body, "headers": {"Content-Type": "application/json"}} if isinstance(body, bytes) else {}
        answer = http.request(method, path, **(given or {"json": body}))
        if answer.status_code == 201 and path == "/studies":
            self.studies = [*self.studies[-20:], answer.json()["id"]]
        harmless(answer, request)
        return answer


def nested(folder: Path) -> Iterator[Request]:
    """Every option of every policy, with a policy and its journal inside, at several depths."""
    wraps: list[Callable[[Any], Any]] = [
        lambda inner: inner,
        lambda inner: [inner],
        lambda inner: {"a": [{"b": inner}]},
        lambda inner: {"$type": "array", "value": [inner]},
    ]
    number = 0
    for name, kind in POLICIES.items():
        for option in inspect.signature(kind).parameters:
            path = [f"nested-{number}/journal.jsonl", str(folder / f"nested-{number}" / "journal.jsonl")][number % 2]
            inner = list(policies(path))
            options = {**{need: GOOD[need] for need in ("perturbation", "epochs", "threshold")}, option: None}
            options = {key: value for key, value in options.items() if key in inspect.signature(kind).parameters}
            options[option] = wraps[number % len(wraps)](inner[number % len(inner)])
            yield "POST", "/studies", {"name": "x", "policy": name, "domain": DOMAINS[0], "options": options}
            number += 1


def harmless(answer: httpx.Response, request: Request) -> None:
    """An answer is no server's error, but for one that says to come again; and tells nothing of the machine."""
    said = f"{request[0]} {request[1]} {str(request[2])[:2000]}: {answer.status_code} {answer.text[:500]}"
    if answer.status_code >= 500:
        assert answer.status_code == 503, said
        assert answer.headers["Retry-After"].isdigit(), said
    if answer.status_code >= 400:
        assert set(answer.json()) == {"error", "detail"}, said
        for word in ("No such file", "Permission denied", "FileExists", "Errno", "Traceback", "site-packages"):
            assert word not in answer.text, said


def files(*folders: Path) -> set[str]:
    """All files and folders, but for what belongs to the server and its database."""
    found = {str(path) for folder in folders for path in folder.rglob("*")}
    return {path for path in found if not path.endswith((".db", ".db-wal", ".db-shm", ".log"))}
