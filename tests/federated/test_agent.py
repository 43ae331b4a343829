"""An agent alone is Thompson sampling; what it sends and receives is durable and checked."""

import json

import numpy as np
import pytest

import surefoot
from surefoot import GP, SE, Box, Candidates, Choice, Float, Policy, Space, ThompsonSampling
from surefoot.federated import (
    Agent,
    Broadcast,
    Decay,
    FixedProbability,
    Message,
    Regions,
    SharedFeatures,
    regional_start,
    to_unit,
)

SPACE = Space(rate=Float(1e-3, 1.0, log=True), kind=Choice(["a", "b"]))
DOMAINS = {
    "Box": Box([(0.0, 4.0), (-1.0, 1.0)]),
    "Candidates": Candidates(np.random.default_rng(0).random((60, 2))),
    "Space": SPACE,
}


def features(domain, count=30, seed=0, **options):
    return SharedFeatures(
        domain.encoded_dimension, count, **{"lengthscale": 0.3, "noise": 0.01, "seed": seed, **options}
    )


def value(domain, x):
    return float(-np.sum((to_unit(domain, domain.encode(np.asarray(x)[None]))[0] - 0.6) ** 2))


def run(policy, steps, between=None):
    asked = []
    for number in range(steps):
        if between is not None:
            between(policy, number)
        query = policy.ask()
        policy.tell(query, value(policy.domain, query.x))
        asked.append(query)
    return asked


def broadcast(agent, round, seed=0, **fields):
    shape = (agent.regions.count, agent.shared.count)
    rows = np.random.default_rng([seed, round]).standard_normal(shape)
    return Broadcast(round, agent.shared.hash, agent.regions.parts, **{"vectors": rows, **fields})


def hears(agent, number):
    agent.receive(Message(3, number, agent.shared.hash, np.random.default_rng(number).standard_normal(30)))
    agent.receive(broadcast(agent, number))


# -- reductions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", DOMAINS)
@pytest.mark.parametrize("gp", [None, GP(SE(0.3), noise=0.01)])
def test_who_never_listens_is_thompson_sampling_bit_for_bit(kind, gp):
    domain = DOMAINS[kind]
    options = {"gp": gp, "initial": 3, "seed": 5}
    alone = run(ThompsonSampling(domain, features=256, **options), 8)
    agent = Agent(domain, features(domain), schedule=FixedProbability(1.0), draw_features=256, **options)
    assert run(agent, 8, hears) == alone
    assert len([event for event in agent.events if event["event"] == "received"]) == 16


@pytest.mark.parametrize("kind", DOMAINS)
def test_with_nobody_to_listen_to_it_is_thompson_sampling_bit_for_bit(kind):
    """Everybody a straggler, or every broadcast silent: the schedule does not matter."""
    domain = DOMAINS[kind]
    options = {"gp": GP(SE(0.3), noise=0.01), "initial": 2, "seed": 6}
    alone = run(ThompsonSampling(domain, features=256, **options), 7)
    agent = Agent(domain, features(domain), schedule=FixedProbability(0.0), draw_features=256, **options)

    def silence(agent, number):
        agent.message(number)
        agent.receive(broadcast(agent, number, vectors=None, silence="budget"))

    assert run(agent, 7, silence) == alone


def test_sending_changes_no_query():
    domain = DOMAINS["Box"]
    quiet, loud = (Agent(domain, features(domain), gp=GP(SE(0.3), noise=0.01), seed=1) for _ in range(2))
    assert run(quiet, 5) == run(loud, 5, lambda agent, number: agent.message(number))


# -- following -------------------------------------------------------------------------------------------------------


def test_following_a_broadcast_goes_where_its_function_is_highest():
    for domain in DOMAINS.values():
        agent = Agent(
            domain, features(domain), regions=2, schedule=FixedProbability(0.0), gp=GP(SE(0.3), noise=0.01), seed=0
        )
        sent = broadcast(agent, 4)
        agent.receive(sent)
        query = agent.ask()
        assert dict(query.note) == {"source": "broadcast", "round": 4}
        U = to_unit(domain, domain.encode(domain.sample(4000, np.random.default_rng(1))))
        X = np.vstack([to_unit(domain, domain.encode(query.x[None])), U])
        heights = np.einsum("nm,nm->n", agent.shared(X), sent.vectors[agent.regions.index(X)])
        assert heights[0] >= heights.max() - 1e-9


def test_a_message_serves_once_and_a_fresh_one_serves_again():
    domain = DOMAINS["Candidates"]
    agent = Agent(domain, features(domain), schedule=FixedProbability(0.0), gp=GP(SE(0.3), noise=0.01), seed=0)
    rows = np.random.default_rng(0).standard_normal((6, 30))
    for other in range(1, 6):
        agent.receive(Message(other, 0, agent.shared.hash, rows[other]))
    notes = [query.note for query in run(agent, 8)]
    assert sorted(note["agent"] for note in notes[:5]) == [1, 2, 3, 4, 5]
    assert all("source" not in note for note in notes[5:])
    agent.receive(Message(2, 1, agent.shared.hash, rows[0]))
    assert run(agent, 1)[0].note["round"] == 1


