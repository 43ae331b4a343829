"""The BoTorch bridge: round trips of models, beliefs inside policies, and two rules against brute force."""

from __future__ import annotations

import itertools
import json
import math
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("botorch", reason="BoTorch is not installed here; `make test-botorch` runs these tests")

import gpytorch.kernels as gk
import torch
from botorch.acquisition import UpperConfidenceBound, qKnowledgeGradient, qLogNoisyExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import ModelListGP, SingleTaskGP, SingleTaskVariationalGP
from botorch.models.transforms import Log, Normalize
from botorch.models.transforms.input import InputStandardize, Warp
from botorch.optim import optimize_acqf, optimize_acqf_discrete
from botorch.sampling import SobolQMCNormalSampler
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.means import LinearMean
from gpytorch.mlls import ExactMarginalLogLikelihood

import surefoot
from surefoot import (
    GP,
    GPUCB,
    SE,
    Box,
    Candidates,
    ExpectedImprovement,
    Linear,
    Matern,
    NotSupported,
    Policy,
    ProbabilityOfImprovement,
    RationalQuadratic,
    ThompsonSampling,
    widths,
)
from surefoot.belief import GridPosterior
from surefoot.belief.kernels import Constant
from surefoot.bridge.botorch import (
    BotorchGP,
    GPModel,
    ModelBelief,
    RobustUpperBound,
    TruncatedVarianceReduction,
    to_gp,
    to_posterior,
)
from surefoot.bridge.botorch.belief import hallucinate
from surefoot.domain.perturbation import AroundEstimate, Ball, Groups, UnknownParameters, WeightedBox

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(9, 2))
Y = np.sin(5.0 * X[:, 0]) + X[:, 1] ** 2
Z = RNG.uniform(size=(12, 2))
UNIT = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
LINE = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
GRID = np.linspace(0.0, 1.0, 41)

KERNELS = {
    "SE": SE(0.4, variance=2.0),
    "ARD": SE([0.3, 0.8]),
    "Matern-1/2": Matern(0.5, 0.5),
    "Matern-3/2": Matern(1.5, [0.5, 0.2]),
    "Matern-5/2": Matern(2.5, 0.5, variance=3.0),
    "RQ": RationalQuadratic(0.4, alpha=1.7),
    "sum": SE(0.4) + Linear(0.5) + Constant(2.0),
    "product": SE(0.4) * Matern(2.5, 0.9),
    "restricted": SE(0.4).on([1]) + Matern(1.5, 0.7).on([0]),
}


@pytest.fixture(autouse=True)
def quiet_and_seeded():
    torch.manual_seed(0)  # the starts of optimize_acqf
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def tensor(array) -> torch.Tensor:
    return torch.as_tensor(np.array(array), dtype=torch.float64)


def close(a, b, tolerance=1e-8) -> bool:
    a, b = (v.detach().numpy() if isinstance(v, torch.Tensor) else np.asarray(v) for v in (a, b))
    return np.allclose(a, b, rtol=0.0, atol=tolerance)


# -- a Surefoot posterior as a model ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KERNELS)
def test_a_model_says_what_the_posterior_says(name):
    post = GP(KERNELS[name], noise=1e-2, mean=0.7).condition(X, Y)
    model = GPModel(post)
    made = model.posterior(tensor(Z))  # twelve points jointly
    assert close(made.mean[:, 0], post.mean(Z))
    assert close(made.covariance_matrix, post.cov(Z))
    batch = model.posterior(tensor(Z.reshape(2, 2, 3, 2)))
    assert batch.mean.shape == (2, 2, 3, 1)
    assert close(batch.mean.flatten(), post.mean(Z))
    assert close(batch.variance.flatten(), post.var(Z))
    assert close(batch.covariance_matrix[1, 0], post.cov(Z[6:9]))
    assert close(model.covariance(tensor(Z[:4]), tensor(Z[4:])), post.cov(Z[:4], Z[4:]))


@pytest.mark.parametrize("name", KERNELS)
def test_gradients_are_those_of_the_posterior_and_finite_at_measured_points(name):
    post = GP(KERNELS[name], noise=1e-2).condition(X, Y)
    points = np.concatenate([Z, X[:2]]) if name != "Matern-1/2" else Z  # that one has a kink where it was measured
    x = tensor(points)[:, None].requires_grad_()
    made = GPModel(post).posterior(x)
    (dmean,) = torch.autograd.grad(made.mean.sum(), x, retain_graph=True)
    (dstd,) = torch.autograd.grad(made.variance.sqrt().sum(), x)
    _, _, expected_mean, expected_std = post.gradient(points)
    assert close(dmean[:, 0], expected_mean)
    assert close(dstd[:, 0], expected_std)
    at_data = tensor(X)[:, None].requires_grad_()
    GPModel(post).posterior(at_data).variance.sum().backward()
    assert at_data.grad.isfinite().all()


def test_noise_of_measurements():
    model = GPModel(GP(SE(0.3), noise=0.2).condition(X, Y))
    latent, noisy = model.posterior(tensor(Z)), model.posterior(tensor(Z), observation_noise=True)
    assert close(noisy.variance - latent.variance, 0.2)
    given = model.posterior(tensor(Z), observation_noise=torch.full((12, 1), 0.7, dtype=torch.float64))
    assert close(given.variance - latent.variance, 0.7)


