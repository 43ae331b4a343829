"""The BoTorch bridge: the rules of StableOpt and TruVaR as acquisition functions, against brute force."""

from __future__ import annotations

import itertools
import math
import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("botorch", reason="BoTorch is not installed here; `make test-botorch` runs these tests")

import torch
from botorch.acquisition import UpperConfidenceBound
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf, optimize_acqf_discrete
from botorch_models import (
    DOMAINS,
    GRID,
    LINE,
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
from gpytorch.likelihoods import GaussianLikelihood

import surefoot
from surefoot import (
    GP,
    SE,
    Candidates,
    Matern,
    NotSupported,
    widths,
)
from surefoot.belief import GridPosterior
from surefoot.bridge.botorch import (
    GPModel,
    ModelBelief,
    RobustUpperBound,
    TruncatedVarianceReduction,
    to_gp,
    to_posterior,
)
from surefoot.bridge.botorch.belief import hallucinate
from surefoot.domain import AroundEstimate, Ball, UnknownParameters, WeightedBox
from surefoot.domain.groups import Groups
from surefoot.domain.neighbors import within
from surefoot.domain.perturbation import Perturbation

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


def test_an_ensemble_is_averaged_and_takes_no_pending_points():
    parts = [GP(SE(0.2), noise=1e-3), GP(SE(0.5), noise=1e-3)]
    rule = RobustUpperBound(GPModel(GP(members=tuple(parts)).condition(X, Y)), Ball(0.15), UNIT)
    x, each = tensor(Z), [RobustUpperBound(GPModel(gp.condition(X, Y)), Ball(0.15), UNIT) for gp in parts]
    assert close(rule(x[:, None]), sum(part(x[:, None]) for part in each) / 2.0)
    around = (x[:, None] + rule.offsets).clamp(0.0, 1.0)
    low = sum(part.model.posterior(around[..., None, :]).mean for part in each) / 2.0
    low = low - sum(part.model.posterior(around[..., None, :]).variance.sqrt() for part in each)
    assert torch.equal(rule.sample(x), around[torch.arange(12), low.reshape(12, -1).argmin(dim=1)])
    with pytest.raises(NotSupported, match="an ensemble of hyper-parameters cannot take pending points"):
        rule.set_X_pending(x[:1])
    assert rule.model is rule.measured


def test_a_region_of_another_kind_has_no_form_on_a_box():
    class Corners(Perturbation):
        """Reaches a list of candidates, which a box does not have."""

        def on(self, domain):
            return within(np.zeros((1, 2)), np.zeros(2), 2.0)

        def to_dict(self):
            return {"perturbation": "Corners"}

    try:
        with pytest.raises(NotSupported, match="has no form on a box; balls, boxes and parameters beside a design"):
            RobustUpperBound(surfaces()["surefoot"], Corners(), UNIT)
    finally:
        del Perturbation.registry["Corners"]


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
    with pytest.raises(ValueError, match=r"candidates are a tensor n x d, got shape \(12, 1, 2\)"):
        RobustUpperBound(model, Ball(0.1), UNIT).sample(tensor(Z)[:, None])
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
    wrong = TruncatedVarianceReduction(model, tensor(SQUARE), width=2.0, target=0.2, cost=lambda X: X.sum(dim=(-2, -1)))
    with pytest.raises(ValueError, match=r"one number per point, \(12, 1\), got \(12,\)"):
        wrong(x)


def test_the_noise_of_a_measurement_can_be_said():
    post = GP(SE(0.25), noise=1e-2).condition(X, Y)
    for model in (GPModel(post), surfaces()["botorch"]):
        rule = TruncatedVarianceReduction(model, tensor(SQUARE), width=1.5, target=0.4, noise=0.3)
        belief = post if isinstance(model, GPModel) else to_posterior(model)
        for z, score in zip(Z, rule(tensor(Z)[:, None]), strict=True):
            expected = brute_force(belief, SQUARE, rule.potential.numpy(), [z], 2.25, rule.target, 0.3)
            assert close(score, expected, 1e-6)


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


def test_a_point_that_is_pending_twice():
    rule = TruncatedVarianceReduction(surfaces()["surefoot"], tensor(SQUARE), width=2.0, target=0.1)
    point = tensor(SQUARE)[7:8]
    free = rule(point[None])
    rule.set_X_pending(torch.cat([point, point]))
    assert 0.0 <= float(rule(point[None])) < float(free)


def test_bad_arguments_of_the_reduction():
    model = surfaces()["surefoot"]
    good = {"points": tensor(SQUARE), "width": 2.0, "target": 0.2}
    for option, value in [
        ("points", tensor(SQUARE)[:0]), ("width", 0.0), ("target", -1.0), ("target", math.nan), ("ratio", 1.0),
        ("noise", -1.0), ("threshold", math.nan),
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
