"""Logistic support selection: the maximum is one, all gains at once are those one by one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

from surefoot.select import LogisticSupport


def data(seed: int = 0, rows: int = 120, n: int = 15) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, n))
    return X, X @ rng.normal(size=n)


@pytest.mark.parametrize("classes", [2, 4])
def test_values_are_maxima(classes: int) -> None:
    """Against a general-purpose optimizer on the likelihood written down again."""
    X, scores = data()
    codes = np.digitize(scores, np.quantile(scores, np.linspace(0.0, 1.0, classes + 1)[1:-1]))
    f = LogisticSupport(X, codes, ridge=0.5)
    S = [2, 3, 11]

    def loss(flat: np.ndarray) -> float:
        if classes == 2:
            Z = np.column_stack([np.zeros(len(X)), X[:, S] @ flat])
        else:
            Z = X[:, S] @ flat.reshape(3, classes)
        return float((logsumexp(Z, axis=1) - Z[np.arange(len(X)), codes]).sum() + 0.25 * (flat @ flat))

    found = minimize(loss, np.zeros(3 if classes == 2 else 3 * classes), tol=1e-12)
    assert f.value(S) == pytest.approx(len(X) * np.log(classes) - found.fun, rel=1e-7)


def test_separable_classes_have_a_value() -> None:
    """Labels by a threshold: without the ridge the maximum is at infinity."""
    X, scores = data(1, rows=60, n=30)
    f = LogisticSupport(X, scores > 0)
    state = f.state()
    for _ in range(15):
        state.add(state.best()[0])
    assert state.value < 60 * np.log(2.0)
    assert state.value == pytest.approx(f.value(state.selected), abs=1e-9 * 60)


def test_hard_steps_are_refitted(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one chord step nothing converges, and Newton's method gives the same gains and losses."""
    X, scores = data(2)
    f = LogisticSupport(3.0 * X, scores > 0, ridge=0.01)
    state = f.state([0, 4])
    gains, losses = state.gains(), state.losses()
    monkeypatch.setattr("surefoot.select.logistic.CHORDS", 1)
    np.testing.assert_allclose(state.gains(), gains, atol=1e-9 * 120)
    np.testing.assert_allclose(state.losses(), losses, atol=1e-9 * 120)
    assert gains[1] == pytest.approx(f.value([0, 1, 4]) - f.value([0, 4]), abs=1e-9 * 120)


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    X, scores = data(3)
    f = LogisticSupport(X, np.digitize(scores, [-1.0, 1.0]))
    gains = f.state([1]).gains()
    monkeypatch.setattr("surefoot.select.logistic.CHUNK", 1000)
    np.testing.assert_allclose(f.state([1]).gains(), gains, rtol=1e-9)


def test_refitting_some_is_nearly_as_good() -> None:
    """The best five by their first step: the same first choices, values close, estimates below exact gains."""
    X, scores = data(4, rows=300, n=40)
    y = scores + 0.5 * np.random.default_rng(4).normal(size=300) > 0
    exact, quick = LogisticSupport(X, y), LogisticSupport(X, y, refit=5)
    values = []
    for f in (exact, quick):
        state = f.state()
        for _ in range(10):
            state.add(state.best()[0])
        values.append(state.value)
    assert values[1] == pytest.approx(values[0], rel=0.01)
    gains, reference = quick.state([7]).gains(), exact.state([7]).gains()
    best = np.argsort(-gains)[:5]
    np.testing.assert_allclose(gains[best], reference[best], atol=1e-9 * 300)
    assert int(np.argmax(reference)) == best[0]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"X": np.ones((6, 2))}, ValueError, "column 0 of X is constant"),
        ({"y": np.zeros(6)}, ValueError, "two classes"),
        ({"y": np.zeros(5)}, ValueError, r"\(6,\)"),
        ({"y": np.array([0.0, 1.0, np.nan, 0.0, 1.0, 0.0])}, ValueError, "finite"),
        ({"ridge": 0.0}, ValueError, "above 0"),
        ({"refit": 0}, ValueError, "refit"),
        ({"X": np.full((6, 2), np.nan)}, ValueError, "row 0"),
        ({"X": [["a"]] * 6}, TypeError, "numbers"),
    ],
)
def test_bad_input(options, error, message) -> None:
    X = np.random.default_rng(0).normal(size=(6, 2))
    with pytest.raises(error, match=message):
        LogisticSupport(**{"X": X, "y": [0, 1, 0, 1, 0, 1], **options})
