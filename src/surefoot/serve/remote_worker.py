"""A worker: runs trials of a study that lives at the service, and says meanwhile that it is alive.

Each query comes with a lease. A heartbeat renews it while the trial runs; when this machine is lost, the query goes
back by itself. A worker that is told to stop finishes the trial it has, and asks for no other.

.. code-block:: python

    with Client("https://surefoot.example", token="sf_...") as client:
        done = work(client.study(id), measure, lease=60.0, most=200)
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Generator, Iterator
from typing import Any, Protocol

from surefoot.errors import BudgetSpent, Exhausted, NotSupported, PendingQuery, SurefootError
from surefoot.loop.events import as_outcome
from surefoot.loop.types import FAILED, Outcome, Query
from surefoot.serve.failures import Conflict

__all__ = ["Done", "work"]

log = logging.getLogger("surefoot.serve")

_BEATS = 3  # in the time of a lease
_LONGEST = 5.0  # seconds until the next look at a study where nothing is to be had
_IN_A_ROW = 3  # failed trials after which a worker takes the function to be broken


class Remote(Protocol):
    """What a worker needs of a study."""

    def ask(self, n: None = None, **context: Any) -> Query:
        """Return the next query."""

    def tell(self, query: Query, value: Any) -> None:
        """Tell its outcome."""

    def report(self, query: Query, step: int, value: float | None) -> Any:
        """Report a value on the way."""

    def renew(self, *queries: Query) -> list[int]:
        """Say that it is being measured."""

    def cancel(self, query: Query) -> None:
        """Give it up."""

    def info(self) -> dict[str, Any]:
        """Return how the study stands."""


class Done:
    """What a worker did.

    >>> Done().trials
    0
    """

    def __init__(self) -> None:
        self.trials = 0
        self.failed = 0
        self.why = ""  # it ended


def work(
    study: Remote,
    objective: Callable[[Any], Any],
    *,
    lease: float = 60.0,
    name: str = "",
    trials: int | None = None,
    most: int | None = None,
    stop: threading.Event | None = None,
    told: Callable[[Query, Outcome], None] | None = None,
    **context: Any,
) -> Done:
    """Run trials of a study until it has enough, is closed, or ``stop`` is set.

    Parameters
    ----------
    study : RemoteStudy
        From :meth:`surefoot.Client.study`.
    objective : callable
        As that of :func:`surefoot.optimize`: takes a point, or the dict of parameters on a ``Space``; a generator
        yields one value per step. One that raises is a failed trial; after three in a row the error is raised.
    lease : float
        Seconds without a sign of life after which the service takes a query back.
    name : str
        Who this is, for people.
    trials : int, optional
        How many trials this worker runs at most.
    most : int, optional
        How many trials the study has, all workers together; while others are at the last ones, this one waits, for the
        case that one comes back.
    stop : threading.Event, optional
        Set it, and the worker ends after the trial it has.
    told : callable, optional
        Called with each query and its outcome.

    >>> from surefoot import Box, RandomSearch
    >>> class Here:
    ...     "A study in this process, in the place of one at a service."
    ...     def __init__(self):
    ...         self.policy = RandomSearch(Box([(0.0, 1.0)]), seed=0)
    ...         self.tell = self.policy.tell
    ...     def ask(self, **lease):
    ...         return self.policy.ask()
    ...     def renew(self, *queries):
    ...         return []
    >>> work(Here(), lambda x: x[0] ** 2, trials=3).trials
    3
    """
    stop, done, row = stop or threading.Event(), Done(), 0
    given = {"lease": lease, "worker": name or None, "most": most, **context}
    given = {key: value for key, value in given.items() if value is not None}
    while not stop.is_set() and (trials is None or done.trials < trials):
        try:
            query = study.ask(**given)
        except (BudgetSpent, Exhausted, PendingQuery) as error:
            done.why = str(error)
            if not study.info()["pending"]:
                return done
            stop.wait(min(lease / _BEATS, _LONGEST))
            continue
        except Conflict as error:
            done.why = str(error)
            if study.info()["state"] == "open":
                raise
            return done
        try:
            with _alive(study, query, lease):
                outcome, reported, broken = _measured(study, query, objective)
        except BaseException:  # told to stop at once
            with contextlib.suppress(SurefootError):
                study.cancel(query)
            raise
        _tell(study, query, outcome, reported)
        done.trials, done.failed = done.trials + 1, done.failed + outcome.failed
        if told is not None:
            told(query, outcome)
        row = 0 if broken is None else row + 1
        if broken is not None and row >= _IN_A_ROW:
            raise broken
    done.why = "told to stop" if stop.is_set() else f"{done.trials} trials are done"
    return done


def _tell(study: Remote, query: Query, outcome: Outcome, reported: bool) -> None:
    """Tell an outcome; that somebody else has told another one meanwhile is no trouble of this worker."""
    try:
        if reported and not outcome.failed:
            study.tell(query, outcome.value)
        else:
            study.tell(query, outcome)
    except Conflict as error:
        log.warning("outcome not taken", extra={"fields": {"reason": str(error)}})


@contextlib.contextmanager
def _alive(study: Remote, query: Query, lease: float) -> Iterator[None]:
    """Renew a lease meanwhile."""
    over = threading.Event()

    def beat() -> None:
        while not over.wait(lease / _BEATS):
            with contextlib.suppress(SurefootError):  # the service is away: the next beat may reach it
                study.renew(query)

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()


def _measured(study: Remote, query: Query, objective: Callable[[Any], Any]) -> tuple[Outcome, bool, Exception | None]:
    """Run the objective once: its outcome, whether steps were reported, and what it raised."""
    reported = False
    try:
        result = objective(query.x if query.params is None else dict(query.params))
        if not isinstance(result, Generator):
            return as_outcome(result, len(query.x) if query.x.ndim == 2 else None), False, None
        outcome, follows = FAILED, True
        with contextlib.closing(result):
            for step, value in enumerate(result, start=1):
                outcome = as_outcome(value)
                if follows:
                    try:
                        advice = study.report(query, step, outcome.value)
                    except (NotSupported, Conflict):  # a policy that follows no runs, or a step of an earlier attempt
                        follows = False
                        continue
                    reported = True
                    if advice.stop:
                        break
        return outcome, reported, None
    except (SurefootError, ConnectionError):
        raise
    except Exception as error:
        return FAILED, reported, error
