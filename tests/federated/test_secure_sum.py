"""Secure sums: exact, for every pattern of dropouts, and nothing but the sum for whoever reads what the server gets."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from surefoot.federated.secure import (
    Aborted,
    Diary,
    Exchange,
    Identity,
    Party,
    Ring,
    Session,
    SumServer,
    cipher,
    majority,
    party,
    rehearsal,
    secure_sum,
    server,
    shamir,
)
from surefoot.federated.secure.session import Masked, Opened, PublicKeys

FEDERATION = "ab" * 32
IDENTITIES = [Identity(bytes([n]) * 32) for n in range(1, 8)]
RING = Ring(bits=32, limit=1.0, parties=7)


def session(parties=5, *, threshold=3, round=0, length=4, bits=32, identities=IDENTITIES):
    roster = [identity.public for identity in identities[:parties]]
    return Session(FEDERATION, round, length=length, bits=bits, threshold=threshold, roster=roster)


def vectors(parties=5, length=4, seed=0):
    rng = np.random.default_rng(seed)
    return np.array([RING.encode(rng.uniform(-0.4, 0.4, length)) for _ in range(parties)])


def drive(agreed, parties, steps, rounds=5):
    """Run the first rounds; return the server and what each party is asked next."""
    middle, asked = SumServer(agreed), dict.fromkeys(parties)
    for number in range(rounds):
        for n in asked:
            middle.take(rehearsal._answer(parties[n], number, asked[n], steps[n], RING))
        asked = middle.advance()
    return middle, asked


def crowd(agreed, identities=IDENTITIES, diaries=None):
    books = [Diary() for _ in range(agreed.parties)] if diaries is None else diaries
    return {n: Party(agreed, n, identities[n], books[n]) for n in range(agreed.parties)}


# ---------------------------------------------------------------------------------------------------------- the shares


def test_the_prime_is_the_least_above_all_secrets():
    def probably_prime(n):
        d, r = n - 1, 0
        while d % 2 == 0:
            d, r = d // 2, r + 1
        for a in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37):
            x = pow(a, d, n)
            if x in (1, n - 1):
                continue
            if not any((x := x * x % n) == n - 1 for _ in range(r - 1)):
                return False
        return True

    assert probably_prime(shamir.PRIME)
    assert not any(probably_prime(n) for n in range(2**256, shamir.PRIME))


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.binary(min_size=32, max_size=32), st.integers(1, 6), st.integers(0, 3), st.randoms(use_true_random=False))
def test_any_threshold_of_shares_joins(secret, threshold, more, random):
    holders = random.sample(range(50), threshold + more)
    shares = shamir.split(secret, threshold=threshold, holders=holders)
    chosen = random.sample(holders, threshold)
    assert shamir.join({h: shares[h] for h in chosen}, threshold=threshold) == secret
    assert shamir.join(shares, threshold=threshold) == secret


def test_fewer_shares_fit_every_secret():
    """Two of three shares: for any other secret there is a third share with which they join to it."""
    shares = shamir.split(bytes(32), threshold=3, holders=[0, 1, 2])
    known = {1: int.from_bytes(shares[0], "big"), 2: int.from_bytes(shares[1], "big")}
    for other in (1, 2**255, 2**256 - 1):
        # The polynomial through (0, other) and the two known points, at 3: other - 3 f(1) + 3 f(2).
        third = (other - 3 * known[1] + 3 * known[2]) % shamir.PRIME
        made = {0: shares[0], 1: shares[1], 2: third.to_bytes(33, "big")}
        assert int.from_bytes(shamir.join(made, threshold=3), "big") == other


@settings(max_examples=20, deadline=None, derandomize=True)
@given(st.integers(1, 5), st.integers(1, 4), st.integers(0, 8))
def test_one_wrong_share_among_more_than_are_needed_is_noticed(threshold, more, which):
    shares = shamir.split(bytes(range(32)), threshold=threshold, holders=range(threshold + more))
    which %= threshold + more
    changed = (int.from_bytes(shares[which], "big") + 1) % shamir.PRIME
    with pytest.raises(ValueError, match="not of one secret"):
        shamir.join({**shares, which: changed.to_bytes(33, "big")}, threshold=threshold)


@pytest.mark.parametrize("share", [b"", bytes(32), b"\xff" * 33])
def test_what_is_no_share_is_refused(share):
    shares = shamir.split(bytes(32), threshold=2, holders=[0, 1])
    with pytest.raises(ValueError, match="share of holder 1 is none"):
        shamir.join({**shares, 1: share}, threshold=2)


# ------------------------------------------------------------------------------------------------------------ the ring


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.lists(st.floats(-1e308, 1e308), min_size=1, max_size=20),
    st.sampled_from([16, 24, 32, 48, 56]),
    st.floats(1e-3, 1e3),
)
def test_the_norm_in_the_ring_never_exceeds_the_limit(numbers, bits, limit):
    ring = Ring(bits=bits, limit=limit, parties=3)
    steps = ring.encode(numbers)
    assert ring.proves(steps)
    assert math.isqrt(sum(int(k) ** 2 for k in steps)) * ring.step <= limit
    assert (ring.lift(ring.lower(steps)) == steps).all()
    norm = np.linalg.norm(np.array(numbers) / max(1e-300, np.abs(numbers).max())) * np.abs(numbers).max()
    clipped = np.array(numbers) * min(1.0, limit / max(norm, 1e-300))
    assert np.abs(ring.decode(steps) - clipped).max() <= ring.step * (1 + 1e-9)


def test_sums_do_not_wrap_around():
    ring = Ring(bits=16, limit=2.0, parties=100, noise=1.0)
    longest = ring.encode([2.0])
    assert ring.lift(ring.lower(longest * 100))[0] == longest[0] * 100
    assert 2 * (100 * 2.0 + 12.0) / ring.step > 2**15  # and the step is the finest
    assert ring.largest == (2.0 / ring.step) ** 2


@pytest.mark.parametrize("wrong", [{"bits": 31}, {"bits": 64}, {"bits": True}, {"limit": 0.0}, {"limit": math.nan}])
def test_rings_that_are_none(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Ring(**{"limit": 1.0, "parties": 3, **wrong})


@pytest.mark.parametrize("wrong", [[math.nan], [math.inf, 0.0], [[1.0]], []])
def test_vectors_that_are_none(wrong):
    with pytest.raises(ValueError, match=r"finite|axis"):
        RING.encode(wrong)


# ------------------------------------------------------------------------------------------------------ sums, dropouts


def patterns(parties, rounds):
    """Every way in which each party stays or leaves before one of the rounds."""
    for leaves in itertools.product([None, *rounds], repeat=parties):
        yield {r: {n for n, at in enumerate(leaves) if at == r} for r in rounds}


def test_every_dropout_pattern_up_to_the_threshold_recovers_and_above_it_aborts():
    """Four parties, threshold 3, each may leave before any of the five rounds: all 1296 patterns."""
    agreed, steps = session(4), vectors(4)
    sums = aborted = 0
    for absent in patterns(4, range(5)):
        left = sum(map(len, absent.values()))
        if left > 1:
            aborted += 1
            if aborted % 20:  # all of them are alike: one in twenty is run
                continue
            with pytest.raises(Aborted, match="3 are needed"):
                secure_sum(agreed, IDENTITIES[:4], steps, RING, absent=absent)
            continue
        found = secure_sum(agreed, IDENTITIES[:4], steps, RING, absent=absent)
        survivors = [n for n in range(4) if not any(n in absent[r] for r in (0, 1, 2))]
        assert found.survivors == tuple(survivors)
        assert (found.total == steps[survivors].sum(axis=0)).all()
        sums += 1
    assert sums == 21


def test_seven_parties_who_leave_at_every_phase():
    agreed, steps = session(7, threshold=4), vectors(7)
    absent = {1: {6}, 2: {0}, 4: {3}}
    found = secure_sum(agreed, IDENTITIES, steps, RING, absent=absent)
    assert found.survivors == (1, 2, 3, 4, 5)
    assert (found.total == steps[1:6].sum(axis=0)).all()
    with pytest.raises(Aborted, match="3 parties opened, 4 are needed"):
        secure_sum(agreed, IDENTITIES, steps, RING, absent={1: {6}, 2: {0}, 4: {3, 4}})


def test_an_aborted_session_has_no_sum_and_keeps_nothing():
    agreed, steps = session(4), vectors(4)
    parties = crowd(agreed)
    middle, _asked = drive(agreed, parties, steps, rounds=3)
    with pytest.raises(Aborted, match="0 parties confirmed"):
        middle.advance()
    assert middle.survivors == ()
    with pytest.raises(Aborted, match="no sum"):
        _ = middle.total
    with pytest.raises(ValueError, match="over"):
        middle.take(parties[0].advertise())


def test_a_party_goes_on_in_a_new_process_after_every_question(tmp_path):
    agreed, steps = session(4), vectors(4)
    with Diary(tmp_path / "diary.jsonl") as diary:
        parties = crowd(agreed, diaries=[diary, Diary(), Diary(), Diary()])
        states = {0: json.dumps(parties[0].state())}
    middle, asked = SumServer(agreed), dict.fromkeys(parties)
    for number in range(5):
        for n in asked:
            if n:
                said = rehearsal._answer(parties[n], number, asked[n], steps[n], RING)
            else:
                with Diary(tmp_path / "diary.jsonl") as diary:
                    again = Party.from_state(json.loads(states[0]), IDENTITIES[0], diary)
                    said = rehearsal._answer(again, number, asked[0], steps[0], RING)
                    assert rehearsal._answer(again, number, asked[0], steps[1], RING) == said  # asked twice
                    states[0] = json.dumps(again.state())
            middle.take(said)
        asked = middle.advance()
    assert (RING.lift(middle.total) == steps.sum(axis=0)).all()


# ------------------------------------------------------------------------------------------------ what the server sees


def residue(agreed, received, total_of, party_number):
    """What the server can strip off one party's masked vector with everything it was sent."""
    opened = [said for said in received if said["kind"] == "opened"]
    (masked,) = (said for said in received if said["kind"] == "masked" and said["party"] == party_number)
    words = total_of(masked)
    own = shamir.join(
        {said["party"]: bytes.fromhex(said["stayed"][str(party_number)]) for said in opened}, threshold=agreed.threshold
    )
    words = words - cipher.stream(own, agreed.length, agreed.bits)
    keys = {said["party"]: said for said in received if said["kind"] == "keys"}
    for left in opened[0]["left"]:
        exchange = Exchange(
            shamir.join({s["party"]: bytes.fromhex(s["left"][left]) for s in opened}, threshold=agreed.threshold)
        )
        w = int(left)
        agreement = exchange.agree(keys[party_number]["mask"], "mask", agreed.digest, (party_number, w))
        mask = cipher.stream(agreement, agreed.length, agreed.bits)
        words = words - mask if w > party_number else words + mask
    return words & RING.mask


