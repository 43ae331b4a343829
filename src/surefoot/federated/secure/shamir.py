"""Shamir's shares of a secret of 32 bytes: any so many of them tell it, fewer tell nothing.

    f(z) = s + a₁ z + ... + a_{t−1} z^{t−1}  (mod p),   the share of the holder z = 1, 2, ... is f(z)
    s = Σ_j f(z_j) Π_{m ≠ j} z_m/(z_m − z_j)  (mod p)

p = 2²⁵⁶ + 297 is the least prime above all secrets. The coefficients come from the operating system.

>>> shares = split(bytes(range(32)), threshold=3, holders=[0, 1, 2, 3])
>>> join({holder: shares[holder] for holder in (0, 2, 3)}, threshold=3) == bytes(range(32))
True

Reference: Shamir 1979.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from functools import lru_cache

__all__ = ["PRIME", "join", "split"]

PRIME = 2**256 + 297
SECRET = 32  # bytes
SHARE = 33  # bytes: the prime is a little above 256 bits


def split(secret: bytes, *, threshold: int, holders: Iterable[int]) -> dict[int, bytes]:
    """Return one share for each holder; holders are numbered from 0.

    >>> split(b"short", threshold=1, holders=[0])
    Traceback (most recent call last):
    ...
    ValueError: a secret has 32 bytes, got 5
    """
    names = list(holders)
    if len(secret) != SECRET:
        raise ValueError(f"a secret has {SECRET} bytes, got {len(secret)}")
    if not 1 <= threshold <= len(names) or len(set(names)) != len(names) or min(names) < 0:
        raise ValueError(f"a threshold of {threshold!r} does not fit {len(names)} different holders")
    coefficients = [int.from_bytes(secret, "big"), *(secrets.randbelow(PRIME) for _ in range(threshold - 1))]
    shares = {}
    for name in names:
        value = 0
        for coefficient in reversed(coefficients):
            value = (value * (name + 1) + coefficient) % PRIME
        shares[name] = value.to_bytes(SHARE, "big")
    return shares


def join(shares: Mapping[int, bytes], *, threshold: int) -> bytes:
    """Return the secret of at least ``threshold`` shares; more than that must agree with each other.

    >>> shares = split(bytes(32), threshold=2, holders=range(3))
    >>> shares[2] = bytes(33)
    >>> join(shares, threshold=2)
    Traceback (most recent call last):
    ...
    ValueError: these shares are not of one secret
    """
    if len(shares) < threshold:
        raise ValueError(f"{threshold} shares are needed, got {len(shares)}")
    points = {}
    for name, share in sorted(shares.items()):
        if len(share) != SHARE or (value := int.from_bytes(share, "big")) >= PRIME:
            raise ValueError(f"the share of holder {name} is none")
        points[name + 1] = value
    at = tuple(points)
    first = at[:threshold]
    secret = sum(points[z] * weight for z, weight in zip(first, _at_zero(first), strict=True)) % PRIME
    if not _agree(points, threshold) or secret >= 2 ** (8 * SECRET):
        raise ValueError("these shares are not of one secret")
    return secret.to_bytes(SECRET, "big")


def _agree(points: Mapping[int, int], threshold: int) -> bool:
    """Whether all points lie on one polynomial of degree below the threshold.

    If they do, Σ f(z) r(z) Π_{m ≠ z} 1/(z − m) = 0 for every polynomial r of degree below their number less the
    threshold; if not, it is so for a random one with a chance of 1/p.
    """
    more = len(points) - threshold
    if not more:
        return True
    coefficients = [secrets.randbelow(PRIME) for _ in range(more)]
    total = 0
    for (z, value), below in zip(points.items(), _below(tuple(points)), strict=True):
        test = 0
        for coefficient in coefficients:
            test = (test * z + coefficient) % PRIME
        total += value * test * below
    return total % PRIME == 0


@lru_cache(maxsize=4)
def _below(at: tuple[int, ...]) -> tuple[int, ...]:
    """Π_{m ≠ j} 1/(z_j − z_m) for each j; the same holders open many secrets."""
    made = []
    for j in at:
        product = 1
        for m in at:
            if m != j:
                product = product * (j - m) % PRIME
        made.append(pow(product, -1, PRIME))
    return tuple(made)


@lru_cache(maxsize=4)
def _at_zero(at: tuple[int, ...]) -> tuple[int, ...]:
    """Π_{m ≠ j} z_m/(z_m − z_j) for each j."""
    product = 1
    for z in at:
        product = product * -z % PRIME
    return tuple(product * pow(-j, -1, PRIME) * below % PRIME for j, below in zip(at, _below(at), strict=True))