def test_always_reuses():
    domain = DOMAINS["Candidates"]
    agent = Agent(
        domain, features(domain), schedule=FixedProbability(0.0), gp=GP(SE(0.3), noise=0.01), reuse="always", seed=0
    )
    agent.receive(broadcast(agent, 0))
    assert [query.note["source"] for query in run(agent, 4)] == ["broadcast"] * 4


def test_a_broadcast_serves_once():
    domain = DOMAINS["Candidates"]
    agent = Agent(domain, features(domain), schedule=FixedProbability(0.0), gp=GP(SE(0.3), noise=0.01), seed=0)
    agent.receive(broadcast(agent, 0))
    assert ["source" in query.note for query in run(agent, 3)] == [True, False, False]


def test_the_public_coin_overrules_the_own():
    domain = DOMAINS["Candidates"]
    for own, coin in ((1.0, True), (0.0, False)):
        agent = Agent(domain, features(domain), schedule=FixedProbability(own), gp=GP(SE(0.3), noise=0.01), seed=0)
        sent = broadcast(agent, 0, coin=True) if coin else broadcast(agent, 0, vectors=None, silence="coin", coin=False)
        agent.receive(sent)
        assert ("source" in agent.ask().note) == coin


def test_own_coins_follow_the_schedule():
    domain = Candidates(np.linspace(0.0, 1.0, 5))
    shared = features(domain, count=4)
    followed = 0
    for seed in range(300):
        agent = Agent(domain, shared, schedule=FixedProbability(0.7), gp=GP(SE(0.3), noise=0.01), seed=seed)
        agent.receive(broadcast(agent, 0))
        followed += "source" in agent.ask().note
    assert abs(followed / 300 - 0.3) < 4.0 * np.sqrt(0.21 / 300)


def test_iterations_count_queries_of_the_rule():
    domain = DOMAINS["Candidates"]
    agent = Agent(domain, features(domain), initial=3, seed=0)
    assert agent.iteration == 1
    run(agent, 3)
    assert agent.iteration == 1
    run(agent, 2)
    assert agent.iteration == 3


# -- starting in a sub-region ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", DOMAINS)
def test_initial_points_lie_in_the_sub_region_and_later_ones_anywhere(kind):
    domain = DOMAINS[kind]
    regions = Regions.of(domain, 2)
    seen = set()
    for region in range(2):
        agent = Agent(domain, features(domain), regions=regions, region=region, gp=GP(SE(0.3), noise=0.01), seed=region)
        X = np.array([query.x for query in run(agent, 25)])
        index = regions.index(to_unit(domain, domain.encode(X)))
        assert (index[:10] == region).all()  # N_init is 10
        seen |= set(index[10:].tolist())
    assert seen == {0, 1}


def test_starts_are_uniform_in_the_sub_region():
    regions, domain = Regions((3,)), Box([(0.0, 3.0)])
    X = np.array([regional_start(domain, regions, 1, np.random.default_rng(seed))[0] for seed in range(500)])
    assert ((X >= 1.0) & (X < 2.0)).all()
    counts = np.histogram(X, bins=5, range=(1.0, 2.0))[0]
    assert ((counts - 100.0) ** 2 / 100.0).sum() < 18.5  # χ²₄ at 0.1 %
    assert regional_start(Candidates([[0.1], [0.9]]), Regions((3,)), 1, np.random.default_rng(0)) is None


# -- what is sent ----------------------------------------------------------------------------------------------------


def test_a_round_has_one_draw_whatever_happens_in_between(tmp_path):
    domain = DOMAINS["Box"]
    path = tmp_path / "agent.jsonl"
    options = {"gp": GP(SE(0.3), noise=0.01), "seed": 3, "journal": path}
    with Agent(domain, features(domain), agent=2, **options) as agent:
        run(agent, 4)
        first = agent.message(0)
        run(agent, 2)
        assert agent.message(0) == first  # two draws of one round would tell more than one
        second = agent.message(1)
        assert not np.array_equal(second.vector, first.vector)
    with surefoot.load(path) as again:
        assert again.message(0) == first
        assert again.message(1) == second
        assert [e["event"] for e in again.events].count("sent") == 2
    assert first.agent == 2
    assert first.vector.shape == (30,)


def test_a_message_holds_no_measurement():
    domain = DOMAINS["Box"]
    agent = Agent(domain, features(domain), seed=0)
    run(agent, 6)
    wire = agent.message(0).to_wire()
    numbers = {round(number, 12) for number in wire["vector"]}
    X, y, _ = agent.data()
    assert len(wire["vector"]) == 30
    assert not numbers & {round(number, 12) for number in [*X.ravel().tolist(), *y.tolist()]}