def test_a_prior_is_a_model_too():
    model = GPModel(GP(SE(0.3, variance=4.0), mean=2.0).condition())
    made = model.posterior(tensor(Z))
    assert close(made.mean, 2.0)
    assert close(made.variance, 4.0)
    post = GP(SE(0.3, variance=4.0), mean=2.0, noise=0.1).condition(X, Y)
    told = GPModel(GP(SE(0.3, variance=4.0), mean=2.0, noise=0.1).condition())
    told = told.condition_on_observations(tensor(X), tensor(Y)[:, None])
    assert close(told.posterior(tensor(Z)).mean[:, 0], post.mean(Z))


def test_sampled_hyper_parameters_are_an_ensemble():
    post = GP(members=(GP(SE(0.2), 0.01), GP(SE(0.8), 0.04, mean=1.0), GP(Matern(1.5, 0.5), 0.02))).condition(X, Y)
    model = GPModel(post)
    assert model.batch_shape == (3,)
    made = model.posterior(tensor(Z)[:, None])
    assert close(made.mixture_mean.flatten(), post.mean(Z))
    assert close(made.mixture_variance.flatten(), post.var(Z))
    values = UpperConfidenceBound(model, beta=4.0)(tensor(Z)[:, None])
    expected = np.mean([m.mean(Z) + 2.0 * m.std(Z) for m in post.members], axis=0)
    assert close(values, expected)
    with pytest.raises(NotSupported, match="ensemble"):
        model.condition_on_observations(tensor(X[:1]), tensor([[1.0]]))


def test_further_observations_are_those_of_one_larger_posterior():
    gp = GP(Matern(2.5, 0.4), noise=0.01, mean=0.3)
    model, noise = GPModel(gp.condition(X[:5], Y[:5])), RNG.uniform(0.01, 0.1, size=4)
    more = model.condition_on_observations(tensor(X[5:]), tensor(Y[5:, None]), noise=tensor(noise[:, None]))
    expected = gp.condition(X, Y, np.append(np.full(5, 0.01), noise))
    assert close(more.posterior(tensor(Z)).mean[:, 0], expected.mean(Z))
    assert close(more.posterior(tensor(Z)).covariance_matrix, expected.cov(Z))
    again = more.condition_on_observations(tensor(Z[:2]), tensor([[1.0], [2.0]]))
    twice = gp.condition(
        np.concatenate([X, Z[:2]]), np.append(Y, [1.0, 2.0]), np.append(np.full(5, 0.01), [*noise, 0.01, 0.01])
    )
    assert close(again.posterior(tensor(Z)).covariance_matrix, twice.cov(Z))
    assert close(model.posterior(tensor(X[5:])).mean[:, 0], gp.condition(X[:5], Y[:5]).mean(X[5:]))  # unchanged


def test_a_batch_of_fantasies():
    gp = GP(SE(0.4), noise=0.01)
    model = GPModel(gp.condition(X, Y))
    points = tensor(Z.reshape(4, 3, 2))  # four batches of three
    fantasy = model.fantasize(points, SobolQMCNormalSampler(torch.Size([5]), seed=0))
    assert fantasy.batch_shape == (5, 4)
    assert fantasy.posterior(tensor(X[:2])).mean.shape == (5, 4, 2, 1)
    values = tensor(RNG.normal(size=(5, 4, 3, 1)))
    told = model.condition_on_observations(points, values)
    for i, j in itertools.product(range(5), range(4)):
        direct = gp.condition(np.concatenate([X, Z[3 * j : 3 * j + 3]]), np.append(Y, values[i, j, :, 0]))
        made = told.posterior(tensor(X[:2]))
        assert close(made.mean[i, j, :, 0], direct.mean(X[:2]))
        assert close(made.covariance_matrix[i, j], direct.cov(X[:2]))


def test_acquisitions_of_botorch_optimize_a_surefoot_model():
    model = GPModel(GP(SE(0.3), noise=1e-3).condition(X, Y))
    bound = UpperConfidenceBound(model, beta=4.0)
    post = GP(SE(0.3), noise=1e-3).condition(X, Y)
    assert close(bound(tensor(Z)[:, None]), post.mean(Z) + 2.0 * post.std(Z))
    x, _ = optimize_acqf(bound, UNIT, q=1, num_restarts=4, raw_samples=64)
    policy = GPUCB(Box.unit(2), gp=GP(SE(0.3), noise=1e-3), width=widths.Constant(2.0), seed=0)
    for point, value in zip(X, Y, strict=True):
        policy.tell(point, value)
    assert close(x[0], policy.ask().x, 1e-3)
    for rule, q in [
        (qLogNoisyExpectedImprovement(model, tensor(X), cache_root=False), 2),
        (qKnowledgeGradient(model, num_fantasies=4), 1),
    ]:
        candidates, value = optimize_acqf(rule, UNIT, q=q, num_restarts=2, raw_samples=8, options={"maxiter": 5})
        assert candidates.shape == (q, 2)
        assert value.isfinite().all()


