"""``surefoot tune``: find good parameters of a Python function from the command line.

The function takes the dict of its parameters and returns a number, or is a generator that yields one after each epoch.
A space file says what the parameters are. With a journal everything is on disk as it happens: a run that was killed, at
any moment, goes on with ``--resume`` and finishes with the same trials as one that was not.
"""

from __future__ import annotations

import inspect
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console

from surefoot.cli.options import PATH, again, direction, offer
from surefoot.cli.show import answer, standing, table_of
from surefoot.cli.storage import as_begun, earlier_studies, trust
from surefoot.cli.target import find, options_from, policy_named, space_from
from surefoot.cli.watch import Screen, Watched
from surefoot.errors import Interrupted, MissingExtra, NoData, SurefootError
from surefoot.loop.journal import Journal
from surefoot.loop.policy import Policy
from surefoot.optimizer import Result, optimize
from surefoot.report import page as write_page
from surefoot.report.view import RunView

__all__ = ["tune"]


@click.argument(
    "target",
    metavar="MODULE:FUNCTION",
    help="The objective: a dotted module or the path of a Python file, and a function in it.",
)
@click.option("--space", type=PATH, metavar="FILE.toml", help="The parameters: a TOML file with a table for each.")
@click.option(
    "--trials", type=click.IntRange(1), metavar="N", help="How many trials, those already in the journal included."
)
@click.option(
    "--journal",
    type=PATH,
    metavar="FILE",
    help="Keep every trial here as it happens; by default in a new file in the folder of the page.",
)
@click.option("--resume", is_flag=True, help="Continue the journal, or the last one, where it stopped.")
@click.option("--workers", type=click.IntRange(1), metavar="N", help="How many trials at a time, a process each.")
@click.option("--timeout", type=float, metavar="SECONDS", help="Begin no trial after so many seconds.")
@click.option("--trial-timeout", type=float, metavar="SECONDS", help="With workers: how long a trial may take.")
@click.option("--stop", type=float, metavar="VALUE", help="End when the expected improvement is smaller.")
@direction
@click.option(
    "--policy",
    metavar="NAME",
    help="Which policy, or MODULE:CLASS of your own. By default ExpectedImprovement; BOBOS with --epochs, "
    "RMGPUCB with --transfer, RMBOBOS with both.",
)
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="KEY=VALUE",
    help="An option of the policy, its value written as in TOML; repeatable.",
)
@click.option("--seed", type=click.IntRange(0), metavar="N", help="Seed of all random draws; it is printed and kept.")
@click.option(
    "--epochs",
    type=click.IntRange(1),
    metavar="N",
    help="Length of a whole training run, for an objective that yields once per epoch.",
)
@click.option(
    "--transfer",
    type=PATH,
    multiple=True,
    metavar="JOURNAL",
    help="Learn from this earlier study, or from a folder of their journals; repeatable.",
)
@click.option("--out", type=PATH, metavar="FOLDER", help="Folder of the page.")
@click.option("--page/--no-page", help="Whether to write the page.")
@click.option(
    "--stop-on-error", is_flag=True, help="Stop when the objective raises, instead of counting a failed trial."
)
@click.option("--quiet", "-q", is_flag=True, help="Print only the recommended parameters, as JSON.")
def tune(
    target: str,
    *,
    space: str | os.PathLike[str],
    trials: int,
    journal: str | os.PathLike[str] | None = None,
    resume: bool = False,
    workers: int | None = None,
    timeout: float | None = None,
    trial_timeout: float | None = None,
    stop: float | None = None,
    direction: str = "maximize",
    policy: str | None = None,
    options: Sequence[str] = (),
    seed: int | None = None,
    epochs: int | None = None,
    transfer: Sequence[str | os.PathLike[str]] = (),
    out: str | os.PathLike[str] | None = "surefoot-tune",
    page: bool = True,
    stop_on_error: bool = False,
    quiet: bool = False,
    console: Console | None = None,
) -> Result:
    """Tune a function, print how it goes, write the page, and return the result; its arguments are the options.

    >>> import io, tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "space.toml").write_text('x = {type = "float", low = 0.0, high = 1.0}')
    >>> _ = (folder / "parabola.py").write_text('def f(params): return (params["x"] - 0.3) ** 2')
    >>> result = tune(f"{folder}/parabola.py:f", space=folder / "space.toml", trials=8, direction="minimize", seed=0,
    ...               out=None, console=Console(file=io.StringIO()))
    >>> abs(result.params["x"] - 0.3) < 0.1
    True
    """
    for name, count in (("trials", trials), ("epochs", epochs)):
        if count is not None and count < 1:
            raise ValueError(f"{name} must be at least 1, got {count!r}")
    if direction not in ("maximize", "minimize"):
        raise ValueError(f"direction must be 'maximize' or 'minimize', got {direction!r}")
    domain = space_from(space)
    chosen, settings = _policy(policy, options, epochs, bool(transfer))
    journal = _kept(out, resume) if journal is None else journal
    done = _check_journal(journal, resume)
    folder = Path(out) if page and out is not None else None
    if folder is not None:
        _check_folder(folder)
    found = earlier_studies(transfer, domain, direction=direction, besides=journal)
    if transfer:
        settings["tasks"] = as_begun(journal, found.tasks)
        if not settings["tasks"]:
            reasons = f" ({'; '.join(found.skipped)})" if found.skipped else ""
            raise ValueError(f"no earlier study to learn from in {', '.join(map(str, transfer))}{reasons}")
    run = Watched(find(target), target, epochs)
    screen = Screen(run, console or Console(), trials, done, direction, quiet)
    if not quiet:
        screen.say(f"{target}: {trials} trials, {direction}, {chosen.__name__}{f', {done} done' if done else ''}")
        for task in settings["tasks"] if transfer else ():
            screen.say(f"learning from {task.name}, {len(task)} trials")
        for reason in found.skipped:
            screen.say(f"not learning from {reason}")
    start = time.monotonic()
    try:
        with screen:
            result = optimize(
                run,
                domain,
                trials,
                policy=chosen,
                direction=direction,
                seed=seed,
                journal=journal,
                catch=() if stop_on_error else (Exception,),
                callback=screen.finished,
                workers=workers,
                timeout=timeout,
                trial_timeout=trial_timeout,
                stop=stop,
                on_error=run.failed,
                **settings,
            )
    except NoData:
        last = f"; the last one: {screen.failure}" if screen.failure else ""
        raise NoData(f"all {trials} trials failed{last}") from None
    except Interrupted as error:
        if error.result is not None:
            _finish(error.result, screen, time.monotonic() - start, journal, folder)
        raise
    except Exception as error:
        if error is not run.error:
            raise
        raise SurefootError(f"the function raised {run.why()}") from error
    _finish(result, screen, time.monotonic() - start, journal, folder)
    return result


