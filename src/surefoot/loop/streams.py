"""Randomness is keyed, not consumed.

Every random draw of a policy comes from a generator named by its purpose and its step. No generator is kept, so extra
draws for one purpose never shift another, two policies that share a seed share their common randomness, and a policy
rebuilt in another process asks for the same points.

>>> stream(7, "ties", 3).integers(1000) == stream(7, "ties", 3).integers(1000)
np.True_
>>> stream(7, "ties", 3).integers(10**9) == stream(7, "fit", 3).integers(10**9)
np.False_
"""

from __future__ import annotations

from zlib import crc32

import numpy as np

__all__ = ["as_integer", "fresh_seed", "stream"]


def stream(seed: int, purpose: str, step: int = 0, *, within: tuple[int, ...] = ()) -> np.random.Generator:
    """Return the generator of one purpose at one step; ``within`` puts it below another key, such as a repetition.

    >>> stream(0, "initial").random() == stream(0, "initial", 0).random()
    True
    """
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(*within, crc32(purpose.encode()), step)))


def as_integer(sequence: np.random.SeedSequence) -> int:
    """Return a seed as one whole number that a policy takes and that fits a JSON number exactly.

    >>> 0 <= as_integer(np.random.SeedSequence(3)) < 2**53
    True
    """
    return int(sequence.generate_state(1, np.uint64)[0] >> np.uint64(11))


def fresh_seed() -> int:
    """Draw a seed from the operating system.

    >>> 0 <= fresh_seed() < 2**53
    True
    """
    return as_integer(np.random.SeedSequence())