def test_bad_arguments_of_a_model():
    model = GPModel(GP(SE(0.3)).condition(X, Y))
    with pytest.raises(TypeError, match="posterior"):
        GPModel(GP())
    with pytest.raises(ValueError, match="coordinates"):
        model.posterior(torch.zeros(1, 3, dtype=torch.float64))
    with pytest.raises(ValueError, match="output"):
        model.posterior(tensor(Z), output_indices=[1])
    with pytest.raises(ValueError, match="n x 1"):
        model.condition_on_observations(tensor(X), tensor(Y))  # a column is missing


# -- a BoTorch model in Surefoot's terms ------------------------------------------------------------------------------


def single(scale=1.0, **options) -> SingleTaskGP:
    """A model with hyper-parameters that are not the first ones it comes with."""
    model = SingleTaskGP(tensor(X * scale), tensor(10.0 + 3.0 * Y)[:, None], **options)
    for i, parameter in enumerate(model.parameters()):
        parameter.data += 0.1 * (i + 1)
    return model.eval()


MODELS = {
    "default": {},
    "plain outputs": {"outcome_transform": None},
    "known noise": {"train_Yvar": tensor(RNG.uniform(0.01, 0.2, size=(9, 1)))},
    "normalized": {"input_transform": Normalize(2), "scale": 40.0},
    "standardized": {"input_transform": InputStandardize(2), "scale": 40.0},
    "one normalized": {"input_transform": Normalize(2, indices=[1]), "scale": 3.0},
    "Matern": {"covar_module": gk.ScaleKernel(gk.MaternKernel(nu=1.5, ard_num_dims=2))},
    "one length": {"covar_module": gk.ScaleKernel(gk.RBFKernel()), "input_transform": Normalize(2), "scale": 9.0},
    "RQ": {"covar_module": gk.RQKernel()},
    "restricted": {
        "covar_module": gk.ScaleKernel(gk.RBFKernel(active_dims=[1])) + gk.MaternKernel(nu=0.5, active_dims=[0]),
        "input_transform": Normalize(2),
        "scale": 5.0,
    },
    "product": {"covar_module": gk.RBFKernel(ard_num_dims=2) * gk.ScaleKernel(gk.MaternKernel()) + gk.ConstantKernel()},
    "linear": {"covar_module": gk.LinearKernel() + gk.ScaleKernel(gk.RBFKernel())},
}


@pytest.mark.parametrize("name", MODELS)
def test_a_translated_model_says_the_same(name):
    options = dict(MODELS[name])
    scale = options.pop("scale", 1.0)
    model = single(scale, **options)
    made, post = model.posterior(tensor(Z * scale)), to_posterior(model)
    assert close(made.mean[:, 0], post.mean(Z * scale))
    assert close(made.variance[:, 0], post.var(Z * scale))
    assert close(made.covariance_matrix, post.cov(Z * scale))
    again = GPModel(post).posterior(tensor(Z * scale))  # there and back
    assert close(again.covariance_matrix, made.covariance_matrix)
    assert GP.from_dict(json.loads(json.dumps(to_gp(model).to_dict()))) == to_gp(model)


UNTRANSLATABLE = {
    "inputs": (lambda: single(input_transform=Warp(2, indices=[0, 1])), "Warp"),
    "outputs": (lambda: single(outcome_transform=Log()), "Log"),
    "kernel": (lambda: single(covar_module=gk.PeriodicKernel()), "PeriodicKernel"),
    "shifted linear": (lambda: single(covar_module=gk.LinearKernel(), input_transform=Normalize(2)), "LinearKernel"),
    "mean": (lambda: single(mean_module=LinearMean(2)), "LinearMean"),
    "two outputs": (lambda: SingleTaskGP(tensor(X), tensor(np.stack([Y, Y], axis=1))), "one output"),
    "variational": (lambda: SingleTaskVariationalGP(tensor(X), tensor(Y)[:, None]), "no exact Gaussian process"),
    "list": (lambda: ModelListGP(single(), single()), "one output|no exact"),
}


@pytest.mark.parametrize("name", UNTRANSLATABLE)
def test_what_has_no_counterpart_is_named(name):
    make, complaint = UNTRANSLATABLE[name]
    with pytest.raises(NotSupported, match=complaint):
        to_gp(make())


# -- inside policies --------------------------------------------------------------------------------------------------


def goal(x) -> float:
    return float(np.sin(6.0 * x[0]) + 0.5 * np.sum(x))


def run(policy, steps=6) -> list[list[float]]:
    asked = []
    for _ in range(steps):
        query = policy.ask()
        policy.tell(query, goal(query.x))
        asked.append(query.x.tolist())
    return asked


def line_model(**options) -> SingleTaskGP:
    x = np.linspace(0.05, 0.95, 6)[:, None]
    return SingleTaskGP(tensor(x), tensor([[goal(v)] for v in x]), **options).eval()


DOMAINS = {"candidates": Candidates(GRID), "box": Box([(0.0, 1.0)])}


