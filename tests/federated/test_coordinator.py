"""The coordinator: rounds, silence, refusals, durability and what it charges."""

import json
import os
import signal
import subprocess
import sys
import warnings

import numpy as np
import pytest

from surefoot.errors import SurefootError
from surefoot.federated import Coordinator, Message, Regions, SharedFeatures, Weighting
from surefoot.federated.schedules import Decay, FixedProbability
from surefoot.private import GaussianEvent, Ledger, ResearchNoise

FEATURES = SharedFeatures(2, 8, lengthscale=0.2, noise=0.01, seed=0)


def make(agents=6, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return Coordinator(FEATURES, agents=agents, **options)


def private(agents=6, seed=0, **options):
    return make(agents, **{"noise_multiplier": 1.0, "sampling": 0.5, "noise": ResearchNoise(seed), **options})


def vectors(agents=6, scale=1.0, seed=1):
    return scale * np.random.default_rng(seed).standard_normal((agents, 8))


def feed(coordinator, rows, round=0):
    for agent, row in enumerate(rows):
        coordinator.collect(Message(agent, round, FEATURES.hash, row))


# -- the noiseless corner --------------------------------------------------------------------------------------------


def test_without_noise_it_is_the_mean():
    coordinator = make()
    rows = vectors()
    feed(coordinator, rows)
    broadcast = coordinator.release(0)
    assert np.allclose(broadcast.vectors, rows.mean(axis=0)[None], atol=1e-14)
    assert not broadcast.simulated
    assert broadcast.to_wire()["vectors"]


def test_with_sub_regions_it_is_the_mean_of_those_who_know_it():
    coordinator = make(regions=2, weighting=Weighting(high=60.0))
    rows = vectors()
    feed(coordinator, rows)
    made = coordinator.release(0).vectors
    assert np.allclose(made, [rows[::2].mean(axis=0), rows[1::2].mean(axis=0)], atol=1e-12)


# -- options ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"agents": 0}, "agents"),
        ({"agents": 2.5}, "agents"),
        ({"regions": 0}, "sub-regions"),
        ({"regions": Regions((2,))}, "coordinates"),
        ({"clip": 0.0}, "clip"),
        ({"clip": -3.0}, "clip"),
        ({"clip": np.nan}, "clip"),
        ({"clip": np.inf, "noise_multiplier": 1.0}, "clipped"),
        ({"noise_multiplier": -1.0}, "noise_multiplier"),
        ({"noise_multiplier": np.inf}, "noise_multiplier"),
        ({"sampling": 0.0}, "sampling"),
        ({"sampling": 1.5}, "sampling"),
        ({"sampling": np.nan}, "sampling"),
        ({"rounds": 0}, "rounds"),
        ({"sensitivity": "guess"}, "sensitivity"),
        ({"ledger": Ledger(epsilon=1.0, delta=1e-3)}, "noise_multiplier > 0"),
    ],
)
def test_out_of_range(options, match):
    with pytest.raises(ValueError, match=match):
        make(**options)


def test_features_are_features():
    with pytest.raises(TypeError, match="SharedFeatures"):
        Coordinator("ab", agents=3)


