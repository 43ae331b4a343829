"""What is proved about FTS and DP-FTS-DE, as properties."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2, chisquare

from surefoot import GP, SE, Candidates
from surefoot.federated import (
    Agent,
    Coordinator,
    Decay,
    FixedProbability,
    Message,
    Regions,
    SharedFeatures,
    Weighting,
    audit_case,
    clip_norms,
    draw_weights,
    effective_multiplier,
    expected_uses,
    regional_values,
    simulate,
    synthetic_family,
)
from surefoot.federated.aggregate import aggregate
from surefoot.private import ResearchNoise, accounting
from surefoot.private.audit import audit

seeds = st.integers(0, 2**32 - 1)
quick = settings(max_examples=40, deadline=None)


def coordinator(features, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return Coordinator(features, **options)


# -- FTS: features, messages, use ------------------------------------------------------------------------------------


@quick
@given(seed=seeds, dimension=st.integers(1, 4), count=st.integers(2, 120), lengthscale=st.floats(0.01, 2.0))
def test_features_have_length_one_everywhere(seed, dimension, count, lengthscale):
    features = SharedFeatures(dimension, count, lengthscale=lengthscale, noise=0.01, seed=seed)
    phi = features(np.random.default_rng(seed).random((50, dimension)))
    assert np.allclose((phi**2).sum(axis=1), 1.0, rtol=1e-12, atol=1e-12)


def test_the_error_of_the_kernel_falls_with_the_root_of_the_features():
    X = np.random.default_rng(0).random((40, 2))
    K, counts = SE(0.3)(X), np.array([50, 200, 800, 3200])
    errors = []
    for count in counts:
        gaps = [
            np.sqrt(np.mean((phi @ phi.T - K) ** 2))
            for phi in (SharedFeatures(2, int(count), lengthscale=0.3, noise=0.1, seed=s)(X) for s in range(8))
        ]
        errors.append(np.mean(gaps))
    slope = np.polyfit(np.log(counts), np.log(errors), 1)[0]
    assert -0.6 < slope < -0.4


@quick
@given(seed=seeds, t=st.integers(0, 12), count=st.integers(2, 10), noise=st.floats(1e-4, 1.0))
def test_three_samplers_have_one_law_exactly(seed, t, count, noise):
    """Each is affine in its normals; offset and A Aᵀ are ν and σ²Σ⁻¹, the same for all."""
    rng = np.random.default_rng(seed)
    features = SharedFeatures(1, count, lengthscale=0.3, noise=noise, seed=seed)
    phi, y = features(rng.random((t, 1))), rng.standard_normal(t)
    Sigma = phi.T @ phi + noise * np.eye(count)
    for route in ("cholesky", "pathwise", "map"):
        mean = draw_weights(phi, y, noise, np.zeros(count), np.zeros(t), route=route)
        size, unit = count + t, np.eye(count + t)
        many = np.broadcast_to(phi, (size, t, count)), np.broadcast_to(y, (size, t))
        parts = draw_weights(*many, noise, unit[:, :count], unit[:, count:], route=route) - mean
        assert np.allclose(mean, np.linalg.solve(Sigma, phi.T @ y), atol=1e-7)
        assert np.allclose(parts.T @ parts, noise * np.linalg.inv(Sigma), atol=1e-7)


@quick
@given(seed=seeds, t=st.integers(1, 15))
def test_weight_space_is_kernel_space(seed, t):
    """Mean and variance by weights are those by K̂ = ΦΦᵀ."""
    rng = np.random.default_rng(seed)
    features = SharedFeatures(2, 10, lengthscale=0.3, noise=0.01, seed=seed)
    phi, other, y = features(rng.random((t, 2))), features(rng.random((6, 2))), rng.standard_normal(t)
    G, k = phi @ phi.T + 0.01 * np.eye(t), other @ phi.T
    mean = other @ draw_weights(phi, y, 0.01, np.zeros(10), np.zeros(t))
    assert np.allclose(mean, k @ np.linalg.solve(G, y), atol=1e-8)
    Sigma = phi.T @ phi + 0.01 * np.eye(10)
    by_weights = 0.01 * np.einsum("nm,nm->n", other, np.linalg.solve(Sigma, other.T).T)
    by_kernel = (other**2).sum(axis=1) - np.einsum("nt,nt->n", k, np.linalg.solve(G, k.T).T)
    assert np.allclose(by_weights, by_kernel, atol=1e-8)


def test_no_data_is_the_prior_and_much_data_the_ridge_solution():
    rng = np.random.default_rng(0)
    prior = rng.standard_normal(12)
    assert draw_weights(np.empty((0, 12)), np.empty(0), 0.01, prior, np.empty(0)) is prior
    features = SharedFeatures(1, 12, lengthscale=0.2, noise=0.01, seed=0)
    phi = features(rng.random((200_000, 1)))
    y = phi @ prior + 0.1 * rng.standard_normal(len(phi))
    drawn = draw_weights(phi, y, 0.01, rng.standard_normal(12))
    ridge = np.linalg.solve(phi.T @ phi + 0.01 * np.eye(12), phi.T @ y)
    # Twelve features of one coordinate are nearly dependent: what concentrates is the function.
    grid = features(np.linspace(0.0, 1.0, 50)[:, None])
    spread = np.sqrt(0.01 * np.einsum("nm,nm->n", grid, np.linalg.solve(phi.T @ phi + 0.01 * np.eye(12), grid.T).T))
    assert (np.abs(grid @ (drawn - ridge)) < 5.0 * spread).all()
    assert spread.max() < 5e-3


@quick
@given(seed=seeds, t=st.integers(0, 20))
def test_a_message_stays_near_its_mean(seed, t):
    """|μ̂ − ĝ| ≤ ‖e‖ at every x, with ‖e‖² a χ² of M degrees: the lemma with its exact quantile."""
    rng = np.random.default_rng(seed)
    features = SharedFeatures(1, 20, lengthscale=0.1, noise=0.01, seed=seed)
    phi, y, e = features(rng.random((t, 1))), rng.standard_normal(t), rng.standard_normal(20)
    gap = draw_weights(phi, y, 0.01, e, route="cholesky") - draw_weights(phi, y, 0.01, np.zeros(20), route="cholesky")
    everywhere = np.abs(features(np.linspace(0.0, 1.0, 200)[:, None]) @ gap).max()
    assert everywhere <= np.linalg.norm(e) + 1e-9


def test_the_tail_the_lemma_quotes_is_false():
    """P(‖z‖² ≥ M + 2λ) ≤ e^(−λ) fails; with 2√(Mλ) added it holds."""
    M, lam = 100, 5.0
    assert abs(chi2.sf(M + 2 * lam, M) - 0.232) < 1e-3
    assert chi2.sf(M + 2 * lam, M) > np.exp(-lam)
    assert chi2.sf(M + 2 * np.sqrt(M * lam) + 2 * lam, M) <= np.exp(-lam)


def test_agents_are_drawn_alike_and_numbering_does_not_matter():
    domain = Candidates(np.linspace(0.0, 1.0, 5))
    features = SharedFeatures(1, 4, lengthscale=0.3, noise=0.01, seed=0)
    rows = np.random.default_rng(0).standard_normal((4, 4))
    drawn = []
    for numbers in ([1, 2, 3, 4], [10, 20, 30, 40]):
        chosen = []
        for seed in range(400):
            agent = Agent(domain, features, schedule=FixedProbability(0.0), gp=GP(SE(0.3), noise=0.01), seed=seed)
            for number, row in zip(numbers, rows, strict=True):
                agent.receive(Message(number, 0, features.hash, row))
            chosen.append(numbers.index(agent.ask().note["agent"]))
        drawn.append(chosen)
    assert drawn[0] == drawn[1]
    assert chisquare(np.bincount(drawn[0], minlength=4)).pvalue > 1e-3


def test_adversarial_messages_cost_no_more_than_their_share():
    """All messages point at the minimum: they are followed Σ (1 − p_t) times, and cost no more than the range each."""
    family = synthetic_family(runs=1, agents=300, size=100, seed=2)
    features = SharedFeatures(1, 60, lengthscale=0.03, noise=0.01, seed=0)
    worst = features(family.points[[int(np.argmin(family.values[0].mean(axis=0)))]])
    pool = np.repeat(worst[None], 60, axis=1)
    schedule = Decay(2.0)
    fooled = simulate(family, features, rounds=50, initial=3, pool=pool, schedule=schedule, seed=1)
    uses = fooled.followed.sum(axis=2).mean()
    expected, never = expected_uses(schedule, 50)
    p = np.array([schedule(t) for t in range(1, 51)])
    assert abs(uses - expected) < 4.0 * np.sqrt((p * (1.0 - p)).sum() / 300)
    assert abs((fooled.followed.sum(axis=2) == 0).mean() - never) < 4.0 * np.sqrt(never * (1.0 - never) / 300)
    span = np.ptp(family.values[0], axis=1).max()
    seen = np.take_along_axis(family.values, fooled.queries, axis=2)[:, :, 3:]
    cost = ((family.values.max(axis=2, keepdims=True) - seen) * fooled.followed).sum(axis=2).mean()
    assert cost <= span * uses
    assert fooled.regret[:, :, -1].mean() < 0.05  # and it still finds the maximum


# -- DP-FTS-DE: the sum ----------------------------------------------------------------------------------------------


@quick
@given(seed=seeds, limit=st.floats(1e-3, 1e3), size=st.integers(1, 12))
def test_clipping(seed, limit, size):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((size, 7)) * 10.0 ** rng.uniform(-3, 3, (size, 1))
    clipped = clip_norms(rows, limit)
    norms = np.linalg.norm(rows, axis=1)
    assert (np.linalg.norm(clipped, axis=1) <= limit * (1.0 + 1e-12)).all()
    short = norms <= limit
    assert np.array_equal(clipped[short], rows[short])  # bit for bit
    assert np.allclose(clipped / np.linalg.norm(clipped, axis=1, keepdims=True), rows / norms[:, None])
    phi = rng.standard_normal(7)
    assert (np.abs(clipped @ phi) <= np.abs(rows @ phi) * (1.0 + 1e-12)).all()


@quick
@given(
    seed=seeds,
    agents=st.integers(1, 30),
    parts=st.integers(1, 5),
    high=st.floats(0.0, 1000.0),
    round=st.integers(0, 12),
)
def test_weights(seed, agents, parts, high, round):
    assigned = np.random.default_rng(seed).integers(parts, size=agents)
    weights = Weighting(high=high).weights(round, assigned, parts)
    assert np.allclose(weights.sum(axis=1), 1.0)
    assert (weights >= 0.0).all()
    assert np.allclose(Weighting(high=0.0).weights(round, assigned, parts), 1.0 / agents)
    own = assigned[None] == np.arange(parts)[:, None]
    assert all(
        row[mine].min() >= row[~mine].max() for row, mine in zip(weights, own, strict=True) if 0 < mine.sum() < agents
    )


@quick
@given(
    seed=seeds,
    agents=st.integers(1, 12),
    parts=st.integers(1, 4),
    high=st.floats(0.0, 16.0),
    q=st.floats(0.05, 1.0),
    z=st.floats(0.1, 4.0),
    S=st.floats(0.1, 30.0),
)
def test_one_agent_moves_the_sum_by_no_more_than_the_sensitivity(seed, agents, parts, high, q, z, S):
    """Published: φ_max S/q in plain units. Exact: 1/z_eff in units of the noise, jointly over all sub-regions."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((agents, 5)) * 10.0 ** rng.uniform(-2, 3, (agents, 1))
    weights = Weighting(high=high).weights(0, np.arange(agents) % parts, parts)
    limit = S / parts**0.5
    noise = ResearchNoise(0)
    whole = aggregate(rows, weights, limit=limit, noise=noise) / q
    deviations = z * weights.max(axis=1) * S / q
    z_eff = effective_multiplier(z, weights)
    assert z * (1.0 - 1e-12) <= z_eff <= z * parts**0.5 * (1.0 + 1e-12)
    for n in range(agents):
        less = rows.copy()
        less[n] = 0.0
        moved = whole - aggregate(less, weights, limit=limit, noise=noise) / q
        assert np.linalg.norm(moved) <= weights.max() * S / q * (1.0 + 1e-9)
        assert np.linalg.norm(moved / deviations[:, None]) <= 1.0 / z_eff * (1.0 + 1e-9)