@pytest.mark.parametrize("name", DOMAINS)
def test_a_translated_model_is_a_belief_like_any_other(name):
    policy = GPUCB(DOMAINS[name], gp=to_gp(line_model()), width=widths.Constant(2.0), seed=0)
    first = run(policy, 3)
    resumed = Policy.from_state(json.loads(json.dumps(policy.state())))
    assert run(resumed, 3) == run(policy, 3)
    assert first == run(GPUCB(DOMAINS[name], gp=to_gp(line_model()), width=widths.Constant(2.0), seed=0), 3)


@pytest.mark.parametrize("name", DOMAINS)
def test_a_model_as_it_is_chooses_what_its_translation_chooses(name):
    """The translation is told what the model was trained on; the model knows it."""
    model = line_model()
    direct = GPUCB(DOMAINS[name], gp=ModelBelief(model), width=widths.Constant(2.0), seed=0)
    domain = DOMAINS[name] if name == "box" else Candidates(np.append(GRID, model.train_inputs[0].numpy()))
    translated = GPUCB(domain, gp=to_gp(model), width=widths.Constant(2.0), seed=0)
    level, spread = (float(v) for v in (model.outcome_transform.means, model.outcome_transform.stdvs))
    for x, y in zip(model.train_inputs[0].numpy(), model.train_targets.numpy(), strict=True):
        translated.tell(x, level + spread * y)
    if name == "box":
        assert np.allclose(run(direct, 4), run(translated, 4), atol=1e-4)
    else:
        for _ in range(4):
            query = direct.ask()
            scores = translated.posterior().predict(domain.points)
            best = (scores[0] + 2.0 * scores[1])[: len(GRID)]
            assert query.index == np.argmax(best)
            for policy in (direct, translated):
                policy.tell(query.x, goal(query.x)) if policy is translated else policy.tell(query, goal(query.x))


def test_a_model_as_it_is_knows_pending_points_and_forgets_them():
    policy = GPUCB(Candidates(GRID), gp=ModelBelief(line_model()), width=widths.Constant(3.0), seed=0)
    run(policy, 2)
    before = policy.posterior().predict(GRID[:, None])
    batch = policy.ask(4)
    assert len({query.index for query in batch}) == 4
    assert np.array_equal(policy.posterior().predict(GRID[:, None]), before)
    policy.tell(batch[1], None)  # failed
    assert policy.ask().index not in {query.index for query in batch}
    assert np.isfinite(policy.recommend().mean)


def test_a_model_as_it_is_has_the_posterior_of_its_translation():
    for options in ({}, {"train_Yvar": torch.full((6, 1), 0.01, dtype=torch.float64)}):
        model = line_model(**options)
        post, expected = ModelBelief(model).condition([[0.3], [0.6]], [0.5, 0.2]), to_posterior(model)
        gain = expected.information_gain
        expected.append([0.3], 0.5)
        expected.append([0.6], 0.2)
        assert close(post.mean(GRID[:, None]), expected.mean(GRID[:, None]), 1e-6)
        assert close(post.var(GRID[:, None]), expected.var(GRID[:, None]), 1e-6)
        assert close(post.cov(GRID[:3, None], GRID[5:7, None]), expected.cov(GRID[:3, None], GRID[5:7, None]), 1e-6)
        for ours, theirs in zip(post.gradient([[0.37]]), expected.gradient([[0.37]]), strict=True):
            assert close(ours, theirs, 1e-5)
        assert math.isclose(post.information_gain, expected.information_gain - gain, rel_tol=1e-4)
        draws = post.sample([[0.31], [0.9]], 4000, np.random.default_rng(0))
        assert close(np.cov(draws.T), expected.cov([[0.31], [0.9]]), 0.1 * expected.var([[0.9]])[0])
        with pytest.raises(ValueError, match="single measurement"):
            post.pop()  # two came at once
        with pytest.raises(NotSupported, match="own noise"):
            post.append([0.5], 1.0, noise=0.7)


def test_other_policies_ask_a_model_as_it_is_or_refuse_it():
    for kind in (ExpectedImprovement, ThompsonSampling, ProbabilityOfImprovement):
        policy = kind(Candidates(GRID), gp=ModelBelief(line_model()), seed=0)
        run(policy, 3)
        assert goal(policy.recommend().x) > -1.0
    run(ExpectedImprovement(Box([(0.0, 1.0)]), gp=ModelBelief(line_model()), seed=0), 2)
    belief, post = ModelBelief(line_model()), to_posterior(line_model())
    assert close(belief.noise, post.gp.noise, 1e-6)
    assert close(belief.kernel(GRID[:3, None], GRID[5:7, None]), post.cov(GRID[:3, None], GRID[5:7, None]), 1e-6)
    K, pull = belief.kernel.pull_input(GRID[:3, None], GRID[5:7, None])
    shifted = belief.kernel(GRID[:3, None] + 1e-5, GRID[5:7, None])
    assert close(pull(np.ones((3, 2)))[:, 0], (shifted - K).sum(axis=1) / 1e-5, 1e-3)
    with pytest.raises((NotSupported, TypeError, ValueError)):
        ThompsonSampling(Box([(0.0, 1.0)]), gp=belief, seed=0).ask()
    with pytest.raises(NotSupported, match="mixture"):
        surefoot.TruVaR(Candidates(GRID), gp=belief, seed=0)
    with pytest.raises(NotSupported, match="as it is"):
        belief.refit(every=2)


