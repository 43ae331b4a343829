"""``surefoot serve`` and ``surefoot token``."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from surefoot.cli.app import app

__all__: list[str] = []

token = typer.Typer(
    help="Make, list, renew and revoke the tokens of the service.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(token, name="token", short_help="Make, list, renew and revoke tokens of the service.")

Database = Annotated[
    str,
    typer.Option(metavar="URL", envvar="SUREFOOT_DATABASE", help="Where everything is kept: SQLite or PostgreSQL."),
]
_HERE = "sqlite:///surefoot.db"


def _room() -> Any:
    """The module that does the work, or a sentence about what it needs."""
    from surefoot.errors import MissingExtra

    try:
        return import_module("surefoot.serve.run")
    except ImportError as error:
        raise MissingExtra(f"the service needs {error.name}: pip install 'surefoot[serve]'") from None


@app.command(short_help="Serve studies over HTTP.")
def serve(
    database: Database = _HERE,
    host: Annotated[str, typer.Option(metavar="NAME", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, metavar="N", help="Port to listen on.")] = 8000,
    certfile: Annotated[Path | None, typer.Option(metavar="FILE", help="Certificate, for HTTPS.")] = None,
    keyfile: Annotated[Path | None, typer.Option(metavar="FILE", help="Key of the certificate.")] = None,
    migrate: Annotated[bool, typer.Option("--migrate", help="Bring the tables up to date, and no more.")] = False,
    rate: Annotated[
        float, typer.Option(min=0.0, metavar="N", help="Requests per second for each token; 0 is no limit.")
    ] = 500.0,
    largest_body: Annotated[int, typer.Option(min=1024, metavar="BYTES", help="Largest request.")] = 4 * 1024 * 1024,
    cached: Annotated[int, typer.Option(min=1, metavar="N", help="Policies kept in memory.")] = 256,
    threads: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Asks worked out at the same time; by default one per core.")
    ] = None,
    connections: Annotated[int, typer.Option(min=1, metavar="N", help="Connections at the same time.")] = 1000,
    per_address: Annotated[int, typer.Option(min=1, metavar="N", help="Connections from one address.")] = 256,
    grace: Annotated[
        float, typer.Option(min=0.0, metavar="SECONDS", help="Time for requests under way when it is stopped.")
    ] = 10.0,
    limit: Annotated[
        list[str] | None,
        typer.Option(
            "--limit", metavar="NAME=N", envvar="SUREFOOT_LIMITS", help="What one tenant, or one ask, may take."
        ),
    ] = None,
    metrics_open: Annotated[bool, typer.Option("--metrics-open", help="Give out /metrics without a token.")] = False,
    log_level: Annotated[str, typer.Option(metavar="NAME", help="debug, info, warning or error.")] = "info",
) -> None:
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
    from surefoot.serve.settings import Settings, limited

    settings = Settings(
        rate=rate,
        largest_body=largest_body,
        cached=cached,
        connections=connections,
        per_address=per_address,
        grace=grace,
        metrics_open=metrics_open,
    )
    given = [*(limit or ()), *([] if threads is None else [f"threads={threads}"])]
    _room().serve(
        database=database,
        host=host,
        port=port,
        certfile=certfile,
        keyfile=keyfile,
        migrate_only=migrate,
        level=log_level,
        settings=limited(settings, given),
    )


@token.command(short_help="Make a token.")
def create(
    tenant: Annotated[str, typer.Option(metavar="NAME", help="Whose studies it opens.")],
    scope: Annotated[str, typer.Option(metavar="NAME", help="read, write, admin or operator.")] = "write",
    name: Annotated[str, typer.Option(metavar="TEXT", help="What it is for.")] = "from the command line",
    expires: Annotated[str | None, typer.Option(metavar="TIME", help="How long it is valid, as 90d or 12h.")] = None,
    database: Database = _HERE,
) -> None:
    """Make a token and print it: the only time it can be seen.

    A token opens the studies of one tenant. With scope read it looks, with write it also asks and tells, with admin it
    also makes and revokes tokens of the same tenant, over HTTP and on the web page, with operator it also sees the
    metrics of all tenants.

    \b
    Examples:
      surefoot token create \\
        --tenant physics --expires 90d
      surefoot token create \\
        --tenant physics --scope admin
      surefoot token create \\
        --tenant physics --name cluster \\
        --database sqlite:///runs.db
    """
    made = _room().create_token(database=database, tenant=tenant, name=name, scope=scope, expires=expires)
    typer.echo(made["token"])


@token.command(short_help="Give a token a new secret.")
def rotate(
    id: Annotated[str, typer.Argument(metavar="ID", help="As in the list, or the part after sf_ of the token.")],
    grace: Annotated[str, typer.Option(metavar="TIME", help="How long the old secret goes on; 0s: not at all.")] = "1d",
    expires: Annotated[str | None, typer.Option(metavar="TIME", help="How long it is valid, as 90d or 12h.")] = None,
    database: Database = _HERE,
) -> None:
    """Give a token a new secret and print it: the only time it can be seen.

    Id, tenant, scope and name stay. The old secret is valid until the time of grace is over, so that workers can be
    given the new one meanwhile; a secret from before the last rotation ends at once. Without --expires the token
    expires when it did before.

    \b
    Examples:
      surefoot token rotate \\
        3f0c9a6b51d2e874
      surefoot token rotate \\
        3f0c9a6b51d2e874 --grace 12h \\
        --expires 90d
    """
    made = _room().rotate_token(database=database, id=id, grace=grace, expires=expires)
    typer.echo(f"the old secret is valid until {made['previous_until']}", err=True)
    typer.echo(made["token"])


@token.command("list", short_help="List tokens.")
def list_(
    tenant: Annotated[str | None, typer.Option(metavar="NAME", help="Only of this tenant.")] = None,
    database: Database = _HERE,
) -> None:
    """List tokens, without their secrets: id, tenant, scope, when it was made, whether it is valid, name.

    \b
    Examples:
      surefoot token list
      surefoot token list --tenant physics
    """
    for row in _room().tokens(database=database, tenant=tenant):
        state = row["state"]
        if row["expires"] is not None and state != "revoked":
            state = f"{'valid until' if state == 'valid' else 'expired'} {row['expires']}"
        typer.echo("\t".join([row["id"], row["tenant"], row["scope"], row["created"], state, row["name"]]))


@token.command(short_help="Revoke a token.")
def revoke(
    id: Annotated[str, typer.Argument(metavar="ID", help="As in the list, or the part after sf_ of the token.")],
    database: Database = _HERE,
) -> None:
    """Revoke a token: from now on nobody can use it.

    \b
    Examples:
      surefoot token revoke \\
        3f0c9a6b51d2e874
    """
    _room().revoke_token(database=database, id=id)
    typer.echo(f"{id} is revoked")