def guesses(games, monkeypatch=None):
    """Play: two vectors, one of them party 1's, the sum the same; how often the server says which."""
    if monkeypatch is not None:  # masks removed
        for module in (party.cipher, server.cipher, cipher):
            monkeypatch.setattr(module, "stream", lambda key, length, bits: np.zeros(length, dtype=np.uint64))
    rng = np.random.default_rng(1)
    right = 0
    for game in range(games):
        agreed = session(4, round=game)
        steps = vectors(4, seed=game)
        choices = [RING.encode(rng.uniform(-0.4, 0.4, 4)) for _ in range(2)]
        coin = int(rng.integers(2))
        rest = steps[1] + steps[2] - choices[coin]
        steps[1], steps[2] = choices[coin], rest  # the sum of parties 1 and 2 is the same in both worlds
        found = secure_sum(agreed, IDENTITIES[:4], steps, RING, absent={2: {3}})
        seen = residue(
            agreed,
            found.received,
            read,
            1,
        )
        distances = [np.abs(RING.lift(seen - RING.lower(choice))).sum() for choice in choices]
        right += int(np.argmin(distances)) == coin
    return right


def read(said):
    return Masked.from_wire(said).words(4, 32)


def test_the_server_cannot_tell_which_vector_a_party_had():
    games = 60
    right = guesses(games)
    assert stats.binomtest(right, games, 0.5).pvalue > 1e-3