def test_failed_runs_are_not_in_a_message():
    domain = DOMAINS["Box"]
    first, second = (Agent(domain, features(domain), initial=3, seed=0) for _ in range(2))
    run(first, 3)
    run(second, 3)
    second.tell([1.0, 0.5], None)
    assert first.message(0) == second.message(0)


@pytest.mark.parametrize("outputs", ["standardize", "rank"])
def test_scale_and_shift_of_own_values_stay_private(outputs):
    """Messages of agents with other units are comparable: the same up to rounding."""
    domain = DOMAINS["Box"]
    sent = []
    for scale, shift in ((1.0, 0.0), (250.0, -3.0)):
        agent = Agent(domain, features(domain), outputs=outputs, seed=0)
        for x in domain.sample(12, np.random.default_rng(2)):
            agent.tell(x, shift + scale * value(domain, x))
        sent.append(agent.message(0).vector)
    assert np.allclose(sent[0], sent[1], atol=1e-9)


# -- what is received ------------------------------------------------------------------------------------------------


def test_foreign_news_is_refused_and_changes_nothing():
    domain = DOMAINS["Box"]
    agent = Agent(domain, features(domain), agent=1, regions=2, seed=0)
    other = Agent(domain, features(domain, seed=1), regions=2, seed=0)
    wrong = [
        (broadcast(other, 0), "made with the features"),
        (Broadcast(0, agent.shared.hash, (1, 1), np.zeros((1, 30))), "sub-regions"),
        (Broadcast(0, agent.shared.hash, (2, 1), np.zeros((2, 29))), "30 finite numbers"),
        (Message(0, 0, agent.shared.hash, np.full(30, np.nan)), "30 finite numbers"),
        (Message(0, 0, agent.shared.hash, np.zeros(31)), "30 finite numbers"),
        (Message(1, 0, agent.shared.hash, np.zeros(30)), "of its own"),
    ]
    for sent, match in wrong:
        with pytest.raises(ValueError, match=match):
            agent.receive(sent)
    with pytest.raises(TypeError, match="Broadcast or a Message"):
        agent.receive({"round": 0})
    assert not agent.events


def test_news_is_taken_once_and_only_if_newer():
    domain = DOMAINS["Box"]
    agent = Agent(domain, features(domain), seed=0)
    assert agent.receive(broadcast(agent, 3))
    assert not agent.receive(broadcast(agent, 3))
    assert not agent.receive(broadcast(agent, 2))
    with pytest.raises(ValueError, match="another broadcast"):
        agent.receive(broadcast(agent, 3, seed=1))
    assert len(agent.events) == 1


def test_what_was_received_survives():
    domain = DOMAINS["Candidates"]
    agent = Agent(domain, features(domain), schedule=Decay(0.5, first=0.0), gp=GP(SE(0.3), noise=0.01), seed=4)
    run(agent, 3, hears)
    hears(agent, 3)
    twin = Policy.from_state(json.loads(json.dumps(agent.state(), allow_nan=False)))
    assert twin.state() == agent.state()
    assert run(twin, 4) == run(agent, 4)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"agent": -1}, "agent"),
        ({"region": 2, "regions": 2}, "region"),
        ({"region": -1}, "region"),
        ({"regions": 0}, "sub-regions"),
        ({"regions": Regions((2,))}, "coordinates"),
        ({"outputs": "log"}, "outputs"),
        ({"reuse": "never"}, "reuse"),
        ({"draw_features": 3}, "features"),
    ],
)
def test_bad_options(options, match):
    with pytest.raises(ValueError, match=match):
        Agent(DOMAINS["Box"], features(DOMAINS["Box"]), **options)


def test_features_of_another_domain():
    with pytest.raises(ValueError, match="3 coordinates"):
        Agent(DOMAINS["Box"], features(SPACE), seed=0)
    with pytest.raises(TypeError, match="SharedFeatures"):
        Agent(DOMAINS["Box"], 100)
    domain = Candidates([[0.1], [0.9]])
    with pytest.raises(ValueError, match="none of the 2 candidates"):
        Agent(domain, features(domain), regions=3, region=1)
    with pytest.raises(ValueError, match="round"):
        Agent(DOMAINS["Box"], features(DOMAINS["Box"])).message(-1)


def test_a_region_is_a_whole_number_and_a_schedule_a_function():
    with pytest.raises(ValueError, match="region must be a whole number"):
        Agent(DOMAINS["Box"], features(DOMAINS["Box"]), regions=2, region=0.5)
    with pytest.raises(TypeError, match="schedule must be a function"):
        Agent(DOMAINS["Box"], features(DOMAINS["Box"]), schedule=0.5)
