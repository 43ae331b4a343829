from __future__ import annotations

import json

import numpy as np
import pytest

import planted
from surefoot_lab import Budget, Data, Replicate, Trace, experiment, find, names


def test_seeds_are_keyed_by_repetition_and_purpose():
    a, b = Replicate(3, root=5), Replicate(4, root=5)
    assert a.seed.spawn_key == (3,)
    assert a.seed.entropy == 5
    draws = {r.rng(p, s).random() for r in (a, b) for p in ("noise", "start") for s in (0, 1)}
    assert len(draws) == 8
    assert a.rng("noise").random() == Replicate(3, root=5).rng("noise").random()
    assert a.integer != b.integer


def test_trace_round_trip():
    trace = Trace(series=[1.0, np.nan], number=2, flag=True, missing=np.nan, empty=[])
    again = Trace.from_json(json.loads(json.dumps(trace.to_json(), allow_nan=False)))
    assert again.to_json() == trace.to_json()
    assert again["number"].ndim == 0
    for bad in ([np.inf], np.zeros((2, 2))):
        with pytest.raises(ValueError, match="series"):
            Trace(series=bad)


def test_ids():
    for id in names():
        made = find(id)
        assert made.id == id
        assert made.claims, id
        assert made.title
        assert made.source
    with pytest.raises(ValueError, match="did you mean gp-ucb/regret-bound"):
        find("gp-ucb/regret-bounds")
    for bad in ("noslash", "Upper/case", "a/b/c", "a/b_c"):
        with pytest.raises(ValueError, match="family/short-name"):
            experiment(bad, source="", quick=Budget(1), full=Budget(1))


def test_an_id_inside_the_package_is_its_path():
    def run(replicate):
        """Title"""

    run.__module__ = "surefoot_lab.experiments.gp_ucb.elsewhere"
    with pytest.raises(ValueError, match="must live in"):
        experiment("gp-ucb/here", source="", quick=Budget(1), full=Budget(1))(run)


def test_a_substitute_says_so_in_its_title():
    assert planted.run_substitute.heading == "Needs data (SUBSTITUTE data: svm_grid instead of the lake)"
    with pytest.raises(ValueError, match="synthetic"):
        Data("invented")


def test_claims_come_from_the_module():
    assert find("gp-ucb/regret-bound").own_claims is None
    assert len(find("gp-ucb/regret-bound").claims) == 5
    assert planted.run_substitute.claims == ()


def test_budgets():
    assert planted.run_truths.budget("full").repetitions == 80
    with pytest.raises(ValueError, match="quick or full"):
        planted.run_truths.budget("slow")
    for bad in (lambda: Budget(0), lambda: Budget(1, minutes=0)):
        with pytest.raises(ValueError, match="repetition"):
            bad()
