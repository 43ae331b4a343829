"""The model under test: counting, budgets, faults; balls; resizing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import RegularGridInterpolator

from surefoot import BudgetSpent
from surefoot.attack import BlackBox, ModelFault, NormBall, Resize, bilinear


def even(images):
    return np.full((len(images), 4), 0.25)


def test_queries_are_counted_and_never_exceed_the_budget():
    calls = []
    box = BlackBox(lambda images: (calls.append(len(images)), even(images))[1], budget=10, batch=3)
    box(np.zeros((7, 4, 4)))
    assert (box.queries, box.remaining, calls) == (7, 3, [3, 3, 1])
    with pytest.raises(BudgetSpent, match="7 are spent"):
        box(np.zeros((4, 4, 4)))
    assert (box.queries, sum(calls)) == (7, 7)
    box(np.zeros((3, 4, 4)))
    assert box.remaining == 0
    assert box(np.zeros((0, 4, 4))).shape == (0, 4)


def boom(images):
    raise RuntimeError("out of memory")


FAULTS = {
    "raises": (boom, "raised RuntimeError: out of memory"),
    "nan": (lambda x: np.full((len(x), 3), np.nan), "NaN"),
    "infinite": (lambda x: np.full((len(x), 3), np.inf), "infinity"),
    "flat": (lambda x: np.full(len(x), 0.5), r"scores of shape \(2, classes\), got \(2,\)"),
    "one class": (lambda x: np.ones((len(x), 1)), r"got \(2, 1\)"),
    "too few rows": (lambda x: np.full((1, 2), 0.5), r"got \(1, 2\)"),
    "too large": (lambda x: np.full((len(x), 3), 0.5), "adds up to 1.5, not to 1; for logits say"),
    "negative": (lambda x: np.tile([1.5, -0.5, 0.0], (len(x), 1)), "the lowest is -0.5"),
    "text": (lambda x: "cat", "raised ValueError"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_model_says_what_is_wrong_and_what_was_spent(fault):
    scores, message = FAULTS[fault]
    broken = []
    box = BlackBox(lambda x: scores(x) if broken else np.full((len(x), 3), 1 / 3))
    box(np.zeros((5, 4, 4)))
    broken.append(True)
    with pytest.raises(ModelFault, match=message) as caught:
        box(np.zeros((2, 4, 4)))
    assert caught.value.queries == box.queries == 7
    assert "7 queries spent" in str(caught.value)


def test_logits_leave_one_class_possible():
    box = BlackBox(lambda x: np.full((len(x), 3), -np.inf), logits=True)
    with pytest.raises(ModelFault, match="minus infinity for every class") as caught:
        box(np.zeros((2, 4, 4)))
    assert caught.value.queries == box.queries == 2


def test_the_number_of_classes_may_not_change():
    box = BlackBox(lambda x: np.full((len(x), len(x)), 1.0 / len(x)))
    box(np.zeros((3, 4, 4)))
    with pytest.raises(ModelFault, match="3 classes before and has 2 now"):
        box(np.zeros((2, 4, 4)))


def test_logits_and_probabilities_agree():
    z = np.random.default_rng(0).normal(size=(4, 5))
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    from_logits = BlackBox(lambda x: z, logits=True)(np.zeros((4, 2, 2)))
    np.testing.assert_allclose(from_logits, BlackBox(lambda x: p)(np.zeros((4, 2, 2))), rtol=1e-12)
    sure = BlackBox(lambda x: np.array([[1.0, 0.0]]))(np.zeros((1, 2, 2)))
    assert np.isfinite(sure).all()


def test_tensors_that_remember_gradients_are_understood():
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 3))
    logs = BlackBox(lambda x: model(torch.as_tensor(x, dtype=torch.float32)), logits=True)(np.zeros((2, 4, 4)))
    assert logs.shape == (2, 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"clip": (1.0, 0.0)}, "clip"),
        ({"budget": 0}, "budget"),
        ({"batch": 1.5}, "batch"),
        ({"channels": "middle"}, "channels"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        BlackBox(even, **options)
    with pytest.raises(TypeError, match="function"):
        BlackBox("model")


# -- balls ------------------------------------------------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(st.sampled_from(["linf", "l2"]), st.floats(1e-3, 10.0), st.integers(0, 2**32 - 1))
def test_projections_lie_in_the_ball_and_leave_it_alone(norm, radius, seed):
    ball = NormBall(radius, norm)
    D = np.random.default_rng(seed).normal(0.0, 3.0, (6, 2, 3, 3))
    inside = ball.project(D)
    assert ball.contains(inside).all()
    np.testing.assert_allclose(ball.project(inside), inside, rtol=1e-12)
    short = D * (0.5 * radius / ball.size(D))[:, None, None, None]
    np.testing.assert_allclose(ball.project(short), short, rtol=1e-12)
    assert ball.contains(ball.stretch(np.clip(D, -1, 1))).all()


@pytest.mark.parametrize("radius", [0.0, -1.0, np.nan, np.inf, True])
def test_a_ball_has_a_radius(radius):
    with pytest.raises(ValueError, match="radius"):
        NormBall(radius)


def test_a_ball_has_a_known_norm():
    with pytest.raises(ValueError, match="'l1'"):
        NormBall(1.0, norm="l1")


# -- resizing ---------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12), st.integers(12, 30), st.integers(12, 30), st.integers(0, 2**32 - 1))
def test_resizing_is_linear_convex_and_has_an_adjoint(h, H, W, seed):
    draw, r = np.random.default_rng(seed), Resize(h, (H, W))
    u, v, D = draw.uniform(-1, 1, (2, h, h)), draw.uniform(-1, 1, (2, h, h)), draw.normal(size=(2, H, W))
    np.testing.assert_allclose(r.up(2.0 * u - v), 2.0 * r.up(u) - r.up(v), atol=1e-12)
    assert np.abs(r.up(u)).max() <= np.abs(u).max() + 1e-12
    np.testing.assert_allclose(np.vdot(r.up(u), D), np.vdot(u, r.adjoint(D)), rtol=1e-9, atol=1e-9)
    for matrix in (bilinear(h, H), bilinear(H, h)):
        assert (matrix >= 0).all()
        np.testing.assert_allclose(matrix.sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize(("h", "H"), [(6, 28), (18, 28), (10, 32), (28, 10)])
def test_resizing_is_bilinear_interpolation_with_corners_in_place(h, H):
    image = np.random.default_rng(0).normal(size=(h, h))
    axis = np.linspace(0.0, 1.0, h)
    at = np.stack(np.meshgrid(np.linspace(0, 1, H), np.linspace(0, 1, H), indexing="ij"), axis=-1)
    expected = RegularGridInterpolator((axis, axis), image)(at)
    np.testing.assert_allclose(bilinear(h, H) @ image @ bilinear(h, H).T, expected, atol=1e-12)


def test_the_round_trip_is_exact_where_the_sizes_divide():
    draw = np.random.default_rng(0)
    for h, exact in ((10, True), (4, True), (14, False), (6, False)):  # 27 = 3 · 9 = 9 · 3
        u = draw.uniform(-1, 1, (1, h, h))
        r = Resize(h, (28, 28))
        assert (np.abs(r.down(r.up(u)) - u).max() < 1e-12) == exact


@pytest.mark.parametrize("sides", [(0, 3), (3, 0), (-1, 3)])
def test_a_row_has_at_least_one_pixel(sides):
    with pytest.raises(ValueError, match="an image has at least one pixel"):
        bilinear(*sides)


def test_a_latent_image_is_not_larger_than_the_image():
    with pytest.raises(ValueError, match=r"8 x 9.*got 10"):
        Resize(10, (8, 9))


def test_a_model_that_changes_its_images_changes_nobody_elses():
    def normalizes_in_place(images):
        images -= 0.5
        return even(images)

    images = np.full((3, 4, 4), 0.25)
    BlackBox(normalizes_in_place, batch=2)(images)
    assert (images == 0.25).all()


def test_a_class_that_is_ruled_out_has_the_lowest_score_and_a_finite_one():
    table = np.array([[0.0, -np.inf, -3.0], [0.0, -np.inf, -500.0]])
    logs = BlackBox(lambda images: table, logits=True)(np.zeros((2, 4, 4)))
    assert np.isfinite(logs).all()
    assert (logs.argmin(axis=1) != 0).all()
    assert (logs.min(axis=1) == logs[:, 1]).all()
    np.testing.assert_allclose(logs[:, [0, 2]], table[:, [0, 2]] - np.log1p(np.exp(table[:, [2]])), atol=1e-12)