def test_the_exact_sensitivity_is_attained():
    weights = Weighting(high=1.0).weights(0, np.arange(6) % 3, 3)
    rows = np.zeros((6, 4))
    rows[0, 0] = 1e6
    moved = aggregate(rows, weights, limit=2.0, noise=ResearchNoise(0))
    deviations = weights.max(axis=1) * 2.0 * 3**0.5
    assert np.isclose(np.linalg.norm(moved / deviations[:, None]), 1.0 / effective_multiplier(1.0, weights))


@quick
@given(seed=seeds, agents=st.integers(1, 15))
def test_the_plain_corner_is_the_mean(seed, agents):
    """P = 1, z = 0, q = 1, S = ∞."""
    features = SharedFeatures(1, 6, lengthscale=0.3, noise=0.01, seed=0)
    rows = np.random.default_rng(seed).standard_normal((agents, 6))
    server = coordinator(features, agents=agents, clip=np.inf)
    server.collect_all(0, rows)
    assert np.allclose(server.release(0).vectors, rows.mean(axis=0)[None], atol=1e-13)


@quick
@given(seed=seeds, parts=st.integers(2, 4), threshold=st.floats(0.5, 5.0))
def test_uniform_weights_make_all_sub_regions_alike(seed, parts, threshold):
    """With the clip threshold held fixed the result is that of one region."""
    features = SharedFeatures(1, 6, lengthscale=0.3, noise=0.01, seed=0)
    rows = np.random.default_rng(seed).standard_normal((9, 6))
    many = coordinator(features, agents=9, regions=parts, clip=threshold * parts**0.5, weighting=Weighting(high=0.0))
    one = coordinator(features, agents=9, clip=threshold)
    for server in (many, one):
        server.collect_all(0, rows)
    vectors = many.release(0).vectors
    assert np.allclose(vectors, one.release(0).vectors, atol=1e-13)
    assert (vectors == vectors[0]).all()