_USUAL = {
    (False, False): "ExpectedImprovement",
    (True, False): "BOBOS",
    (False, True): "RMGPUCB",
    (True, True): "RMBOBOS",
}  # by whether runs have epochs, and whether there are earlier studies
_OBJECTS = ("perturbation", "others")  # arguments that TOML has no words for


def _policy(
    name: str | None, words: Sequence[str], epochs: int | None, transfer: bool
) -> tuple[type[Policy], dict[str, Any]]:
    """The policy class and the options of its constructor, except the earlier tasks."""
    chosen = policy_named(name or _USUAL[epochs is not None, transfer])
    options = options_from(words, chosen)
    wanted = inspect.signature(chosen).parameters
    if transfer and "tasks" not in wanted:
        raise ValueError(f"{chosen.__name__} knows no earlier studies; --transfer needs a policy such as RMGPUCB")
    if epochs is not None and "epochs" in wanted and options.setdefault("epochs", epochs) != epochs:
        raise ValueError(f"--epochs {epochs} and --option epochs={options['epochs']} contradict each other")
    given = {"domain", *options, *(["tasks"] if transfer else [])}
    for key, parameter in wanted.items():
        if key in _OBJECTS and parameter.default is parameter.empty:
            raise ValueError(f"{chosen.__name__} needs {key}=, an object that no --option can be: use it from Python")
        if parameter.default is parameter.empty and key not in given:
            needed = {"epochs": "--epochs N", "tasks": "--transfer JOURNAL"}.get(key, f"--option {key}=...")
            raise ValueError(f"{chosen.__name__} needs {needed}")
    return chosen, options


