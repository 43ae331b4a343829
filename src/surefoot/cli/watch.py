"""The user's function while it is tuned: what happens in it, and what is printed about it.

>>> run = Watched(lambda params: 1 / params["x"], "reciprocal")
>>> run({"x": 2}).value
0.5
>>> try:
...     run({"x": 0})
... except ZeroDivisionError as error:
...     run.error is error
True
"""

from __future__ import annotations

import inspect
import itertools
import traceback
from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from surefoot.cli.show import curve_of, shown
from surefoot.cli.terminal import say
from surefoot.loop.events import as_outcome
from surefoot.loop.policy import Policy
from surefoot.loop.types import Outcome, Query
from surefoot.report.view import number

__all__ = ["Screen", "Watched"]

_ENDED = object()


class Watched:
    """A function of parameters, with the curve and the error of its last run.

    Parameters
    ----------
    function : callable
        Takes the dict of parameters; returns a number, or yields one per epoch.
    name : str
        What to call it.
    epochs : int, optional
        Where to cut a generator.

    >>> Watched(lambda: 1.0, "constant")
    Traceback (most recent call last):
    ...
    ValueError: constant must take one argument, the dict of parameters
    >>> def train(params):
    ...     yield from (0.5, 0.7, 0.8)
    >>> run = Watched(train, "train", epochs=2)
    >>> [outcome.value for outcome in run({})], run.curve
    ([0.5, 0.7], [0.5, 0.7])
    """

    def __init__(self, function: Callable[..., Any], name: str, epochs: int | None = None) -> None:
        if not callable(function):
            raise ValueError(f"{name} is not a function: {function!r}")
        try:
            inspect.signature(function).bind({})
        except TypeError:
            raise ValueError(f"{name} must take one argument, the dict of parameters") from None
        except ValueError:  # some built-in functions have no signature
            pass
        self.function, self.name, self.epochs = function, name, epochs
        self.reached: Callable[[int], None] = lambda epoch: None
        self.forget()

    def forget(self) -> None:
        """Be ready for the next run."""
        self.curve: list[float | None] = []
        self.error: BaseException | None = None

    def failed(self, error: BaseException) -> None:
        """Take note of an error in a worker."""
        self.error = error

    def __call__(self, params: dict[str, Any]) -> Outcome | Generator[Outcome, None, None]:
        self.forget()
        result = self._guarded(partial(self.function, dict(params)))
        if isinstance(result, Generator):
            return self._epochs(result)
        outcome: Outcome = self._guarded(partial(as_outcome, result))
        return outcome

    def _epochs(self, run: Generator[Any, Any, Any]) -> Generator[Outcome, None, None]:
        """The same generator, watched, and cut at the last epoch."""
        try:
            for epoch in itertools.count(1) if self.epochs is None else range(1, self.epochs + 1):
                value = self._guarded(partial(next, run, _ENDED))
                if value is _ENDED:
                    break
                outcome = self._guarded(partial(as_outcome, value))
                self.curve.append(outcome.value)
                self.reached(epoch)
                yield outcome
            if not self.curve:
                self._guarded(partial(_nothing, self.name))
        finally:
            run.close()

    def _guarded(self, step: Callable[[], Any]) -> Any:
        """Remember an exception on its way out; sys.exit() in a function ends its run, not the tuning."""
        try:
            return step()
        except SystemExit as error:
            self.error = RuntimeError(f"{self.name} called sys.exit({error.code!r})")
            raise self.error from error
        except Exception as error:
            self.error = error
            raise

    def why(self) -> str:
        """Return the error of the last run on one line, with the place in the function's file."""
        error = self.error
        if error is None:
            return "it gave no value"
        said = " ".join(f"{type(error).__name__}: {error}".split())
        code = getattr(inspect.unwrap(self.function), "__code__", None)
        frames = [f for f in traceback.extract_tb(error.__traceback__) if code and f.filename == code.co_filename]
        return f"{said} (line {frames[-1].lineno} of {frames[-1].filename})" if frames else said


def _nothing(name: str) -> None:
    raise ValueError(f"{name} is a generator and yielded nothing")


