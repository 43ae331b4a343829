"""What parties agree on before a secure sum, and the messages of its rounds.

Every message carries the hash of the session, so that one of another round, another ring or another roster is refused.

>>> session = Session("ab" * 32, 0, length=2, bits=32, threshold=2, roster=[c * 64 for c in "123"])
>>> session.parties, len(session.hash)
(3, 64)
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from surefoot.arguments import whole
from surefoot.federated.secure.ring import BITS
from surefoot.federated.wire import Wire

__all__ = ["Confirmation", "Masked", "Opened", "PublicKeys", "Said", "SealedShares", "Session", "majority"]

Words = NDArray[np.uint64]
LONGEST = 2**24  # numbers in a vector


def majority(parties: int) -> int:
    """Return the usual threshold, more than two thirds: safe if fewer than a third work with the server.

    >>> [majority(n) for n in (3, 4, 10, 100)]
    [3, 3, 7, 67]
    """
    return 2 * parties // 3 + 1


@dataclass(frozen=True, eq=False)
class Session(Wire):
    """One sum: who may take part, of what, and how many must stay.

    Parameters
    ----------
    federation : str
        Hash of what the parties agreed on otherwise, 64 hexadecimal digits; that of the shared features, say.
    round : int
        Each number is summed once.
    length : int
        Numbers in a vector.
    bits : int
        Of the ring.
    threshold : int
        t, how many parties must stay to the end; more than half of the roster. As many, working together, could read
        single vectors; so could a server that lies and 2t − N parties that work with it.
    roster : sequence of str
        The public keys of all parties' identities; the place in it is a party's number.

    >>> Session("ab" * 32, 0, length=2, bits=32, threshold=2, roster=["1" * 64, "2" * 64, "1" * 64])
    Traceback (most recent call last):
    ...
    ValueError: parties 0 and 2 of the roster have the same key: a party joins once
    """

    kind: ClassVar[str] = "session"

    federation: str
    round: int
    length: int
    bits: int
    threshold: int
    roster: tuple[str, ...]

    def __post_init__(self) -> None:
        check_hex(self.federation, "federation")
        whole(self.round, "round")
        if whole(self.length, "length", 1) > LONGEST:
            raise ValueError(f"a vector has at most {LONGEST} numbers, got {self.length}")
        if self.bits not in BITS or isinstance(self.bits, bool):
            raise ValueError(f"bits must be one of {', '.join(map(str, BITS))}, got {self.bits!r}")
        if not isinstance(self.roster, (list, tuple)) or len(self.roster) < 3:
            raise ValueError("a roster has at least three parties: of two, each can subtract its own")
        object.__setattr__(self, "roster", tuple(self.roster))
        for number, key in enumerate(self.roster):
            check_hex(key, f"the key of party {number}")
            if (first := self.roster.index(key)) != number:
                raise ValueError(f"parties {first} and {number} of the roster have the same key: a party joins once")
        whole(self.threshold, "threshold", 2)
        if not len(self.roster) // 2 < self.threshold <= len(self.roster):
            raise ValueError(
                f"the threshold is more than half of the {len(self.roster)} parties and not above their number, "
                f"got {self.threshold}"
            )

    @property
    def parties(self) -> int:
        """N."""
        return len(self.roster)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of everything here."""
        return hashlib.sha256(json.dumps(self.to_fields(), sort_keys=True).encode()).hexdigest()

    @property
    def digest(self) -> bytes:
        """The hash as bytes."""
        return bytes.fromhex(self.hash)

    def signed_keys(self, party: int, cipher: str, mask: str) -> bytes:
        """Return the text that a party signs with its keys."""
        return f"keys {self.hash} {party} {cipher} {mask}".encode()

    def signed_survivors(self, survivors: Any) -> bytes:
        """Return the text that all sign who have seen the same survivors."""
        return f"survivors {self.hash} {','.join(map(str, sorted(survivors)))}".encode()

    def to_fields(self) -> dict[str, Any]:
        return {**super().to_fields(), "roster": list(self.roster)}


class Said(Wire):
    """What a party says in a session; base of the five messages."""

    kind: ClassVar[str]

    session: str
    party: int

    def __post_init__(self) -> None:
        check_hex(self.session, "session")
        whole(self.party, "party")
        self.check()

    def check(self) -> None:
        """Refuse what is malformed."""

    def __hash__(self) -> int:
        return hash((self.kind, self.session, self.party))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(party={self.party}, session={self.session[:12]!r})"  # no share, no number


