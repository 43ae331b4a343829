"""Shared features: published arrays and their hash, the map itself, outputs and three exact samplers."""

import json

import numpy as np
import pytest

from surefoot.belief.fourier import FourierFeatures, WeightPosterior
from surefoot.belief.kernels import SE
from surefoot.federated import SharedFeatures, draw_weights, to_unit, transform_outputs


def make(**changes):
    return SharedFeatures(**{"dimension": 2, "count": 40, "lengthscale": 0.2, "noise": 0.01, "seed": 3, **changes})


def test_published_features_are_rebuilt_from_their_arrays():
    features = make()
    again = SharedFeatures.from_dict(json.loads(json.dumps(features.to_dict(), allow_nan=False)))
    U = np.random.default_rng(0).random((20, 2))
    assert again == features
    assert again.hash == features.hash
    assert np.array_equal(again(U), features(U))


@pytest.mark.parametrize("change", ["seed", "lengthscale", "noise", "count", "dimension", "kernel", "normalize"])
def test_everything_that_matters_is_in_the_hash(change):
    other = {"seed": 4, "lengthscale": 0.3, "noise": 0.02, "count": 41, "dimension": 3, "kernel": "Matern52"}
    assert make(**{change: other.get(change, False)}).hash != make().hash


def test_a_changed_number_is_noticed():
    data = make().to_dict()
    data["frequencies"][3][1] += 1e-12
    with pytest.raises(ValueError, match="not what their hash says"):
        SharedFeatures.from_dict(data)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("count", 1),
        ("count", 2.5),
        ("dimension", 0),
        ("lengthscale", 0.0),
        ("lengthscale", np.nan),
        ("noise", -1.0),
        ("noise", np.inf),
        ("seed", -1),
        ("kernel", "Linear"),
    ],
)
def test_bad_options_are_refused(option, value):
    with pytest.raises(ValueError, match=option):
        make(**{option: value})


@pytest.mark.parametrize("kernel", ["SE", "Matern32", "Matern52"])
def test_normalized_features_have_the_gradient_they_claim(kernel):
    features = make(kernel=kernel)
    rng = np.random.default_rng(1)
    U, w = rng.random((6, 2)), rng.standard_normal(40)
    phi, pull = features.fourier.pull_input(U)
    assert np.allclose(phi, features(U), rtol=0, atol=1e-15)
    step = 1e-6
    for axis in range(2):
        shift = step * np.eye(2)[axis]
        slope = (features(U + shift) @ w - features(U - shift) @ w) / (2 * step)
        assert np.allclose(pull(w)[:, axis], slope, atol=1e-6)
    assert np.allclose(pull(np.tile(w, (6, 1))), pull(w))


def test_without_normalization_the_features_are_the_plain_ones():
    features = make(normalize=False)
    norms = (features(np.random.default_rng(0).random((50, 2))) ** 2).sum(axis=1)
    assert norms.std() > 0.01
    plain = FourierFeatures(SE(0.2), 2, 40, np.random.default_rng(0), kind="cos_phase")
    assert not plain.normalize


def test_the_unit_cube_of_a_domain():
    from surefoot import Box, Candidates, Choice, Float, Space

    assert np.allclose(to_unit(Box([(2.0, 4.0), (5.0, 5.0)]), np.array([[3.0, 5.0]])), [[0.5, 0.0]])
    assert np.allclose(to_unit(Candidates([[2.0], [3.0], [6.0]]), np.array([[3.0]])), [[0.25]])
    space = Space(rate=Float(1e-4, 1.0, log=True), kind=Choice(["a", "b"]))
    assert np.allclose(to_unit(space, space.encode([[1e-2, 1.0]])), [[0.5, 0.0, 1.0]])


def test_draws_agree_with_the_posterior_of_the_weights():
    """The message's sampler has the mean and variance of the belief room's weight posterior."""
    features = make()
    rng = np.random.default_rng(2)
    for t in (1, 10, 60):  # fewer and more measurements than weights
        phi, y = features(rng.random((t, 2))), rng.standard_normal(t)
        exact = WeightPosterior(phi, y, 0.01)
        mean = draw_weights(phi, y, 0.01, np.zeros(40), np.zeros(t))
        assert np.allclose(mean, exact.mean, atol=1e-10)


def test_torch_draws_what_numpy_draws():
    torch = pytest.importorskip("torch")
    features = make()
    rng = np.random.default_rng(2)
    for t in (5, 50):
        phi, y = features(rng.random((t, 2))), rng.standard_normal(t)
        prior, errors = rng.standard_normal(40), rng.standard_normal(t)
        for route in (None, "cholesky", "pathwise", "map"):
            here = draw_weights(phi, y, 0.01, prior, errors, route=route)
            there = draw_weights(
                *map(torch.as_tensor, (phi, y)), 0.01, *map(torch.as_tensor, (prior, errors)), route=route
            )
            assert np.allclose(here, there.numpy(), atol=1e-9)


def test_an_unknown_route_is_refused():
    with pytest.raises(ValueError, match="route"):
        draw_weights(np.eye(2), np.ones(2), 0.1, np.zeros(2), np.zeros(2), route="svd")


def test_outputs():
    y = np.array([[3.0, 1.0, 2.0, 2.0], [5.0, 5.0, 5.0, 5.0]])
    assert transform_outputs(y, "none") is y
    standard = transform_outputs(y, "standardize")
    assert np.allclose(standard[0].mean(), 0.0)
    assert np.allclose(standard[0].std(), 1.0)
    assert np.array_equal(standard[1], np.zeros(4))  # a constant tells nothing
    ranks = transform_outputs(y, "rank")
    assert np.allclose(ranks[0], transform_outputs(np.exp(9.0 * y[0]), "rank"))  # any increasing map
    assert ranks[0][2] == ranks[0][3]
    assert np.array_equal(transform_outputs(1e9 * y[1], "standardize"), np.zeros(4))
    with pytest.raises(ValueError, match="outputs"):
        transform_outputs(y, "log")
