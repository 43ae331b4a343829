"""``surefoot federate``: see what a federation would do, and what it would cost, before anybody takes part.

``plan`` computes privacy losses and signal from public constants. ``federate`` simulates a federation, on the landmine
data or on a synthetic family, beside agents that keep to themselves and a broadcast of noise alone. ``start_flower``
hands over to Flower for a real one.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from surefoot.cli.options import PATH, offer, out, picture, quiet
from surefoot.cli.terminal import say
from surefoot.errors import MissingData, MissingExtra
from surefoot.federated.features import SharedFeatures
from surefoot.federated.in_process import federate as run_agents
from surefoot.federated.plan import ACCOUNTANTS, FederationPlan, solve
from surefoot.federated.regions import Weighting
from surefoot.federated.schedules import Decay
from surefoot.federated.simulation import simulate, synthetic_family
from surefoot.loop.durable import write_atomically
from surefoot.report.federation import draw

__all__ = ["Simulated", "federate", "plan", "start_flower"]

Array = NDArray[np.float64]
Tick = Callable[[], None]

TS, EXPLORED, PRIVATE, NOISE = "TS", "FTS-DE", "DP-FTS-DE", "noise only"
DATA = ("auto", "landmine", "synthetic")
FIELDS = 29  # of the landmine data
FAINT = 0.5  # signal over noise below which a query that follows a broadcast is close to a random one


@dataclass(frozen=True, eq=False)
class Simulated:
    """What a simulated federation did.

    Attributes
    ----------
    data : str
        "landmine" or "synthetic".
    plan : FederationPlan
        Its public constants.
    measure : str
        What the curves show.
    curves : mapping of method to array of shape (runs, rounds + 1)
        A mean over agents, after the initial points and after each round.

    >>> Simulated("synthetic", FederationPlan(agents=9, rounds=1), "regret", {"TS": np.zeros((1, 2))}).measure
    'regret'
    """

    data: str
    plan: FederationPlan
    measure: str
    curves: Mapping[str, Array]


def plan(
    *,
    agents: int = 200,
    rounds: int = 40,
    epsilon: float | None = None,
    quiet: bool = False,
    console: Console | None = None,
    **constants: Any,
) -> FederationPlan:
    """Print what a federation costs in privacy and how much signal it has; with ``epsilon``, solve for z first.

    ``constants`` are those of a :class:`~surefoot.federated.plan.FederationPlan`.

    >>> import io
    >>> screen = Console(file=io.StringIO(), width=100)
    >>> made = plan(agents=200, rounds=40, sampling=0.25, multiplier=1.0, console=screen)
    >>> "9.91" in screen.file.getvalue()
    True
    """
    made = _planned(FederationPlan(agents=agents, rounds=rounds, **constants), epsilon)
    screen = console or Console()
    if quiet:
        say(screen, json.dumps(made.to_dict(), ensure_ascii=False))
    else:
        _tell_plan(screen, made)
    return made


def federate(
    *,
    data: str = "auto",
    agents: int | None = None,
    rounds: int | None = None,
    runs: int | None = None,
    epsilon: float | None = None,
    seed: int = 0,
    out: str | os.PathLike[str] = "surefoot-federate",
    picture: bool = True,
    quiet: bool = False,
    console: Console | None = None,
    **constants: Any,
) -> Simulated:
    """Simulate a federation, print what it did and what it cost, write both and a picture, and return it.

    Its arguments are the options, and the constants of a :class:`~surefoot.federated.plan.FederationPlan`.

    >>> import io, tempfile
    >>> made = federate(data="synthetic", agents=8, rounds=2, runs=1, picture=False, out=tempfile.mkdtemp(),
    ...                 console=Console(file=io.StringIO()))
    >>> sorted(made.curves)
    ['DP-FTS-DE', 'FTS-DE', 'TS', 'noise only']
    """
    chosen = _data(data)
    fields = chosen == "landmine"
    agents = (FIELDS if fields else 200) if agents is None else agents
    rounds = (20 if fields else 40) if rounds is None else rounds
    runs = (1 if fields else 3) if runs is None else runs
    if fields and not 1 <= agents <= FIELDS:
        raise ValueError(f"there are {FIELDS} landmine fields, got {agents} agents")
    if runs < 1:
        raise ValueError(f"runs must be at least 1, got {runs!r}")
    if fields:
        defaults: dict[str, Any] = {
            "regions": 4,
            "count": 100,
            "sampling": 0.35,
            "weighting": Weighting(hold=10, fall=30),
        }
    else:
        defaults = {}
    made = _planned(FederationPlan(agents=agents, rounds=rounds, **{**defaults, **constants}), epsilon)
    screen = console or Console()
    methods: dict[str, dict[str, Any]] = {
        TS: {},
        EXPLORED: {"federation": {"regions": made.regions, "weighting": made.weighting}},
        PRIVATE: {"federation": made.options()},
        NOISE: {"federation": made.options(), "send": False},
    }
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        TimeElapsedColumn(), console=screen, transient=True, disable=quiet or not screen.is_terminal,
    )  # fmt: skip
    with bar:
        task = bar.add_task("", total=len(methods) * runs * (rounds if fields else 1))
        curves = {}
        for name, options in methods.items():
            bar.update(task, description=name)
            run = _fields if fields else _synthetic
            curves[name] = run(made, runs, seed, options, lambda: bar.advance(task))
    outcome = Simulated(chosen, made, "1 − AUC" if fields else "simple regret", curves)
    files = _write(outcome, Path(out), screen, picture, quiet)
    if quiet:
        say(screen, json.dumps(_facts(outcome), ensure_ascii=False))
    else:
        _tell(screen, outcome, files)
    return outcome


def start_flower(app: str | os.PathLike[str], federation: str | None = None) -> int:
    """Run a Flower app (``flwr run``) and return its exit status.

    Raises
    ------
    MissingExtra
        Flower is not installed.

    >>> start_flower("/no/such/app")
    Traceback (most recent call last):
    ...
    ValueError: there is no Flower app at /no/such/app: an app is a folder with a pyproject.toml, ...
    """
    folder = Path(app)
    if not (folder / "pyproject.toml").is_file():
        raise ValueError(
            f"there is no Flower app at {folder}: an app is a folder with a pyproject.toml, such as "
            "examples/flower_federation of the sources"
        )
    if importlib.util.find_spec("flwr") is None:
        raise MissingExtra("a real federation runs on Flower: pip install 'surefoot[flower]'")
    beside = Path(sys.executable).with_name("flwr")
    program = str(beside) if beside.exists() else shutil.which("flwr")
    if program is None:
        raise MissingExtra("Flower's command flwr was not found: pip install 'surefoot[flower]'")
    words = [program, "run", str(folder), *([federation] if federation else []), "--stream"]
    return subprocess.run(words, check=False).returncode


def _planned(made: FederationPlan, epsilon: float | None) -> FederationPlan:
    return made if epsilon is None else solve(made, epsilon)


def _laboratory(module: str) -> Any:
    """A module of the laboratory, which reads the data of real fields."""
    try:
        return import_module(f"surefoot_lab.{module}")
    except ModuleNotFoundError as error:
        if error.name != "surefoot_lab":
            raise
        raise MissingExtra("the landmine data are read by the laboratory: pip install surefoot-lab") from None


def _data(name: str) -> str:
    if name not in DATA:
        raise ValueError(f"data is one of {', '.join(DATA)}, not {name!r}")
    if name == "landmine":
        _laboratory("datasets").locate("landmine")
        return name
    if name == "auto" and importlib.util.find_spec("sklearn") is not None:
        try:
            _laboratory("datasets").locate("landmine")
            return "landmine"
        except (MissingData, MissingExtra):
            pass
    return "synthetic"


def _synthetic(made: FederationPlan, runs: int, seed: int, options: Mapping[str, Any], tick: Tick) -> Array:
    """Mean regret over agents, shape (runs, rounds + 1); as the authors set it."""
    features = SharedFeatures(1, made.count, lengthscale=0.03, noise=0.01, seed=seed)
    curves = []
    for run in range(runs):
        family = synthetic_family(runs=1, agents=made.agents, seed=seed + run)
        with _no_warnings():
            found = simulate(
                family, features, rounds=made.rounds, schedule=Decay(0.5, first=0.0), seed=seed + run, **options
            )
        curves.append(found.regret[0].mean(axis=0))
        tick()
    return np.array(curves)


def _fields(made: FederationPlan, runs: int, seed: int, options: Mapping[str, Any], tick: Tick) -> Array:
    """Mean 1 − AUC over fields, shape (runs, rounds + 1); as the authors set it."""
    landmine = _laboratory("landmine")

    def objective(field: int) -> Callable[[Array], float]:
        return lambda x: float(landmine.values(field, x[None])[0])

    features = SharedFeatures(2, made.count, lengthscale=0.01, noise=1e-6, seed=seed)
    objectives = [objective(field) for field in range(made.agents)]
    curves = []
    for run in range(runs):
        found = run_agents(
            objectives, landmine.domain(), features, rounds=made.rounds, schedule=Decay(1.0, first=0.0),
            seed=seed + run, progress=tick, **options,
        )  # fmt: skip
        curves.append(1.0 - found.best.mean(axis=0))
    return np.array(curves)


def _no_warnings() -> Any:
    import warnings

    return warnings.catch_warnings(action="ignore")


def _facts(outcome: Simulated) -> dict[str, Any]:
    return {
        "data": outcome.data,
        "measure": outcome.measure,
        "simulated": True,
        "plan": outcome.plan.to_dict(),
        "curves": {name: runs.round(6).tolist() for name, runs in outcome.curves.items()},
    }


def _write(outcome: Simulated, folder: Path, screen: Console, picture: bool, quiet: bool) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(_facts(outcome), indent=1, ensure_ascii=False)
    write_atomically(folder / "federation.json", text + "\n")
    files = [folder / "federation.json"]
    if picture:
        coordinator = outcome.plan.coordinator()
        signal = np.array([coordinator.signal_to_noise(round) for round in range(outcome.plan.rounds)])
        try:
            files.append(draw(outcome.curves, signal, folder / "federation.png", measure=outcome.measure))
        except MissingExtra as error:
            if not quiet:
                say(screen, f"no picture: {error}")
    return files


def _tell(screen: Console, outcome: Simulated, files: list[Path]) -> None:
    made = outcome.plan
    runs = next(iter(outcome.curves.values())).shape[0]
    say(screen, f"{made.agents} agents, {made.rounds} rounds, {outcome.data} data, {runs} run{'s' * (runs > 1)}")
    table = Table(box=None, pad_edge=False)
    shown = sorted({0, made.rounds // 4, made.rounds // 2, made.rounds})
    for heading in ("method", *(f"round {t}" for t in shown)):
        table.add_column(heading, justify="left" if heading == "method" else "right")
    for name, each in outcome.curves.items():
        table.add_row(Text(name), *(f"{value:.4f}" for value in each.mean(axis=0)[shown]))
    screen.print(table)
    say(screen, f"{outcome.measure} of the best point so far, a mean over agents: smaller is better")
    say(screen, "noise only: a coordinator that broadcasts noise; what it gains is not knowledge")
    _tell_plan(screen, made)
    say(screen, "this was a simulation: its noise came from a seed, and what it wrote is not private")
    for file in files:
        say(screen, str(file))


def _tell_plan(screen: Console, made: FederationPlan) -> None:
    facts = made.to_dict()
    say(
        screen,
        f"N = {made.agents}, T = {made.rounds}, q = {made.sampling:g}, z = {made.multiplier:.4g}, P = {made.regions}, "
        f"M = {made.count}, S = {facts['clip']:.4g}, δ = {made.at:.3g}",
    )
    table = Table(box=None, pad_edge=False)
    for heading in ("ε by", "exact sensitivity", "published sensitivity"):
        table.add_column(heading, justify="left" if heading == "ε by" else "right")
    for method, losses in facts["epsilon"].items():
        table.add_row(Text(ACCOUNTANTS[method]), *(f"{losses[kind]:.2f}" for kind in ("exact", "published")))
    screen.print(table)
    least = facts["epsilon"]["pld"]["exact"]
    say(
        screen,
        f"({least:.2f}, {made.at:.2g})-differentially private for one agent, added or removed with all its data, "
        "towards all who read the broadcasts; not towards the coordinator",
    )
    first, last = (facts["signal_to_noise"][when] for when in ("first", "last"))
    say(screen, f"signal over noise: {first:.2g} in the first round, {last:.2g} in the last")
    if first < FAINT:
        say(
            screen,
            Text(
                "below 0.5 a query that follows a broadcast is close to a random one: more agents, a larger q, fewer "
                "sub-regions or a smaller z raise it",
                style="yellow",
            ),
        )
    if made.at * made.agents > 0.1:
        say(screen, f"δ = {made.at:.2g} is not far below 1/N; at δ = 1e-5 ε is {made.loss(delta=1e-5):.2f}")


@click.option("--data", metavar="NAME", help="landmine, synthetic, or auto: the former where it is here.")
@click.option("--agents", type=int, metavar="N", help="How many agents.")
@click.option("--rounds", type=int, metavar="T", help="How many rounds.")
@click.option("--runs", type=int, metavar="N", help="Federations to average over.")
@click.option("--q", "sampling", type=float, metavar="Q", help="Probability that an agent is sampled.")
@click.option("--z", "multiplier", type=float, metavar="Z", help="Noise multiplier.")
@click.option("--epsilon", type=float, metavar="E", help="Solve for the z that has this loss.")
@click.option("--delta", type=float, metavar="D", help="δ of the loss; default N^-1.1.")
@click.option("--regions", type=int, metavar="P", help="Sub-regions of the domain.")
@click.option("--features", "count", type=int, metavar="M", help="Shared features: numbers in a message.")
@click.option("--clip", type=float, metavar="S", help="Clip; default 1.1 √(MP).")
@click.option("--plan", "only", is_flag=True, help="Only say what it would cost; run nothing.")
@click.option("--flower", type=PATH, metavar="APP", help="Run this Flower app instead: a real federation.")
@click.option("--seed", type=click.IntRange(0), metavar="N", help="Of the whole simulation.")
@out
@picture
@quiet
def _do(
    *,
    data: str = "auto",
    runs: int | None = None,
    epsilon: float | None = None,
    only: bool = False,
    flower: Path | None = None,
    seed: int = 0,
    out: str | os.PathLike[str] = "surefoot-federate",
    picture: bool = True,
    quiet: bool = False,
    **constants: Any,
) -> None:
    """FederationPlan, simulate or start a federation, as the options have it."""
    if flower is not None:
        raise click.exceptions.Exit(start_flower(flower))
    constants = {name: value for name, value in constants.items() if value is not None}
    if epsilon is not None and "multiplier" in constants:
        raise ValueError("give --z or --epsilon, not both: one follows from the other")
    if only:
        plan(epsilon=epsilon, quiet=quiet, **constants)
    else:
        federate(data=data, runs=runs, epsilon=epsilon, seed=seed, out=out, picture=picture, quiet=quiet, **constants)


command = offer(
    _do,
    """See what a federation of optimizers gains, and what it costs in privacy.

    Simulates agents that keep to themselves (TS), that share draws of their beliefs through a coordinator (FTS-DE),
    that do so in private (DP-FTS-DE), and a broadcast of noise alone, on 29 landmine fields (about a minute) or on
    synthetic functions. Prints a table and the privacy loss, and writes both with a picture. With --plan it computes
    the loss by three accountants and the signal over noise from public numbers, and runs nothing.

    \b
    Examples:
      surefoot federate
      surefoot federate --plan \\
        --agents 200 --rounds 40 \\
        --q 0.25 --z 1 --regions 2
      surefoot federate --plan \\
        --agents 500 --epsilon 4 \\
        --delta 1e-4
      surefoot federate \\
        --data synthetic --agents 500
      surefoot federate --flower \\
        examples/flower_federation
    """,
    name="federate",
)
