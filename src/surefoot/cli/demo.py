"""``surefoot demo``: tune a neural network on handwritten digits, and write a page about it.

The model is scikit-learn's ``MLPClassifier`` on its digits data (1,797 images of 8 × 8 pixels), trained epoch by epoch.
After each epoch a run yields the mean accuracy of 3-fold cross-validation on 70 % of the images; the other 30 % are
never seen by the search and judge the winner at the end, beside scikit-learn's default parameters trained for as long.

The policy is :class:`~surefoot.policy.epochs.rm_bo_bos.RMBOBOS`. It abandons networks that will not beat the best
one, and it learns from the earlier studies in the folder ``earlier``. Where there are none yet, three small ones are
made: digits seen at half the resolution, odd or even digits, and, with nothing in common but the parameters, wines. Put
another journal of the same parameters there, and it is used as well.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from surefoot.cli.options import PATH, offer
from surefoot.cli.show import table_of
from surefoot.cli.storage import earlier_studies, trust
from surefoot.cli.watch import Screen, Watched
from surefoot.domain import Choice, Float, Int, Space
from surefoot.errors import MissingExtra
from surefoot.loop.journal import Journal
from surefoot.optimizer import Result, optimize
from surefoot.policy.epochs.bo_bos import BOBOS
from surefoot.policy.epochs.rm_bo_bos import RMBOBOS
from surefoot.policy.transfer.tasks import Task
from surefoot.report import page, runs

__all__ = ["DEFAULTS", "EARLIER", "EPOCHS", "SPACE", "Network", "demo"]

Array = NDArray[np.float64]
Curve = Iterator[float | None]

EPOCHS = 20
"""How long a network is trained that is not abandoned."""

SPACE = Space(
    learning_rate=Float(1e-4, 0.1, log=True),
    weight_decay=Float(1e-6, 1.0, log=True),
    hidden=Int(16, 256, log=True),
    batch=Int(16, 256, log=True),
    activation=Choice(["relu", "tanh", "logistic"]),
)
"""What is tuned."""

DEFAULTS = {"learning_rate": 1e-3, "weight_decay": 1e-4, "hidden": 100, "batch": 200, "activation": "relu"}
"""What ``MLPClassifier()`` uses."""

EARLIER = 15
"""How many networks each earlier study tries."""


@click.option("--trials", type=int, metavar="N", help="How many networks to try.")
@click.option("--seed", type=int, metavar="N", help="Seed of all random draws.")
@click.option("--out", type=PATH, metavar="FOLDER", help="Folder of the page, the journal and earlier studies.")
def demo(
    *,
    trials: int = 40,
    seed: int = 0,
    out: str | os.PathLike[str] = "surefoot-demo",
    console: Console | None = None,
) -> Path:
    """Tune the network, print how it goes, and return the path of the page; its arguments are the options.

    A run that was interrupted goes on; one that was finished begins again.

    >>> import io, tempfile
    >>> from surefoot import RandomSearch
    >>> folder = Path(tempfile.mkdtemp())
    >>> with RandomSearch(SPACE, seed=0, journal=folder / "earlier" / "mine.jsonl") as policy:
    ...     policy.tell(DEFAULTS, 0.9)
    >>> demo(trials=1, out=folder, console=Console(file=io.StringIO())).name
    'index.html'
    """
    if trials < 1:
        raise ValueError(f"trials must be at least 1, got {trials!r}")
    screen, data = console or Console(), _data()
    from threadpoolctl import threadpool_limits  # scikit-learn brings it

    folder = Path(out)
    with threadpool_limits(1):  # matrices this small are multiplied faster by one thread than by several
        tasks = _remember(data, folder / "earlier", screen)
        target = Network(*data["digits"], unseen=0.3)
        result = _tune(target, tasks, trials, seed, folder / "journal.jsonl", screen)
        return _conclude(target, result, folder, screen)


# -- the model -------------------------------------------------------------------------------------------------------


class Network:
    """A classifier with one hidden layer on one data set, trained epoch by epoch.

    Parameters
    ----------
    X, labels : array of shape (n, p) and (n,)
        The examples.
    unseen : float
        Which part of them is kept for :meth:`judge`.

    >>> X = np.random.default_rng(0).random((90, 4))
    >>> network = Network(X, (X[:, 0] > 0.5).astype(int), unseen=0.3)
    >>> curve = list(network(DEFAULTS))
    >>> len(curve), 0.0 <= network.judge(DEFAULTS) <= 1.0
    (20, True)
    """

    def __init__(self, X: Array, labels: NDArray[Any], *, unseen: float = 0.0) -> None:
        from sklearn.model_selection import StratifiedKFold, train_test_split

        self.seen, self.unseen = (X, labels), (X[:0], labels[:0])
        if unseen:
            X, rest, labels, truth = train_test_split(X, labels, test_size=unseen, random_state=0, stratify=labels)
            self.seen, self.unseen = (X, labels), (rest, truth)
        split = StratifiedKFold(3, shuffle=True, random_state=0).split(*self.seen)
        self.folds = [(_scaled(X[a], X[b]), labels[a], labels[b]) for a, b in split]

    def __call__(self, params: Mapping[str, Any]) -> Curve:
        """Yield the mean accuracy on the folds left out after each epoch; None where the training diverged."""
        yield from _training(params, self.folds)

    def last(self, params: Mapping[str, Any]) -> float:
        """Return the accuracy in cross-validation after the last epoch."""
        return _end(self(params))

    def judge(self, params: Mapping[str, Any]) -> float:
        """Train on all examples that may be seen and return the accuracy on the others."""
        (X, labels), (rest, truth) = self.seen, self.unseen
        return _end(_training(params, [(_scaled(X, rest), labels, truth)]))


Fold = tuple[tuple[Array, Array], NDArray[Any], NDArray[Any]]


def _training(params: Mapping[str, Any], folds: list[Fold]) -> Curve:
    """Train one network per fold side by side, and yield their mean accuracy after each epoch."""
    from sklearn.neural_network import MLPClassifier

    networks = [
        MLPClassifier(
            hidden_layer_sizes=(params["hidden"],),
            activation=params["activation"],
            alpha=params["weight_decay"],
            batch_size=min(params["batch"], len(labels)),
            learning_rate_init=params["learning_rate"],
            random_state=0,
        )
        for _, labels, _ in folds
    ]
    for _ in range(EPOCHS):
        scores = []
        for network, ((train, test), labels, truth) in zip(networks, folds, strict=True):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # large learning rates overflow on their way to an error
                    network.partial_fit(train, labels, classes=np.unique(labels))
            except ValueError as error:
                if "non-finite" not in str(error):
                    raise
                yield None
                return
            scores.append(network.score(test, truth))
        yield float(np.mean(scores))


def _end(curve: Curve) -> float:
    *_, last = curve
    return float("nan") if last is None else last


def _scaled(train: Array, test: Array) -> tuple[Array, Array]:
    """Both to the unit cube, by what is known from the first."""
    low, high = train.min(axis=0), train.max(axis=0)
    width = np.where(high > low, high - low, 1.0)
    return (train - low) / width, (test - low) / width


def _data() -> dict[str, tuple[Array, NDArray[Any]]]:
    """The data sets by name: the one to be tuned for, and those of the earlier studies."""
    try:
        import matplotlib  # noqa: F401 - the page needs it; say so before the work, not after
        import sklearn.neural_network  # noqa: F401
        from sklearn.datasets import load_digits, load_wine
    except ImportError as error:
        raise MissingExtra(f"the demo needs {error.name}: pip install 'surefoot[demo]'") from None
    images, digits = load_digits(return_X_y=True)
    coarse = images.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(-1, 16)
    return {
        "digits": (images, digits),
        "coarse digits": (coarse[::2], digits[::2]),
        "odd or even": (images[1::2], digits[1::2] % 2),
        "wines": load_wine(return_X_y=True),
    }


# -- the studies -----------------------------------------------------------------------------------------------------


def _remember(data: Mapping[str, tuple[Array, NDArray[Any]]], storage: Path, screen: Console) -> list[Task]:
    """The earlier studies in the folder; where there is none, or one is not finished, they are made."""
    names = [name for name in data if name != "digits"]
    files = {name: storage / f"{name.replace(' ', '-')}.jsonl" for name in names}
    if not list(storage.glob("*.jsonl")) or any(0 < _told(file) < EARLIER for file in files.values()):
        screen.print(f"First, earlier studies to learn from: {EARLIER} networks each.", highlight=False)
        for name, file in files.items():
            made = optimize(Network(*data[name]), SPACE, EARLIER, policy=BOBOS, seed=0, journal=file, epochs=EPOCHS)
            best = max(o.value for o in made.policy.history if o.value is not None)
            screen.print(f"{name}: best accuracy {best:.4f}, {made.epochs} epochs", highlight=False)
    found = earlier_studies([storage], SPACE)
    for reason in found.skipped:
        screen.print(f"not learning from {reason}", highlight=False, soft_wrap=True)
    if not found.tasks:
        raise ValueError(f"no journal in {storage} serves as an earlier study; empty the folder to have them made")
    return found.tasks


def _told(journal: Path) -> int:
    return sum(event["event"] == "told" for event in Journal(journal).read()[1])


def _tune(target: Network, tasks: list[Task], trials: int, seed: int, journal: Path, screen: Console) -> Result:
    """Run the policy; go on with a journal that was begun in the same way and is not finished."""
    fresh = RMBOBOS(SPACE, epochs=EPOCHS, tasks=tasks, seed=seed)
    header, _ = Journal(journal).read()
    done = _told(journal)
    begun = header is not None and ({"direction": "maximize", **header["config"]}, header["seed"]) == (
        fresh.config(),
        fresh.seed,
    )
    if not begun or done >= trials:
        journal.unlink(missing_ok=True)
        done = 0
    words = f"Tuning a neural network on handwritten digits: {trials} networks of up to {EPOCHS} epochs"
    words += f", {done} done before" if done else ""
    screen.print(f"{words}; what is known from {', '.join(str(task.name) for task in tasks)}.", highlight=False)
    run = Watched(target, "digits", EPOCHS)
    with Screen(run, screen, trials, done) as shown:
        return optimize(
            run,
            SPACE,
            trials,
            policy=RMBOBOS,
            seed=seed,
            journal=journal,
            callback=shown.finished,
            epochs=EPOCHS,
            tasks=tasks,
        )


# -- what came of it -------------------------------------------------------------------------------------------------


def _conclude(target: Network, result: Result, folder: Path, screen: Console) -> Path:
    """Print the outcome beside the defaults, and write the page."""
    rows = sorted((row for row in runs(result.policy) if row.value is not None), key=lambda row: -(row.value or 0.0))
    screen.print("", table_of(rows[:5], screen, title="Best trials", label="accuracy"), "", sep="\n")
    tuned = result.params or {}
    scores = {name: (ask(DEFAULTS), ask(tuned)) for name, ask in _measures(target).items()}
    screen.print(_comparison(scores))
    used, saved = result.epochs or 0, result.saved or 0
    share = f"{saved / (used + saved):.0%}"
    screen.print(f"\n{used} epochs of training, {saved} saved ({share}).", highlight=False)
    screen.print(f"Weights of earlier studies: {trust(result.policy)}.", highlight=False)
    unseen = scores["unseen images"]
    page_file = page(
        result.policy,
        folder / "index.html",
        title="Tuning a neural network on handwritten digits",
        label="accuracy",
        summary=_summary(result, unseen, used, saved),
        facts={
            "accuracy on unseen images": f"{unseen[1]:.4f}",
            "with default parameters": f"{unseen[0]:.4f}",
            "epochs": used,
            "epochs saved": f"{saved} ({share})",
        },
    )
    screen.print(f"\nThe page with pictures: {page_file}", highlight=False, soft_wrap=True)
    return page_file


def _measures(target: Network) -> dict[str, Callable[[Mapping[str, Any]], float]]:
    return {"cross-validation": target.last, "unseen images": target.judge}


def _comparison(scores: Mapping[str, tuple[float, float]]) -> Table:
    table = Table("accuracy", "default", "tuned", title="Beside scikit-learn's defaults", title_justify="left")
    for name, (default, tuned) in scores.items():
        table.add_row(name, f"{default:.4f}", f"[bold]{tuned:.4f}[/]")
    return table


def _summary(result: Result, unseen: tuple[float, float], used: int, saved: int) -> str:
    wrong_before, wrong_after = (100.0 * (1.0 - score) for score in unseen)
    policy = result.policy
    tasks, stopped = policy.tasks, len(policy.stopped)
    return (
        f"A network with one hidden layer learns scikit-learn's digits in up to {EPOCHS} epochs, after each of which "
        "it is measured by 3-fold cross-validation on 70 % of the images. RMBOBOS chose "
        f"{len(policy.history)} settings of five parameters, at first by what {len(tasks)} earlier studies had found, "
        f"and abandoned {stopped} of the networks early: {used} epochs of training instead of {used + saved}.\n\n"
        f"On the other 30 %, which the search never saw, {wrong_after:.1f} % are misread with the recommended "
        f"parameters and {wrong_before:.1f} % with scikit-learn's defaults, trained for as long."
    )


command = offer(
    demo,
    """Tune a neural network on handwritten digits, epoch by epoch, and write a page with pictures (about a minute).

    Networks that will not beat the best one are abandoned half-way, and what earlier studies in the folder have found
    is used. The first time these are made too. An interrupted demo goes on when it is started again.

    \b
    Example:
      surefoot demo --trials 20
    """,
)