def test_the_attack_works_where_masks_are_removed(monkeypatch):
    assert guesses(12, monkeypatch) == 12


def test_what_is_left_of_a_masked_vector_is_uniform():
    """A simulator that knows the sum alone would send uniform numbers: no statistic of bytes tells them apart."""
    agreed = session(4, length=400)
    steps = np.zeros((4, 400), dtype=np.int64)
    found = secure_sum(agreed, IDENTITIES[:4], steps, RING, absent={2: {3}})
    seen = residue(agreed, found.received, lambda said: Masked.from_wire(said).words(400, 32), 1)
    counts = np.bincount(seen.astype("<u4").view(np.uint8), minlength=256)
    assert stats.chisquare(counts).pvalue > 1e-4
    assert (found.total == 0).all()


def test_a_reused_mask_key_opens_its_owner_and_is_refused(monkeypatch):
    """Dropped in one round, its mask key is put together; used again in the next, the server strips all its masks."""
    secret = bytes(range(32))
    keys = {}
    for number in (0, 1):
        agreed = session(4, round=number)
        steps = vectors(4, seed=number)
        parties = crowd(agreed)
        parties[3]._start(Exchange(), Exchange(secret), bytes(32))
        middle, asked = SumServer(agreed), dict.fromkeys(parties)
        for turn in range(5):
            for n in list(asked):
                if number == 0 and turn == 2 and n == 3:
                    del asked[3]
                    continue
                said = rehearsal._answer(parties[n], turn, asked[n], steps[n], RING)
                if turn == 2 and n == 3:
                    masked = said.words(4, 32)
                keys[number, n] = parties[n]._masking.public
                middle.take(said)
            asked = middle.advance()
    # The server knows the key from round 0 and takes party 3's vector of round 1 alone.
    stolen = Exchange(secret)
    for n in range(3):
        mask = cipher.stream(stolen.agree(keys[1, n], "mask", agreed.digest, (3, n)), 4, 32)
        masked = masked + mask  # party 3 subtracted it: its number is higher
    assert (RING.lift(masked - cipher.stream(bytes(32), 4, 32)) == steps[3]).all()
    # Parties that remember refuse to take part with it.
    diary = Diary()
    for number in (0, 1):
        agreed = session(4, round=number)
        parties = crowd(agreed, diaries=[diary, Diary(), Diary(), Diary()])
        parties[3]._start(Exchange(), Exchange(secret), bytes(32))
        shown = [one.advertise() for one in parties.values()]
        if number:
            with pytest.raises(Aborted, match="mask key was used"):
                parties[0].share(shown)
        else:
            parties[0].share(shown)


