"""Leases: a query that nobody gives a sign of life for goes back by itself.

A lease is a number of seconds and a count of signs of life, its beat. Whoever watches remembers when it last saw the
beat change, by a clock of its own, and when it has seen no change for as long as the lease says, the query has expired.
No time is written down that anybody compares: clocks may be set, jump and differ between machines. What a watcher was
not there to see does not count, so that a server that was stopped, or stood still, expires nothing in haste; a lease is
never shorter than it says, and may be longer.

The query expires by an event of its study, in a transaction that finds the beat unchanged. Its outcome is still taken
when the worker comes back with it.

>>> watch = LeaseWatch()
>>> leases = [Lease("0f", "physics", 3, seconds=2.0, beat=0)]
>>> [len(watch.expired(leases, at)) for at in (10.0, 11.0, 12.0)]
[0, 0, 1]
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from surefoot.errors import SurefootError
from surefoot.serve.store import Store
from surefoot.serve.tables import leases, studies

__all__ = ["EVERY", "Lease", "LeaseWatch", "Leases", "watching"]

log = logging.getLogger("surefoot.serve")

EVERY = 1.0
"""Seconds between two looks at all leases."""


class Lease(NamedTuple):
    """One query that somebody has.

    >>> Lease("0f", "physics", 3, seconds=600.0, beat=0).query
    3
    """

    study: str
    tenant: str
    query: int
    seconds: float
    beat: int


class Leases:
    """The leases in the database.

    >>> store = Store("sqlite://")
    >>> store.migrate()
    >>> Leases(store).all()
    []
    """

    def __init__(self, store: Store) -> None:
        self.store = store

    def all(self) -> list[Lease]:
        """Return all leases of open studies."""
        what = sa.select(leases.c.study, studies.c.tenant, leases.c.query, leases.c.seconds, leases.c.beat)
        what = what.join(studies, studies.c.id == leases.c.study).where(studies.c.state == "open")
        with self.store.reading() as connection:
            return [Lease(*row) for row in connection.execute(what).all()]

    def of(self, tenant: str, id: str) -> list[dict[str, Any]]:
        """Return who has which query of a study, and since when."""
        self.store.study(tenant, id, whole=False)
        what = sa.select(leases.c.query, leases.c.worker, leases.c.seconds, leases.c.since)
        with self.store.reading() as connection:
            found = connection.execute(what.where(leases.c.study == id).order_by(leases.c.query)).mappings().all()
        return [dict(row) for row in found]

    def renew(self, tenant: str, id: str, queries: Sequence[int]) -> list[int]:
        """Take a sign of life for queries; return those whose lease still runs."""
        self.store.study(tenant, id, whole=False)
        mine = (leases.c.study == id) & leases.c.query.in_(list(queries))
        with self.store.writing() as connection:
            connection.execute(sa.update(leases).where(mine).values(beat=leases.c.beat + 1))
            found = connection.execute(sa.select(leases.c.query).where(mine).order_by(leases.c.query))
            return [int(query) for query in found.scalars()]


class LeaseWatch:
    """Remembers for how long each lease has shown no sign of life.

    >>> LeaseWatch().expired([], 0.0)
    []
    """

    def __init__(self, every: float = EVERY) -> None:
        self.every = every
        self._ages: dict[tuple[str, int], tuple[int, float]] = {}  # beat, seconds without another
        self._last: float | None = None

    def expired(self, found: Sequence[Lease], moment: float) -> list[Lease]:
        """Return the leases that have run out, given all there are and what the clock says.

        Between two looks at most twice the usual time counts, and never less than none, whatever the clock says.
        """
        passed = 0.0 if self._last is None else min(max(moment - self._last, 0.0), 2 * self.every)
        self._last = moment
        before, self._ages, out = self._ages, {}, []
        for lease in found:
            place = (lease.study, lease.query)
            beat, age = before.get(place, (None, 0.0))
            age = age + passed if beat == lease.beat else 0.0
            self._ages[place] = lease.beat, age
            if age >= lease.seconds:
                out.append(lease)
        return out


async def watching(
    look: Callable[[], Awaitable[Sequence[Lease]]], expire: Callable[[Lease], Awaitable[Any]], watch: LeaseWatch
) -> None:
    """Look at all leases from time to time, and let those expire that have run out."""
    while True:
        await asyncio.sleep(watch.every)
        try:
            over = watch.expired(await look(), time.monotonic())
            done = await asyncio.gather(*map(expire, over), return_exceptions=True)
            bugs = [error for error in done if isinstance(error, Exception) and not isinstance(error, SurefootError)]
            if bugs:
                raise bugs[0]
        except SurefootError:  # the database is away, or busy: look again
            continue
        except Exception as error:
            log.error("leases", extra={"fields": {"exception": type(error).__name__}})
