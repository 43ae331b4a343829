"""A secure sum in one process, message by message in its wire form, with parties that leave when they are told to.

>>> identities = [Identity() for _ in range(4)]
>>> ring = Ring(bits=32, limit=1.0, parties=4)
>>> vectors = np.array([ring.encode([0.1 * n, -0.2 * n]) for n in range(4)])
>>> session = Session("ab" * 32, 0, length=2, bits=32, threshold=3, roster=[i.public for i in identities])
>>> found = secure_sum(session, identities, vectors, ring, absent={2: {1}})
>>> found.survivors, bool((found.total == vectors[[0, 2, 3]].sum(axis=0)).all())
((0, 2, 3), True)
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.federated.secure.cipher import Identity
from surefoot.federated.secure.diary import Diary
from surefoot.federated.secure.party import Party
from surefoot.federated.secure.ring import Ring
from surefoot.federated.secure.server import SumServer
from surefoot.federated.secure.session import Said, Session

__all__ = ["SecureSum", "secure_sum"]

Whole = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SecureSum:
    """What came of a session.

    Parameters
    ----------
    total : integer array of shape (length,)
        The sum of the survivors' vectors.
    survivors : tuple of int
        Whose vectors are in it.
    received : list of dict
        Everything that the server received, in order, as it was on the wire.

    >>> SecureSum(np.zeros(1, dtype=np.int64), (0, 1, 2)).bytes
    0
    """

    total: Whole
    survivors: tuple[int, ...]
    received: list[dict[str, Any]] = field(default_factory=list)

    @property
    def bytes(self) -> int:
        """How long everything was that the server received, as JSON."""
        return sum(len(json.dumps(said)) for said in self.received)


def secure_sum(
    session: Session,
    identities: Sequence[Identity],
    vectors: ArrayLike,
    ring: Ring,
    *,
    absent: Mapping[int, Collection[int]] | None = None,
    diaries: Sequence[Diary] | None = None,
) -> SecureSum:
    """Run a session.

    Parameters
    ----------
    session, ring
        What the parties agreed on.
    identities : sequence of Identity
        Those of the roster, in order.
    vectors : integer array of shape (N, length)
        What is added, in whole steps of the ring.
    absent : mapping, optional
        Which parties leave before which of the rounds 0 to 4; they stay away.
    diaries : sequence of Diary, optional
        What each party remembers; new ones by default.

    With fewer parties than the threshold in any round the session raises ``Aborted``.

    >>> identities = [Identity() for _ in range(3)]
    >>> session = Session("ab" * 32, 0, length=1, bits=16, threshold=2, roster=[i.public for i in identities])
    >>> secure_sum(session, identities, [[1], [2], [3]], Ring(16, 4.0, 3), absent={1: {0}}).total
    array([5])
    """
    steps = np.asarray(vectors)
    books = [Diary() for _ in identities] if diaries is None else diaries
    parties = {n: Party(session, n, identity, books[n]) for n, identity in enumerate(identities)}
    server, received = SumServer(session), list[dict[str, Any]]()
    asked: dict[int, Any] = dict.fromkeys(parties)
    gone: set[int] = set()
    for round in range(5):
        gone |= set((absent or {}).get(round, ()))
        for n in sorted(asked.keys() - gone):
            said = _answer(parties[n], round, asked[n], steps[n], ring)
            wire = json.loads(json.dumps(said.to_wire()))
            received.append(wire)
            server.take(type(said).from_wire(wire))
        asked = server.advance()
    return SecureSum(ring.lift(server.total), server.survivors, received)


def _answer(party: Party, round: int, asked: Any, steps: Whole, ring: Ring) -> Said:
    if round == 0:
        return party.advertise()
    if round == 1:
        return party.share(asked)
    if round == 2:
        return party.mask(asked, steps, ring)
    return party.confirm(asked) if round == 3 else party.open(asked)
