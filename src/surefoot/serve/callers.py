"""Who is calling: tokens are looked up together, as many as wait while the database is asked for others.

Each token is read after its request arrived, so that one which was revoked is refused from the next request on.

>>> async def nobody(ids):
...     return {}
>>> asyncio.run(Callers(nobody).caller("sf_0"))
Traceback (most recent call last):
...
surefoot.serve.failures.Unauthorized: this token is not valid
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from surefoot.serve import tokens
from surefoot.serve.tokens import Caller

__all__ = ["Callers"]

Rows = Mapping[str, Mapping[str, Any]]


class Callers:
    """Finds out whose tokens these are.

    Parameters
    ----------
    read : callable
        Returns the rows of tokens, by their ids.

    >>> async def nobody(ids):
    ...     return {}
    >>> Callers(nobody).waiting
    0
    """

    def __init__(self, read: Callable[[Sequence[str]], Awaitable[Rows]]) -> None:
        self._read = read
        self._waiting: list[tuple[str, asyncio.Future[Rows]]] = []
        self._reading: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> int:
        """Callers whose tokens are not being read yet."""
        return len(self._waiting)

    async def caller(self, token: str) -> Caller:
        """Return whose token it is, or raise :class:`~surefoot.serve.failures.Unauthorized`."""
        id = tokens.id_of(token)
        if id is None:
            return tokens.judged(token, None)
        loop = asyncio.get_running_loop()
        rows: asyncio.Future[Rows] = loop.create_future()
        self._waiting.append((id, rows))
        if self._reading is None or self._reading.done():
            self._reading = loop.create_task(self._serve())
        return tokens.judged(token, (await rows).get(id))

    async def _serve(self) -> None:
        while self._waiting:
            some, self._waiting = self._waiting, []
            try:
                found = await self._read(sorted({id for id, _ in some}))
            except BaseException as error:
                for _, rows in some:
                    if not rows.done():
                        rows.set_exception(error if isinstance(error, Exception) else asyncio.CancelledError())
                if not isinstance(error, Exception):
                    raise
            else:
                for _, rows in some:
                    if not rows.done():
                        rows.set_result(found)
