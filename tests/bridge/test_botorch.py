"""The BoTorch bridge: round trips of models, and beliefs inside policies."""

from __future__ import annotations

import itertools
import json
import math

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
from botorch.optim import optimize_acqf
from botorch.sampling import SobolQMCNormalSampler
from botorch_models import (
    DOMAINS,
    GRID,
    RNG,
    UNIT,
    X,
    Y,
    Z,
    close,
    goal,
    line_model,
    quiet_and_seeded,  # noqa: F401
    run,
    tensor,
)
from gpytorch.likelihoods import GaussianLikelihood, MultitaskGaussianLikelihood
from gpytorch.means import LinearMean, ZeroMean
from gpytorch.mlls import ExactMarginalLogLikelihood
from gpytorch.models import ExactGP

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
from surefoot.belief import Additive
from surefoot.belief.algebra import kernel_from_dict
from surefoot.belief.kernels import ConstantKernel
from surefoot.bridge.botorch import (
    BotorchGP,
    GPModel,
    ModelBelief,
    to_gp,
    to_posterior,
)

KERNELS = {
    "SE": SE(0.4, variance=2.0),
    "ARD": SE([0.3, 0.8]),
    "Matern-1/2": Matern(0.5, 0.5),
    "Matern-3/2": Matern(1.5, [0.5, 0.2]),
    "Matern-5/2": Matern(2.5, 0.5, variance=3.0),
    "RQ": RationalQuadratic(0.4, alpha=1.7),
    "sum": SE(0.4) + Linear(0.5) + ConstantKernel(2.0),
    "product": SE(0.4) * Matern(2.5, 0.9),
    "restricted": SE(0.4).on([1]) + Matern(1.5, 0.7).on([0]),
}


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


def test_joint_points_may_be_equal_or_many():
    """Their covariance is singular: it is neither factorized where nobody asked, nor without jitter."""
    model = GPModel(GP(SE(0.2), noise=1e-4).condition([[0.3], [0.8]], [1.0, 0.0]))
    line = torch.linspace(0.0, 1.0, 200, dtype=torch.float64)[:, None]
    assert close(model.posterior(line).mean.flatten(), model.posterior(line.unsqueeze(-2)).mean.flatten())
    twice = line[[5, 5]]
    assert model.posterior(twice).rsample(torch.Size([3])).shape == (3, 2, 1)
    assert bool(qLogNoisyExpectedImprovement(model, X_baseline=line[[60, 60]])(twice[None]).isfinite().all())


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
    with pytest.raises(ValueError, match="the kernel has 3 length-scales, the points 2 columns"):
        GPModel(GP(SE([0.1, 0.2, 0.3])).condition()).posterior(tensor(Z))
    with pytest.raises(NotSupported, match="Additive kernel has no form in tensors"):
        GPModel(GP(Additive([[0], [1]], 0.3)).condition(X, Y)).posterior(tensor(Z))
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
    "no mean": {"mean_module": ZeroMean()},
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
    "likelihood": (lambda: single(likelihood=MultitaskGaussianLikelihood(1)), "MultitaskGaussianLikelihood"),
    "nothing to translate": (
        lambda: ExactGP(tensor(X), tensor(Y), GaussianLikelihood()),
        "ExactGP has no mean_module and covar_module",
    ),
    "batch of scales": (
        lambda: single(covar_module=gk.ScaleKernel(gk.RBFKernel(), batch_shape=torch.Size([2]))),
        r"batch of hyper-parameters, here \(2,\)",
    ),
    "batch of lengths": (
        lambda: single(covar_module=gk.RBFKernel(batch_shape=torch.Size([2]))),
        r"batch of kernels, here \(2, 1, 1\)",
    ),
}


@pytest.mark.parametrize("name", UNTRANSLATABLE)
def test_what_has_no_counterpart_is_named(name):
    make, complaint = UNTRANSLATABLE[name]
    with pytest.raises(NotSupported, match=complaint):
        to_gp(make())


# -- inside policies --------------------------------------------------------------------------------------------------


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
    # The model is noisy: without repeats=False a point that is pending may well be asked for again.
    gp, width = ModelBelief(line_model()), widths.Constant(3.0)
    policy = GPUCB(Candidates(GRID), gp=gp, width=width, repeats=False, seed=0)
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
    assert belief.refit(None) is belief
    with pytest.raises(NotSupported, match="as it is"):
        belief.refit(every=2)
    with pytest.raises(NotSupported, match="as it is"):
        belief.kernel.over(GRID[:, None])
    with pytest.raises(NotSupported, match="in its own units"):
        belief.kernel.scaled(2.0)


def test_a_model_as_it_is_has_no_parameters_and_no_factor_to_look_at():
    belief = ModelBelief(line_model())
    assert belief.kernel.names == belief.kernel.theta.tolist() == []
    assert belief.kernel.with_theta([]) is belief.kernel
    post = belief.condition([[0.3]], [0.5])
    assert np.array_equal(post.std(GRID[:, None]), post.predict(GRID[:, None])[1])
    for name in ("chol", "inverse"):
        with pytest.raises(TypeError, match="no Cholesky factor"):
            getattr(post, name)
    with pytest.raises(TypeError, match="no covariance matrix to solve with"):
        post.solve([1.0])
    for points in ([0.3], 0.3, [[[0.3]]]):
        with pytest.raises(ValueError, match=r"points must be an array of shape \(m, e\)"):
            post.mean(points)


def test_a_model_as_it_is_is_stored_by_name():
    policy = GPUCB(Candidates(GRID), gp=ModelBelief(line_model()), seed=0)
    run(policy, 2)
    state = json.loads(json.dumps(policy.state()))
    assert run(Policy.from_state(state, gp=ModelBelief(line_model())), 2) == run(policy, 2)
    with pytest.raises(ValueError, match="pass it again: gp="):
        Policy.from_state(state)
    with pytest.raises(ValueError, match="'SingleTaskGP' is code and was stored by name only"):
        kernel_from_dict((SE(0.3) + policy.gp.kernel).to_dict())


@pytest.mark.parametrize("measured", [0, 9])
def test_a_surefoot_model_as_it_is_is_the_posterior_it_was_made_of(measured):
    gp = GP(SE(0.3), noise=0.01)
    belief = ModelBelief(GPModel(gp.condition(X[:measured], Y[:measured]) if measured else gp.condition()))
    made = belief.condition([[0.2, 0.4]], [1.0])
    expected = gp.condition([*X[:measured], [0.2, 0.4]], [*Y[:measured], 1.0])
    assert close(made.mean(Z), expected.mean(Z))
    assert close(made.var(Z), expected.var(Z))


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
    assert belief.refit(4).every == 4
    with pytest.raises(ValueError, match="needs every=1 or more"):
        belief.refit(None)
    with pytest.raises(TypeError, match="model"):
        ModelBelief("SingleTaskGP")
    with pytest.raises(NotSupported, match="2 outputs"):
        ModelBelief(SingleTaskGP(tensor(X), tensor(np.stack([Y, Y], axis=1))))
