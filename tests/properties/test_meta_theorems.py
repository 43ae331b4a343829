"""The theorems behind RM-GP-UCB, as properties; T1, T3, ... are the numbers of its list of guarantees."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from surefoot import GP, RMGPUCB, SE, Candidates, Task
from surefoot.belief.posterior import factorize
from surefoot.policy.transfer.learning import entropic_weights, next_influence

GRID = np.linspace(0.0, 1.0, 50)[:, None]
KERNEL, NOISE, DELTA = SE(lengthscale=0.12), 0.02, 0.1
BELIEF = GP(KERNEL, noise=NOISE)
ROOT, _ = factorize(KERNEL(GRID), np.full(len(GRID), 1e-10))
quick = settings(max_examples=40, deadline=None)


def draw(seed, gaps, length=6):
    """A function from the prior, tasks at most so far from it (where they were measured), and their true gaps."""
    rng = np.random.default_rng(seed)
    f, tasks, true = ROOT @ rng.standard_normal(len(GRID)), [], []
    for d in gaps:
        rows = rng.integers(len(GRID), size=length)
        off = rng.uniform(-d, d, length)
        tasks.append(Task(GRID[rows], f[rows] + off + math.sqrt(NOISE) * rng.standard_normal(length)))
        true.append(np.abs(off).max())
    return f, tasks, np.array(true), rng


def theory(tasks, **options):
    options = {"confidence": 1.0 - DELTA, "learning_rate": 0.0, "decay": 0.6, "seed": 0, **options}
    return RMGPUCB(Candidates(GRID), gp=BELIEF, tasks=tasks, scaling=None, schedule="theory", **options)


def play(policy, f, rng, steps):
    """Yield ν, β^½, the target's mean and deviation everywhere before each query, and the query."""
    for t in range(1, steps + 1):
        mean, std = policy.posterior().predict(GRID)
        query = policy.ask()
        yield policy.nu, policy.width(t, size=len(GRID), dimension=1), mean, std, query
        policy.tell(query, f[query.index] + math.sqrt(NOISE) * rng.standard_normal())


def alpha(tasks, gaps):
    """α of Theorem 7.1 with uniform weights; the logarithm counts all tasks, as a bound over all of them must."""
    N = np.array([len(task) for task in tasks])
    noisy = 2.0 * np.sqrt(N) * np.sqrt(2.0 * NOISE * np.log(6.0 * len(tasks) * N / DELTA))
    return float(np.mean(N / NOISE * (noisy + gaps * np.sqrt(N))))


def test_regret_bounds_with_frozen_weights():
    """T1 and T5: the regret of every round and the cumulative regret stay below their bounds.

    C₁ has the logarithm of the proof; without it, as printed, it would be smaller by a factor of about 13 here.
    """
    violations, tight = 0, math.inf
    constant = 8.0 / math.log(1.0 + 1.0 / NOISE)
    for seed in range(12):
        f, tasks, gaps, rng = draw(seed, [0.1, 1.0])
        policy, slack = theory(tasks), alpha(tasks, gaps)
        tau, total, influence = policy.task_width(1), 0.0, 0.0
        for nu, root_beta, _, std, query in play(policy, f, rng, 35):
            regret = f.max() - f[query.index]
            bound = 2.0 * nu * (slack + tau) + 2.0 * (1.0 - nu) * root_beta * std[query.index]
            violations += regret > bound
            total, influence, tight = total + regret, influence + nu, min(tight, bound)
        gain = policy.posterior().information_gain / (1.0 - 1.0 / math.e)  # the best choice gains at most that more
        beta = policy.width(35, size=len(GRID)) ** 2
        violations += total > 2.0 * (slack + tau) * influence + math.sqrt(constant * 35 * (1 - nu) ** 2 * beta * gain)
    assert violations == 0
    assert tight < 1.0  # late bounds are of the size of the function, so that they could fail


