"""The tables of the service.

``events`` holds what a journal holds, one line per event, numbered within its study; ``studies.version`` is the number
of the next one and ``studies.hash`` a hash over all lines before it, and whoever appends must have seen these very
lines. ``studies.release`` is the release that made the study. The other columns of ``studies`` are counts that a list
can show without reading events. ``leases`` says who has which query (:mod:`surefoot.serve.leases`). ``answers``
remembers what was answered to a request that carried a key. A run whose data stay with somebody else is a study too;
``releases`` and ``chunks`` hold what that party released for it.

>>> sorted(metadata.tables)
['answers', 'chunks', 'events', 'leases', 'releases', 'studies', 'tokens']
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Float, ForeignKey, Index, Integer, MetaData, String, Table, Text

__all__ = ["answers", "chunks", "events", "leases", "metadata", "releases", "studies", "tokens"]

metadata = MetaData()

tokens = Table(
    "tokens",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("tenant", String(200), nullable=False),
    Column("name", String(200), nullable=False),
    Column("scope", String(16), nullable=False),
    Column("digest", String(64), nullable=False),
    Column("created", String(40), nullable=False),
    Column("revoked", String(40)),
    Column("expires", String(40)),
    Column("previous", String(64)),  # the secret before the last rotation, and until when it goes on
    Column("previous_until", String(40)),
    Index("tokens_by_tenant", "tenant", "id"),
)

studies = Table(
    "studies",
    metadata,
    Column("id", String(32), primary_key=True),  # begins with the time it was made, so that ids are in order
    Column("kind", String(16), nullable=False),
    Column("tenant", String(200), nullable=False),
    Column("name", String(200), nullable=False),
    Column("policy", String(100), nullable=False),
    Column("direction", String(16), nullable=False),
    Column("domain", Text, nullable=False),
    Column("options", Text, nullable=False),
    Column("seed", String(50), nullable=False),  # up to 128 bits
    Column("state", String(16), nullable=False),
    Column("created", String(40), nullable=False),
    Column("updated", String(40), nullable=False),
    Column("version", Integer, nullable=False),
    Column("hash", String(64), nullable=False, server_default=""),  # empty: written by 0.1, or nothing written yet
    Column("release", String(40), nullable=False, server_default="0.1.0"),
    Column("bytes", BigInteger, nullable=False, server_default="0"),  # of what was stored since 0.2
    Column("told", Integer, nullable=False),
    Column("failed", Integer, nullable=False),
    Column("pending", Integer, nullable=False),
    Column("stopped", Integer, nullable=False),
    Column("best", Float(53)),  # as the rule sees it: higher is better
    Index("studies_by_tenant", "tenant", "kind", "id"),
)

events = Table(
    "events",
    metadata,
    Column("study", String(32), ForeignKey("studies.id", ondelete="CASCADE"), primary_key=True),
    Column("sequence", Integer, primary_key=True),
    Column("event", Text, nullable=False),
)

answers = Table(
    "answers",
    metadata,
    Column("scope", String(240), primary_key=True),
    Column("key", String(200), primary_key=True),
    Column("request", String(64), nullable=False),
    Column("answer", Text, nullable=False),
)

leases = Table(
    "leases",
    metadata,
    Column("study", String(32), ForeignKey("studies.id", ondelete="CASCADE"), primary_key=True),
    Column("query", Integer, primary_key=True),
    Column("seconds", Float(53), nullable=False),
    Column("beat", Integer, nullable=False),  # signs of life so far
    Column("worker", String(200), nullable=False),
    Column("since", String(40), nullable=False),  # for people
)

releases = Table(
    "releases",
    metadata,
    Column("study", String(32), ForeignKey("studies.id", ondelete="CASCADE"), primary_key=True),
    Column("asks", Integer, nullable=False),
    Column("header", Text),
    Column("sha256", String(64)),
    Column("size", Integer, nullable=False),  # numbers uploaded so far
    Column("closing", Integer),
)

chunks = Table(
    "chunks",
    metadata,
    Column("study", String(32), ForeignKey("studies.id", ondelete="CASCADE"), primary_key=True),
    Column("part", Integer, primary_key=True),
    Column("size", Integer, nullable=False),
    Column("content", Text, nullable=False),
)
