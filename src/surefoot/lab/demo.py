"""``surefoot demo``: tune a small neural network on handwritten digits, and write a page about it.

The model is scikit-learn's ``MLPClassifier`` on its digits data (1,797 images of 8 × 8 pixels), trained for a fixed
number of epochs. A run measures the mean accuracy of 3-fold cross-validation on 70 % of the images; the other 30 % are
never seen by the search and judge the winner at the end, beside scikit-learn's default parameters trained for as long.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from surefoot.domain import Choice, Float, Int, Space
from surefoot.lab.show import table_of
from surefoot.loop.errors import MissingExtra
from surefoot.loop.policy import Policy
from surefoot.loop.types import Query
from surefoot.optimizer import Result, optimize
from surefoot.report import best_so_far, page, runs
from surefoot.report.view import number

Measure = Callable[[Mapping[str, Any]], float]

__all__ = ["DEFAULTS", "EPOCHS", "SPACE", "demo"]

EPOCHS = 15
"""How long each network is trained."""

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


def demo(
    *,
    trials: int = 40,
    seed: int = 0,
    out: str | os.PathLike[str] = "surefoot-demo",
    console: Console | None = None,
) -> Path:
    """Tune the network, print how it goes, and return the path of the page.

    Parameters
    ----------
    trials : int
        How many networks to try.
    seed : int
        Names all random draws of the policy.
    out : path
        Folder of the page and of the journal.
    console : rich.console.Console, optional
        Where to print.

    >>> import io, tempfile
    >>> demo(trials=1, out=tempfile.mkdtemp(), console=Console(file=io.StringIO())).name
    'index.html'
    """
    if trials < 1:
        raise ValueError(f"trials must be at least 1, got {trials!r}")
    screen = console or Console()
    measure, judge = _digits()
    from threadpoolctl import threadpool_limits  # scikit-learn brings it

    with threadpool_limits(1):  # matrices this small are multiplied faster by one thread than by several
        return _demo(measure, judge, trials, seed, Path(out), screen)


def _demo(measure: Measure, judge: Measure, trials: int, seed: int, folder: Path, screen: Console) -> Path:
    journal = folder / "journal.jsonl"
    folder.mkdir(parents=True, exist_ok=True)
    journal.unlink(missing_ok=True)
    screen.print(f"Tuning a neural network on handwritten digits, {trials} runs of {EPOCHS} epochs.", highlight=False)
    result = _search(measure, trials, seed, journal, screen)
    rows = sorted((r for r in runs(result.policy) if r.value is not None), key=lambda r: -(r.value or 0.0))
    screen.print(table_of(rows[:5], screen, title="Best runs", label="accuracy"), "", sep="\n")
    tuned = result.params or {}
    scores = {
        "cross-validation": (measure(DEFAULTS), measure(tuned)),
        "unseen images": (judge(DEFAULTS), judge(tuned)),
    }
    screen.print(_comparison(scores))
    target = page(
        result.policy,
        folder / "index.html",
        title="Tuning a neural network on handwritten digits",
        label="accuracy",
        summary=_summary(trials, scores["unseen images"]),
        facts={
            "accuracy on unseen images": f"{scores['unseen images'][1]:.4f}",
            "with default parameters": f"{scores['unseen images'][0]:.4f}",
        },
    )
    screen.print(f"\nThe page with pictures: {target}", highlight=False, soft_wrap=True)
    return target


def _digits() -> tuple[Measure, Measure]:
    """Return two measures of parameters: cross-validation on the training images, and accuracy on the unseen ones."""
    try:
        import matplotlib  # noqa: F401 - the page needs it; say so before the work, not after
        from sklearn.datasets import load_digits
        from sklearn.model_selection import StratifiedKFold, cross_val_score, train_test_split
        from sklearn.neural_network import MLPClassifier
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import MinMaxScaler
    except ImportError as error:
        raise MissingExtra(f"the demo needs {error.name}: pip install 'surefoot[demo]'") from None
    images, labels = load_digits(return_X_y=True)
    images, unseen, labels, truth = train_test_split(images, labels, test_size=0.3, random_state=0, stratify=labels)
    folds = StratifiedKFold(3, shuffle=True, random_state=0)

    def model(params: Mapping[str, Any]) -> Any:
        network = MLPClassifier(
            hidden_layer_sizes=(params["hidden"],),
            activation=params["activation"],
            alpha=params["weight_decay"],
            batch_size=params["batch"],
            learning_rate_init=params["learning_rate"],
            max_iter=EPOCHS,
            random_state=0,
        )
        return make_pipeline(MinMaxScaler(), network)

    def measure(params: Mapping[str, Any]) -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a fixed number of epochs is meant not to converge
            return float(cross_val_score(model(params), images, labels, cv=folds).mean())

    def judge(params: Mapping[str, Any]) -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return float(model(params).fit(images, labels).score(unseen, truth))

    return measure, judge


def _search(measure: Measure, trials: int, seed: int, journal: Path, screen: Console) -> Result:
    """Run the policy with a bar on a terminal, with a line per run elsewhere."""

    def search(callback: Callable[[Policy, Query], None]) -> Result:
        return optimize(measure, SPACE, trials, seed=seed, journal=journal, callback=callback)

    if not screen.is_terminal:

        def line(policy: Policy, query: Query) -> None:
            rows = runs(policy)
            best = number(best_so_far(rows)[-1])
            screen.print(
                f"run {len(rows):3d}/{trials}  accuracy {number(rows[-1].value or 0.0)}  best {best}", highlight=False
            )

        return search(line)
    columns = (BarColumn(bar_width=None), MofNCompleteColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=screen, expand=True) as bars:
        task = bars.add_task("", total=trials)
        return search(
            lambda policy, query: bars.update(
                task, advance=1, description=f"best [bold]{number(best_so_far(runs(policy))[-1])}[/]"
            )
        )


def _comparison(scores: Mapping[str, tuple[float, float]]) -> Table:
    table = Table("accuracy", "default", "tuned", title="Beside scikit-learn's defaults", title_justify="left")
    for name, (default, tuned) in scores.items():
        table.add_row(name, f"{default:.4f}", f"[bold]{tuned:.4f}[/]")
    return table


def _summary(trials: int, unseen: tuple[float, float]) -> str:
    wrong_before, wrong_after = (100.0 * (1.0 - score) for score in unseen)
    return (
        f"A network with one hidden layer learns scikit-learn's digits in {EPOCHS} epochs. Surefoot's default policy, "
        f"expected improvement, chose {trials} settings of five parameters; each was measured by 3-fold "
        "cross-validation on 70 % of the images.\n\n"
        f"On the other 30 %, which the search never saw, {wrong_after:.1f} % are misread with the recommended "
        f"parameters and {wrong_before:.1f} % with scikit-learn's defaults, trained for as long."
    )
