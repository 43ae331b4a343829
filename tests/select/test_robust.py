"""PRO, OSU, Oblivious-Greedy and SATURATE: structure, identities, reductions, and what they refuse."""

import math
from functools import partial
from itertools import combinations

import numpy as np
import pytest
from planted_sets import coverage, robust_best, variance_reduction, worst

from surefoot.select import (
    Coverage,
    attack,
    buckets,
    greedy,
    lazy_greedy,
    oblivious,
    oblivious_greedy,
    osu,
    osu_sizes,
    pro,
    pro_sizes,
    saturate,
    stochastic_greedy,
    threshold_greedy,
)

SEEDS = range(10)
# Size of PRO's robust part for eta = 1.
SIZES = {1: 1, 2: 4, 3: 11, 4: 12, 5: 27, 6: 28, 7: 31, 8: 32, 9: 63, 10: 64, 11: 67, 12: 68, 13: 75, 14: 76, 15: 79}
SIZES |= {16: 80, 20: 148, 30: 188, 50: 400}


@pytest.mark.parametrize(("tau", "size"), SIZES.items())
def test_the_size_of_the_robust_part(tau, size):
    assert sum(pro_sizes(tau)) == size
    assert sum(pro_sizes(tau, eta=3)) == 3 * size
    for k in (size, 10 * size):
        assert size <= 3 * tau * (math.log2(k) + 2)  # Proposition 6.2.1
    compact = pro_sizes(tau, structure="compact")
    assert sum(compact) == max(tau, math.ceil(tau * math.log2(tau)))
    assert compact[:-1] == pro_sizes(tau)[: len(compact) - 1]
    assert compact[-1] <= pro_sizes(tau)[len(compact) - 1]
    if tau & (tau - 1) == 0:
        assert size == tau * (math.log2(tau) + 1)


@pytest.mark.parametrize("tau", [1, 2, 3, 5, 8])
def test_in_each_partition_one_bucket_stays_nearly_whole(tau):
    """Pigeonhole: τ deletions cannot take more than 2^i elements from each of ⌈τ/2^i⌉ buckets."""
    rng = np.random.default_rng(tau)
    for i in range((tau - 1).bit_length() + 1):
        count = pro_sizes(tau).count(2**i)
        assert count == math.ceil(tau / 2**i)
        for _ in range(200):
            hit = rng.integers(count, size=tau)  # the adversary's choice of buckets
            assert np.bincount(hit, minlength=count).min() <= 2**i


@pytest.mark.parametrize("seed", SEEDS)
def test_buckets_ignore_each_other(seed):
    """Each bucket is a greedy run from the empty set on what is left."""
    for objective in (coverage(seed, n=20, items=40), variance_reduction(seed, n=20)):
        made = pro(objective, 16, 3)
        left = list(range(objective.n))
        assert [len(bucket) for bucket in made.buckets] == pro_sizes(3)
        for part in [*made.buckets, made.rest]:
            assert part == greedy(objective, len(part), among=left).order
            left = [v for v in left if v not in part]
        assert made.value == pytest.approx(objective.value(made.order))
        assert len(set(made.order)) == 16


@pytest.mark.parametrize("seed", SEEDS)
def test_identities(seed):
    for objective in (coverage(seed, n=18, items=40, weighted=True), variance_reduction(seed, n=18)):
        plain = greedy(objective, 9).order
        assert (
            pro(objective, 9, 0).order == osu(objective, 9, 0).order == oblivious_greedy(objective, 9, 0).order == plain
        )
        assert oblivious_greedy(objective, 9, 4, beta=0.0).order == plain
        assert oblivious_greedy(objective, 6, 3, beta=2.0).order == oblivious(objective, 6).order
        assert pro(objective, 9, 1).order == osu(objective, 9, 1).order == oblivious_greedy(objective, 9, 1).order
        # The first partition is the τ largest singletons.
        assert (
            pro(objective, 17, 4).robust[:4]
            == oblivious(objective, 4).order
            == oblivious_greedy(objective, 9, 4).robust
        )
        made = oblivious_greedy(objective, 9, 4)
        assert made.rest == greedy(objective, 5, among=np.setdiff1d(np.arange(18), made.robust)).order