# ------------------------------------------------------------------------------------------------------ what is refused


def test_a_round_is_summed_once_whatever_the_parties():
    diaries = [Diary() for _ in range(5)]
    secure_sum(session(5), IDENTITIES[:5], vectors(5), RING, diaries=diaries)
    with pytest.raises(Aborted, match="nearly the same parties"):
        secure_sum(session(4), IDENTITIES[:4], vectors(4), RING, diaries=diaries[:4])
    with pytest.raises(Aborted, match="vector was used"):
        secure_sum(session(4, round=1), IDENTITIES[:4], vectors(5)[:4], RING, diaries=diaries[:4])
    secure_sum(session(4, round=2), IDENTITIES[:4], vectors(4, seed=9), RING, diaries=diaries[:4])


def test_two_sums_of_nearly_equal_sets_within_a_round_are_refused():
    agreed, steps = session(5), vectors(5)
    parties = crowd(agreed)
    middle, asked = drive(agreed, parties, steps, rounds=3)
    shown = parties[0].confirm(asked[0])
    assert parties[0].confirm(asked[0]) == shown
    with pytest.raises(Aborted, match="out of turn, or a second time"):
        parties[0].confirm([n for n in asked[0] if n != 4])
    with pytest.raises(Aborted, match="over"):
        parties[0].confirm(asked[0])
    # A server that shows different lists gets too few signatures under each of them.
    for n, one in parties.items():
        if n:
            survivors = middle.survivors if n < 3 else middle.survivors[:4]
            with pytest.raises(Aborted, match="leaves this party out") if n == 4 else nullcontext():
                one.confirm(survivors)


def test_a_server_that_shows_different_survivors_opens_nothing():
    agreed, steps = session(5), vectors(5)
    parties = crowd(agreed)
    drive(agreed, parties, steps, rounds=3)
    everybody, fewer = [0, 1, 2, 3, 4], [0, 1, 2, 3]
    signed = [parties[n].confirm(everybody if n < 2 else fewer) for n in range(4)]
    for n in (0, 2):
        with pytest.raises(Aborted, match="shows different lists"):
            parties[n].open(signed)
    with pytest.raises(Aborted, match="2 parties confirmed the survivors, 3 are needed"):
        parties[1].open(signed[:2])


