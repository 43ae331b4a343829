"""A second look where the rule has stalled, and no exact measurement twice."""

from __future__ import annotations

import importlib
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from surefoot import (
    GP,
    GPUCB,
    SE,
    TVGPUCB,
    Box,
    Candidates,
    Choice,
    ExpectedImprovement,
    Float,
    Int,
    MaxValueEntropySearch,
    Space,
    ThompsonSampling,
)
from surefoot.loop.widths import Constant
from surefoot.policy import exploration
from surefoot.policy.exploration import SecondLook, shorter, stalled_before

RULES = (ExpectedImprovement, GPUCB, ThompsonSampling)
SPACE = Space(x=Float(0.0, 1.0), n=Int(0, 3), kind=Choice(["a", "b", "c"]))
DOMAINS = (Box.unit(1), Candidates(np.linspace(0.0, 1.0, 60)), SPACE)


def hills(x, height=0.6, width=0.12):
    """A broad hill at 0.2 and a higher one at 0.7, of the first coordinate."""
    return float(np.exp(-(((x[0] - 0.7) / width) ** 2)) + height * np.exp(-(((x[0] - 0.2) / 0.15) ** 2)))


@pytest.fixture(scope="module")
def two_peaks():
    folder = str(Path(__file__).parents[2] / "benchmarks")
    sys.path.insert(0, folder)
    try:
        return importlib.import_module("two_peaks")
    finally:
        sys.path.remove(folder)


def played(policy, rounds, noise=0.0, batch=1):
    rng = np.random.default_rng(7)
    for _ in range(rounds):
        for query in policy.ask(batch):
            policy.tell(query, hills(query.x) + noise * rng.standard_normal())
    return policy


def looks(policy):
    """The queries at which the rule had stalled, with their counts."""
    return {query.id: query.note["stalls"] for query in policy.queries if "stalls" in query.note}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("domain", DOMAINS, ids=["box", "candidates", "space"])
def test_exact_points_are_asked_once(rule, domain):
    policy = played(rule(domain, seed=0), 18)
    assert len({query.x.tobytes() for query in policy.queries}) == 18


def test_all_points_measured_are_asked_again():
    policy = played(GPUCB(Candidates([0.1, 0.4, 0.7, 0.9]), seed=0), 9)
    assert len({query.index for query in policy.queries[:4]}) == 4
    assert len(policy.queries) == 9


def test_noisy_points_may_be_asked_again():
    noisy = played(GPUCB(Candidates(np.linspace(0.0, 1.0, 5)), seed=0), 12, noise=0.5)
    assert len(noisy.queries) == 12  # more than there are points: none is refused


@pytest.mark.parametrize(
    "policy",
    [
        GPUCB(DOMAINS[1], gp=GP(SE(lengthscale=0.3), noise=1e-8), width=Constant(0.0), seed=0),
        GPUCB(DOMAINS[1], automatic=1, width=Constant(0.0), seed=0),
        TVGPUCB(DOMAINS[1], forgetting=0.01, width=Constant(0.5), seed=0),
    ],
    ids=["given", "version 1", "clock"],
)
def test_other_beliefs_repeat_as_before(policy):
    played(policy, 12)
    assert len({query.index for query in policy.queries}) < 12
    assert not looks(policy)


def test_who_takes_a_second_look():
    box = Box.unit(1)
    assert all(isinstance(rule(box, seed=0).second_look, SecondLook) for rule in RULES)
    assert all(rule(box, gp=GP(), seed=0).second_look is None for rule in RULES)
    assert all(rule(box, automatic=1, seed=0).second_look is None for rule in RULES)
    assert MaxValueEntropySearch(box, seed=0).second_look is None


def test_the_count_is_in_the_events():
    policy = played(ExpectedImprovement(Box.unit(1), seed=0), 30)
    counts = list(looks(policy).values())
    assert counts == list(range(1, len(counts) + 1))
    assert len(counts) > 5
    assert stalled_before(policy.trials) == len(counts)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_a_resumed_policy_goes_on_in_the_same_way(rule, noise):
    policy = played(rule(Box.unit(1), seed=3), 18, noise)
    assert looks(policy)
    again = type(policy).from_state(policy.state())
    fresh = policy.fresh()
    fresh.replay(policy.state()["events"])
    for other in (again, fresh):
        assert looks(other) == looks(policy)
    for _ in range(6):
        queries = [each.ask() for each in (policy, again, fresh)]
        assert len({(query.x.tobytes(), str(query.note)) for query in queries}) == 1
        for each, query in zip((policy, again, fresh), queries, strict=True):
            each.tell(query, hills(query.x))


