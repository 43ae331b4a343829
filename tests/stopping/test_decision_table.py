"""The experiment about decision tables, at a fraction of its budget."""

from __future__ import annotations

from dataclasses import replace

from surefoot_lab import Budget, Replicate, find
from surefoot_lab.runner import run


def test_claims(tmp_path):
    made = replace(find("bo-bos/decision-table"), quick=Budget(4, paths=20_000))
    data = run(made, out=tmp_path, workers=0)
    assert data["failures"] == []
    verdicts = {claim["code"]: claim["verdict"] for claim in data["claims"]}
    assert len(verdicts) == 6
    assert all(verdicts[code] == "holds" for code in ("C1", "C2", "C6"))
    assert verdicts["C3"] == "undecided"  # four repetitions have no power
    assert verdicts["C5"] == "fails"  # the printed rule is unusable, as the claim's mark says
    assert all(test["n"] == 4 for claim in data["claims"] for test in claim["tests"])


def test_a_repetition_is_a_function_of_its_number():
    made = find("bo-bos/decision-table")
    one, two = (made.run(Replicate(1, settings={"paths": 2000})) for _ in range(2))
    assert {k: t.to_json() for k, t in one.items()} == {k: t.to_json() for k, t in two.items()}
