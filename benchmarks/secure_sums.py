"""What a secure sum costs a party and the server: bytes and seconds of processor time, for so many parties.

python benchmarks/secure_sums.py 10 50 100

One sum of 100 numbers of 32 bits, one party in ten leaves before it sends its vector. A party's bytes are what it sends
and what it is sent, as JSON; "in the clear" is its vector alone.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.federated.secure import Diary, Identity, Party, Ring, Session, SumServer, majority
from surefoot.federated.secure.session import Said

LENGTH, BITS = 100, 32


def wire(content: object) -> str:
    if isinstance(content, dict):
        return json.dumps({str(key): value for key, value in content.items()})
    if isinstance(content, Said):
        return json.dumps(content.to_wire())
    return json.dumps([one.to_wire() if isinstance(one, Said) else one for one in content or ()])


def answered(party: Party, phase: int, content: Any, steps: NDArray[np.int64], ring: Ring) -> Said:
    if phase == 0:
        return party.advertise()
    if phase == 2:
        return party.mask(content, steps, ring)
    return (party.share, party.confirm, party.open)[(1, 3, 4).index(phase)](content)


def measure(parties: int) -> tuple[float, float, float, float]:
    """Return kilobytes sent and received and seconds of one party that stays, and seconds of the server."""
    identities = [Identity() for _ in range(parties)]
    ring = Ring(BITS, 1.0, parties)
    roster = [identity.public for identity in identities]
    session = Session("ab" * 32, 0, LENGTH, BITS, majority(parties), roster)
    crowd = {n: Party(session, n, identity, Diary()) for n, identity in enumerate(identities)}
    steps = ring.encode(np.full(LENGTH, 0.05))
    server, asked = SumServer(session), dict.fromkeys(crowd)
    sent = received = own = middle = 0.0
    for phase in range(5):
        for n in sorted(asked):
            if phase == 2 and n % 10 == 9:
                continue
            start = time.process_time()
            party, content = crowd[n], asked[n]
            said = answered(party, phase, content, steps, ring)
            end = time.process_time()
            server.take(said)
            middle += time.process_time() - end
            if n == 0:
                own += end - start
                sent += len(wire(said)) / 1e3
                received += len(wire(content)) / 1e3
        start = time.process_time()
        asked = server.advance()
        middle += time.process_time() - start
    assert (ring.lift(server.total) == steps * len(server.survivors)).all()
    return sent, received, own, middle


def main() -> None:
    print("| parties | kB sent | kB received | s of a party | s of the server |\n|---|---|---|---|---|")
    for text in sys.argv[1:] or ["10", "50"]:
        sent, received, own, middle = measure(int(text))
        print(f"| {text} | {sent:.1f} | {received:.1f} | {own:.3f} | {middle:.2f} |")
    print(f"in the clear: {len(json.dumps(np.random.default_rng(0).random(LENGTH).tolist())) / 1e3:.1f} kB sent")


if __name__ == "__main__":
    main()