class Screen:
    """Prints one line per run: aligned, with a bar below them, on a terminal; plain and whole elsewhere.

    Parameters
    ----------
    run : Watched
        The function.
    console : rich.console.Console
        Where to print.
    trials : int
        How many there will be.
    done : int
        How many were made before.
    direction : {"maximize", "minimize"}
        Which way is better.
    quiet : bool
        Print nothing while trials run.

    >>> import io
    >>> from surefoot import Float, Space, optimize
    >>> run, console = Watched(lambda params: params["x"], "identity"), Console(file=io.StringIO())
    >>> with Screen(run, console, 2) as screen:
    ...     result = optimize(run, Space(x=Float(0.0, 1.0)), 2, seed=0, callback=screen.finished)
    >>> console.file.getvalue().splitlines()[1]
    'trial 1 (2/2): value 0..., best 0..., x=0...'
    """

    def __init__(
        self,
        run: Watched,
        console: Console,
        trials: int,
        done: int = 0,
        direction: str = "maximize",
        quiet: bool = False,
    ) -> None:
        self.run, self.console, self.trials, self.quiet = run, console, trials, quiet
        self.better: Any = min if direction == "minimize" else max
        self.failure = self._spent = ""
        self._headed = False
        self._bars: Progress | None = None
        if console.is_terminal and not quiet:
            columns = (BarColumn(bar_width=None), MofNCompleteColumn(), TextColumn("{task.description}"))
            self._bars = Progress(
                *columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console, expand=True, transient=True
            )
            self._task = self._bars.add_task("", total=trials, completed=done)
            run.reached = self._reached

    def __enter__(self) -> Self:
        if self._bars is not None:
            self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bars is not None:
            self._bars.stop()

    def say(self, text: str | Text = "") -> None:
        """Print a line as it is."""
        say(self.console, text)

    def _reached(self, epoch: int) -> None:
        if self._bars is not None:
            self._bars.update(self._task, description=f"epoch {epoch}{self._of()}{self._spent}")

    def _of(self) -> str:
        return "" if self.run.epochs is None else f"/{self.run.epochs}"

    def finished(self, policy: Policy, query: Query) -> None:
        """Print the run that was just told."""
        values = [o.value for o in policy.history if o.value is not None]
        value = policy.history[-1].value
        self.failure = self.run.why() if value is None else ""
        reported = policy.reports().get(query.id)
        curve = self.run.curve
        if reported is not None:
            curve = list(reported.values())
        stopped = query.id in policy.stopped
        params = " ".join(f"{name}={shown(v)}" for name, v in (query.params or {}).items())
        best = self.better(values, default=np.nan)
        count = len(policy.history)
        self.run.forget()
        if self._bars is not None:
            self._row(query.id, value, best, curve, stopped, params)
            saved = policy.epochs_saved
            self._spent = "" if saved is None else f", {policy.epochs_used} in all, [green]{saved} saved[/]"
            self._bars.update(self._task, completed=count, description=self._spent.removeprefix(", "))
        elif not self.quiet:
            outcome = f"failed, {self.failure}" if value is None else f"value {number(value)}"
            parts = [outcome, f"best {number(best)}" if values else "", self._length(curve, stopped), params]
            self.say(f"trial {query.id} ({count}/{self.trials}): {', '.join(part for part in parts if part)}")

    def _length(self, curve: Sequence[float | None], stopped: bool) -> str:
        return f"{len(curve)}{self._of()} epochs{' (stopped)' if stopped else ''}" if curve else ""

    def _row(
        self,
        id: int,
        value: float | None,
        best: float,
        curve: Sequence[float | None],
        stopped: bool,
        params: str,
    ) -> None:
        """A line of the table above the bar; what does not fit is cut."""
        if not self._headed:
            followed = f"{'epochs':>9}  {'curve':12}  " if curve else ""
            self._line(Text(f"{'trial':>5}  {'value':>9}  {'best':>9}  {followed}parameters", style="bold"))
            self._headed = True
        row = Text(f"{id:>5}  ")
        if value is None:
            row.append(f"{'failed':>9}  ", style="red")
        else:
            row.append(f"{number(value):>9}  ", style="bold green" if value == best else "")
        row.append(f"{'' if np.isnan(best) else number(best):>9}  ")
        if curve:
            row.append(f"{len(curve)}{self._of()}".rjust(9), style="yellow" if stopped else "")
            row.append(f"  {curve_of(curve, self.console):12}  ")
        row.append(params, style="dim")
        self._line(row)
        if value is None:
            self.say(Text(f"       {self.failure}", style="red"))

    def _line(self, text: Text) -> None:
        self.console.print(text, no_wrap=True, overflow="ellipsis", crop=True, highlight=False)
