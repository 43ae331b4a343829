"""DP-FTS-DE as secure sums: the broadcasts of the coordinator without a coordinator that sees a vector."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

from surefoot import GP, SE, Candidates
from surefoot.errors import BudgetSpent, SurefootError
from surefoot.federated import Agent, Coordinator, Decay, SharedFeatures, Weighting
from surefoot.federated.aggregate import clip_norms
from surefoot.federated.regions import effective_multiplier
from surefoot.federated.secure import Diary, Identity, SumPlan, secure_sum
from surefoot.private import Ledger, ResearchNoise

FEATURES = SharedFeatures(1, 6, lengthscale=0.2, noise=0.01, seed=0)
IDENTITIES = [Identity(bytes([n]) * 32) for n in range(1, 7)]
ROSTER = [identity.public for identity in IDENTITIES]


def plan(**options):
    return SumPlan(FEATURES, **{"agents": 6, "regions": 2, "rounds": 3, "bits": 40, **options})


def test_without_noise_the_sum_is_the_coordinators_and_exact():
    made, rng = plan(weighting=Weighting(high=2.0, hold=1, fall=1)), np.random.default_rng(0)
    coordinator = Coordinator(FEATURES, agents=6, regions=2, clip=made.clip, weighting=made.weighting)
    diaries = [Diary() for _ in range(6)]
    for number in range(3):
        vectors = rng.standard_normal((6, 6)) * 2.0
        steps = np.array([made.contribution(n, vectors[n], number) for n in range(6)])
        session = made.session(number, ROSTER)
        found = secure_sum(session, IDENTITIES, steps, made.ring(number), diaries=diaries)
        assert (found.total == steps.sum(axis=0)).all()  # bit for bit
        coordinator.collect_all(number, vectors)
        weights = made.weights(number)
        wanted = weights @ clip_norms(vectors, made.limit)
        told = made.broadcast(number, found.total)
        assert told.vectors == pytest.approx(wanted, abs=6 * made.ring(number).step)
        released = coordinator.release(number).vectors
        if not coordinator._uniform(number):
            assert told.vectors == pytest.approx(released, abs=6 * made.ring(number).step)


def test_the_noise_is_the_coordinators_and_the_charge_what_it_has():
    made = plan(noise_multiplier=2.0, agents=6, threshold=6)
    with warnings.catch_warnings(action="ignore"):
        coordinator = Coordinator(
            FEATURES, agents=6, regions=2, clip=made.clip, noise_multiplier=2.0, rounds=3, noise=ResearchNoise(0)
        )
    for number in range(3):
        assert made.event(number).noise_multiplier == pytest.approx(
            effective_multiplier(2.0, made.weights(number)), rel=1e-6
        )
        # What comes out of the ring is z φ_max S, as at the coordinator.
        ring = made.ring(number)
        told = made.broadcast(number, np.full(12, round(made.spread() / ring.step)), simulated=True)
        assert told.vectors[:, 0] == pytest.approx(coordinator.deviations(number), rel=1e-5)
    parts = [made.contribution(0, np.zeros(6), 0, ResearchNoise(s)) for s in range(500)]
    spread = np.std(parts) * made.ring(0).step * math.sqrt(6)  # six honest shares
    assert spread == pytest.approx(made.spread(), rel=0.03)


def test_noise_is_dealt_for_those_who_stay_and_are_honest():
    full, some = plan(noise_multiplier=2.0, threshold=6), plan(noise_multiplier=2.0, threshold=4, dishonest=1)
    assert some.honest == 3
    assert some.shares(0).each * some.ring(0).step == pytest.approx(
        full.shares(0).each * full.ring(0).step * math.sqrt(2.0), rel=1e-6
    )
    assert some.epsilon(1e-5) == pytest.approx(full.epsilon(1e-5), rel=1e-6)


def test_clipping_is_proved_in_the_ring():
    made = plan(clip=1.0)
    for vector in (np.full(6, 1e200), np.full(6, 1e-3), [1.0, 0, 0, 0, 0, 0]):
        steps = made.contribution(1, vector, 0)
        assert made.ring(0).proves(steps)
        assert np.linalg.norm(steps * made.ring(0).step) <= made.sensitivity(0)


def test_a_sum_is_charged_before_it_is_opened():
    made = plan(noise_multiplier=4.0)
    ledger = Ledger(epsilon=3.0, delta=1e-5, method="rdp")
    made.charge(ledger, 0)
    assert ledger.entries[0].note == {"round": 0}
    assert ledger.spent() == pytest.approx(plan(noise_multiplier=4.0, rounds=1).epsilon(1e-5))
    loud = plan(noise_multiplier=1.0)
    with pytest.raises(BudgetSpent):
        loud.charge(ledger, 1)
    assert len(ledger.entries) == 1
    with pytest.raises(SurefootError, match="rdp"):
        made.charge(Ledger(epsilon=3.0, delta=1e-5), 0)


def test_agents_learn_from_sums():
    """Real agents: messages, contributions, a secure sum with a dropout in every round, broadcasts."""
    made = plan(regions=1, rounds=2, noise_multiplier=0.01)
    grid = Candidates(np.linspace(0.0, 1.0, 21))
    agents = [
        Agent(grid, FEATURES, agent=n, initial=2, schedule=Decay(1.0, first=0.0), gp=GP(SE(0.2), noise=0.01), seed=n)
        for n in range(6)
    ]
    diaries = [Diary() for _ in range(6)]

    def measure():
        for agent in agents:
            query = agent.ask()
            agent.tell(query, -((query.x[0] - 0.3) ** 2))

    measure(), measure()
    for number in range(2):
        steps = [made.contribution(n, a.message(number).vector, number, ResearchNoise(n)) for n, a in enumerate(agents)]
        session = made.session(number, ROSTER)
        found = secure_sum(session, IDENTITIES, steps, made.ring(number), absent={2: {number}}, diaries=diaries)
        assert number not in found.survivors
        told = made.broadcast(number, found.total, simulated=True)
        assert all(agent.receive(told) for agent in agents)
        measure()
    with pytest.raises(SurefootError, match="protects nobody"):
        told.to_wire()


@pytest.mark.parametrize(
    "wrong",
    [{"agents": 2}, {"dishonest": 5}, {"noise_multiplier": -1.0}, {"bits": 31}, {"rounds": 0},
     {"bits": 16, "noise_multiplier": 1e-3}],
)  # fmt: skip
def test_bad_plans(wrong):
    with pytest.raises(ValueError, match=r"."):
        plan(**wrong).ring(0)
    with pytest.raises(ValueError, match=r"roster|finite"):
        plan().contribution(0, [math.nan] * 6, 0)
    with pytest.raises(ValueError, match="roster"):
        plan().contribution(6, np.zeros(6), 0)
    with pytest.raises(ValueError, match="roster has 6"):
        plan().session(0, ROSTER[:5])
