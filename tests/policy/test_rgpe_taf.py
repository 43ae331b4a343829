"""RGPE and TAF: ranks, weights, gradients, and surrogates that are not Gaussian processes."""

import math

import numpy as np
import pytest

from surefoot import GP, RGPE, SE, TAF, Box, Candidates, ExpectedImprovement, Float, Matern, Policy, Space, Task
from surefoot.belief.fourier import FourierFeatures
from surefoot.loop.state import storable
from surefoot.policy.improvement import LogImprovement
from surefoot.policy.transfer.models import slopes
from surefoot.policy.transfer.rgpe import Ensemble, leave_one_out, misranked, ranking_weights
from surefoot.policy.transfer.taf import Transferred, epanechnikov, rank_distance

LINE = np.linspace(0.0, 1.0, 50)[:, None]
KNOWN = GP(SE(lengthscale=0.15), noise=0.01)


def wave(x):
    return float(np.sin(7.0 * x[0]))


def two_tasks(n=15):
    X = np.random.default_rng(0).random((n, 1))
    return [Task(X, [3.0 + 9.0 * wave(x) for x in X], "alike"), Task(X, [-wave(x) for x in X], "unlike")]


def run(policy, f=wave, steps=6):
    for _ in range(steps):
        query = policy.ask()
        policy.tell(query, f(query.x))
    return policy


@storable
class Fourier:
    """A surrogate of Fourier features, as another party might send it: weights and nothing else."""

    def __init__(self, seed, X, y, noise=0.01):
        self.seed, self.X, self.y, self.noise = seed, np.asarray(X), np.asarray(y), noise
        self.features = FourierFeatures(SE(lengthscale=0.15), 1, 100, np.random.default_rng(seed))
        self.posterior = self.features.posterior(self.X, self.y, noise)

    def predict(self, E):
        mean, var = self.posterior.predict(self.features(E))
        return mean, np.sqrt(var)

    def to_dict(self):
        return {"seed": self.seed, "X": self.X.tolist(), "y": self.y.tolist(), "noise": self.noise}

    @classmethod
    def from_dict(cls, data):
        return cls(**data)


# -- RGPE


def test_misranked_pairs_by_counting():
    rng = np.random.default_rng(0)
    f, y = rng.normal(size=(20, 7)), rng.integers(4, size=7).astype(float)  # with ties
    expected = [sum((y[j] < y[k]) != (draw[j] < draw[k]) for j in range(7) for k in range(7)) for draw in f]
    assert misranked(f[:, None, :] - f[:, :, None], y).tolist() == expected


def test_leave_one_out_draws_are_those_of_refitted_posteriors():
    rng = np.random.default_rng(0)
    X, y = rng.random((6, 2)), rng.normal(size=6)
    gp = GP(Matern(2.5, lengthscale=0.6), noise=0.05, mean=0.3)
    draws = leave_one_out(gp.condition(X, y), 60_000, np.random.default_rng(1))
    for j in range(6):
        rest = np.delete(np.arange(6), j)
        without = gp.condition(X[rest], y[rest])
        contrast = np.eye(6) - np.eye(6)[j]  # rows give f_k − f_j
        assert np.allclose(draws[:, j].mean(axis=0), contrast @ without.mean(X), atol=0.02)
        assert np.allclose(np.cov(draws[:, j].T), contrast @ without.cov(X) @ contrast.T, atol=0.03)


def test_ties_go_to_the_target_and_else_are_shared():
    assert ranking_weights([[1, 1], [1, 5], [1, 3]], guard=False).tolist() == [0.5, 0.0, 0.5]
    assert ranking_weights([[1, 1], [1, 1], [2, 2]], guard=False).tolist() == [0.5, 0.5, 0.0]


def test_the_guard_leaves_bad_tasks_out():
    """A task that is usually bad and by luck sometimes best: without the guard luck adds up over many such tasks."""
    rng = np.random.default_rng(0)
    target = rng.integers(8, 12, 400)
    lucky = rng.integers(5, 40, (30, 400))
    losses = np.vstack([lucky, target])
    assert ranking_weights(losses)[-1] == 1.0
    assert ranking_weights(losses, guard=False)[-1] < 0.3


def test_weights_find_the_task_that_ranks_alike():
    policy = run(RGPE(Candidates(LINE), tasks=two_tasks(), gp=KNOWN, samples=300, seed=0), steps=7)
    assert policy.weights[0] > 5.0 * policy.weights[1]
    assert policy.weights.sum() + policy.target_weight == pytest.approx(1.0)
    assert policy.weight_history.shape == (7, 3)
    assert np.allclose(policy.weight_history[:3], 1.0 / 3.0)  # two measurements rank nothing
    twin = Policy.from_state(policy.state())
    assert np.array_equal(twin.weight_history, policy.weight_history)