def test_a_stalled_rule_looks_where_little_is_known():
    policy = ExpectedImprovement(Box.unit(1), seed=0, initial=0)
    for x in np.linspace(0.0, 0.4, 9):  # a parabola that the belief learns soon, and nothing beyond it
        policy.tell([x], -((x - 0.2) ** 2))
    asked = []
    for _ in range(12):
        query = policy.ask()
        asked.append(query)
        policy.tell(query, -float((query.x[0] - 0.2) ** 2))
    elsewhere = [query.x[0] for query in asked if query.note.get("stalls", 1) % 2 == 0]
    assert elsewhere
    assert max(elsewhere) > 0.6


def test_points_under_way_are_not_looked_at_twice():
    policy = played(ExpectedImprovement(Box.unit(1), seed=1), 5, batch=4)
    batch = policy.ask(8)
    far = [query.x[0] for query in batch if query.note.get("stalls", 1) % 2 == 0]
    assert len(far) >= 2
    assert np.diff(np.sort(far)).min() > 0.01


def test_shorter_changes_lengths_only():
    gp = shorter(GP(SE(lengthscale=[1.0, 2.0], variance=3.0), noise=0.1, mean=5.0), 0.5)
    assert np.allclose(gp.kernel.lengthscale, [0.5, 1.0])
    assert np.isclose(gp.kernel.variance, 3.0)
    assert np.isclose(gp.noise, 0.1)
    assert gp.mean == 5.0


def test_much_is_looked_at_in_part(monkeypatch):
    monkeypatch.setattr(exploration, "MEASURED", 12)
    monkeypatch.setattr(exploration, "MANY", 20)
    for domain in DOMAINS[:2]:
        policy = played(ExpectedImprovement(domain, seed=0), 24)
        assert len(looks(policy)) > 1
        assert len({query.x.tobytes() for query in policy.queries}) == 24


def test_a_narrow_peak_on_a_slope():
    policy = ExpectedImprovement(Box.unit(1), seed=2)
    for _ in range(40):
        query = policy.ask()
        x = query.x[0]
        policy.tell(query, 0.6 * (1.0 - x) + np.exp(-(((x - 0.85) / 0.05) ** 2)))
    assert abs(policy.recommend().x[0] - 0.85) < 0.02


@pytest.mark.parametrize("rule", RULES)
def test_the_higher_hill_is_found(rule):
    for noise in (0.0, 0.05):
        policy = played(rule(Box.unit(1), seed=0), 30, noise)
        assert hills(policy.recommend().x) > 0.85


LINE = ("wide", "narrow", "edge", "three", "cauchy", "slope", "fall", "tents")


@pytest.mark.slow
@pytest.mark.parametrize("method", ["ei", "ucb"])
@pytest.mark.parametrize("noise", [0.0, 0.05])
@pytest.mark.parametrize("problem", LINE)
def test_the_higher_hill_is_never_missed(two_peaks, problem, noise, method):
    """Without a second look up to a half of these runs miss it."""
    runs = [two_peaks.play(two_peaks.PROBLEMS[problem], method, noise, seed) for seed in range(9000, 9020)]
    assert min(run["share"] for run in runs) > two_peaks.MISSED


def test_the_benchmark_keeps_its_runs_and_counts_misses(two_peaks, tmp_path, monkeypatch):
    for name in ("plane3", "cube3", "mixed"):
        problem = two_peaks.PROBLEMS[name]
        X = Box.unit(len(problem.hills[0].place)).sample(20_000, np.random.default_rng(0))
        share = np.mean(problem.hills[0](X, problem.scale) > max(hill.height for hill in problem.hills[1:]))
        assert abs(share - (0.12 if problem.kind == "mixed" else 0.03)) < 0.01
    runs = [
        {"problem": "wide", "method": "ei", "noise": 0.0, "seed": i, "share": 1.0 - 0.3 * (i > 1)} for i in range(4)
    ]
    row = list(two_peaks.table([*runs, runs[0]]))[-1]  # a run that is stored twice counts once
    assert "2/4" in row
    assert "15.0 to  85.0 %" in row
    path = tmp_path / "runs.jsonl"
    monkeypatch.setattr(sys, "argv", f"two_peaks run --runs {path} --problems wide --methods ei --seeds 1".split())
    monkeypatch.setitem(two_peaks.PROBLEMS, "wide", replace(two_peaks.PROBLEMS["wide"], budget=3))
    two_peaks.main()
    stored = path.read_text()
    two_peaks.main()
    assert path.read_text() == stored
    assert len(stored.splitlines()) == 2
