"""The server of a secure sum: it collects, passes on, and learns the sum of those who stayed.

It is assumed to follow the protocol but to look at everything (semi-honest). If it does not, parties notice what
:mod:`~surefoot.federated.secure.party` lists and give up; what remains possible is said on the page of threats.

The rounds are those of Bonawitz et al. 2017, figure 4. :meth:`SumServer.take` takes what a party said,
:meth:`SumServer.advance` ends a round and returns what to send to whom; with fewer than t parties it aborts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.federated.secure import cipher, shamir
from surefoot.federated.secure.cipher import Aborted, Exchange
from surefoot.federated.secure.session import Confirmation, Masked, Opened, PublicKeys, Said, SealedShares, Session

__all__ = ["SumServer"]

Words = NDArray[np.uint64]
KINDS: tuple[type[Said], ...] = (PublicKeys, SealedShares, Masked, Confirmation, Opened)


class SumServer:
    """One session on the server's side.

    Parameters
    ----------
    session : Session
        What all agreed on.

    >>> session = Session("ab" * 32, 0, length=1, bits=16, threshold=2, roster=[c * 64 for c in "123"])
    >>> server = SumServer(session)
    >>> server.advance()
    Traceback (most recent call last):
    ...
    surefoot.federated.secure.cipher.Aborted: 0 parties showed keys, 2 are needed
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.round = 0
        self._heard: list[dict[int, Any]] = [{} for _ in KINDS]  # U₁, ..., U₅
        self._total: Words | None = None
        self._over = False

    @property
    def survivors(self) -> tuple[int, ...]:
        """U₃, the parties whose vectors are in the sum."""
        return tuple(sorted(self._heard[2]))

    @property
    def total(self) -> Words:
        """The sum of the survivors' vectors modulo 2^bits, once all rounds are over."""
        if self._total is None:
            raise Aborted("there is no sum")
        return self._total

    def take(self, said: Said) -> None:
        """Take one message of the round that is open; what is wrong with it is a ``ValueError`` and changes nothing."""
        session = self.session
        if self._over or self._total is not None:
            raise ValueError("this session is over")
        if not isinstance(said, KINDS[self.round]):
            raise ValueError(f"this round hears {KINDS[self.round].__name__}, got {type(said).__name__}")
        if said.session != session.hash:
            raise ValueError(f"party {said.party} speaks of another session")
        if said.party >= session.parties or (self.round and said.party not in self._heard[self.round - 1]):
            raise ValueError(f"party {said.party} is not in this round")
        if said.party in self._heard[self.round]:
            raise ValueError(f"party {said.party} was heard in this round before")
        self._check(said)
        self._heard[self.round][said.party] = said

    def _check(self, said: Any) -> None:
        session, first = self.session, self._heard[0]
        if isinstance(said, PublicKeys):
            if not cipher.verified(
                session.roster[said.party], said.signature, session.signed_keys(said.party, said.cipher, said.mask)
            ):
                raise ValueError(f"the keys of party {said.party} are not signed by it")
            try:  # a key that nobody can agree with would stop everybody
                Exchange().agree(said.cipher, "check", b"", (said.party, said.party))
                Exchange().agree(said.mask, "check", b"", (said.party, said.party))
            except Aborted as error:
                raise ValueError(str(error)) from None
            shown = {key for other in first.values() for key in (other.cipher, other.mask)}
            if said.cipher == said.mask or {said.cipher, said.mask} & shown:
                raise ValueError(f"party {said.party} shows a key that is in use")
        elif isinstance(said, SealedShares) and said.sealed.keys() != first.keys() - {said.party}:
            raise ValueError(f"party {said.party} did not share with everybody")
        elif isinstance(said, Masked):
            said.words(session.length, session.bits)
        elif isinstance(said, Confirmation):
            if not cipher.verified(
                session.roster[said.party], said.signature, session.signed_survivors(self.survivors)
            ):
                raise ValueError(f"party {said.party} did not sign these survivors")
        elif isinstance(said, Opened):
            left = self._heard[1].keys() - self._heard[2].keys()
            if said.left.keys() != left or said.stayed.keys() != self._heard[2].keys():
                raise ValueError(f"party {said.party} did not open what was asked for")

    def advance(self) -> dict[int, Any]:
        """End the round; return for each party that is still there what it is asked next, nothing after the last."""
        if self._over or self._total is not None:
            raise Aborted("this session is over")
        heard, round = self._heard[self.round], self.round
        did = ("showed keys", "shared secrets", "sent their vectors", "confirmed the survivors", "opened")[round]
        if len(heard) < self.session.threshold:
            self._abort(f"{len(heard)} parties {did}, {self.session.threshold} are needed")
        self.round += 1
        if round == 0:
            return {v: [heard[u] for u in sorted(heard)] for v in heard}
        if round == 1:
            return {v: {u: heard[u].sealed[v] for u in sorted(heard) if u != v} for v in heard}
        if round == 2:
            return dict.fromkeys(heard, self.survivors)
        if round == 3:
            return {v: [heard[u] for u in sorted(heard)] for v in heard}
        self._unmask()
        return {}

    def _unmask(self) -> None:
        session = self.session
        keys, shared, masked, _, opened = self._heard
        total = np.zeros(session.length, dtype=np.uint64)
        for said in masked.values():
            total = total + said.words(session.length, session.bits)
        for u in masked:
            own = self._joined({v: opened[v].stayed[u] for v in opened}, u)
            if cipher.commitment(own, session.digest, u) != shared[u].commitment:
                self._abort(f"the shares of party {u}'s own mask are wrong")
            total = total - cipher.stream(own, session.length, session.bits)
        for w in shared.keys() - masked.keys():
            exchange = Exchange(self._joined({v: opened[v].left[w] for v in opened}, w))
            if exchange.public != keys[w].mask:
                self._abort(f"the shares of party {w}'s mask key are wrong")
            for u in masked:  # what the party that left would have cancelled
                mask = cipher.stream(
                    exchange.agree(keys[u].mask, "mask", session.digest, (u, w)), session.length, session.bits
                )
                total = total - mask if w > u else total + mask
        self._total = total & np.uint64(2**session.bits - 1)
        self._heard[4] = dict.fromkeys(opened)  # shares are not kept

    def _joined(self, shares: dict[int, str], party: int) -> bytes:
        try:
            return shamir.join({v: bytes.fromhex(text) for v, text in shares.items()}, threshold=self.session.threshold)
        except ValueError as error:
            self._abort(f"secret of party {party}: {error}")
            raise

    def _abort(self, why: str) -> None:
        self._over, self._heard = True, [{} for _ in KINDS]
        raise Aborted(why)

    def __repr__(self) -> str:
        return f"SumServer(round={self.session.round}, heard={[len(heard) for heard in self._heard]})"