def test_misleading_tasks_are_outvoted():
    bad = [Task(task.X, -task.y) for task in two_tasks()[:1]] * 3
    policy = run(RGPE(Candidates(LINE), tasks=bad, gp=KNOWN, samples=300, seed=0), steps=12)
    assert policy.target_weight > 0.7
    assert wave(policy.recommend().x) > 0.9


def test_the_ensemble_is_the_weighted_sum():
    rng = np.random.default_rng(0)
    models = [GP(Matern(2.5, lengthscale=0.5), noise=0.01).condition(rng.random((5, 2)), rng.random(5)) for _ in "abc"]
    parts = [(0.2, 1.0, 2.0, models[0]), (0.3, 0.0, 1.0, models[1]), (0.5, -1.0, 0.5, models[2])]
    ensemble, E, step = Ensemble(parts, np.ones(2)), rng.random((6, 2)), 1e-6
    mean, std, dmean, dstd = ensemble.gradient(E)
    assert np.allclose(mean, sum(w * (a + b * m.mean(E)) for w, a, b, m in parts))
    assert np.allclose(std**2, sum((w * b) ** 2 * m.var(E) for w, _, b, m in parts))
    for i in range(2):
        h = step * np.eye(2)[i]
        up, down = ensemble.predict(E + h), ensemble.predict(E - h)
        assert np.allclose(dmean[:, i], (up[0] - down[0]) / (2 * step), atol=1e-5)
        assert np.allclose(dstd[:, i], (up[1] - down[1]) / (2 * step), atol=1e-4)


@pytest.mark.parametrize("policy", [RGPE, TAF])
def test_box_and_dense_candidates_agree(policy):
    asked = []
    for domain in (Box([(0.0, 1.0)]), Candidates(np.linspace(0.0, 1.0, 4001))):
        chooser = policy(domain, gp=KNOWN, tasks=two_tasks(), seed=0)
        for x in (0.1, 0.5, 0.8, 0.95):
            chooser.tell([x] if isinstance(domain, Box) else domain.points[round(4000 * x)], wave([x]))
        asked.append(chooser.ask().x[0])
    assert asked[0] == pytest.approx(asked[1], abs=2e-3)


def test_bounds_in_place_of_improvements():
    policy = run(RGPE(Box([(0.0, 1.0)]), tasks=two_tasks(), acquisition="bound", joint=False, seed=0), steps=8)
    assert wave(policy.recommend().x) > 0.9


@pytest.mark.parametrize("options", [{"acquisition": "other"}, {"samples": 0}, {"scaling": "each"}])
def test_rgpe_options_are_checked(options):
    with pytest.raises(ValueError):
        RGPE(Box([(0.0, 1.0)]), tasks=two_tasks(), **options)


# -- TAF


def test_distances_by_counting():
    rng = np.random.default_rng(0)
    means, y, n = rng.normal(size=(5, 6)), rng.normal(size=6), 6
    for row, share, scaled in zip(
        means, rank_distance(means, y), rank_distance(means, y, distance="scaled_l2"), strict=True
    ):
        ordered = [(j, k) for j in range(n) for k in range(n) if j != k]
        assert share == pytest.approx(np.mean([(y[j] < y[k]) != (row[j] < row[k]) for j, k in ordered]))
        ours, theirs = (np.array([float(v[j] > v[k]) for j, k in ordered]) / (n * (n - 1)) for v in (y, row))
        assert scaled == pytest.approx(np.linalg.norm(ours - theirs))
    assert rank_distance(means[:, :1], y[:1]).tolist() == [0.0] * 5


@pytest.mark.parametrize(("n", "least"), [(4, 0.5), (10, 0.71)])
def test_the_scaled_distance_filters_nothing(n, least):
    """Even a task that ranks every pair the wrong way keeps nearly all its weight; the share of pairs drops it."""
    y = np.arange(float(n))
    opposite = -y[None, :]
    assert epanechnikov(rank_distance(opposite, y, distance="scaled_l2") / 0.5)[0] >= least
    assert rank_distance(opposite, y, distance="scaled_l2")[0] == pytest.approx(1.0 / math.sqrt(n * (n - 1)))
    assert epanechnikov(rank_distance(opposite, y) / 0.5)[0] == 0.0


def test_taf_follows_its_formula():
    """Against the printed acquisition, in plain numbers at all candidates."""
    tasks = two_tasks()
    policy = run(TAF(Candidates(LINE), tasks=tasks, gp=KNOWN, scaling=None, bandwidth=0.8, seed=0), steps=5)
    rows = [q.index for q in policy.queries]
    y = np.array([wave(x) for x in LINE[rows]])
    means = np.array([KNOWN.condition(t.X, t.y).mean(LINE) for t in tasks])
    weights = epanechnikov(rank_distance(means[:, rows], y) / 0.8)
    mean, std = KNOWN.condition(LINE[rows], y).predict(LINE)
    own = np.exp(LogImprovement(float(mean[rows].max()), 1e-12).value(mean, std))
    gains = np.maximum(means - means[:, rows].max(axis=1)[:, None], 0.0)
    total = (0.75 * own + weights @ gains) / (0.75 + weights.sum())
    query = policy.ask()
    assert query.index == int(np.argmax(total))
    assert np.allclose(policy.weights, weights)
    assert np.allclose(query.note["weights"], weights)


