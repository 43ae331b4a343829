"""Private answers: clipping, the size of the noise, and what it costs over a run."""

from __future__ import annotations

import math

import numpy as np
import pytest

from surefoot import BudgetSpent
from surefoot.private import Ask, Curator, GaussianRelease, Ledger, OutputRelease, SystemNoise, epsilon

MECHANISM = {"epsilon": 1.0, "delta": 1e-6}


def table():
    return np.random.default_rng(0).random((40, 2))


def test_noise_covers_all_answers_that_one_record_enters():
    outputs = OutputRelease(bounds=(2.0, 6.0), epsilon=1.5, delta=1e-6)
    once, often = outputs.scale(asks=16, repeats=False), outputs.scale(asks=16, repeats=True)
    assert once == pytest.approx(4.0 * SystemNoise.certified_scale(1.5, 1e-6))
    assert often == pytest.approx(4.0 * once)
    for repeats in (False, True):
        assert epsilon(outputs.event(asks=16, repeats=repeats), 1e-6) <= 1.5


def test_answers_are_clipped_and_noisy():
    outputs = OutputRelease(bounds=(-1.0, 1.0), epsilon=1.0, delta=1e-5).research(seed=0)
    answers = np.array([outputs.answer(1e9, 0.5) for _ in range(2000)])
    assert answers.mean() == pytest.approx(1.0, abs=0.05)
    assert answers.std() == pytest.approx(0.5, rel=0.1)


def test_the_whole_budget_is_charged_before_the_release():
    outputs = OutputRelease(bounds=(0.0, 2.0), epsilon=1.0, delta=1e-6)
    ledger = Ledger(epsilon=2.5, delta=1e-5)
    curator = Curator(
        table(), lambda row: float(row.sum()), GaussianRelease(**MECHANISM), asks=5, outputs=outputs, ledger=ledger
    )
    release = curator.release()
    spent = ledger.spent()
    assert release.output_noise == pytest.approx(outputs.scale(asks=5, repeats=False) ** 2)
    curator.answer(Ask(curator.run, 0, 3))
    assert ledger.spent() == spent  # nothing more for the answers
    guarantee = release.guarantee
    assert (guarantee.epsilon, guarantee.delta) == (2.0, 2e-6)
    assert guarantee.analytic < 2.0
    assert "measured value" in guarantee.protects
    assert not any("in the clear" in text for text in guarantee.assumptions)


def test_a_budget_that_covers_the_rows_only_is_refused_as_a_whole():
    ledger = Ledger(epsilon=1.0, delta=1e-5)
    assert not ledger.would_exceed(GaussianRelease(**MECHANISM).event(40, 2))
    outputs = OutputRelease(bounds=(0.0, 2.0), epsilon=1.0, delta=1e-6)
    curator = Curator(table(), None, GaussianRelease(**MECHANISM), asks=5, outputs=outputs, ledger=ledger)
    with pytest.raises(BudgetSpent):
        curator.release()
    assert curator.state == "new"
    assert ledger.spent() == 0.0


def test_in_the_clear_is_the_default_and_is_said():
    curator = Curator(table(), lambda row: float(row[0]), GaussianRelease(**MECHANISM), asks=5)
    release = curator.release()
    assert release.output_noise == 0.0
    assert any("not differentially private" in text for text in release.guarantee.assumptions)
    assert curator.answer(Ask(curator.run, 0, 3)).value in table()[:, 0]


def test_a_repeated_ask_gets_no_fresh_noise():
    outputs = OutputRelease(bounds=(0.0, 2.0), epsilon=1.0, delta=1e-6)
    curator = Curator(table(), lambda row: float(row[0]), GaussianRelease(**MECHANISM), asks=5, outputs=outputs)
    curator.release()
    first = curator.answer(Ask(curator.run, 0, 3))
    assert {curator.answer(Ask(curator.run, 0, 3)).value for _ in range(5)} == {first.value}


def test_failures_are_answered_as_failures():
    outputs = OutputRelease(bounds=(0.0, 2.0), epsilon=1.0, delta=1e-6)
    curator = Curator(table(), lambda row: math.nan, GaussianRelease(**MECHANISM), asks=5, outputs=outputs)
    curator.release()
    assert curator.answer(Ask(curator.run, 0, 3)).value is None
    assert any("failures are not hidden" in text for text in curator.guarantee.assumptions)


@pytest.mark.parametrize(
    "options",
    [{"bounds": (1.0, 0.0)}, {"bounds": (0.0, math.inf)}, {"bounds": (0.0,)}, {"epsilon": 0.0}, {"delta": 0.0}],
)
def test_bad_parameters_are_refused(options):
    with pytest.raises(ValueError):
        OutputRelease(**{"bounds": (0.0, 1.0), "epsilon": 1.0, "delta": 1e-5, **options})
