"""Facility location: the same sets as plain greedy selection, in tiles, in float32 screens, on torch."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pytest

from surefoot.select import FacilityLocation
from surefoot.select import facility as module


def plain_greedy(G: np.ndarray, k: int) -> tuple[list[int], float]:
    """Greedy selection on a matrix of similarities, all gains in every step."""
    now, order = np.zeros(G.shape[1]), []
    for _ in range(k):
        gains = np.maximum(G - now, 0.0).sum(axis=1)
        gains[order] = -1.0
        order.append(int(np.argmax(gains)))
        now = np.maximum(now, G[order[-1]])
    return order, float(now.sum())


def lazily(f: FacilityLocation, k: int) -> list[int]:
    state = f.state()
    for _ in range(k):
        state.add(state.best()[0])
    return state.selected


def similarities(kind: str, X: np.ndarray, U: np.ndarray) -> np.ndarray:
    squares = ((X[:, None] - U[None]) ** 2).sum(axis=-1)
    if kind == "exemplar":
        return (U**2).sum(axis=1) - squares
    if kind == "euclidean":
        return squares.max() - squares
    return (X / np.linalg.norm(X, axis=1)[:, None]) @ (U / np.linalg.norm(U, axis=1)[:, None]).T


@pytest.mark.parametrize("kind", ["exemplar", "euclidean", "cosine"])
@pytest.mark.parametrize("shift", [0.0, 100.0])
def test_lazy_screened_selection_is_greedy_selection(kind: str, shift: float) -> None:
    """Among 900 points, far from the origin too, where float32 alone would choose otherwise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 4)) + shift
    f = FacilityLocation(X, similarity=kind, average=False)
    expected, value = plain_greedy(similarities(kind, X, X), 25)
    order = lazily(f, 25)
    if kind == "euclidean" or shift == 0.0:  # the other two see one direction only from so far away: ties
        assert order == expected
    assert f.value(order) == pytest.approx(value, rel=1e-9)


def test_it_is_lazy() -> None:
    X = np.random.default_rng(1).normal(size=(2000, 5))
    f = FacilityLocation(X, similarity="euclidean")
    lazily(f, 30)
    assert f.evaluations.total < 0.4 * 30 * 2000


def test_exemplar_clustering_is_the_fall_of_the_mean_squared_distance() -> None:
    rng = np.random.default_rng(2)
    X, U = rng.normal(size=(10, 3)), rng.normal(size=(40, 3))
    f = FacilityLocation(X, clients=U)
    for S in itertools.combinations(range(10), 3):
        centers = np.vstack([X[list(S)], np.zeros(3)])
        nearest = ((U[:, None] - centers[None]) ** 2).sum(axis=-1).min(axis=1)
        assert f.value(S) == pytest.approx((U**2).sum(axis=1).mean() - nearest.mean(), abs=1e-12)


@pytest.mark.parametrize("tile", [1, 7, 64])
def test_tiles_change_nothing(tile: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    X, weights = rng.normal(size=(50, 3)), rng.random(50)
    reference = FacilityLocation(X, similarity="euclidean", weights=weights).state([4, 9])
    monkeypatch.setattr(module, "TILE", tile)
    monkeypatch.setattr(module, "WIDTH", tile)
    state = FacilityLocation(X, similarity="euclidean", weights=weights).state([4, 9])
    np.testing.assert_allclose(state.gains(), reference.gains(), rtol=1e-12, atol=1e-15)
    assert state.best()[0] == reference.best()[0]
    for S in (state, reference):
        S.remove(4)
    np.testing.assert_allclose(state.gains(), reference.gains(), rtol=1e-12, atol=1e-15)


def test_the_error_of_screening_is_learnt() -> None:
    """Two nearly equal candidates, closer than float32 tells: the better one is taken all the same."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(1500, 3))
    best = lazily(FacilityLocation(X, similarity="euclidean"), 2)[1]
    for sign in (1.0, -1.0):
        twin = X[best] + sign * 1e-9
        points = np.vstack([X, twin])
        f = FacilityLocation(points, similarity="euclidean")
        exact = f.state(lazily(f, 1)).gains()
        assert lazily(f, 2)[1] == int(np.argmax(exact))


def test_memory_is_bounded() -> None:
    """All similarities of 8000 points would take 256 MB in float32."""
    X = np.random.default_rng(5).normal(size=(8000, 4))
    tracemalloc.start()
    lazily(FacilityLocation(X, similarity="euclidean"), 3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6


@pytest.mark.parametrize("kind", ["exemplar", "euclidean", "cosine", "precomputed"])
def test_torch_gives_the_same(kind: str) -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(6)
    X, weights = rng.normal(size=(700, 4)), rng.random(700)
    points = similarities("cosine", X, X) if kind == "precomputed" else X
    ours = FacilityLocation(points, similarity=kind, weights=weights)
    theirs = FacilityLocation(torch.asarray(points), similarity=kind, weights=weights)
    assert lazily(ours, 12) == lazily(theirs, 12)
    states = [f.state([3, 50, 600]) for f in (ours, theirs)]
    for state in states:
        state.remove(50)
    copied = states[1].copy()
    copied.add(8)
    for one, two in ((s.gains(), s.losses()) for s in states):
        assert isinstance(one, np.ndarray)
        assert isinstance(two, np.ndarray)
    np.testing.assert_allclose(states[0].gains(), states[1].gains(), atol=1e-12)
    np.testing.assert_allclose(states[0].losses(), states[1].losses(), atol=1e-12)
    assert states[0].value == pytest.approx(states[1].value) == ours.value([3, 600])


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda X: FacilityLocation(X, similarity="rbf"), ValueError, "'rbf'"),
        (lambda X: FacilityLocation(X[0]), ValueError, "matrix"),
        (lambda X: FacilityLocation([["a"]]), TypeError, "numbers"),
        (lambda X: FacilityLocation(np.where(np.arange(5)[:, None] == 3, np.nan, X)), ValueError, "row 3"),
        (lambda X: FacilityLocation(X, clients=X[:, :1]), ValueError, r"\(m, 2\)"),
        (lambda X: FacilityLocation(X, weights=-np.ones(5)), ValueError, "at least 0, got -1.0"),
        (lambda X: FacilityLocation(X, weights=np.zeros(5)), ValueError, "all 0"),
        (lambda X: FacilityLocation(X, weights=np.ones(4)), ValueError, r"\(5,\)"),
        (lambda X: FacilityLocation(0.0 * X, similarity="cosine"), ValueError, "row 0 is 0"),
        (lambda X: FacilityLocation(X, similarity="precomputed", clients=X), ValueError, "leave clients out"),
    ],
)
def test_bad_input(make, error, message) -> None:
    with pytest.raises(error, match=message):
        make(np.random.default_rng(0).normal(size=(5, 2)))