def test_unbiased_with_the_noise_it_claims_and_independent():
    rng = np.random.default_rng(0)
    rows, trials, q, S, z = 3.0 * rng.standard_normal((10, 4)), 60_000, 0.3, 4.0, 0.8
    weights = Weighting(high=1.5).weights(0, np.arange(10) % 2, 2)
    deviations = z * weights.max(axis=1) * S / q
    options = {"limit": S / 2**0.5, "sampling": q, "noise": ResearchNoise(1)}
    made = aggregate(rows, weights, deviations=deviations, trials=trials, **options)
    target = weights @ clip_norms(rows, S / 2**0.5)
    error = made.std(axis=0) / trials**0.5
    assert (np.abs(made.mean(axis=0) - target) < 5.0 * error).all()
    # An absent population shows the noise alone, and an empty sample is nothing special.
    noise = aggregate(np.zeros((10, 4)), weights, deviations=deviations, trials=trials, **options)
    assert np.allclose(noise.std(axis=0), deviations[:, None], rtol=0.02)
    assert np.abs(np.corrcoef(noise.reshape(trials, -1).T) - np.eye(8)).max() < 5.0 / trials**0.5
    assert np.abs(np.corrcoef(noise[:-1, 0, 0], noise[1:, 0, 0])[0, 1]) < 5.0 / trials**0.5


