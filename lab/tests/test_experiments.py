"""The experiments that come with the foundation, at a fraction of their quick budgets."""

from __future__ import annotations

import pytest

from surefoot_lab import Budget, Replicate, find
from surefoot_lab.results import Results
from surefoot_lab.runner import run


def small(id, repetitions, **settings):
    from dataclasses import replace

    return replace(find(id), quick=Budget(repetitions, **settings))


def verdicts(data):
    assert data["failures"] == []
    return {claim["code"]: claim["verdict"] for claim in data["claims"]}


def test_regret_bound(tmp_path):
    data = run(small("gp-ucb/regret-bound", 40, side=8, horizon=40), out=tmp_path, workers=0)
    assert verdicts(data) == {"C1": "holds", "C2": "holds", "C3": "holds", "C4": "holds", "C5": "holds"}


def test_against_random(tmp_path):
    data = run(small("gp-ucb/against-random", 4, horizon=12), out=tmp_path, workers=0)
    assert "fails" not in verdicts(data).values()


def test_fourier_convergence(tmp_path):
    data = run(small("fourier/convergence", 60, points=20), out=tmp_path, workers=0)
    judged = verdicts(data)
    assert (judged["C2"], judged["C3"]) == ("holds", "holds")
    assert "fails" not in judged.values()


@pytest.mark.parametrize("id", ["gp-ucb/regret-bound", "fourier/convergence"])
def test_a_repetition_is_a_function_of_its_number(id):
    made = find(id)
    settings = {**made.quick.settings, "side": 5, "horizon": 4, "points": 5}
    one, two = (made.run(Replicate(3, settings=settings)) for _ in range(2))
    assert {k: t.to_json() for k, t in one.items()} == {k: t.to_json() for k, t in two.items()}


def test_every_claim_reads_something(tmp_path):
    """A claim whose methods or metrics are misspelt would be undecided for ever."""
    for id, settings in {
        "gp-ucb/regret-bound": {"side": 4, "horizon": 5},
        "gp-ucb/against-random": {"horizon": 4},
        "fourier/convergence": {"points": 4},
    }.items():
        made = find(id)
        results = Results.fresh(made, "quick")
        results.replicates = {0: dict(made.run(Replicate(0, settings=settings)))}
        for claim in results.judge():
            assert "no data" not in claim["note"]
            assert all(test["n"] == 1 for test in claim["tests"])