def test_a_state_that_was_put_back_answers_nothing_else(tmp_path):
    agreed, steps = session(5), vectors(5)
    diary = Diary(tmp_path / "diary.jsonl")
    parties = crowd(agreed, diaries=[diary, *(Diary() for _ in range(4))])
    _, asked = drive(agreed, parties, steps, rounds=3)
    before = parties[0].state()
    parties[0].confirm(asked[0])
    again = Party.from_state(before, IDENTITIES[0], diary)
    with pytest.raises(Aborted, match="second time"):
        again.confirm([0, 1, 2, 3])
    diary.close()


def test_never_both_secrets_of_one_party():
    mark = session(4).hash
    with pytest.raises(ValueError, match="both secrets of party 1"):
        Opened(mark, 0, left={1: "00" * 33}, stayed={1: "00" * 33})


def test_malformed_keys():
    agreed = session(4)
    parties = crowd(agreed)
    shown = [one.advertise() for one in parties.values()]
    good = shown[1].to_wire()
    middle = SumServer(agreed)
    for change in ({"cipher": "xy" * 32}, {"mask": "00"}, {"signature": 5}, {"party": -1}, {"party": "1"}, {"more": 1}):
        with pytest.raises(ValueError, match=r"."):
            PublicKeys.from_wire({**good, **change})
    with pytest.raises(ValueError, match="not signed"):
        middle.take(replace(shown[1], mask="11" * 32))
    with pytest.raises(ValueError, match="not signed"):
        middle.take(replace(shown[1], party=2))
    small = "00" * 32  # a point of small order: everybody would agree on zero
    mark = IDENTITIES[1].sign(agreed.signed_keys(1, small, shown[1].mask))
    with pytest.raises(ValueError, match="key of party 1"):
        middle.take(replace(shown[1], cipher=small, signature=mark))
    with pytest.raises(Aborted, match="not signed"):
        parties[0].share([shown[0], replace(shown[1], mask="11" * 32), *shown[2:]])


def test_a_party_that_joins_twice():
    twice = [IDENTITIES[0], IDENTITIES[1], IDENTITIES[0]]
    with pytest.raises(ValueError, match="same key: a party joins once"):
        session(3, threshold=2, identities=twice)
    agreed = session(4)
    parties = crowd(agreed)
    shown = [one.advertise() for one in parties.values()]
    middle = SumServer(agreed)
    middle.take(shown[0])
    with pytest.raises(ValueError, match="heard in this round before"):
        middle.take(shown[0])
    pair = shown[0].cipher, shown[0].mask  # another party with the keys of the first
    stolen = PublicKeys(agreed.hash, 1, *pair, IDENTITIES[1].sign(agreed.signed_keys(1, *pair)))
    with pytest.raises(ValueError, match="in use"):
        middle.take(stolen)
    with pytest.raises(Aborted, match="same key"):
        parties[0].share([shown[0], stolen, *shown[2:]])
    with pytest.raises(Aborted, match="joined twice"):
        parties[2].share([*shown, shown[1]])


def test_replayed_rounds():
    old, new = session(4), session(4, round=1)
    first, second = crowd(old), crowd(new)
    stale = [one.advertise() for one in first.values()]
    fresh = [one.advertise() for one in second.values()]
    middle = SumServer(new)
    with pytest.raises(ValueError, match="another session"):
        middle.take(stale[0])
    with pytest.raises(ValueError, match="not signed"):  # the hash alone is not enough
        middle.take(replace(stale[0], session=new.hash))
    with pytest.raises(Aborted, match="another session"):
        second[0].share([*fresh[:3], stale[3]])
    with pytest.raises(ValueError, match="this round hears PublicKeys"):
        middle.take(first[0].share(stale))