def test_an_empty_sample_releases_pure_noise():
    features = SharedFeatures(1, 50, lengthscale=0.3, noise=0.01, seed=0)
    server = coordinator(features, agents=4, noise_multiplier=1.0, sampling=1e-12, clip=1.0, noise=ResearchNoise(3))
    server.collect_all(0, np.ones((4, 50)))
    made = np.stack([server.release(t).vectors[0] for t in range(40)])
    assert np.isclose(made.std(), server.deviations(0)[0], rtol=0.1)
    assert len(np.unique(made)) == made.size


def test_averaging_uniform_vectors_divides_the_noise():
    features = SharedFeatures(1, 400, lengthscale=0.3, noise=0.01, seed=0)
    spread = []
    for average in (True, False):
        server = coordinator(
            features,
            agents=10,
            regions=4,
            noise_multiplier=1.0,
            weighting=Weighting(hold=0, fall=0),
            average_uniform=average,
            noise=ResearchNoise(0),
        )
        vectors = np.stack([server.release(t).vectors for t in range(5)])
        spread.append(vectors.std() / server.deviations(0)[0])
        assert (vectors[:, 0] == vectors[:, 1]).all() == average
        assert server.signal_to_noise(0) == pytest.approx((2.0 if average else 1.0) / server.deviations(0)[0])
    assert np.allclose(spread, [0.5, 1.0], rtol=0.06)