def make(X, Y, Yvar):
    model = SingleTaskGP(X, Y, Yvar)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return model


@pytest.mark.parametrize("name", DOMAINS)
def test_botorch_fits_the_belief(name):
    policy = GPUCB(DOMAINS[name], gp=BotorchGP(make, every=2), initial=3, seed=0)
    run(policy, 5)
    state = json.loads(json.dumps(policy.state()))
    resumed = Policy.from_state(state, gp=BotorchGP(make, every=2))
    assert run(resumed, 3) == run(policy, 3)
    assert goal(policy.recommend().x) > max(goal([x]) for x in GRID) - 0.05
    with pytest.raises(ValueError, match="pass it again: gp="):
        Policy.from_state(state)
    with pytest.raises(ValueError, match="differs from the stored one"):
        Policy.from_state(state, gp=BotorchGP(make, every=3))


def test_the_noise_of_measurements_reaches_botorch():
    seen = []
    belief = BotorchGP(lambda X, Y, Yvar: seen.append(Yvar) or make(X, Y, Yvar))
    belief.fit(X, Y)
    belief.fit(X, Y, np.full(9, 0.3))
    assert seen[0] is None
    assert close(seen[1], 0.3)
    with pytest.raises(NotSupported, match="all measurements or of none"):
        belief.fit(X, Y, [0.3] + [np.nan] * 8)
    with pytest.raises(TypeError, match="model of BoTorch"):
        BotorchGP(lambda X, Y, Yvar: None).fit(X, Y)
    with pytest.raises(TypeError, match="function"):
        BotorchGP(3)
    with pytest.raises(TypeError, match="model"):
        ModelBelief("SingleTaskGP")
    with pytest.raises(NotSupported, match="2 outputs"):
        ModelBelief(SingleTaskGP(tensor(X), tensor(np.stack([Y, Y], axis=1))))


# -- StableOpt's rule -------------------------------------------------------------------------------------------------


def surfaces() -> dict[str, torch.nn.Module]:
    plane = SingleTaskGP(tensor(X), tensor(Y)[:, None], likelihood=GaussianLikelihood()).eval()
    return {"surefoot": GPModel(GP(SE(0.3), noise=1e-3).condition(X, Y)), "botorch": plane}


@pytest.mark.parametrize("name", ["surefoot", "botorch"])
def test_the_robust_bound_is_the_smallest_after_any_perturbation(name):
    model = surfaces()[name]
    rule, plain = RobustUpperBound(model, Ball(0.2), UNIT, width=1.5), UpperConfidenceBound(model, beta=2.25)
    offsets = rule.offsets
    assert len(offsets) > 128
    values, low, samples = rule(tensor(Z)[:, None]), rule.lower(tensor(Z)[:, None]), rule.sample(tensor(Z))
    for z, value, worst, at in zip(tensor(Z), values, low, samples, strict=True):
        around = (z + offsets).clamp(0.0, 1.0)
        assert close(value, plain(around[:, None]).min())
        made = model.posterior(around[:, None])
        bounds = (made.mean - 1.5 * made.variance.sqrt()).flatten()
        assert close(worst, bounds.min())
        assert torch.equal(at, around[bounds.argmin()])
        assert (at - z).norm() <= 0.2 + 1e-12
        assert ((at >= 0) & (at <= 1)).all()


def test_without_perturbation_the_robust_bound_is_the_bound():
    for model in surfaces().values():
        rule = RobustUpperBound(model, Ball(0.0), UNIT)
        assert torch.equal(rule(tensor(Z)[:, None]), UpperConfidenceBound(model, beta=4.0)(tensor(Z)[:, None]))
        assert torch.equal(rule.sample(tensor(Z)), tensor(Z))


def test_more_perturbations_never_help():
    model = surfaces()["surefoot"]
    offsets = RobustUpperBound(model, WeightedBox([0.3, 0.1]), UNIT).offsets
    assert close(offsets.abs().amax(dim=0), [0.3, 0.1])
    values = [RobustUpperBound(model, offsets[:m], UNIT)(tensor(Z)[:, None]) for m in range(1, 65, 7)]
    assert all((b <= a + 1e-12).all() for a, b in itertools.pairwise(values))


