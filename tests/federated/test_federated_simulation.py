"""The batched simulator does what agents and a coordinator do, and refuses what they refuse."""

import warnings

import numpy as np
import pytest

from surefoot import GP, SE, Candidates
from surefoot.federated import (
    Agent,
    Coordinator,
    Decay,
    FixedProbability,
    GridFamily,
    Message,
    Regions,
    SharedFeatures,
    Weighting,
    agent_seed,
    random_messages,
    simulate,
    synthetic_family,
)
from surefoot.federated.simulation import _factor
from surefoot.loop.streams import stream
from surefoot.private import ResearchNoise

pytestmark = pytest.mark.filterwarnings("ignore:the broadcast of round 0:UserWarning")
FAMILY = synthetic_family(runs=2, agents=5, size=80, lengthscale=0.1, seed=1)
FEATURES = SharedFeatures(1, 30, lengthscale=0.1, noise=0.01, seed=2)
PRIVATE = {"regions": 2, "noise_multiplier": 0.3, "sampling": 0.6, "weighting": Weighting(hold=1, fall=2)}


def by_hand(family, features, rounds, initial, options, schedule, outputs, seed):
    """The same federations with one Agent object each; returns queries (runs, agents, initial + rounds)."""
    domain = Candidates(family.points)
    regions = Regions.of(domain, options.get("regions", 1))
    asked = np.empty((family.runs, family.agents, initial + rounds), dtype=int)
    for run in range(family.runs):
        noise = ResearchNoise((seed, run))
        coordinator = Coordinator(
            features,
            agents=family.agents,
            rounds=rounds,
            noise=noise,
            schedule=schedule,
            **{**options, "regions": regions},
        )
        seeds = [agent_seed(seed, run, n) for n in range(family.agents)]
        agents = [
            Agent(
                domain,
                features,
                agent=n,
                regions=regions,
                region=n % regions.count,
                initial=initial,
                schedule=schedule,
                outputs=outputs,
                gp=family.gp,
                seed=own,
            )
            for n, own in enumerate(seeds)
        ]
        errors = [stream(own, "measurement").standard_normal(initial + rounds) for own in seeds]
        for step in range(initial + rounds):
            t = step - initial
            if t >= 0:
                for agent in agents:
                    coordinator.collect(agent.message(t))
                sent = coordinator.release(t)
                for agent in agents:
                    agent.receive(sent)
            for n, agent in enumerate(agents):
                query = agent.ask()
                asked[run, n, step] = query.index
                value = family.values[run, n, query.index] + family.noise**0.5 * errors[n][step]
                agent.tell(query, value)
    return asked


@pytest.mark.parametrize("outputs", ["none", "standardize", "rank"])
@pytest.mark.parametrize("options", [{}, {"regions": 2}, PRIVATE, {**PRIVATE, "public_coin": True}])
def test_federated_queries_are_those_of_agents_and_coordinator_exactly(options, outputs):
    """Everything but draws from the own belief has the same streams: with p_t = 0 all queries are the same."""
    schedule = FixedProbability(0.0)
    run = simulate(
        FAMILY, FEATURES, rounds=5, initial=3, federation=options, schedule=schedule, outputs=outputs, seed=7
    )
    assert run.followed.all()
    assert np.array_equal(run.queries, by_hand(FAMILY, FEATURES, 5, 3, options, schedule, outputs, 7))


def test_more_measurements_than_weights_take_the_other_route_and_agree():
    features = SharedFeatures(1, 6, lengthscale=0.1, noise=0.01, seed=2)
    run = simulate(FAMILY, features, rounds=6, initial=3, federation={}, schedule=FixedProbability(0.0), seed=3)
    assert np.array_equal(run.queries, by_hand(FAMILY, features, 6, 3, {}, FixedProbability(0.0), "none", 3))


def test_coins_are_those_of_the_agents():
    schedule = Decay(0.5, first=0.0)
    run = simulate(FAMILY, FEATURES, rounds=8, initial=2, federation={}, schedule=schedule, seed=5)
    for r in range(2):
        for n in range(5):
            own = agent_seed(5, r, n)
            coins = [stream(own, "coin", 2 + t).random() > schedule(t + 1) for t in range(8)]
            assert run.followed[r, n].tolist() == coins


def test_own_draws_have_the_law_of_the_posterior():
    """K = LLᵀ to rounding, and the weights' posterior mean is the process's: the draws are exact ones."""
    points = np.linspace(0.0, 1.0, 200)[:, None]
    K = SE(0.05)(points)
    L = _factor(SE(0.05), points)
    assert np.allclose(L @ L.T, K, atol=1e-12)
    assert L.shape[1] < 100
    from surefoot.federated import draw_weights

    index, y = np.array([3, 50, 50, 170]), np.array([1.0, -0.5, -0.4, 0.2])
    exact = GP(SE(0.05), noise=0.01).condition(points[index], y)
    w = draw_weights(L[index], y, 0.01, np.zeros(L.shape[1]), np.zeros(4))
    assert np.allclose(L @ w, exact.mean(points), atol=1e-8)
    rng = np.random.default_rng(0)
    draws = np.stack(
        [
            L @ draw_weights(L[index], y, 0.01, rng.standard_normal(L.shape[1]), rng.standard_normal(4))
            for _ in range(2000)
        ]
    )
    assert np.allclose(draws.std(axis=0), exact.predict(points)[1], atol=0.08)


