"""What an operator can decide about the service.

>>> Settings(rate=50.0).burst
100.0
"""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["Settings"]


@dataclass(frozen=True)
class Settings:
    """Limits of the service.

    Parameters
    ----------
    largest_body : int
        Bytes of a request; a larger one is refused before it is read.
    rate : float
        Requests per second that one token may make in the long run; 0 is no limit.
    patience : float
        Seconds' worth of requests that a token may make at once.
    cached : int
        Policies kept in memory; others are rebuilt from their events when they are needed.
    threads : int
        Asks that are worked out at the same time.
    metrics_open : bool
        Whether ``/metrics`` answers without a token.
    largest_ask : int
        Queries in one ask.
    largest_release : int
        Numbers in the release of one outsourced run.
    connections : int
        Connections at the same time; at most half of the descriptors that the system allows.
    per_address : int
        Connections from one address; of IPv6, from one network of 64 bits.
    head_seconds : float
        Seconds until the head of a request must be here, counted from the connection or the answer before.
    body_seconds : float
        Seconds until a body must be here.
    grace : float
        Seconds that requests under way have left when the server is told to stop.

    >>> Settings(largest_body=0)
    Traceback (most recent call last):
    ...
    ValueError: largest_body must be positive, got 0
    """

    largest_body: int = 4 * 1024 * 1024
    rate: float = 500.0
    patience: float = 2.0
    cached: int = 256
    threads: int = 8
    metrics_open: bool = False
    largest_ask: int = 1000
    largest_release: int = 20_000_000
    connections: int = 1000
    per_address: int = 256
    head_seconds: float = 10.0
    body_seconds: float = 60.0
    grace: float = 10.0

    def __post_init__(self) -> None:
        for name in (
            *("largest_body", "patience", "cached", "threads", "largest_ask", "largest_release"),
            *("connections", "per_address", "head_seconds", "body_seconds"),
        ):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be positive, got {getattr(self, name)!r}")
        if not (math.isfinite(self.rate) and self.rate >= 0):
            raise ValueError(f"rate must be a number of requests per second, 0 for no limit, got {self.rate!r}")

        if not (math.isfinite(self.grace) and self.grace >= 0):
            raise ValueError(f"grace must be a number of seconds, got {self.grace!r}")

    @property
    def burst(self) -> float:
        """Requests that a token may make at once after a pause."""
        return max(self.rate * self.patience, 1.0)