@quick
@given(seed=seeds, factor=st.floats(1e-3, 1.0))
def test_below_the_shortest_vector_the_clip_does_not_matter(seed, factor):
    """Everything is rescaled to the threshold and the noise with it: the maximizer is the same."""
    features = SharedFeatures(1, 12, lengthscale=0.1, noise=0.01, seed=0)
    rows = np.random.default_rng(seed).standard_normal((8, 12)) + 3.0
    grid = np.linspace(0.0, 1.0, 101)[:, None]
    least, phi, peaks = float(np.linalg.norm(rows, axis=1).min()), features(grid), []
    for S in (least * 2**0.5 * 0.999, factor * least * 2**0.5 * 0.999):
        server = coordinator(
            features, agents=8, regions=2, clip=S, noise_multiplier=0.7, sampling=0.5, noise=ResearchNoise(seed)
        )
        server.collect_all(0, rows)
        peaks.append(int(np.argmax(regional_values(phi, server.release(0).vectors, server.regions.index(grid)))))
    assert peaks[0] == peaks[1]


@quick
@given(parts=st.lists(st.integers(1, 5), min_size=1, max_size=3), seed=seeds)
def test_every_point_has_exactly_one_sub_region(parts, seed):
    regions = Regions(tuple(parts))
    rng = np.random.default_rng(seed)
    corners = rng.integers(0, 2, (10, len(parts))).astype(float)
    borders = np.stack([rng.integers(0, part + 1, 30) / part for part in parts], axis=1)
    U = np.vstack([rng.random((50, len(parts))), corners, borders, np.ones((1, len(parts)))])
    index = regions.index(U)
    assert ((index >= 0) & (index < regions.count)).all()
    assert index[-1] == regions.count - 1
    lower, upper = regions.boxes
    inside = ((U[:, None] >= lower - 2e-9) & (U[:, None] <= upper + 2e-9)).all(axis=2)
    assert inside[np.arange(len(U)), index].all()
    assert np.array_equal(regions.index(0.5 * (lower + upper)), np.arange(regions.count))
    assert np.array_equal(regions.index(lower), np.arange(regions.count))
    assert np.array_equal(regions.index(upper), np.arange(regions.count))