def test_the_rule_for_clipping_looks_at_nobody():
    """S = 1.1 √(MP): 11 for M = 50, P = 2; 22 for M = 100, P = 4."""
    for count, parts, published in ((50, 2, 11.0), (100, 4, 22.0), (50, 1, 8.0), (100, 1, 11.0)):
        features = SharedFeatures(2, count, lengthscale=0.2, noise=0.01, seed=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            coordinator = Coordinator(features, agents=9, regions=parts, noise_multiplier=1.0)
        assert abs(coordinator.clip - published) <= 0.25
    assert make().clip == np.inf


# -- refusals --------------------------------------------------------------------------------------------------------


def poisons():
    other = SharedFeatures(2, 8, lengthscale=0.2, noise=0.01, seed=1)
    wider = SharedFeatures(3, 8, lengthscale=0.2, noise=0.01, seed=0)
    good = np.ones(8)
    return [
        (Message(0, 1, FEATURES.hash, np.where(np.arange(8) == 3, np.nan, good)), "not finite"),
        (Message(0, 1, FEATURES.hash, np.where(np.arange(8) == 3, np.inf, good)), "not finite"),
        (Message(0, 1, FEATURES.hash, 1e9 * good), "longer than"),
        (Message(0, 1, FEATURES.hash, 1e200 * good), "longer than"),
        (Message(0, 1, FEATURES.hash, np.ones(7)), "8 numbers"),
        (Message(0, 1, other.hash, good), "made with the features"),
        (Message(0, 1, wider.hash, good), "made with the features"),
        (Message(6, 1, FEATURES.hash, good), "roster"),
        (Message(0, 0, FEATURES.hash, good), "another vector"),
    ]


@pytest.mark.parametrize("number", range(9))
def test_a_poisoned_message_is_refused_and_the_round_is_unharmed(number):
    message, match = poisons()[number]
    clean, harmed = make(), make()
    for coordinator in (clean, harmed):
        feed(coordinator, vectors())
    with pytest.raises(ValueError, match=match):
        harmed.collect(message)
    assert np.array_equal(harmed.newest, clean.newest)
    assert harmed.release(0) == clean.release(0)


def test_bulk_collection_is_refused_as_a_whole():
    coordinator = make()
    for bad in (np.nan, 1e9):
        rows = vectors()
        rows[4, 2] = bad
        with pytest.raises(ValueError, match="agent 4"):
            coordinator.collect_all(0, rows)
    with pytest.raises(ValueError, match="shape"):
        coordinator.collect_all(0, rows[:3])
    assert (coordinator.newest == -1).all()


def test_only_messages_are_collected():
    with pytest.raises(TypeError, match="Message"):
        make().collect({"agent": 0})


# -- stragglers ------------------------------------------------------------------------------------------------------


def test_late_agents_count_with_their_last_vector_and_absent_ones_as_zero():
    coordinator = make()
    rows = vectors()
    feed(coordinator, rows[:4])  # agents 4 and 5 never answer
    assert np.allclose(coordinator.release(0).vectors[0], rows[:4].sum(axis=0) / 6.0)
    newer = vectors(seed=2)
    assert coordinator.collect(Message(0, 1, FEATURES.hash, newer[0]))
    assert not coordinator.collect(Message(0, 0, FEATURES.hash, rows[0]))  # a late duplicate replaces nothing
    expected = (newer[0] + rows[1:4].sum(axis=0)) / 6.0
    assert np.allclose(coordinator.release(1).vectors[0], expected)


def test_the_same_message_twice_changes_nothing():
    coordinator = make()
    message = Message(0, 0, FEATURES.hash, np.ones(8))
    assert coordinator.collect(message)
    assert not coordinator.collect(message)


# -- rounds and silence ----------------------------------------------------------------------------------------------


def test_a_round_is_released_once():
    coordinator = private()
    feed(coordinator, vectors())
    first = coordinator.release(0)
    feed(coordinator, vectors(seed=5), round=1)
    assert coordinator.release(0) is first
    assert coordinator.release(3).round == 3
    with pytest.raises(ValueError, match="passed over"):
        coordinator.release(2)
    with pytest.raises(ValueError, match="round"):
        coordinator.release(-1)
    assert coordinator.round == 4


def test_the_last_broadcast_is_not_made():
    """T releases, of rounds 0 to T − 1, feed queries 1 to T; another would cost privacy and serve nobody."""
    ledger = Ledger(epsilon=50.0, delta=1e-3, method="rdp")
    coordinator = private(rounds=3, ledger=ledger)
    silences = [coordinator.release(t).silence for t in range(5)]
    assert silences == [None, None, None, "last", "last"]
    assert len(ledger.entries) == 3


def test_a_spent_budget_silences_for_good():
    ledger = Ledger(epsilon=4.0, delta=1e-3, method="rdp")
    coordinator = private(ledger=ledger)
    silences = [coordinator.release().silence for _ in range(30)]
    made = silences.index("budget")
    assert 1 <= made < 30
    assert set(silences[made:]) == {"budget"}
    assert len(ledger.entries) == made
    assert 0.0 < ledger.spent() <= 4.0
    assert ledger.would_exceed(GaussianEvent(1.0, 0.5))


def test_the_ledger_is_charged_what_the_round_costs():
    ledger = Ledger(epsilon=100.0, delta=1e-3, method="rdp")
    coordinator = private(regions=2, weighting=Weighting(high=15.0, hold=1, fall=1), ledger=ledger)
    for _ in range(3):
        coordinator.release()
    charged = [entry.event for entry in ledger.entries]
    assert np.allclose([event.noise_multiplier for event in charged], [2**0.5, 2**0.5, 1.0], atol=1e-6)
    assert [event.sampling for event in charged] == [0.5] * 3
    assert charged == coordinator.plan(3)
    assert [entry.note for entry in ledger.entries] == [{"round": t} for t in range(3)]
    published = private(regions=2, sensitivity="published")
    assert {event.noise_multiplier for event in published.plan(3)} == {1.0}


def test_a_release_that_fails_stays_charged():
    class Broken(ResearchNoise):
        def gaussian(self, values, scale):
            raise RuntimeError("the sampler died")

    ledger = Ledger(epsilon=100.0, delta=1e-3, method="rdp")
    coordinator = private(ledger=ledger, noise=Broken(0))
    with pytest.raises(RuntimeError, match="died"):
        coordinator.release(0)
    assert len(ledger.entries) == 1
    assert coordinator.round == 0


def test_the_public_coin_decides_for_all_and_saves_releases():
    ledger = Ledger(epsilon=100.0, delta=1e-3, method="rdp")
    coordinator = private(public_coin=True, schedule=Decay(1.0, first=0.0), ledger=ledger, rounds=60)
    made = [coordinator.release(t) for t in range(60)]
    assert made[0].coin is True  # p₁ = 0
    assert {(b.coin, b.silence) for b in made} == {(True, None), (False, "coin")}
    assert len(ledger.entries) == sum(b.vectors is not None for b in made) < 20  # 4.7 are expected
    assert all(private(public_coin=True, schedule=FixedProbability(1.0)).release().silence == "coin" for _ in range(3))


def test_simulated_broadcasts_refuse_the_wire():
    with pytest.raises(SurefootError, match="protects nobody"):
        private().release(0).to_wire()
    assert private(noise_multiplier=0.0).release(0).simulated  # a seeded sample is no secret either
    pytest.importorskip("opendp")
    real = private(noise=None).release(0)
    assert not real.simulated
    assert real.to_wire()["vectors"]


def test_a_faint_signal_is_announced():
    """The authors' landmine setting: noise of 9 at first, 2.2 later, against a signal of order 1."""
    features = SharedFeatures(2, 100, lengthscale=0.01, noise=1e-6, seed=0)
    options = {"agents": 29, "regions": 4, "clip": 22.0, "noise_multiplier": 1.0, "sampling": 0.35}
    with pytest.warns(UserWarning, match=r"round 0 has a signal-to-noise ratio of 0\.11"):
        coordinator = Coordinator(features, **options, average_uniform=False)
    assert abs(coordinator.deviations(0).max() - 9.0) < 0.05
    assert abs(coordinator.deviations(20).max() - 2.2) < 0.05
    assert coordinator.signal_to_noise(20) == pytest.approx(1.0 / coordinator.deviations(20).max())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Coordinator(FEATURES, agents=200)


# -- durability ------------------------------------------------------------------------------------------------------


def test_a_restarted_coordinator_continues(tmp_path):
    files = {"journal": tmp_path / "broadcasts.jsonl", "vectors": tmp_path / "private.jsonl"}
    rows = vectors()
    with private(**files) as coordinator:
        feed(coordinator, rows)
        first = coordinator.release(0)
        with pytest.raises(SurefootError, match="another process"):
            private(**files)
    with files["journal"].open("ab") as file:
        file.write(b'{"event":"released","round":1,"fea')  # a crash in mid-line
    with private(seed=9, **files) as again:
        assert again.round == 1
        assert again.release(0) == first
        assert np.array_equal(again.newest, np.zeros(6))
        again.release(1)
    with pytest.raises(ValueError, match="another run"):
        private(clip=3.0, **files)


def test_a_coordinator_that_cannot_be_made_holds_no_file(tmp_path):
    files = {"journal": tmp_path / "broadcasts.jsonl", "vectors": tmp_path / "private.jsonl"}
    files["vectors"].write_text("the vectors of another day\n")
    with pytest.raises(ValueError, match="line 1 is damaged") as held:  # as long as it is looked at
        private(**files)
    files["vectors"].unlink()
    with private(**files) as coordinator:
        feed(coordinator, vectors())
        coordinator.release(0)
    assert held.value is not None


def test_the_public_and_the_private_file_cannot_be_exchanged(tmp_path):
    one, other = tmp_path / "broadcasts.jsonl", tmp_path / "private.jsonl"
    with private(journal=one, vectors=other) as coordinator:
        feed(coordinator, vectors())
        coordinator.release(0)
    before = one.read_bytes(), other.read_bytes()
    for exchanged in ({"journal": other, "vectors": one}, {"vectors": one}, {"journal": other}):
        with pytest.raises(ValueError, match="exchanged") as held:
            private(**exchanged)
        assert held.value is not None
    assert (one.read_bytes(), other.read_bytes()) == before
    with private(journal=one, vectors=other) as again:
        assert again.round == 1


def test_vectors_are_kept_only_where_the_caller_says(tmp_path):
    rows = vectors()
    with private(journal=tmp_path / "public.jsonl") as coordinator:
        feed(coordinator, rows)
        coordinator.release(0)
    written = {float(number) for number in json_numbers(tmp_path / "public.jsonl")}
    assert not written & set(rows.ravel().tolist())
    with private(journal=tmp_path / "public.jsonl") as again:
        assert (again.newest == -1).all()  # agents send again
        assert again.round == 1


def json_numbers(path):
    def walk(value):
        if isinstance(value, dict):
            value = list(value.values())
        if isinstance(value, list):
            for item in value:
                yield from walk(item)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            yield value

    return [n for line in path.read_text().splitlines() for n in walk(json.loads(line))]


KILLED = """
import sys, warnings
warnings.simplefilter("ignore")
import numpy as np
from surefoot.federated import Coordinator, SharedFeatures
from surefoot.private import Ledger, ResearchNoise
features = SharedFeatures(2, 8, lengthscale=0.2, noise=0.01, seed=0)
ledger = Ledger(epsilon=1e3, delta=1e-3, method="rdp", path=sys.argv[2])
coordinator = Coordinator(features, agents=6, noise_multiplier=1.0, sampling=0.5, noise=ResearchNoise(0), ledger=ledger,
                          journal=sys.argv[1])
while True:
    print(coordinator.release().round, flush=True)
"""


def test_killed_at_any_moment_no_release_is_uncharged(tmp_path):
    journal, book = tmp_path / "broadcasts.jsonl", tmp_path / "ledger.jsonl"
    process = subprocess.Popen([sys.executable, "-c", KILLED, journal, book], stdout=subprocess.PIPE, text=True)
    seen = [int(process.stdout.readline()) for _ in range(12)]
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    with (
        Ledger(epsilon=1e3, delta=1e-3, method="rdp", path=book) as ledger,
        private(journal=journal, ledger=ledger) as again,
    ):
        released = [b for b in again.broadcasts if b.vectors is not None]
        assert len(released) >= len(seen)
        assert len(released) <= len(ledger.entries) <= len(released) + 1
        assert again.release().round == len(released)


def test_vectors_on_disk_are_for_the_coordinator_alone(tmp_path):
    with make(vectors=tmp_path / "vectors.jsonl") as coordinator:
        feed(coordinator, vectors())
    assert (tmp_path / "vectors.jsonl").stat().st_mode & 0o077 == 0 or os.name != "posix"


def test_vectors_for_an_impossible_round_leave_no_trace(tmp_path):
    with make(vectors=tmp_path / "vectors.jsonl") as coordinator:
        for wrong in (-1, 1.5):
            with pytest.raises(ValueError, match="round must be a whole number"):
                coordinator.collect_all(wrong, vectors())
        before = coordinator.newest
    with make(vectors=tmp_path / "vectors.jsonl") as again:
        np.testing.assert_array_equal(again.newest, before)
        assert (before == -1).all()


# Finding 10 of the review of 0.1.0
def test_a_federation_does_not_go_on_with_a_ledger_that_was_never_charged_for_it(tmp_path):
    options = {"journal": tmp_path / "public.jsonl", "vectors": tmp_path / "vectors.jsonl"}
    ledger = Ledger(epsilon=100.0, delta=1e-3, method="rdp")
    with private(ledger=ledger, **options) as coordinator:
        feed(coordinator, vectors())
        coordinator.release(0)
    for _ in range(2):
        with pytest.raises(SurefootError, match="this ledger has no charge for it") as caught:  # kept, with its files
            private(ledger=Ledger(epsilon=100.0, delta=1e-3, method="rdp"), **options)
    with private(ledger=ledger, **options) as again:
        assert again.round == 1
    del caught


@pytest.mark.parametrize("wrong", [{"ledger": "ledger.jsonl"}, {"weighting": 3}])
def test_a_ledger_and_a_weighting_are_objects(wrong):
    with pytest.raises(TypeError, match=f"{next(iter(wrong))} must be a"):
        private(**wrong)


def test_a_negative_number_of_releases_costs_no_zero():
    with pytest.raises(ValueError, match="rounds must be a whole number"):
        private().epsilon(rounds=-1)


def test_what_is_not_planned_or_has_no_noise_has_no_epsilon():
    endless = private(rounds=None)
    with pytest.raises(ValueError, match="no last round"):
        endless.epsilon()
    assert endless.epsilon(rounds=2, method="rdp") > 0.0
    with pytest.raises(ValueError, match="releases without noise have no finite epsilon"):
        make().epsilon(rounds=3)


def test_vectors_taken_all_at_once_are_there_after_a_restart(tmp_path):
    with make(vectors=tmp_path / "vectors.jsonl") as coordinator:
        coordinator.collect_all(2, vectors())
    with make(vectors=tmp_path / "vectors.jsonl") as again:
        assert (again.newest == 2).all()