def test_a_pool_of_messages_is_one_shot_fts():
    """Each message serves each agent once; where it leads is where its function is highest; and Agent agrees."""
    pool = random_messages(FAMILY, FEATURES, 6, seed=3)
    run = simulate(FAMILY, FEATURES, rounds=7, initial=2, pool=pool, schedule=FixedProbability(0.0), seed=4)
    domain = Candidates(FAMILY.points)
    table = FEATURES(FAMILY.points)
    for r in range(2):
        for n in range(5):
            peaks = np.argmax(table @ pool[r].T, axis=0)
            assert sorted(run.queries[r, n, 2:7].tolist()) == sorted(peaks.tolist())
            assert not run.followed[r, n, 5:].any()
            agent = Agent(
                domain,
                FEATURES,
                agent=99,
                region=0,
                initial=2,
                schedule=FixedProbability(0.0),
                gp=FAMILY.gp,
                seed=agent_seed(4, r, n),
            )
            for other, row in enumerate(pool[r]):
                agent.receive(Message(other, 0, FEATURES.hash, row))
            for step in range(7):
                query = agent.ask()
                assert query.index == run.queries[r, n, step]
                agent.tell(query, 0.0)


def test_alone_it_is_thompson_sampling_and_it_learns():
    run = simulate(FAMILY, FEATURES, rounds=15, initial=2, seed=0)
    assert not run.followed.any()
    assert run.broadcasts == []
    assert (np.diff(run.regret, axis=2) <= 0.0).all()
    assert run.regret[:, :, -1].mean() < 0.3 * run.regret[:, :, 0].mean()


def test_federated_agents_learn_faster():
    """Paired: the same functions, starts and noise; 4 runs of 30 agents; a margin of a third."""
    family = synthetic_family(runs=4, agents=30, size=200, seed=5)
    features = SharedFeatures(1, 50, lengthscale=0.03, noise=0.01, seed=0)
    schedule = Decay(0.5, first=0.0)
    alone = simulate(family, features, rounds=8, initial=10, seed=1)
    together = simulate(family, features, rounds=8, initial=10, federation={}, schedule=schedule, seed=1)
    deaf = simulate(family, features, rounds=8, initial=10, federation={}, schedule=schedule, seed=1, send=False)
    assert np.array_equal(alone.queries[:, :, :10], together.queries[:, :, :10])
    end = {name: run.regret[:, :, 4].mean() for name, run in (("alone", alone), ("together", together), ("deaf", deaf))}
    assert end["together"] < 0.67 * end["alone"]
    assert end["together"] < 0.67 * end["deaf"]


def test_blocks_change_nothing():
    whole, cut = (simulate(FAMILY, FEATURES, rounds=3, initial=2, federation={}, seed=2, block=b) for b in (512, 3))
    assert np.array_equal(whole.queries, cut.queries)


def test_torch_on_the_processor_agrees():
    pytest.importorskip("torch")
    here, there = (
        simulate(FAMILY, FEATURES, rounds=4, initial=2, federation=PRIVATE, seed=2, device=device)
        for device in (None, "cpu")
    )
    assert np.array_equal(here.queries, there.queries)


def test_starts_anywhere():
    run = simulate(FAMILY, FEATURES, rounds=1, initial=30, federation={"regions": 2}, local=False, seed=0)
    assert (run.queries[0, 0, :30] >= 40).any()
    assert (run.queries[0, 0, :30] < 40).any()
    run = simulate(FAMILY, FEATURES, rounds=1, initial=30, federation={"regions": 2}, seed=0)
    assert (run.queries[:, ::2, :30] < 40).all()


def test_bad_input():
    with pytest.raises(ValueError, match="rounds"):
        simulate(FAMILY, FEATURES, rounds=0)
    with pytest.raises(ValueError, match="block must be at least 1, got 0"):
        simulate(FAMILY, FEATURES, rounds=1, block=0)
    with pytest.raises(ValueError, match="not both"):
        simulate(FAMILY, FEATURES, rounds=1, federation={}, pool=np.zeros((2, 1, 30)))
    with pytest.raises(ValueError, match="no candidate"):
        simulate(FAMILY, FEATURES, rounds=1, federation={"regions": 500})
    with pytest.raises(ValueError, match="do not fit"):
        GridFamily(np.zeros((3, 1)), np.zeros((1, 1, 4)), GP(SE(0.1), noise=0.1), 0.1)
    with pytest.raises(ValueError, match="finite"):
        GridFamily(np.zeros((1, 1)), np.full((1, 1, 1), np.nan), GP(SE(0.1), noise=0.1), 0.1)
    with warnings.catch_warnings(), pytest.raises(TypeError):
        simulate(FAMILY, FEATURES, rounds=1, federation={"agents": 3})