# -- DP-FTS-DE: privacy ----------------------------------------------------------------------------------------------

SYNTHETIC = [(0.15, 1.0, 5.93, 5.47), (0.25, 1.0, 9.91, 9.35), (0.5, 1.0, 20.12, 18.26)]
SYNTHETIC += [(0.25, 1.2, 7.39, 6.76), (0.25, 1.5, 5.22, 4.92)]
LANDMINE = [(0.35, 1.0, 15.17, 9.12), (0.35, 1.6, 7.12, 4.63), (0.35, 2.0, 5.14, 3.49), (0.35, 3.0, 3.05, 2.10)]
LANDMINE += [(0.35, 4.0, 2.16, 1.51), (0.1, 1.0, 3.75, 2.70), (0.15, 1.0, 5.98, 3.85), (0.2, 1.0, 7.69, 5.48)]
LANDMINE += [(0.25, 1.0, 9.82, 6.57)]
SETTINGS = [(200, 40, 2, 5, 5, *row) for row in SYNTHETIC] + [(29, 60, 4, 10, 30, *row) for row in LANDMINE]


@pytest.mark.parametrize(("agents", "rounds", "parts", "hold", "fall", "q", "z", "published", "exact"), SETTINGS)
def test_the_fourteen_published_losses(agents, rounds, parts, hold, fall, q, z, published, exact):
    """To two decimals, by the integer moments accountant; and what the same releases cost by the exact sensitivity."""
    features = SharedFeatures(2, 50, lengthscale=0.03, noise=0.01, seed=0)
    options = {"agents": agents, "regions": parts, "sampling": q, "noise_multiplier": z, "rounds": rounds}
    weighting = Weighting(hold=hold, fall=fall)
    claimed = coordinator(features, **options, weighting=weighting, sensitivity="published")
    assert round(claimed.epsilon(method="moments"), 2) == published
    tight = coordinator(features, **options, weighting=weighting)
    assert abs(tight.epsilon(method="moments") - exact) < 0.0051
    assert tight.epsilon(method="rdp") <= claimed.epsilon(method="rdp") <= claimed.epsilon(method="moments")


def test_losses_grow_with_rounds_and_sampling_and_fall_with_noise():
    features = SharedFeatures(1, 10, lengthscale=0.1, noise=0.01, seed=0)

    def epsilon(rounds=20, q=0.3, z=1.0, delta=1e-3):
        server = coordinator(features, agents=50, sampling=q, noise_multiplier=z, rounds=rounds)
        return server.epsilon(delta, method="rdp")

    base = epsilon()
    assert epsilon(rounds=30) > base < epsilon(q=0.5)
    assert epsilon(z=1.5) < base > epsilon(delta=1e-2)
    assert epsilon(z=2.0, q=1.0) == pytest.approx(
        accounting.epsilon([accounting.GaussianEvent(2.0, 1.0, 20)], 1e-3, method="rdp")
    )


@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_an_attack_on_two_adjacent_populations_stays_below_the_claim(epsilon):
    """One round, with and without an agent, told apart by the likelihood of the joint release over all sub-regions."""
    case = audit_case(epsilon, 0.01)
    found = audit(case.release, case.one, case.two, delta=0.01, claim=epsilon, trials=60_000, score=case.score)
    assert not found.refuted
    assert found.bound.epsilon > 0.5 * epsilon  # and the attack has teeth


def test_the_attack_finds_a_broken_mechanism():
    """A third of the noise is noticed, in the direction between the mean releases over all sub-regions."""

    class Third(ResearchNoise):
        def gaussian(self, values, scale):
            return super().gaussian(values, np.asarray(scale) / 3.0)

    case = audit_case(1.0, 0.01)
    found = audit(case.release, case.one, case.two, delta=0.01, claim=1.0, trials=30_000, noise=Third(0))
    assert found.refuted
