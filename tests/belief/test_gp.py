"""GP: construction, likelihood and its gradient, schedule, serialization."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as peer

from surefoot.belief import GP, SE, Fixed, Kernel, Linear, LogNormal, Matern, RationalQuadratic
from surefoot.domain import Box, Candidates, Choice, Float, Int, Space


def data(n: int = 30, d: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.random((n, d))
    return X, np.sin(5.0 * X[:, 0]) + X.sum(axis=1) + 0.1 * rng.normal(size=n)


@pytest.mark.parametrize("kernel", [SE([0.3, 0.5, 1.0], variance=2.0), Matern(2.5, 0.4)])
def test_likelihood_and_gradient_agree_with_scikit_learn(kernel: SE) -> None:
    X, y = data()
    length = kernel.lengthscale.tolist()
    inner = peer.RBF(length) if isinstance(kernel, SE) else peer.Matern(length, nu=2.5)
    theirs = peer.ConstantKernel(kernel.variance) * inner + peer.WhiteKernel(0.05)
    model = GaussianProcessRegressor(theirs, alpha=0.0, optimizer=None).fit(X, y)
    value, slope = model.log_marginal_likelihood(model.kernel_.theta, eval_gradient=True)
    ours, gradient = GP(kernel, 0.05).log_likelihood(X, y, gradient=True)
    assert ours == pytest.approx(value, abs=1e-8)
    np.testing.assert_allclose(gradient, slope, atol=1e-8)
    assert GP(kernel, 0.05, mean=2.0).log_likelihood(X, y + 2.0) == pytest.approx(value, abs=1e-8)


@pytest.mark.parametrize(
    "kernel",
    [
        SE([0.3, 0.5, 1.0], variance=0.7),
        Matern(0.5, 0.5),
        RationalQuadratic([0.3, 0.5, 1.0], alpha=0.8),
        SE(0.4) * Matern(1.5, 0.8) + Linear(0.3).on([1]),
    ],
)
@pytest.mark.parametrize("own", [False, True])
def test_likelihood_gradient_agrees_with_differences(kernel: Kernel, own: bool) -> None:
    X, y = data()
    noise = np.where(np.arange(len(y)) % 2, np.nan, 0.2) if own else None
    gp = GP(kernel, 0.03, mean=1.0)
    _, gradient = gp.log_likelihood(X, y, noise, gradient=True)
    numeric = [
        (
            gp.with_theta(gp.theta + h).log_likelihood(X, y, noise)
            - gp.with_theta(gp.theta - h).log_likelihood(X, y, noise)
        )
        / 2e-6
        for h in 1e-6 * np.eye(len(gp.theta))
    ]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-5)


def test_likelihood_is_that_of_the_predictions() -> None:
    X, y = data(8)
    gp = GP(SE(0.4), 0.1, mean=1.0)
    post, total = gp.condition(), 0.0
    for x, value in zip(X, y, strict=True):
        mean, var = post.mean(x[None])[0], post.var(x[None])[0] + gp.noise
        total -= 0.5 * ((value - mean) ** 2 / var + np.log(2 * np.pi * var))
        post.append(x, value)
    assert gp.log_likelihood(X, y) == pytest.approx(total, abs=1e-9)


def test_refit_schedule() -> None:
    assert not GP().due(5, None)
    gp = GP().refit(every=3)
    assert gp.due(1, None)
    assert not gp.due(0, None)
    assert [gp.due(n, 4) for n in (4, 5, 6, 7, 8)] == [False, False, False, True, True]
    assert gp.refit(None).every is None


@pytest.mark.parametrize(
    "domain",
    [
        Box([(0.0, 1.0), (-500.0, 500.0)]),
        Box([(2.0, 2.0), (0.0, 1.0)]),
        Candidates(np.random.default_rng(0).random((20, 4))),
        Space(lr=Float(1e-5, 1e-1, log=True), depth=Int(1, 10), kind=Choice(["a", "b", "c"])),
    ],
    ids=["box", "single value", "candidates", "space"],
)
def test_automatic_suits_its_domain(domain: object) -> None:
    gp = GP.automatic(domain)  # type: ignore[arg-type]
    assert gp.every == 1
    assert gp.standardize
    lengths = gp.kernel.lengthscale  # type: ignore[attr-defined]
    assert lengths.shape == (domain.encoded_dimension,)  # type: ignore[attr-defined]
    np.testing.assert_allclose(lengths / lengths[0], domain.extent() / domain.extent()[0])  # type: ignore[attr-defined]
    X = domain.encode(domain.design(6, np.random.default_rng(0)))  # type: ignore[attr-defined]
    assert np.isfinite(gp.fit(X, X.sum(axis=1)).condition(X, X.sum(axis=1)).predict(X)).all()


def test_automatic_with_another_kernel() -> None:
    gp = GP.automatic(Box.unit(3), kernel=Matern(1.5), samples=4)
    assert isinstance(gp.kernel, Matern)
    assert (gp.kernel.nu, gp.samples) == (1.5, 4)


def test_priors_are_found_by_their_short_names() -> None:
    one, two = LogNormal(0.0, 1.0), LogNormal(1.0, 1.0)
    gp = GP(SE([1.0, 1.0]) + Matern(2.5), priors={"lengthscale": one, "left.lengthscale[1]": two, "noise": Fixed()})
    found = dict(zip(gp.names, map(gp.prior, gp.names), strict=True))
    assert found == {
        "left.variance": None,
        "left.lengthscale[0]": one,
        "left.lengthscale[1]": two,
        "right.variance": None,
        "right.lengthscale": one,
        "noise": Fixed(),
    }


def test_serialization() -> None:
    gp = GP.automatic(Box.unit(2), samples=2)
    X, y = data(8, 2)
    for each in (gp, gp.fit(X, y), GP(SE(0.1) * Linear(), 0.3, mean=-1.0, priors={"mean": Fixed()}, every=4)):
        again = GP.from_dict(json.loads(json.dumps(each.to_dict(), allow_nan=False)))
        assert again == each
        assert hash(again) == hash(each)
        np.testing.assert_array_equal(again.condition(X, y).mean(X), each.condition(X, y).mean(X))


def test_a_gp_is_immutable() -> None:
    gp = GP()
    with pytest.raises(FrozenInstanceError):
        gp.noise = 1.0  # type: ignore[misc]
    with pytest.raises(TypeError):
        gp.priors["noise"] = Fixed()  # type: ignore[index]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise": -1.0}, "noise"),
        ({"noise": np.nan}, "noise"),
        ({"mean": np.inf}, "mean"),
        ({"floor": -1e-3}, "floor"),
        ({"every": 0}, "every"),
        ({"every": 1.5}, "every"),
        ({"samples": -1}, "samples"),
        ({"samples": 2.5}, "samples"),
        ({"noise": "small"}, "noise"),
        ({"mean": None}, "mean"),
        ({"priors": {"lengthscale": Fixed(-1.0)}}, "lengthscale cannot be held at -1.0"),
        ({"priors": {"lenghtscale": LogNormal(0.0, 1.0)}}, "lenghtscale"),
    ],
)
def test_bad_arguments(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GP(**options)


def test_bad_kernel_and_theta() -> None:
    with pytest.raises(TypeError, match="kernel"):
        GP("se")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="theta"):
        GP().with_theta([0.0])
    with pytest.raises(TypeError, match=r"prior of noise must be .* got 3\.0"):
        GP(priors={"noise": 3.0})  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="one for each of the 3 values"):
        GP().condition(np.zeros((3, 1)), np.zeros(3), [0.1, 0.2])


def test_making_a_gp_of_many_dimensions_lists_its_names_once(monkeypatch):
    # Finding 6 of the review of 0.1.0: they were listed again for each prior.
    listed, names = [], GP.names.fget

    def counted(gp):
        listed.append(gp)
        return names(gp)

    monkeypatch.setattr(GP, "names", property(counted))
    GP.automatic(Box([(0.0, 1.0)] * 200))
    assert len(listed) == 1
    with pytest.raises(ValueError, match=r"unknown parameters \['lenghtscale'\]; this GP has"):
        GP(SE([1.0, 2.0]), priors={"lenghtscale": LogNormal(0.0, 1.0), "lengthscale": LogNormal(0.0, 1.0)})
