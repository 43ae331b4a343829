"""One party of a secure sum: five questions of the server, five answers, each given once.

Bonawitz et al. 2017, figure 4. For a party u, with the parties U₁ ⊇ U₂ ⊇ U₃ ⊇ U₄ who answered the rounds before:

    0  advertise  key pairs (c_u, C_u) to seal shares and (s_u, S_u) for masks; sends C_u, S_u, signed
    1  share      draws b_u; Shamir shares of s_u and b_u for every v of U₁, sealed by the key of c_u and C_v
    2  mask       y_u = x_u + PRG(b_u) + Σ_{v ∈ U₂, v > u} PRG(s_uv) − Σ_{v ∈ U₂, v < u} PRG(s_uv)   (mod 2^bits)
    3  confirm    signs U₃, the list of those whose y arrived
    4  open       with the signatures of at least t under the same U₃: its shares of s_v for v in U₂ \\ U₃, and of b_v
                  for v in U₃; never both for one v

Pairwise masks cancel in the sum of those who stay; what a party that left would have cancelled is computed from its
s_v, the own masks of those who stayed from their b_v. A party answers each question once. The same question gets the
same answer, another one is refused, and the session is over for this party.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from surefoot.arguments import whole
from surefoot.federated.secure import cipher, shamir
from surefoot.federated.secure.cipher import Aborted, Exchange, Identity
from surefoot.federated.secure.diary import Diary
from surefoot.federated.secure.ring import Ring
from surefoot.federated.secure.session import Confirmation, Masked, Opened, PublicKeys, Said, SealedShares, Session

__all__ = ["Party"]

Whole = NDArray[np.int64]
S = TypeVar("S", bound=Said)


class Party:
    """A party in one session.

    Parameters
    ----------
    session : Session
        What all agreed on.
    number : int
        The party's place on the roster.
    identity : Identity
        Its lasting key, that of the roster.
    diary : Diary
        What the party remembers of other sessions.

    >>> identities = [Identity() for _ in range(3)]
    >>> session = Session("ab" * 32, 0, length=1, bits=16, threshold=2, roster=[i.public for i in identities])
    >>> party = Party(session, 0, identities[0], Diary())
    >>> party.advertise().party
    0
    """

    def __init__(self, session: Session, number: int, identity: Identity, diary: Diary) -> None:
        if whole(number, "number") >= session.parties or session.roster[number] != identity.public:
            raise ValueError(f"this identity is not that of party {number} of the roster")
        self.session, self.number, self._identity, self._diary = session, number, identity, diary
        diary.begin(session.federation, session.round, session.hash)
        self._start(Exchange(), Exchange(), secrets.token_bytes(cipher.KEY))

    def _start(self, sealing: Exchange, masking: Exchange, own: bytes) -> None:
        self._sealing, self._masking, self._own = sealing, masking, own  # c_u, s_u, b_u
        self._keys: dict[int, PublicKeys] = {}  # U₁
        self._delivered: dict[int, str] = {}  # U₂ without u: what they sealed for u
        self._mine: tuple[str, str] = ("", "")  # u's shares of its own secrets
        self._survivors: frozenset[int] = frozenset()  # U₃
        self._said: dict[str, tuple[str, dict[str, Any]]] = {}  # question -> its hash, and the answer
        self._broken = False

    # -- the five answers ---------------------------------------------------------------------------------------------

    def advertise(self) -> PublicKeys:
        """Round 0: show this session's public keys."""

        def answer() -> PublicKeys:
            pair = self._sealing.public, self._masking.public
            mark = self._identity.sign(self.session.signed_keys(self.number, *pair))
            return PublicKeys(self.session.hash, self.number, *pair, signature=mark)

        return self._once("advertise", None, PublicKeys, answer)

    def share(self, keys: Iterable[PublicKeys]) -> SealedShares:
        """Round 1: check everybody's keys, and hand out shares of this party's two secrets."""
        given = list(keys)
        return self._once("share", [key.to_wire() for key in given], SealedShares, lambda: self._share(given))

    def _share(self, given: list[PublicKeys]) -> SealedShares:
        session = self.session
        self._enough(len(given), "showed keys")
        found: dict[int, PublicKeys] = {}
        for key in given:
            if key.session != session.hash:
                raise Aborted(f"the keys of party {key.party} are of another session")
            if key.party >= session.parties or key.party in found:
                raise Aborted(f"party {key.party} is not on the roster, or joined twice")
            text = session.signed_keys(key.party, key.cipher, key.mask)
            if not cipher.verified(session.roster[key.party], key.signature, text):
                raise Aborted(f"the keys of party {key.party} are not signed by it")
            found[key.party] = key
        if len({name for key in given for name in (key.cipher, key.mask)}) != 2 * len(given):
            raise Aborted("two parties, or two purposes, have the same key")
        if self.number not in found or found[self.number].mask != self._masking.public:
            raise Aborted("the list of keys does not hold this party's own")
        self._diary.keys(session.hash, [key.mask for key in given])
        self._keys = found
        shares = [
            shamir.split(secret, threshold=session.threshold, holders=sorted(found))
            for secret in (self._masking.secret, self._own)
        ]
        self._mine = (shares[0][self.number].hex(), shares[1][self.number].hex())
        sealed = {
            v: cipher.encrypt(self._sealed_for(v), shares[0][v] + shares[1][v], self._route(self.number, v))
            for v in sorted(found)
            if v != self.number
        }
        mark = cipher.commitment(self._own, session.digest, self.number)
        return SealedShares(session.hash, self.number, mark, sealed)

    def mask(self, delivered: Mapping[int, str], steps: Whole, ring: Ring) -> Masked:
        """Round 2: the vector, in whole steps of the ring, under its masks.

        ``delivered`` holds what the other parties of U₂ sealed for this one. The norm of ``steps`` is not looked at
        here: :class:`~surefoot.federated.secure.ring.Ring` proves it where they are made.
        """
        question = {str(v): text for v, text in delivered.items()}
        return self._once("mask", question, Masked, lambda: self._mask(dict(delivered), np.asarray(steps), ring))

    def _mask(self, delivered: dict[int, str], steps: Whole, ring: Ring) -> Masked:
        session = self.session
        if ring.bits != session.bits:
            raise ValueError(f"the session has a ring of {session.bits} bits, this vector one of {ring.bits}")
        if steps.shape != (session.length,) or steps.dtype.kind != "i":
            raise ValueError(
                f"{session.length} whole numbers are to be added, got shape {steps.shape} of {steps.dtype}"
            )
        self._enough(len(delivered) + 1, "shared secrets")
        if unknown := delivered.keys() - (self._keys.keys() - {self.number}):
            raise Aborted(f"party {min(unknown)} shares secrets and showed no keys")
        for v in delivered:
            self._unsealed(v, delivered[v])  # aborts if it was changed
        self._diary.vector(session.hash, steps)
        self._delivered = delivered
        total = ring.lower(steps) + cipher.stream(self._own, session.length, session.bits)
        for v in sorted(delivered):
            mask = cipher.stream(self._agreed(v), session.length, session.bits)
            total = total + mask if v > self.number else total - mask
        return Masked(session.hash, self.number, Masked.pack(total & ring.mask, session.bits))

    def confirm(self, survivors: Sequence[int]) -> Confirmation:
        """Round 3: sign the list of those whose vectors arrived, one list and never another."""
        given = sorted(survivors)
        return self._once("confirm", given, Confirmation, lambda: self._confirm(given))

    def _confirm(self, given: list[int]) -> Confirmation:
        found = frozenset(given)
        self._enough(len(found), "sent their vectors")
        if len(found) != len(given) or self.number not in found or not found <= self._delivered.keys() | {self.number}:
            raise Aborted("the list of survivors names strangers, names one twice, or leaves this party out")
        self._survivors = found
        mark = self._identity.sign(self.session.signed_survivors(found))
        return Confirmation(self.session.hash, self.number, mark)

    def open(self, confirmations: Iterable[Confirmation]) -> Opened:
        """Round 4: shares that remove the masks of the sum, if enough parties signed the same survivors."""
        given = list(confirmations)
        return self._once("open", [one.to_wire() for one in given], Opened, lambda: self._open(given))

    def _open(self, given: list[Confirmation]) -> Opened:
        session, text = self.session, self.session.signed_survivors(self._survivors)
        if len({one.party for one in given}) != len(given):
            raise Aborted("a party confirmed twice")
        self._enough(len(given), "confirmed the survivors")
        for one in given:
            if one.party not in self._survivors or one.session != session.hash:
                raise Aborted(f"party {one.party} confirms and did not survive")
            if not cipher.verified(session.roster[one.party], one.signature, text):
                raise Aborted(f"party {one.party} did not confirm these survivors: the server shows different lists")
        shares = {v: self._unsealed(v, self._delivered[v]) for v in self._delivered} | {self.number: self._mine}
        left = {v: shares[v][0] for v in shares if v not in self._survivors}
        stayed = {v: shares[v][1] for v in shares if v in self._survivors}
        return Opened(session.hash, self.number, left, stayed)

    # -- keys ---------------------------------------------------------------------------------------------------------

    def _pair(self, v: int) -> tuple[int, int]:
        return (self.number, v)

    def _sealed_for(self, v: int) -> bytes:
        return self._sealing.agree(self._keys[v].cipher, f"seal from {self.number}", self.session.digest, self._pair(v))

    def _agreed(self, v: int) -> bytes:
        return self._masking.agree(self._keys[v].mask, "mask", self.session.digest, self._pair(v))

    def _unsealed(self, v: int, text: str) -> tuple[str, str]:
        key = self._sealing.agree(self._keys[v].cipher, f"seal from {v}", self.session.digest, self._pair(v))
        both = cipher.decrypt(key, text, self._route(v, self.number))
        if len(both) != 2 * shamir.SHARE:
            raise Aborted(f"party {v} shared something else")
        return both[: shamir.SHARE].hex(), both[shamir.SHARE :].hex()

    def _route(self, one: int, two: int) -> bytes:
        return f"{self.session.hash} {one} {two}".encode()

    # -- one question, one answer -------------------------------------------------------------------------------------

    def _enough(self, count: int, did: str) -> None:
        if count < self.session.threshold:
            raise Aborted(f"{count} parties {did}, {self.session.threshold} are needed")

    def _once(self, name: str, question: Any, kind: type[S], answer: Callable[[], S]) -> S:
        """Answer a question in its turn; the same one again gets the same answer, another ends the session."""
        mark = hashlib.sha256(json.dumps(question, sort_keys=True).encode()).hexdigest()
        if name in self._said and self._said[name][0] == mark and not self._broken:
            return kind.from_wire(self._said[name][1])
        if self._broken:
            raise Aborted("this session is over")
        if len(self._said) >= len(TURNS) or TURNS[len(self._said)] != name:
            self._break()
            raise Aborted(f"asked to {name} out of turn, or a second time for something else")
        try:
            self._diary.once(self.session.hash, name, mark)
            made = answer()
        except Aborted:
            self._break()
            raise
        self._said[name] = (mark, made.to_wire())
        return made

    def _break(self) -> None:
        self._broken = True
        self._delivered, self._mine, self._own = {}, ("", ""), b""
        self._sealing, self._masking = Exchange(), Exchange()

    # -- state --------------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return everything as strict JSON, for a process that ends between two questions.

        It holds the secrets of the session: it belongs where only the party reads, and is deleted afterwards.
        """
        return {
            "session": self.session.to_wire(),
            "number": self.number,
            "secrets": [self._sealing.secret.hex(), self._masking.secret.hex(), self._own.hex()],
            "keys": [key.to_wire() for key in self._keys.values()],
            "delivered": {str(v): text for v, text in self._delivered.items()},
            "mine": list(self._mine),
            "survivors": sorted(self._survivors),
            "said": {name: list(pair) for name, pair in self._said.items()},
            "broken": self._broken,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any], identity: Identity, diary: Diary) -> Party:
        """Continue a session in a new process.

        >>> identities = [Identity() for _ in range(3)]
        >>> session = Session("ab" * 32, 0, length=1, bits=16, threshold=2, roster=[i.public for i in identities])
        >>> diary = Diary()
        >>> party = Party(session, 0, identities[0], diary)
        >>> shown = party.advertise()
        >>> Party.from_state(json.loads(json.dumps(party.state())), identities[0], diary).advertise() == shown
        True
        """
        party = cls.__new__(cls)
        session = Session.from_wire(state["session"])
        if session.roster[state["number"]] != identity.public:
            raise ValueError(f"this identity is not that of party {state['number']} of the roster")
        if diary.rounds.get((session.federation, session.round)) != session.hash:
            raise ValueError("this diary does not know of the session")
        party.session, party.number, party._identity, party._diary = session, state["number"], identity, diary
        sealing, masking, own = (bytes.fromhex(text) for text in state["secrets"])
        party._start(Exchange(sealing), Exchange(masking), own)
        party._keys = {key["party"]: PublicKeys.from_wire(key) for key in state["keys"]}
        party._delivered = {int(v): text for v, text in state["delivered"].items()}
        party._mine = (state["mine"][0], state["mine"][1])
        party._survivors = frozenset(state["survivors"])
        party._said = {name: (mark, answer) for name, (mark, answer) in state["said"].items()}
        party._broken = state["broken"]
        return party

    def __repr__(self) -> str:
        return f"Party(number={self.number}, round={self.session.round}, answered={len(self._said)})"


TURNS = ("advertise", "share", "mask", "confirm", "open")
