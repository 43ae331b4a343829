"""``surefoot csv RUN``: the measurements of a run, for a spreadsheet."""

import click

import surefoot


@click.command(short_help="Print the measurements of a run, for a spreadsheet.")
@click.argument("run", type=click.Path(exists=True, dir_okay=False))
def csv(run):
    """Print the measurements of RUN, a journal or a saved policy, one line each."""
    with surefoot.load(run) as policy:
        for trial in policy.history:
            click.echo(",".join(map(str, [*trial.x, "" if trial.failed else trial.value])))
