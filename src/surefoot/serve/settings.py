"""What an operator can decide about the service.

>>> Settings(rate=50.0).burst
100.0
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

__all__ = ["Settings", "limited"]


def _cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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
        Asks that are worked out at the same time, each in a process of its own. Two or more: no tenant has all of them.
    ask_seconds : float
        How long one ask, or the making of one study, may take before it is ended.
    ask_memory : int
        Bytes that it may take (on Linux); 0 is no limit, which asks on a GPU need.
    wait : float
        Seconds that a request may wait for its turn.
    studies, bytes, asks : int
        What one tenant may have: studies, bytes stored for them, asks at the same time.
    dimension, candidates : int
        How large the domain of a study may be: its dimensions, as a model counts them, and the points it lists.
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
    threads: int = max(2, min(_cores(), 8))
    ask_seconds: float = 90.0
    ask_memory: int = 2 * 1024**3
    wait: float = 60.0
    studies: int = 10_000
    bytes: int = 10 * 1024**3
    asks: int = 200
    dimension: int = 1000
    candidates: int = 200_000
    metrics_open: bool = False
    largest_ask: int = 1000
    largest_release: int = 20_000_000
    connections: int = 1000
    per_address: int = 256
    head_seconds: float = 10.0
    body_seconds: float = 60.0
    grace: float = 10.0

    def __post_init__(self) -> None:
        for field in fields(self):
            if field.name not in ("rate", "ask_memory", "metrics_open", "grace") and not getattr(self, field.name) > 0:
                raise ValueError(f"{field.name} must be positive, got {getattr(self, field.name)!r}")
        if self.ask_memory < 0:
            raise ValueError(f"ask_memory is a number of bytes, 0 for no limit, got {self.ask_memory!r}")
        if not (math.isfinite(self.rate) and self.rate >= 0):
            raise ValueError(f"rate must be a number of requests per second, 0 for no limit, got {self.rate!r}")

        if not (math.isfinite(self.grace) and self.grace >= 0):
            raise ValueError(f"grace must be a number of seconds, got {self.grace!r}")

    @property
    def burst(self) -> float:
        """Requests that a token may make at once after a pause."""
        return max(self.rate * self.patience, 1.0)


_LIMITS = ("threads", "ask_seconds", "ask_memory", "wait", "studies", "bytes", "asks", "dimension", "candidates")


def limited(settings: Settings, limits: Sequence[str]) -> Settings:
    """Return settings with limits as the command takes them: ``NAME=NUMBER``.

    >>> limited(Settings(), ["studies=100", "ask_seconds=30"]).studies
    100
    >>> limited(Settings(), ["users=3"])
    Traceback (most recent call last):
    ...
    ValueError: 'users=3' is not NAME=NUMBER with one of threads, ask_seconds, ask_memory, wait, studies, bytes, ...
    """
    found: dict[str, float] = {}
    for text in limits:
        name, _, number = text.partition("=")
        try:
            if name not in _LIMITS:
                raise ValueError
            found[name] = float(number) if name in ("ask_seconds", "wait") else int(number)
        except ValueError:
            raise ValueError(f"{text!r} is not NAME=NUMBER with one of {', '.join(_LIMITS)}") from None
    return replace(settings, **found)  # type: ignore[arg-type]
