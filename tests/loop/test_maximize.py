"""The acquisition maximizer, on functions whose maxima are known and against exhaustive search."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.domain import Box, Candidates, Choice, Domain, Float, Int, Space
from surefoot.domain.ranking import argmax
from surefoot.domain.search import maximize
from surefoot.errors import Exhausted


class Function:
    """A score from a function of rows and its gradient."""

    def __init__(self, value: Callable[[np.ndarray], np.ndarray], gradient: Callable[[np.ndarray], np.ndarray]) -> None:
        self.value, self.slope, self.points = value, gradient, 0

    def __call__(self, E: np.ndarray) -> np.ndarray:
        self.points += len(E)
        return self.value(E)

    def gradient(self, E: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self(E), self.slope(E)


def bowl(center: float | np.ndarray, scale: float = 1.0, offset: float = 0.0) -> Function:
    return Function(lambda E: offset - scale * ((E - center) ** 2).sum(axis=1), lambda E: -2.0 * scale * (E - center))


def waves(dimension: int, seed: int, frequency: float = 3.0, count: int = 12) -> Function:
    rng = np.random.default_rng(seed)
    W, b = rng.standard_normal((dimension, count)) * frequency, rng.random(count) * 6
    return Function(lambda E: np.cos(E @ W + b).sum(axis=1), lambda E: -np.sin(E @ W + b) @ W.T)


FLAT = Function(lambda E: np.zeros(len(E)), np.zeros_like)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


# -- boxes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dimension", [1, 2, 6, 30])
def test_interior_maximum(dimension: int) -> None:
    box = Box([(-3.0, 5.0)] * dimension)
    x, value = maximize(bowl(1.3), box, rng=rng())
    np.testing.assert_allclose(x, 1.3, atol=1e-4)
    assert value == pytest.approx(0.0, abs=1e-7)


@pytest.mark.parametrize("dimension", [1, 2, 6, 30])
def test_maximum_on_the_bounds_is_met_exactly(dimension: int) -> None:
    center = np.where(np.arange(dimension) % 3 == 0, 9.0, np.where(np.arange(dimension) % 3 == 1, -4.0, 0.5))
    x, _ = maximize(bowl(center), Box([(-1.0, 2.0)] * dimension), rng=rng())
    np.testing.assert_allclose(x, np.clip(center, -1.0, 2.0), atol=1e-4)
    np.testing.assert_array_equal(x[center != 0.5], np.clip(center, -1.0, 2.0)[center != 0.5])


@pytest.mark.parametrize(("scale", "offset"), [(1e-8, 0.0), (1e8, 0.0), (1.0, 1e6), (1e8, -1e8)])
def test_units_of_the_score_do_not_matter(scale: float, offset: float) -> None:
    x, _ = maximize(bowl(0.3, scale, offset), Box.unit(3), rng=rng())
    np.testing.assert_allclose(x, 0.3, atol=2e-4)


def test_units_of_the_domain_do_not_matter() -> None:
    box = Box([(0.0, 1e-6), (-1e6, 1e6), (2.0, 2.0)])
    middle = np.array([3e-7, 2e5, 2.0])
    weight = np.array([1e12, 1e-12, 1.0])
    score = Function(lambda E: -((E - middle) ** 2 @ weight), lambda E: -2.0 * (E - middle) * weight)
    x, _ = maximize(score, box, rng=rng())
    np.testing.assert_allclose(x, middle, rtol=1e-3)


@pytest.mark.parametrize("seed", range(6))
def test_global_maximum_among_many(seed: int) -> None:
    score, box = waves(2, seed, frequency=6.0), Box.unit(2)
    axis = np.linspace(0, 1, 401)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    _, value = maximize(score, box, rng=rng(seed))
    assert value >= score(grid).max() - 1e-9


def test_a_needle_beside_a_seed_is_found() -> None:
    needle = np.array([0.7131, 0.2177, 0.5003])
    score = Function(
        lambda E: np.exp(-((E - needle) ** 2).sum(axis=1) / 2e-6),
        lambda E: -(E - needle) / 1e-6 * np.exp(-((E - needle) ** 2).sum(axis=1) / 2e-6)[:, None],
    )
    x, _ = maximize(score, Box.unit(3), rng=rng(), seeds=[needle + 1e-3])
    np.testing.assert_allclose(x, needle, atol=1e-5)


def test_a_seed_is_never_lost() -> None:
    seed = np.array([0.123456789, 0.987654321])
    score = Function(lambda E: np.where((seed == E).all(axis=1), 5.0, 0.0), np.zeros_like)
    x, value = maximize(score, Box.unit(2), rng=rng(), seeds=[seed])
    np.testing.assert_array_equal(x, seed)
    assert value == 5.0


def test_flat_scores_and_scores_that_are_nowhere_finite() -> None:
    for score in (FLAT, Function(lambda E: np.full(len(E), np.nan), np.zeros_like)):
        for domain in (Box.unit(3), Space(a=Float(0, 1), b=Int(0, 9)), Candidates([1.0, 2.0])):
            x, _ = maximize(score, domain, rng=rng())
            assert domain.contains(x[None, :]).all()


def test_what_is_not_finite_is_avoided() -> None:
    def value(E: np.ndarray) -> np.ndarray:
        out = E.sum(axis=1)
        out[E[:, 0] > 0.8] = np.inf
        out[E[:, 1] > 0.9] = np.nan
        return out

    x, height = maximize(Function(value, np.ones_like), Box.unit(2), rng=rng())
    assert np.isfinite(height)
    assert height > 1.6
    assert x[0] <= 0.8
    assert x[1] <= 0.9


def test_an_excluded_maximum_gives_way_to_the_next_best() -> None:
    corner = bowl(np.array([2.0, 2.0]))
    x, value = maximize(corner, Box.unit(2), rng=rng())
    assert x.tolist() == [1.0, 1.0]
    other, lower = maximize(corner, Box.unit(2), rng=rng(), exclude=[[1.0, 1.0]])
    assert other.tolist() != [1.0, 1.0]
    assert value - 1.0 < lower < value


@given(st.integers(0, 2**32), st.integers(1, 5))
@settings(max_examples=10, deadline=None)
def test_the_answer_follows_the_generator_and_lies_inside(seed: int, dimension: int) -> None:
    box, score = Box([(-1.0, 3.0)] * dimension), waves(dimension, seed % 97)
    x, value = maximize(score, box, rng=rng(seed), starts=4, raw=64)
    again, _ = maximize(score, box, rng=rng(seed), starts=4, raw=64)
    np.testing.assert_array_equal(x, again)
    assert box.contains(x[None, :]).all()
    assert value == pytest.approx(float(score(x[None, :])[0]), abs=1e-12)


# -- mixed and finite spaces -----------------------------------------------------------------------------

MIXED = Space(rate=Float(1e-4, 1.0, log=True), width=Int(1, 300, log=True), depth=Int(0, 40), kind=Choice(list("abc")))
WHOLE = Space(a=Int(0, 30), b=Int(0, 30), c=Int(0, 30))  # too large to be listed by the maximizer


@pytest.mark.parametrize("seed", range(5))
def test_mixed_space_agrees_with_a_dense_search(seed: int) -> None:
    score = waves(MIXED.encoded_dimension, seed, frequency=2.0)
    x, value = maximize(score, MIXED, rng=rng(seed))
    assert MIXED.contains(x[None, :]).all()
    assert value == pytest.approx(float(score(MIXED.encode(x[None, :]))[0]), abs=1e-12)
    axes = [np.geomspace(1e-4, 1.0, 12), np.unique(np.geomspace(1, 300, 40).astype(int)), np.arange(41), np.arange(3)]
    dense = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 4)
    assert value >= score(MIXED.encode(dense)).max()


@pytest.mark.parametrize("seed", range(5))
def test_large_finite_space_agrees_with_exhaustive_search(seed: int) -> None:
    score = waves(3, seed, frequency=2.5)
    _, value = maximize(score, WHOLE, rng=rng(seed))
    assert value == pytest.approx(float(score(WHOLE.encode(WHOLE.enumerate())).max()), abs=1e-9)


def test_small_finite_space_is_exact_and_can_be_exhausted() -> None:
    space = Space(a=Int(0, 3), b=Choice(["u", "v"]))
    score = Function(lambda E: E @ np.array([1.0, 0.1, 0.2]), np.zeros_like)
    taken: list[np.ndarray] = []
    heights = []
    for _ in range(8):
        x, value = maximize(score, space, rng=rng(), exclude=taken or None)
        taken.append(x)
        heights.append(value)
    assert heights == sorted(heights, reverse=True)
    assert len({t.tobytes() for t in taken}) == 8
    with pytest.raises(Exhausted):
        maximize(score, space, rng=rng(), exclude=taken)


def test_the_last_point_of_a_large_finite_space_is_found() -> None:
    everything = WHOLE.enumerate()
    x, _ = maximize(FLAT, WHOLE, rng=rng(), exclude=np.delete(everything, 12345, axis=0), raw=32, starts=2)
    np.testing.assert_array_equal(x, everything[12345])
    with pytest.raises(Exhausted):
        maximize(FLAT, WHOLE, rng=rng(), exclude=everything, raw=32, starts=2)


def test_a_box_of_one_point_can_be_exhausted() -> None:
    point = Box([(2.0, 2.0), (3.0, 3.0)])
    assert maximize(FLAT, point, rng=rng())[0].tolist() == [2.0, 3.0]
    with pytest.raises(Exhausted):
        maximize(FLAT, point, rng=rng(), exclude=[[2.0, 3.0]])


# -- candidates ------------------------------------------------------------------------------------------


def test_candidates_are_scored_exactly() -> None:
    points = rng(1).random((40_000, 2))
    x, value = maximize(bowl(0.5), Candidates(points), rng=rng())
    scores = bowl(0.5)(points)
    np.testing.assert_array_equal(x, points[scores.argmax()])
    assert value == scores.max()
    y, _ = maximize(bowl(0.5), Candidates(points), rng=rng(), exclude=[x])
    np.testing.assert_array_equal(y, points[np.argsort(-scores)[1]])


def test_excluding_a_point_excludes_its_copies() -> None:
    x, _ = maximize(bowl(1.0), Candidates([1.0, 1.0, 2.0]), rng=rng(), exclude=[[1.0]])
    assert x.tolist() == [2.0]


# -- argmax ----------------------------------------------------------------------------------------------


def test_argmax_breaks_ties_evenly_and_only_ties() -> None:
    values = np.array([0.0, 1.0, 1.0 - 1e-12, 0.5, 1.0])
    counts = np.bincount([argmax(values, rng=rng(i)) for i in range(600)], minlength=5)
    assert counts[[0, 3]].tolist() == [0, 0]
    assert (counts[[1, 2, 4]] > 150).all()
    assert argmax([0.0, 1.0, 1.0 - 1e-6], rng=rng()) == 1


@given(st.lists(st.sampled_from([0.0, 1.0, np.nan, np.inf, -np.inf]), min_size=1, max_size=8), st.data())
def test_argmax_respects_exclusions_and_ignores_what_is_not_finite(values: list[float], data: st.DataObject) -> None:
    exclude = np.array(data.draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values))))
    if exclude.all():
        with pytest.raises(Exhausted):
            argmax(values, rng=rng(), exclude=exclude)
        return
    index = argmax(values, rng=rng(), exclude=exclude)
    assert not exclude[index]
    finite = [v for v, out in zip(values, exclude, strict=True) if np.isfinite(v) and not out]
    if finite:
        assert values[index] == max(finite)


def test_argmax_does_not_touch_its_arguments() -> None:
    values, exclude = np.array([1.0, np.nan, 3.0]), np.array([False, False, True])
    argmax(values, rng=rng(), exclude=exclude)
    np.testing.assert_array_equal(values, [1.0, np.nan, 3.0])


@pytest.mark.parametrize(
    "call",
    [
        lambda: argmax(np.zeros((2, 2)), rng=rng()),
        lambda: argmax([1.0, 2.0], rng=rng(), exclude=[True]),
        lambda: maximize(FLAT, Box.unit(1), rng=rng(), starts=0),
        lambda: maximize(FLAT, Box.unit(1), rng=rng(), raw=0),
        lambda: maximize(FLAT, Box.unit(1), rng=rng(), iterations=-1),
        lambda: maximize(FLAT, Box.unit(2), rng=rng(), seeds=[[1.0]]),
    ],
)
def test_bad_arguments_are_refused(call: Callable[[], object]) -> None:
    with pytest.raises(ValueError):
        call()


def test_every_domain_answers_in_its_own_units() -> None:
    domains: list[Domain] = [Box([(10.0, 20.0)]), Candidates([11.0, 12.0]), Space(a=Float(10.0, 20.0))]
    score = Function(lambda E: E[:, 0], np.ones_like)
    assert [maximize(score, d, rng=rng())[0].tolist() for d in domains] == [[20.0], [12.0], [20.0]]