def test_summed_widths_are_bounded_by_the_information_gained():
    """T6: Σ [2(1 − ν) β^½ σ]² ≤ (1 − ν_T)² C₁ β_T I(y; f), and the chain rule of I."""
    f, tasks, _, rng = draw(3, [0.1, 1.0])
    policy, squares, gain = theory(tasks), 0.0, 0.0
    for nu, root_beta, _, std, query in play(policy, f, rng, 30):
        squares += (2.0 * (1.0 - nu) * root_beta * std[query.index]) ** 2
        gain += 0.5 * math.log(1.0 + std[query.index] ** 2 / NOISE)
    assert policy.posterior().information_gain == pytest.approx(gain, rel=1e-6)
    constant = 8.0 / math.log(1.0 + 1.0 / NOISE)
    assert squares <= (1.0 - nu) ** 2 * constant * root_beta**2 * gain
    printed = 8.0 / (1.0 + 1.0 / NOISE)  # as in the main text, without the logarithm: no bound
    assert squares > (1.0 - nu) ** 2 * printed * root_beta**2 * gain


def acquisition(policy, root_beta, mean, std):
    """ζ_t at all candidates (7.1)."""
    return policy.nu * (policy.weights @ policy.rule.bounds) + (1.0 - policy.nu) * (mean + root_beta * std)


@given(arrays(np.float64, (2, 6), elements=st.floats(-3.0, 3.0)), st.integers(0, 5))
@quick
def test_outputs_of_tasks_move_the_acquisition_by_a_known_amount(shift, seed):
    """T3: ζ − ζ̃ = ν Σ ω k(x)ᵀ(K + σ²I)⁻¹(y − ỹ) exactly, and hence at most ν Σ ω (N/σ²) ‖y − ỹ‖."""
    _, tasks, _, _ = draw(seed, [0.1, 1.0])
    moved = [Task(task.X, task.y + v) for task, v in zip(tasks, shift, strict=True)]
    ours, theirs = theory(tasks), theory(moved)
    for policy in (ours, theirs):
        policy.ask()
    difference = theirs.nu * (theirs.weights @ theirs.rule.bounds) - ours.nu * (ours.weights @ ours.rule.bounds)
    expected, largest = np.zeros(len(GRID)), 0.0
    for task, v in zip(tasks, shift, strict=True):
        K = KERNEL(task.X) + NOISE * np.eye(6)
        expected += 0.5 * KERNEL(GRID, task.X) @ np.linalg.solve(K, v)
        largest += 0.5 * 6 / NOISE * float(np.linalg.norm(v))
    assert np.allclose(difference, expected, atol=1e-7)
    assert np.abs(difference).max() <= largest + 1e-9


@given(st.integers(1, 20), st.floats(1e-3, 2.0), st.floats(0.02, 2.0), st.integers(0, 99))
@quick
def test_inverse_covariances_are_bounded(n, noise, lengthscale, seed):
    """T4: ‖(K + σ²I)⁻¹‖_F ≤ √N/σ²."""
    X = np.random.default_rng(seed).random((n, 1))
    inverse = np.linalg.inv(SE(lengthscale)(X) + noise * np.eye(n))
    assert np.linalg.norm(inverse) <= math.sqrt(n) / noise * (1.0 + 1e-9)


def test_estimated_gaps_cover_the_true_ones():
    """T7: with the maximum and the noise term, dᵢ ≤ gapᵢ for all tasks and rounds, with probability 1 − δ − δ'.

    The mean over measurements, the practical choice, does not bound the gap.
    """
    missed, below = 0, 0
    for seed in range(15):
        f, tasks, true, rng = draw(seed, [0.05, 0.5, 2.0])
        bound = theory(tasks, gap="max", include_noise_correction=True)
        usual = RMGPUCB(Candidates(GRID), gp=BELIEF, tasks=tasks, scaling=None, seed=0)
        for policy in (bound, usual):
            for t, _ in enumerate(play(policy, f, rng, 12)):
                if t and policy is bound:
                    missed += (policy.gaps < true).any()
        below += (usual.gaps < true).any()
    assert missed == 0
    assert below > 5


def test_the_acquisition_of_true_values_is_an_upper_bound():
    """T13: with tasks that are noisy values of the target itself, ζ_t(x) ≥ f(x) for all x and t, w. p. 1 − 2δ/3."""
    bad = 0
    for seed in range(30):
        f, tasks, _, rng = draw(seed, [0.0, 0.0])
        policy, ok = theory(tasks), True
        for _, root_beta, mean, std, _ in play(policy, f, rng, 10):
            ok &= bool((acquisition(policy, root_beta, mean, std) >= f - 1e-9).all())
        bad += not ok
    assert bad / 30 <= 2.0 * DELTA / 3.0


