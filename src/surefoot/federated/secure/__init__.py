"""Secure aggregation: a server that learns the sum of the parties' vectors and nothing else of them.

>>> from surefoot.federated.secure import Identity, Ring, Session, majority, secure_sum
>>> identities = [Identity() for _ in range(5)]
>>> ring = Ring(bits=32, limit=1.0, parties=5)
>>> vectors = [ring.encode([0.5, 0.1 * n]) for n in range(5)]
>>> roster = [identity.public for identity in identities]
>>> session = Session("ab" * 32, 0, length=2, bits=32, threshold=majority(5), roster=roster)
>>> ring.decode(secure_sum(session, identities, vectors, ring).total).round(3)
array([2.5, 1. ])

References: Bonawitz et al. 2017; Shamir 1979.
"""

from __future__ import annotations

from surefoot import lazy

__getattr__, __dir__, __all__ = lazy.names(
    __name__,
    {
        "cipher": ["Aborted", "Exchange", "Identity"],
        "diary": ["Diary"],
        "party": ["Party"],
        "plan": ["SumPlan"],
        "rehearsal": ["SecureSum", "secure_sum"],
        "ring": ["Ring"],
        "server": ["SumServer"],
        "session": ["Session", "majority"],
    },
)