def test_unknown_parameters():
    """The second input is not ours to choose: maximize over the first what the second makes worst."""
    model, theta = surfaces()["surefoot"], torch.linspace(0.0, 1.0, 7, dtype=torch.float64)[:, None]
    rule = RobustUpperBound(model, UnknownParameters(theta.numpy()), LINE)
    near = RobustUpperBound(model, AroundEstimate(0.5, 0.2, box=[(0.0, 1.0)]), LINE)
    assert close([near.theta.min(), near.theta.max()], [0.3, 0.7])
    x = tensor(GRID)[:, None]
    grid = torch.stack([torch.cat([x, t.expand(len(x), 1)], dim=1) for t in theta], dim=1)  # 41 x 7 x 2
    made = model.posterior(grid.unsqueeze(-2))
    upper = (made.mean + 2.0 * made.variance.sqrt()).reshape(41, 7)
    lower = (made.mean - 2.0 * made.variance.sqrt()).reshape(41, 7)
    assert close(rule(x[:, None]), upper.amin(dim=1))
    assert torch.equal(rule.sample(x), grid[torch.arange(41), lower.argmin(dim=1)])
    best, value = optimize_acqf(rule, LINE, q=1, num_restarts=8, raw_samples=64)
    assert best.shape == (1, 1)
    assert value >= upper.amin(dim=1).max() - 1e-6


def test_the_robust_bound_under_both_optimizers_with_pending_points():
    model = surfaces()["surefoot"]
    rule, soft = (RobustUpperBound(model, Ball(0.15), UNIT, temperature=t) for t in (0.0, 0.01))
    x, _ = optimize_acqf(soft, UNIT, q=1, num_restarts=6, raw_samples=64)  # a minimum has kinks to stick to
    value = rule(x)
    grid = torch.cartesian_prod(*[tensor(np.linspace(0, 1, 21))] * 2)
    best, score = optimize_acqf_discrete(rule, q=1, choices=grid)
    assert torch.equal(best[0], grid[rule(grid[:, None]).argmax()])
    assert value >= score - 1e-9  # the continuous search does not lose to a grid
    pair, _ = optimize_acqf(rule, UNIT, q=2, num_restarts=4, raw_samples=32, sequential=True)
    assert pair.shape == (2, 2)
    assert rule.X_pending is None  # BoTorch takes its pending points back, and so does the rule
    assert rule.model is model
    rule.set_X_pending(x)
    expected = hallucinate(model, RobustUpperBound(model, rule.offsets, UNIT).sample(x))
    assert close(rule.model.posterior(tensor(Z)).variance, expected.posterior(tensor(Z)).variance)
    rule.set_X_pending(None)
    assert close(rule(x), value)


@pytest.mark.parametrize("temperature", [0.0, 0.02])
def test_gradients_of_the_robust_bound(temperature):
    rule = RobustUpperBound(surfaces()["surefoot"], Ball(0.15), UNIT, temperature=temperature)
    x = (0.2 + 0.6 * tensor(Z))[:, None].requires_grad_()
    assert torch.autograd.gradcheck(rule, (x,), eps=1e-7, atol=1e-4)


@pytest.mark.parametrize("norm", [1.0, 2.0, math.inf])
def test_a_ball_is_filled_to_its_surface(norm):
    bounds = torch.tensor([[0.0] * 3, [1e-3] * 3], dtype=torch.float64)  # a domain much smaller than the ball
    rule = RobustUpperBound(GPModel(GP(SE(0.3)).condition()), Ball(0.5, norm=norm), bounds, count=256)
    lengths = np.linalg.norm(rule.offsets.numpy(), ord=norm, axis=1)
    assert lengths.max() <= 0.5 + 1e-12
    assert (np.abs(lengths - 0.5) < 1e-12).sum() >= 128


def test_a_soft_minimum_is_close_below():
    model, x = surfaces()["surefoot"], tensor(Z)[:, None]
    hard = RobustUpperBound(model, Ball(0.15), UNIT)
    for temperature in (0.1, 0.01):
        gap = hard(x) - RobustUpperBound(model, Ball(0.15), UNIT, temperature=temperature)(x)
        assert (gap >= 0).all()
        assert (gap <= temperature * math.log(len(hard.offsets))).all()


def test_bad_arguments_of_the_robust_bound():
    model, zero = surfaces()["surefoot"], torch.zeros(1, 2, dtype=torch.float64)
    for arguments, options, complaint in [
        ((zero[:0], UNIT), {}, "m from 1 on"),
        ((zero * math.nan, UNIT), {}, "finite"),
        ((zero[:, :1], UNIT), {}, "1 coordinates"),
        ((zero, UNIT[0]), {}, "2 x d"),
        ((Groups([0, 1]), UNIT), {}, "Groups"),
        ((WeightedBox([1.0]), UNIT), {}, "radii"),
        ((zero, UNIT), {"width": -1.0}, "width"),
        ((zero, UNIT), {"temperature": math.nan}, "temperature"),
        ((zero, UNIT), {"count": 0}, "count"),
    ]:
        with pytest.raises(ValueError, match=complaint):
            RobustUpperBound(model, *arguments, **options)
    with pytest.raises(TypeError, match="perturbation"):
        RobustUpperBound(model, 0.1, UNIT)
    with pytest.raises(NotSupported, match="2"):
        RobustUpperBound(SingleTaskGP(tensor(X), tensor(np.stack([Y, Y], axis=1))), zero, UNIT)


# -- TruVaR's rule ----------------------------------------------------------------------------------------------------

SQUARE = np.stack(np.meshgrid(np.linspace(0, 1, 9), np.linspace(0, 1, 9)), axis=-1).reshape(-1, 2)