@pytest.mark.parametrize("seed", SEEDS)
def test_one_run_gives_the_whole_sweep(seed):
    objective = coverage(seed, n=24, items=50)
    for select in (
        partial(pro, tau=2),
        partial(pro, tau=3, structure="compact"),
        partial(osu, tau=3),
        partial(osu, tau=2, bucket=4),
    ):
        largest = select(objective, 20)
        for k in range(len(largest.robust), 20):
            own, part = select(objective, k), largest.prefix(k)
            assert (part.order, part.values, part.buckets, part.rest) == (own.order, own.values, own.buckets, own.rest)
        with pytest.raises(ValueError, match="smaller than the robust part"):
            largest.prefix(len(largest.robust) - 1)
    with pytest.raises(ValueError, match="no prefix"):
        osu(objective, 20, 2, bucket="tau_log_k").prefix(19)
    with pytest.raises(ValueError, match="no prefix"):
        pro(objective, 20, 2, subroutine=partial(stochastic_greedy, epsilon=0.5)).prefix(10)


@pytest.mark.parametrize("seed", SEEDS)
def test_subroutines(seed):
    objective = coverage(seed, n=24, items=50)
    assert pro(objective, 14, 3, subroutine=lazy_greedy).order == pro(objective, 14, 3, subroutine=greedy).order
    made = pro(objective, 14, 3, subroutine=partial(threshold_greedy, epsilon=0.2))
    assert [len(bucket) for bucket in made.buckets] == pro_sizes(3)
    # Small buckets take the whole ground set as their sample.
    exact = partial(stochastic_greedy, epsilon=0.01)
    assert pro(objective, 12, 3, subroutine=exact).robust == pro(objective, 12, 3).robust


def test_the_greedy_failure():
    """s1 covers a region of weight N, s3 nearly all of the same region, s2 something small elsewhere."""
    N, small = 10.0, 0.5
    objective = Coverage([[1, 1, 0], [0, 0, 1], [1, 0, 0]], weights=[N - 1.0, 1.0, small])
    assert greedy(objective, 2).order == (0, 1)
    assert worst(objective, greedy(objective, 2).order, 1) == small
    for made in (
        pro(objective, 2, 1),
        osu(objective, 2, 1),
        oblivious_greedy(objective, 2, 1),
        saturate(objective, 2, 1),
    ):
        assert set(made.order) == {0, 2}
    assert robust_best(objective, 2, 1) == worst(objective, (0, 2), 1) == N - 1.0


def test_the_printed_failure_example_is_not_submodular_for_small_values():
    """f(s2 | s3) = 1 exceeds f(s2) = ε where ε < 1, so the weighted coverage above stands in for it."""
    N = 10.0
    for small in (0.0, 0.5, 0.99):
        f = {(): 0.0, (1,): N, (2,): small, (3,): N - 1.0, (1, 2): N + small, (1, 3): N, (2, 3): N}
        assert f[2, 3] - f[(3,)] > f[(2,)]


@pytest.mark.parametrize("tau", [1, 2])
@pytest.mark.parametrize("seed", range(6))
def test_saturate_is_near_the_best_robust_set(seed, tau):
    objective = coverage(seed, n=8, items=16)
    made, most = saturate(objective, 5, tau), robust_best(objective, 5, tau)
    assert len(made.order) == 5
    assert worst(objective, made.order, tau) >= 0.75 * most
    # With the theorem's larger budget nothing is lost.
    scale = objective.singletons().max() * math.comb(objective.n, tau)
    roomy = saturate(objective, 5, tau, excess=1.0 + math.log(scale))
    assert worst(objective, roomy.order, tau) >= (1.0 - 2e-3) * most


def test_saturate_averages_over_all_deletions_of_the_ground_set():
    """The truncated average that the states give is the one over all deletions, one by one."""
    objective, tau, level = coverage(1, n=7), 2, 5.0

    def average(S):
        deletions = list(combinations(range(objective.n), tau))
        return sum(min(objective.value([v for v in S if v not in E]), level) for E in deletions) / len(deletions)

    from surefoot.select.robust import _truncated_cover

    order = _truncated_cover(objective, tau, level, objective.n)
    for step, element in enumerate(order):
        scores = [average([*order[:step], v]) if v not in order[:step] else -1.0 for v in range(objective.n)]
        assert scores[element] == pytest.approx(max(scores))
        assert average(order[:step]) < level - 1e-9
    assert average(order) == pytest.approx(level)