@given(arrays(np.float64, (12, 4), elements=st.floats(0.0, 5.0)), st.floats(0.01, 5.0))
@quick
def test_weights_follow_the_leader(losses, rate):
    """T11: Σ ω_tᵀ l_t − minᵢ Σ l_{i,t} ≤ log(M)/η + η Σ max l²; and T9: the limits of η."""
    before = np.cumsum(losses, axis=0) - losses
    weights = np.array([entropic_weights(rate * total) for total in before])
    assert np.allclose(weights.sum(axis=1), 1.0)
    assert np.allclose(weights[0], 0.25)
    regret = float((weights * losses).sum() - losses.sum(axis=0).min())
    assert regret <= math.log(4) / rate + rate * float((losses.max(axis=1) ** 2).sum()) + 1e-9
    total = losses.sum(axis=0)
    assert np.allclose(entropic_weights(0.0 * total), 0.25)
    leaders = total <= total.min() + 1e-6
    assert entropic_weights(1e9 * total)[leaders].sum() == pytest.approx(1.0)
    assert entropic_weights(total[:1]) == [1.0]


@given(arrays(np.float64, 5, elements=st.floats(0.0, 50.0)), st.floats(-20.0, 20.0), st.permutations(range(5)))
@quick
def test_weights_do_not_see_a_common_loss(losses, constant, order):
    """T10: a constant added to all losses, such as the noise term, changes nothing; a permutation permutes."""
    weights = entropic_weights(losses)
    assert np.allclose(entropic_weights(losses + constant), weights)
    assert np.allclose(entropic_weights(losses[order]), weights[order])


@given(st.lists(st.floats(0.0, 1e6), min_size=1, max_size=40), st.floats(0.05, 0.99), st.floats(0.0, 3.0))
@quick
def test_influence_decays(gaps, decay, sensitivity):
    """T12: ν_t is in (0, 1] (up to underflow), strictly decreasing, with ratio at most r."""
    nu = 1.0
    for gap in gaps:
        following = next_influence(nu, gap, decay=decay, sensitivity=sensitivity)
        assert 0.0 <= following <= decay * nu
        assert following > 0.0 or nu < 1e-250
        nu = following


def history(tasks, **options):
    f, _, _, rng = draw(7, [1.0])
    policy = RMGPUCB(Candidates(GRID), gp=BELIEF, tasks=tasks, seed=0, **options)
    for _ in play(policy, f, rng, 8):
        pass
    return [query.index for query in policy.queries], policy


def test_order_and_copies_of_tasks():
    """T10: tasks in another order get their weights in that order and the same queries; copies weigh the same."""
    _, tasks, _, _ = draw(7, [0.1, 1.0, 3.0])
    for options in ({}, {"scaling": None, "gap": "max", "weight_rule": "exact"}):
        asked, policy = history(tasks, **options)
        turned, other = history([tasks[2], tasks[0], tasks[1]], **options)
        assert asked == turned
        assert np.allclose(policy.weights[[2, 0, 1]], other.weights)
        _, copied = history([*tasks, tasks[0]], **options)
        assert copied.weights[0] == copied.weights[3]
    # The noise term cancels in the weights; where the influence does not hear of it, so do the queries.
    plain, corrected = (history(tasks, sensitivity=0.0, include_noise_correction=flag) for flag in (False, True))
    assert plain[0] == corrected[0]
    assert np.allclose(plain[1].weights, corrected[1].weights)
    assert (corrected[1].gaps > plain[1].gaps).all()


def test_limits_of_the_learning_rate():
    """T9: none keeps the weights uniform, a huge one puts all on the smallest sum of gaps, one task has weight 1."""
    _, tasks, _, _ = draw(7, [0.1, 1.0, 3.0])
    assert np.allclose(history(tasks, learning_rate=0.0)[1].weight_history, 1.0 / 3.0)
    _, greedy = history(tasks, learning_rate=1e9)
    sums = np.sum([query.note["gaps"] for query in greedy.queries if "gaps" in query.note], axis=0)
    assert greedy.weights[int(np.argmin(sums))] == 1.0
    assert np.array_equal(history(tasks[:1])[1].weight_history, np.ones((8, 1)))