@dataclass(frozen=True, eq=False, repr=False)
class PublicKeys(Said):
    """Round 0: two public keys for this session, signed."""

    kind: ClassVar[str] = "keys"

    session: str
    party: int
    cipher: str
    mask: str
    signature: str

    def check(self) -> None:
        check_hex(self.cipher, "cipher")
        check_hex(self.mask, "mask")
        check_hex(self.signature, "signature", 128)


@dataclass(frozen=True, eq=False, repr=False)
class SealedShares(Said):
    """Round 1: for every other party its shares of this party's secrets, which only it can open."""

    kind: ClassVar[str] = "shares"

    session: str
    party: int
    commitment: str
    sealed: Mapping[int, str]

    def check(self) -> None:
        check_hex(self.commitment, "commitment")
        object.__setattr__(self, "sealed", by_party(self.sealed, "sealed", None))

    def to_fields(self) -> dict[str, Any]:
        return {**super().to_fields(), "sealed": _texts(self.sealed)}


@dataclass(frozen=True, eq=False, repr=False)
class Masked(Said):
    """Round 2: the vector under its masks, uniform numbers to everybody else; little-endian, bits/8 bytes each."""

    kind: ClassVar[str] = "masked"

    session: str
    party: int
    values: str

    def check(self) -> None:
        if not isinstance(self.values, str) or set(self.values) - set("0123456789abcdef"):
            raise ValueError("values are hexadecimal digits")

    @staticmethod
    def pack(words: Words, bits: int) -> str:
        """Return numbers below 2^bits as hexadecimal digits."""
        return words.astype("<u8").view(np.uint8).reshape(-1, 8)[:, : bits // 8].tobytes().hex()

    def words(self, length: int, bits: int) -> Words:
        """Return the numbers; another length or ring is a ``ValueError``."""
        if len(self.values) != 2 * length * (bits // 8):
            raise ValueError(
                f"party {self.party} sent {len(self.values) // 2} bytes; {length} numbers of {bits} bits are expected"
            )
        wide = np.zeros((length, 8), dtype=np.uint8)
        wide[:, : bits // 8] = np.frombuffer(bytes.fromhex(self.values), dtype=np.uint8).reshape(length, bits // 8)
        return wide.reshape(-1).view("<u8").astype(np.uint64)


@dataclass(frozen=True, eq=False, repr=False)
class Confirmation(Said):
    """Round 3: the signature of a party under the list of survivors that it was shown."""

    kind: ClassVar[str] = "confirmation"

    session: str
    party: int
    signature: str

    def check(self) -> None:
        check_hex(self.signature, "signature", 128)


@dataclass(frozen=True, eq=False, repr=False)
class Opened(Said):
    """Round 4: shares of the mask key of each party that left, and of the own mask of each that stayed."""

    kind: ClassVar[str] = "opened"

    session: str
    party: int
    left: Mapping[int, str]
    stayed: Mapping[int, str]

    def check(self) -> None:
        for name in ("left", "stayed"):
            object.__setattr__(self, name, by_party(getattr(self, name), name, 66))
        if both := self.left.keys() & self.stayed.keys():
            raise ValueError(f"both secrets of party {min(both)}: nobody opens both")

    def to_fields(self) -> dict[str, Any]:
        return {**super().to_fields(), "left": _texts(self.left), "stayed": _texts(self.stayed)}


def check_hex(value: Any, name: str, digits: int | None = 64) -> None:
    """Refuse what is not so many hexadecimal digits."""
    if not isinstance(value, str) or set(value) - set("0123456789abcdef") or len(value) % 2:
        raise ValueError(f"{name} must be hexadecimal digits")
    if digits is not None and len(value) != digits:
        raise ValueError(f"{name} must have {digits} hexadecimal digits, got {len(value)}")


def by_party(given: Any, name: str, digits: int | None) -> dict[int, str]:
    """Return a mapping from party to hexadecimal digits, its keys whole numbers again after a wire."""
    if not isinstance(given, Mapping):
        raise ValueError(f"{name} is a mapping from party to digits, got {type(given).__name__}")
    made = {}
    for key, value in given.items():
        check_hex(value, name, digits)
        if isinstance(key, bool) or not (isinstance(key, int) or (isinstance(key, str) and key.isdecimal())):
            raise ValueError(f"{name} has a place that is no party: {key!r}")
        made[int(key)] = value
    if len(made) != len(given):
        raise ValueError(f"{name} names a party twice")
    return dict(sorted(made.items()))


def _texts(given: Mapping[int, str]) -> dict[str, str]:
    return {str(party): value for party, value in given.items()}