@pytest.mark.parametrize("seed", range(8))
def test_robust_selectors_survive_a_graph_of_hubs(seed):
    """The value sits in a few hubs: greedy selection takes each once and loses them."""
    rng = np.random.default_rng(seed)
    n, hubs, tau, k = 300, 6, 3, 25
    incidence = np.eye(n, dtype=bool)
    for hub in range(hubs):
        incidence[hub] |= (np.arange(n) % hubs == hub) & (rng.random(n) < 0.9)
        for copy in range(1, 4):  # deputies, worth nothing beside their hub
            incidence[hub + copy * hubs] = incidence[hub] & (rng.random(n) < 0.85)
    objective = Coverage(incidence)
    left = {
        name: attack(objective, made.order, tau).value
        for name, made in {
            "greedy": greedy(objective, k),
            "pro": pro(objective, k, tau),
            "osu": osu(objective, k, tau),
        }.items()
    }
    assert left["pro"] > 1.3 * left["greedy"]
    assert left["osu"] > 1.3 * left["greedy"]


@pytest.mark.parametrize("select", [pro, osu, oblivious_greedy, saturate])
def test_bad_deletions(select):
    objective = coverage(0)
    for tau in (4, 5):
        with pytest.raises(ValueError, match=f"tau = {tau} deletions leave nothing of k = 4"):
            select(objective, 4, tau)
    for tau in (-1, 1.5, True):
        with pytest.raises(ValueError, match="tau must be a whole number"):
            select(objective, 4, tau)
    with pytest.raises(ValueError, match="99 elements cannot be chosen out of 9"):
        select(objective, 99, 1)


def test_buckets_among_some_elements():
    objective = coverage(3, n=20)
    made = buckets(objective, [1, 2], 6, among=range(5, 15))
    assert set(made.order) <= set(range(5, 15))
    assert made.robust[0] == greedy(objective, 1, among=range(5, 15)).order[0]
    with pytest.raises(ValueError, match="6 elements cannot be chosen out of 5"):
        buckets(objective, [1], 6, among=range(5))


def test_what_does_not_fit_is_refused_or_cut():
    objective = coverage(0, n=20)
    with pytest.raises(ValueError, match="pro needs 11 elements for its robust part, more than k = 10"):
        pro(objective, 10, 3)
    with pytest.raises(ValueError, match="osu needs 16"):
        osu(objective, 15, 4)
    with pytest.raises(ValueError, match="oblivious_greedy needs 12"):
        oblivious_greedy(objective, 10, 4, beta=3.0)
    cut = pro(objective, 10, 3, infeasible="truncate")
    assert cut.order == pro(objective, 11, 3).order[:10]
    assert cut.rest == ()
    with pytest.raises(ValueError, match="infeasible must be"):
        buckets(objective, [1], 3, infeasible="ignore")


def test_bad_options():
    objective = coverage(0)
    with pytest.raises(ValueError, match="eta"):
        pro(objective, 4, 1, eta=0)
    with pytest.raises(ValueError, match="structure"):
        pro(objective, 4, 1, structure="small")
    with pytest.raises(ValueError, match="bucket"):
        osu_sizes(4, 1, "large")
    with pytest.raises(ValueError, match="beta"):
        oblivious_greedy(objective, 4, 1, beta=-1.0)
    with pytest.raises(ValueError, match="tau is 1 or 2"):
        saturate(objective, 5, 3)
    with pytest.raises(ValueError, match="needs a submodular objective"):
        saturate(variance_reduction(0), 4, 1)
    with pytest.raises(ValueError, match="size of a bucket"):
        buckets(objective, [0], 3)


def test_what_oblivious_greedy_advises_can_be_done():
    objective = Coverage(np.eye(5))
    with pytest.raises(ValueError, match="robust part, more than k = 3; lower tau or beta, or raise k"):
        oblivious_greedy(objective, 3, tau=2, beta=2.0)
    assert len(oblivious_greedy(objective, 3, tau=2, beta=1.5).order) == 3