def test_wrong_rings_and_lengths():
    agreed, steps = session(4), vectors(4)
    parties = crowd(agreed)
    middle, asked = drive(agreed, parties, steps, rounds=2)
    with pytest.raises(ValueError, match="ring of 32 bits"):
        parties[0].mask(asked[0], steps[0], Ring(bits=24, limit=1.0, parties=7))
    with pytest.raises(ValueError, match="whole numbers are to be added"):
        parties[0].mask(asked[0], steps[0][:3], RING)
    with pytest.raises(ValueError, match="whole numbers are to be added"):
        parties[0].mask(asked[0], np.array([0.5, math.nan, 0.0, 0.0]), RING)
    said = parties[0].mask(asked[0], steps[0], RING)  # and nothing had happened
    for values in (said.values[:-2], said.values + "00", ""):
        with pytest.raises(ValueError, match="4 numbers of 32 bits are expected"):
            middle.take(replace(said, values=values))
    middle.take(said)
    for wrong in ({"bits": 20}, {"threshold": 2}, {"threshold": 5}, {"length": 0}, {"round": -1}):
        with pytest.raises(ValueError, match=r"."):
            session(4, **wrong)


def test_shares_that_were_changed_exchanged_or_dropped():
    agreed, steps = session(4), vectors(4)
    parties = crowd(agreed)
    middle, asked = drive(agreed, parties, steps, rounds=2)
    sealed = dict(asked[0])
    flipped = {**sealed, 1: ("0" if sealed[1][0] != "0" else "1") + sealed[1][1:]}
    for delivered in (flipped, {**sealed, 1: sealed[2], 2: sealed[1]}, {**sealed, 3: asked[1][3]}):
        with pytest.raises(Aborted, match="changed on their way"):
            Party.from_state(parties[0].state(), IDENTITIES[0], _knows(agreed)).mask(delivered, steps[0], RING)
    with pytest.raises(Aborted, match="2 parties shared secrets, 3 are needed"):
        Party.from_state(parties[0].state(), IDENTITIES[0], _knows(agreed)).mask({1: sealed[1]}, steps[0], RING)
    incomplete = crowd(session(4, round=1))
    shown = [one.advertise() for one in incomplete.values()]
    second = SumServer(session(4, round=1))
    for one in shown:
        second.take(one)
    second.advance()
    said = incomplete[0].share(shown)
    with pytest.raises(ValueError, match="did not share with everybody"):
        second.take(replace(said, sealed={v: text for v, text in said.sealed.items() if v != 2}))
    assert middle.round == 2


def _knows(agreed):
    diary = Diary()
    diary.begin(agreed.federation, agreed.round, agreed.hash)
    return diary


@pytest.mark.parametrize("kind", ["left", "stayed"])
def test_a_wrong_share_is_caught_and_gives_no_sum(kind):
    agreed, steps = session(4), vectors(4)
    parties = crowd(agreed)
    middle, asked = SumServer(agreed), dict.fromkeys(parties)
    for number in range(5):
        for n in list(asked):
            if number == 2 and n == 3:
                del asked[3]
                continue
            said = rehearsal._answer(parties[n], number, asked[n], steps[n], RING)
            if number == 4 and n == 0:
                shares = dict.fromkeys(getattr(said, kind), "00" * 33)
                with pytest.raises(ValueError, match="did not open what was asked for"):
                    middle.take(replace(said, **{kind: {}}))  # a share that was dropped
                said = replace(said, **{kind: shares})
            middle.take(said)
        if number < 4:
            asked = middle.advance()
    with pytest.raises(Aborted, match=r"not of one secret|are wrong"):
        middle.advance()
    with pytest.raises(Aborted, match="no sum"):
        _ = middle.total


def test_an_identity_of_somebody_else():
    with pytest.raises(ValueError, match="not that of party 1"):
        Party(session(4), 1, IDENTITIES[0], Diary())


def test_what_is_shown_of_messages_holds_no_number():
    agreed, steps = session(4), vectors(4)
    found = secure_sum(agreed, IDENTITIES[:4], steps, RING)
    fields = {
        "keys": {"session", "party", "cipher", "mask", "signature"},
        "shares": {"session", "party", "commitment", "sealed"},
        "masked": {"session", "party", "values"},
        "confirmation": {"session", "party", "signature"},
        "opened": {"session", "party", "left", "stayed"},
    }
    for said in found.received:
        assert set(said) == fields[said["kind"]] | {"schema", "kind"}
    assert found.bytes > 1000
    masked = next(said for said in found.received if said["kind"] == "masked")
    assert masked["values"] not in repr(rehearsal.SecureSum(found.total, found.survivors))
    assert hashlib.sha256(json.dumps(agreed.to_fields(), sort_keys=True).encode()).hexdigest() == agreed.hash
    assert majority(5) == 4