def brute_force(post, grid, mask, at, beta, eta, noise) -> float:
    """Equation of the rule, by conditioning again on each point and looking."""
    before = np.maximum(beta * post.var(grid[mask]), eta**2).sum()
    after = post.copy()
    for x in at:
        after.append(x, 0.0, noise)
    return before - np.maximum(beta * after.var(grid[mask]), eta**2).sum()


@pytest.mark.parametrize("threshold", [None, 0.8])
def test_the_score_is_the_truncated_variance_that_a_measurement_takes(threshold):
    post = GP(SE(0.25), noise=1e-2).condition(X, Y)
    rule = TruncatedVarianceReduction(GPModel(post), tensor(SQUARE), width=1.5, target=0.4, threshold=threshold)
    upper, lower = (post.mean(SQUARE) + s * 1.5 * post.std(SQUARE) for s in (1.0, -1.0))
    mask = upper >= lower.max() if threshold is None else (upper >= 0.8) & (lower <= 0.8)
    assert 0 < mask.sum() < len(SQUARE)
    assert np.array_equal(rule.potential.numpy(), mask)
    scores = rule(tensor(Z)[:, None])
    assert scores.std() > 1e-3
    for z, score in zip(Z, scores, strict=True):
        assert close(score, brute_force(post, SQUARE, mask, [z], 2.25, 0.4, 0.01))
    pairs = rule(tensor(Z.reshape(6, 2, 2)))  # and of two measurements together
    for pair, score in zip(Z.reshape(6, 2, 2), pairs, strict=True):
        assert close(score, brute_force(post, SQUARE, mask, pair, 2.25, 0.4, 0.01))


def test_the_score_agrees_with_the_look_ahead_over_all_candidates():
    gp = GP(Matern(2.5, 0.3), noise=1e-2)
    grid = GridPosterior(gp, SQUARE)
    for i in (3, 40, 77):
        grid.append(i, float(np.sin(5.0 * SQUARE[i, 0])))
    rule = TruncatedVarianceReduction(
        GPModel(gp.condition(SQUARE[grid.indices], np.sin(5.0 * SQUARE[grid.indices, 0]))),
        tensor(SQUARE), width=2.0, target=0.3,
    )  # fmt: skip
    inside = rule.potential.numpy()
    before = np.maximum(4.0 * grid.var[inside], 0.09).sum()
    after = np.maximum(4.0 * grid.lookahead(np.arange(81))[:, inside], 0.09).sum(axis=1)
    assert close(rule(tensor(SQUARE)[:, None]), before - after)


def test_the_target_is_squared():
    """Truncating at η instead of η² makes the score flat long before the epoch can end."""
    post = GP(SE(0.25), noise=1e-6).condition(SQUARE[::2], np.zeros(41))
    half = 2.0 * post.std(SQUARE).max()
    assert half < 0.5
    rule = TruncatedVarianceReduction(GPModel(post), tensor(SQUARE), width=2.0, target=0.9 * half)
    assert rule.target == 0.9 * half
    assert half**2 < rule.target  # with η every point would be truncated
    assert rule(tensor(SQUARE)[:, None]).max() > 0


def test_targets_fall_until_a_point_is_above():
    post = GP(SE(0.25), noise=1e-4).condition(X, Y)
    half = 2.0 * post.std(SQUARE).max()
    rule = TruncatedVarianceReduction(GPModel(post), tensor(SQUARE), width=2.0, target=10.0 * half, ratio=0.5)
    assert half / 2.0 <= rule.target < half
    assert rule(tensor(Z)[:, None]).max() > 0
    done = TruncatedVarianceReduction(GPModel(post), tensor(SQUARE), width=2.0, target=0.1, threshold=1e6)
    assert done.decided
    assert torch.equal(done(tensor(Z)[:, None]), torch.zeros(12, dtype=torch.float64))


def test_any_model_will_do():
    model = surfaces()["botorch"]
    options = {"width": 2.0, "target": 0.2}
    generic = TruncatedVarianceReduction(model, tensor(SQUARE), **options)
    own = TruncatedVarianceReduction(GPModel(to_posterior(model)), tensor(SQUARE), **options)
    assert torch.equal(generic.potential, own.potential)
    assert close(generic(tensor(Z)[:, None]), own(tensor(Z)[:, None]), 1e-7)
    assert close(generic(tensor(Z.reshape(6, 2, 2))), own(tensor(Z.reshape(6, 2, 2))), 1e-7)
    for rule in (generic, own):
        rule.set_X_pending(tensor(Z[:2]))
    assert close(generic(tensor(Z)[:, None]), own(tensor(Z)[:, None]), 1e-6)


def test_costs_divide():
    model = surfaces()["surefoot"]
    plain = TruncatedVarianceReduction(model, tensor(SQUARE), width=2.0, target=0.2)
    cheap = TruncatedVarianceReduction(
        model, tensor(SQUARE), width=2.0, target=0.2, cost=lambda X: 1.0 + 3.0 * X[..., 0]
    )
    x = tensor(Z)[:, None]
    assert close(cheap(x), plain(x) / (1.0 + 3.0 * x[:, 0, 0]))
    for price in (0.0, -1.0):
        free = TruncatedVarianceReduction(
            model, tensor(SQUARE), width=2.0, target=0.2, cost=lambda X, p=price: X[..., 0] * 0 + p
        )
        with pytest.raises(ValueError, match="positive"):
            free(x)


