"""Rows of leases that change with the events of a study.

>>> from surefoot.serve.tables import leases
>>> sorted(column.name for column in leases.primary_key)
['query', 'study']
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from surefoot.serve.failures import Unavailable
from surefoot.serve.tables import leases

__all__ = ["Renewed", "write_leases"]


class Renewed(Unavailable):
    """A lease that seemed to have run out was renewed at the last moment."""

    def __init__(self) -> None:
        super().__init__("this lease was renewed meanwhile", after=2)


def write_leases(connection: Connection, id: str, moment: str, changes: Mapping[str, Sequence[Any]]) -> None:
    """Change leases in the transaction of the events that give queries out and take outcomes in.

    ``given`` are new leases, ``ended`` queries that need none any more, and ``expired`` those with the beat at which
    they ran out.

    >>> from surefoot.serve.tables import metadata
    >>> engine = sa.create_engine("sqlite://")
    >>> metadata.create_all(engine)
    >>> with engine.begin() as connection:
    ...     new = {"study": "0f", "query": 3, "seconds": 60.0, "worker": "a"}
    ...     write_leases(connection, "0f", "now", {"given": [new]})
    ...     write_leases(connection, "0f", "now", {"ended": [3]})
    ...     connection.execute(sa.select(leases)).all()
    []
    """
    for query, beat in changes.get("expired", ()):
        mine = (leases.c.study == id) & (leases.c.query == query) & (leases.c.beat == beat)
        if connection.execute(sa.delete(leases).where(mine)).rowcount != 1:
            raise Renewed
    if ended := changes.get("ended"):
        connection.execute(sa.delete(leases).where(leases.c.study == id, leases.c.query.in_(list(ended))))
    if given := changes.get("given"):
        connection.execute(sa.insert(leases), [{"study": id, "beat": 0, "since": moment, **one} for one in given])
