"""``surefoot serve``: studies of any policy over HTTP."""

from __future__ import annotations

from typing import Any

import click

from surefoot.cli.options import PATH
from surefoot.cli.token import database, service
from surefoot.serve.settings import Settings, limited

__all__: list[str] = []


@click.command("serve")
@database
@click.option("--host", default="127.0.0.1", metavar="NAME", help="Address to listen on.")
@click.option("--port", type=click.IntRange(1, 65535), default=8000, metavar="N", help="Port to listen on.")
@click.option("--certfile", type=PATH, metavar="FILE", help="Certificate, for HTTPS.")
@click.option("--keyfile", type=PATH, metavar="FILE", help="Key of the certificate.")
@click.option("--migrate", "migrate_only", is_flag=True, help="Bring the tables up to date, and no more.")
@click.option(
    "--rate",
    type=click.FloatRange(0.0),
    default=500.0,
    metavar="N",
    help="Requests per second for each token; 0 is no limit.",
)
@click.option(
    "--largest-body", type=click.IntRange(1024), default=4 * 1024 * 1024, metavar="BYTES", help="Largest request."
)
@click.option("--cached", type=click.IntRange(1), default=256, metavar="N", help="Policies kept in memory.")
@click.option(
    "--threads",
    type=click.IntRange(1),
    metavar="N",
    help="Asks worked out at the same time; by default one per core.",
)
@click.option("--connections", type=click.IntRange(1), default=1000, metavar="N", help="Connections at the same time.")
@click.option("--per-address", type=click.IntRange(1), default=256, metavar="N", help="Connections from one address.")
@click.option(
    "--grace",
    type=click.FloatRange(0.0),
    default=10.0,
    metavar="SECONDS",
    help="Time for requests under way when it is stopped.",
)
@click.option(
    "--limit",
    multiple=True,
    metavar="NAME=N",
    envvar="SUREFOOT_LIMITS",
    show_envvar=True,
    help="What one tenant, or one ask, may take.",
)
@click.option("--metrics-open", is_flag=True, help="Give out /metrics without a token.")
@click.option("--log-level", "level", default="info", metavar="NAME", help="debug, info, warning or error.")
def command(limit: tuple[str, ...], threads: int | None, **given: Any) -> None:
    """Serve studies of any policy over HTTP, with a web page, until interrupted.

    Everything is kept in a database: a file here, or PostgreSQL, which several servers may share. The tables are made,
    or brought up to date, at the start. Logs are JSON lines on standard error. The first token comes from surefoot
    token create. Without a certificate, serve the outside world only behind something that has one.

    \b
    Examples:
      surefoot serve
      surefoot serve --port 8080 \\
        --database sqlite:///runs.db
      surefoot serve --host 0.0.0.0 \\
        --certfile server.pem \\
        --keyfile server.key
      surefoot serve --migrate
    """
    names = ("rate", "largest_body", "cached", "connections", "per_address", "grace", "metrics_open")
    settings = Settings(**{name: given.pop(name) for name in names})
    limits = [*limit, *([] if threads is None else [f"threads={threads}"])]
    service().serve(settings=limited(settings, limits), **given)
