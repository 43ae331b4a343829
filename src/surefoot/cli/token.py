"""``surefoot token``: the tokens of the service."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

from surefoot.errors import MissingExtra

__all__: list[str] = []

DATABASE = "sqlite:///surefoot.db"
database = click.option(
    "--database",
    metavar="URL",
    envvar="SUREFOOT_DATABASE",
    show_envvar=True,
    default=DATABASE,
    help="Where everything is kept: SQLite or PostgreSQL.",
)
expires = click.option("--expires", metavar="TIME", help="How long it is valid, as 90d or 12h.")
id_ = click.argument("id", metavar="ID", help="As in the list, or the part after sf_ of the token.")


def service() -> Any:
    """The module that does the work, or a sentence about what it needs."""
    try:
        return import_module("surefoot.serve.run")
    except ImportError as error:
        raise MissingExtra(f"the service needs {error.name}: pip install 'surefoot[serve]'") from None


@click.group("token", no_args_is_help=True)
def command() -> None:
    """Make, list, renew and revoke the tokens of the service."""


@command.command(short_help="Make a token.")
@click.option("--tenant", required=True, metavar="NAME", help="Whose studies it opens.")
@click.option("--scope", default="write", metavar="NAME", help="read, write, admin or operator.")
@click.option("--name", default="from the command line", metavar="TEXT", help="What it is for.")
@expires
@database
def create(**given: Any) -> None:
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
    click.echo(service().create_token(**given)["token"])


@command.command(short_help="Give a token a new secret.")
@id_
@click.option("--grace", default="1d", metavar="TIME", help="How long the old secret goes on; 0s: not at all.")
@expires
@database
def rotate(**given: Any) -> None:
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
    made = service().rotate_token(**given)
    click.echo(f"the old secret is valid until {made['previous_until']}", err=True)
    click.echo(made["token"])


@command.command("list", short_help="List tokens.")
@click.option("--tenant", metavar="NAME", help="Only of this tenant.")
@database
def list_(**given: Any) -> None:
    """List tokens, without their secrets: id, tenant, scope, when it was made, whether it is valid, name.

    \b
    Examples:
      surefoot token list
      surefoot token list --tenant physics
    """
    for row in service().tokens(**given):
        state = row["state"]
        if row["expires"] is not None and state != "revoked":
            state = f"{'valid until' if state == 'valid' else 'expired'} {row['expires']}"
        click.echo("\t".join([row["id"], row["tenant"], row["scope"], row["created"], state, row["name"]]))


@command.command(short_help="Revoke a token.")
@id_
@database
def revoke(id: str, database: str) -> None:
    """Revoke a token: from now on nobody can use it.

    \b
    Examples:
      surefoot token revoke \\
        3f0c9a6b51d2e874
    """
    service().revoke_token(database=database, id=id)
    click.echo(f"{id} is revoked")