def test_the_reduction_under_both_optimizers():
    rule = TruncatedVarianceReduction(surfaces()["surefoot"], tensor(SQUARE), width=2.0, target=0.2)
    _, value = optimize_acqf(rule, UNIT, q=1, num_restarts=6, raw_samples=64)
    best, score = optimize_acqf_discrete(rule, q=1, choices=tensor(SQUARE))
    assert value >= score - 1e-9
    assert torch.equal(best[0], tensor(SQUARE)[rule(tensor(SQUARE)[:, None]).argmax()])
    together, both = optimize_acqf(rule, UNIT, q=2, num_restarts=4, raw_samples=32)
    assert together.shape == (2, 2)
    assert both > value
    pair, _ = optimize_acqf(rule, UNIT, q=2, num_restarts=4, raw_samples=32, sequential=True)
    assert (pair[0] - pair[1]).norm() > 0.05
    inner = (0.2 + 0.6 * tensor(Z[:4]))[:, None].requires_grad_()
    assert torch.autograd.gradcheck(rule, (inner,), eps=1e-7, atol=1e-3)


def test_bad_arguments_of_the_reduction():
    model = surfaces()["surefoot"]
    good = {"points": tensor(SQUARE), "width": 2.0, "target": 0.2}
    for option, value in [
        ("points", tensor(SQUARE)[:0]), ("width", 0.0), ("target", -1.0), ("target", math.nan), ("ratio", 1.0),
        ("noise", -1.0),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=option):
            TruncatedVarianceReduction(model, **{**good, option: value})
    ensemble = GPModel(GP(members=(GP(SE(0.2)), GP(SE(0.4)))).condition(X, Y))
    with pytest.raises(NotSupported, match="ensemble"):
        TruncatedVarianceReduction(ensemble, **good)


# -- beside the policies ----------------------------------------------------------------------------------------------


def stable(gp, domain=DOMAINS["candidates"]):
    return surefoot.StableOpt(domain, perturbation=Ball(0.1), gp=gp, width=widths.Constant(2.0), seed=0)


def test_the_policy_and_the_rule_choose_the_same_robust_points():
    gp = GP(SE(0.15), noise=1e-3)
    policy = stable(gp)
    for i in (3, 17, 30):
        policy.tell(GRID[i : i + 1], goal(GRID[i : i + 1]))
    offsets = tensor(np.arange(-4, 5)[:, None] * 0.025)  # the grid's points in the ball
    for _ in range(6):
        rule = RobustUpperBound(GPModel(policy.posterior()), offsets, LINE)
        query = policy.ask()
        center = tensor(GRID)[query.note["center"]].reshape(1, 1)
        assert close(query.note["upper"], rule(tensor(GRID)[:, None, None]).max())
        assert close(query.note["upper"], rule(center))
        assert close(query.note["lower"], rule.lower(center))
        assert close(query.x, rule.sample(center)[0], 1e-12)
        policy.tell(query, goal(query.x))


@pytest.mark.parametrize("belief", [lambda: to_gp(line_model()), lambda: ModelBelief(line_model())])
@pytest.mark.parametrize("name", DOMAINS)
def test_a_botorch_model_is_the_belief_of_a_robust_policy(name, belief):
    policy = stable(belief(), DOMAINS[name])
    run(policy, 6)
    robust = [min(goal([z]) for z in GRID if abs(z - x) <= 0.1 + 1e-9) for x in GRID]
    x = policy.recommend().x[0]
    assert min(goal([z]) for z in np.clip([x - 0.1, x, x + 0.1], 0.0, 1.0)) > max(robust) - 0.2


def test_the_policy_and_the_rule_choose_the_same_reductions():
    gp = GP(SE(0.25), noise=1e-3)
    policy = surefoot.TruVaR(Candidates(SQUARE), gp=gp, seed=0, width=widths.Constant(2.0), ratio=0.5)
    for i in (10, 44, 70):
        policy.tell(SQUARE[i], goal(SQUARE[i]))
    for _ in range(6):
        query = policy.ask()
        post = gp.condition(*policy.data()[:2])
        rule = TruncatedVarianceReduction(GPModel(post), tensor(SQUARE), width=2.0, target=policy.eta, ratio=0.5)
        scores = rule(tensor(SQUARE)[:, None])
        assert scores[query.index] >= scores.max() * (1.0 - 1e-6)
        policy.tell(query, goal(query.x))


def test_the_page_runs():
    page = (Path(__file__).parents[2] / "docs" / "bridges" / "botorch.md").read_text(encoding="utf-8")
    names: dict = {}
    for block in re.findall(r"^```py\n(.*?)^```$", page, flags=re.M | re.S):
        exec(block, names)
    assert names["measure"].shape == (1, 1)
    assert 0 < len(names["undecided"]) <= 201
