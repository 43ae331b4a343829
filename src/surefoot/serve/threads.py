"""Threads for work of one kind, and turns that cost none.

>>> import asyncio
>>> asyncio.run(Threads(2, patience=1.0).run(abs, -3))
3
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread

from surefoot.serve.failures import Unavailable

__all__ = ["Threads"]

T = TypeVar("T")


class Threads:
    """A few threads for work of one kind, and a queue that costs none; whoever waits too long is told to try again.

    >>> Threads(2, patience=1.0).patience
    1.0
    """

    def __init__(self, count: int, *, patience: float) -> None:
        self.patience = patience
        self._free = asyncio.Semaphore(count)

    async def run(self, work: Callable[..., T], *given: Any) -> T:
        """Run something in a thread, in turn."""
        await _soon(self._free, self.patience)
        try:
            return await to_thread.run_sync(work, *given, limiter=CapacityLimiter(1))
        finally:
            self._free.release()


async def _soon(lock: asyncio.Semaphore, patience: float) -> None:
    """Take a lock when it is one's turn."""
    if not lock.locked():
        await lock.acquire()
        return
    try:
        async with asyncio.timeout(patience):
            await lock.acquire()
    except TimeoutError:
        raise Unavailable("the service is busy; try again in a moment") from None