def _kept(out: str | os.PathLike[str] | None, resume: bool) -> Path | None:
    """The journal of a run that names none: a new file in the folder, or with ``resume`` the last one there."""
    if out is None:
        return None
    runs = {int(file.stem[4:]): file for file in Path(out).glob("run-*.jsonl") if file.stem[4:].isdecimal()}
    last = max(runs, default=0)
    if resume and not last:
        raise ValueError(f"--resume: there is no run in {out} yet; which --journal FILE should be continued?")
    return runs[last] if resume else Path(out) / f"run-{last + 1}.jsonl"


def _check_journal(journal: str | os.PathLike[str] | None, resume: bool) -> int:
    """How many trials a journal that may be continued holds already."""
    if journal is None:
        if resume:
            raise ValueError("--resume needs --journal FILE: what should be continued?")
        return 0
    path = Path(journal)
    if path.is_dir():
        raise ValueError(f"the journal must be a file, and {path} is a folder")
    if not resume and path.exists() and path.stat().st_size:
        raise ValueError(f"{path} exists; add --resume to continue it, or choose another --journal")
    return sum(event["event"] == "told" for event in Journal(path).read()[1])


def _check_folder(out: Path) -> None:
    """Refuse a folder that cannot be made, before hours are spent on what it should hold."""
    place = out
    while not place.exists():
        place = place.parent
    if not place.is_dir():
        raise ValueError(f"the page needs a folder, and {place} is a file; choose another --out, or --no-page")
    if not os.access(place, os.W_OK | os.X_OK):
        raise ValueError(f"nothing can be written in {place}; choose another --out, or --no-page")


def _finish(
    result: Result, screen: Screen, seconds: float, journal: str | os.PathLike[str] | None, folder: Path | None
) -> None:
    """Print the outcome and write the page."""
    view = RunView(result.policy, result.direction)
    recommended = answer(view)
    if screen.quiet:
        screen.say(recommended[1])
    else:
        measured = [row for row in view.rows if row.value is not None]
        best = [measured[i] for i in np.argsort(-view.quality, kind="stable")[:5]]
        table = table_of(best, screen.console, title="Best trials", digits=view.digits())
        screen.console.print("", table, "", sep="\n")
        for line in recommended:
            screen.say(line)
        spent = "" if result.epochs is None else f", {result.epochs} epochs"
        spent += f" ({result.saved} saved)" if result.saved else ""
        screen.say(f"\n{standing(view.rows)}{spent}, {_duration(seconds)}, seed {result.policy.seed}")
        if trusted := trust(result.policy):
            screen.say(f"weights of earlier studies: {trusted}")
        if result.ended not in ("the budget is spent", "interrupted"):
            screen.say(f"ended early: {result.ended}")
        if journal is not None:
            screen.say(f"journal: {journal}")
    if folder is not None:
        try:
            target = write_page(result.policy, folder / "index.html", title=screen.run.name, direction=result.direction)
            said = f"page: {target}"
        except MissingExtra as error:
            said = f"no page: {error}"
        if not screen.quiet:
            screen.say(said)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"


def _interrupted(given: Mapping[str, Any]) -> str:
    return f"interrupted; go on with\n{again(*([] if given['resume'] else ['--resume']))}"


command = offer(
    tune,
    """Find good parameters of a Python function.

    The function takes the dict of its parameters and returns a number, or yields one after each epoch. It may return
    None for a trial that failed; an exception counts as one too.

    \b
    Examples:
      surefoot tune objective.py:train \\
        --space space.toml --trials 40
      surefoot tune package.module:loss \\
        --space space.toml --trials 100 \\
        --direction minimize \\
        --journal run.jsonl
      surefoot tune objective.py:epochs \\
        --space space.toml --trials 30 \\
        --epochs 50
      surefoot tune objective.py:epochs \\
        --space space.toml --trials 30 \\
        --epochs 50 --transfer run.jsonl

    \b
    space.toml:
      [learning_rate]
      type = "float"
      low = 1e-4
      high = 0.1
      log = true
      [layers]
      type = "int"
      low = 1
      high = 4
      [activation]
      type = "choice"
      values = ["relu", "tanh"]
    """,
    interrupted=_interrupted,
)