def test_without_weights_it_is_expected_improvement():
    """Tasks that rank everything the wrong way are filtered out, and what is left is expected improvement."""
    tasks = [Task(LINE, -LINE[:, 0])]
    policy = TAF(Candidates(LINE), gp=KNOWN, tasks=tasks, seed=0)
    plain = ExpectedImprovement(Candidates(LINE), gp=KNOWN, seed=0)
    for chooser in (policy, plain):
        for row in (3, 20, 31):
            chooser.tell(LINE[row], float(LINE[row, 0]))
    for _ in range(3):
        query = policy.ask()
        assert query.index == plain.ask().index
        assert policy.weights[0] == 0.0
        for chooser in (policy, plain):
            chooser.tell(query.id, float(query.x[0]))


def test_the_logarithm_guides_where_improvements_vanish():
    rng = np.random.default_rng(0)
    own = KNOWN.condition(rng.random((6, 1)), rng.random(6))
    task = GP(SE(lengthscale=0.1), noise=0.01).condition(rng.random((6, 1)), rng.random(6))
    E, step = LINE[::5], 1e-6
    for best in (0.2, 9.0):  # far above everything: no task improves, and EI is about 1e-200
        score = Transferred([(0.5, 2.0, best, task)], (own, LogImprovement(4.0 * best, 1e-12)), np.ones(1))
        value, slope = score.gradient(E)
        assert np.isfinite(value).all()
        assert np.allclose(value, score(E))
        numeric = (score(E + step) - score(E - step)) / (2 * step)
        assert np.allclose(slope[:, 0], numeric, rtol=1e-3, atol=1e-3 * np.abs(numeric).max())
    before = Transferred([(0.75, 1.0, -np.inf, task)], None, np.ones(1))
    assert np.allclose(before(E), task.mean(E))


@pytest.mark.parametrize("options", [{"distance": "l1"}, {"bandwidth": 0.0}, {"margin": -1.0}])
def test_taf_options_are_checked(options):
    with pytest.raises(ValueError):
        TAF(Box([(0.0, 1.0)]), tasks=two_tasks(), **options)


# -- both


@pytest.mark.parametrize("policy", [RGPE, TAF])
@pytest.mark.parametrize("domain", [Box([(0.0, 1.0)]), Candidates(LINE)], ids=["box", "candidates"])
def test_any_surrogate_serves(policy, domain):
    """Fourier features instead of a task: no data, no gradient, no joint draws; kept in the state like any option."""
    X = np.linspace(0.0, 1.0, 15)[:, None]
    models = [Fourier(1, X, [wave(x) for x in X]), Fourier(2, X, [-wave(x) for x in X])]
    chooser = run(policy(domain, gp=KNOWN, tasks=models, seed=0), steps=7)
    assert chooser.weights[0] >= chooser.weights[1]
    assert wave(chooser.recommend().x) > 0.9
    twin = Policy.from_state(chooser.state())
    assert twin.ask() == chooser.ask()
    mixed = run(policy(domain, gp=KNOWN, tasks=[models[0], two_tasks()[0]], seed=0), steps=4)
    assert mixed.weights.shape == (2,)


def test_slopes_by_differences_are_those_of_the_posterior():
    rng = np.random.default_rng(0)
    posterior = GP(Matern(2.5, lengthscale=[0.5, 5.0]), noise=0.01).condition(rng.random((5, 2)), rng.random(5))

    class Bare:
        predict = posterior.predict

    E = rng.random((4, 2))
    for ours, exact in zip(slopes(Bare(), E, np.array([1.0, 10.0])), posterior.gradient(E), strict=True):
        assert np.allclose(ours, exact, atol=1e-6)


@pytest.mark.parametrize("policy", [RGPE, TAF])
def test_shapes_are_enough(policy):
    """A task at another level and of another size is as good as one in the same units."""
    asked, (alike, _) = [], two_tasks()
    for shift, factor in ((0.0, 1.0), (1e4, 500.0)):
        tasks = [Task(alike.X, shift + factor * y) for y in (alike.y, alike.X[:, 0] ** 2)]
        asked.append([q.index for q in run(policy(Candidates(LINE), gp=KNOWN, tasks=tasks, seed=0)).queries])
    assert asked[0] == asked[1]


@pytest.mark.parametrize("policy", [RGPE, TAF])
def test_mixed_spaces(policy):
    space = Space(rate=Float(1e-3, 1.0, log=True))
    X = [{"rate": 10.0**-e} for e in (0, 1, 2, 3)]
    chooser = policy(space, tasks=[Task(X, [0.0, 1.0, 0.0, -1.0])], seed=0)
    assert chooser.ask().params["rate"] == pytest.approx(0.1, rel=1.0)
