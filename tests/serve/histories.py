"""What clients of one study did and saw, with the times; and whether it can have happened one after the other.

An operation takes effect at one moment between its call and its return (linearizability, Herlihy and Wing 1990). The
study is a counter of queries and what was told of each: an ask takes the next number, a tell gives a number a value
once, a look sees how many there are of both.

:func:`explained` takes the events of the study for the order, and checks that they say what clients saw and that no
operation comes before one that had returned when it was called; in O(n log n). :func:`linearizable` knows no events: it
searches for any order (after Wing and Gong 1993, with a memory of states), for short histories.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from surefoot import Client

INFINITY = float("inf")


@dataclass(frozen=True)
class Operation:
    """One call of one worker; an operation that never returned may have taken effect or not."""

    worker: int
    kind: str  # ask, tell, look
    called: float
    returned: float
    given: Any = None  # tell: (query, value)
    answer: Any = None  # ask: the number of the query; look: (asked, told)


State = tuple[int, frozenset[tuple[int, float]]]


def step(state: State, operation: Operation) -> State | None:
    """The state after an operation; None if it cannot have given this answer now."""
    asked, told = state
    if operation.kind == "ask":
        return (asked + 1, told) if operation.answer in (None, asked) else None
    if operation.kind == "tell":
        query, value = operation.given
        other = any(one == query and known != value for one, known in told)
        return None if query >= asked or other else (asked, told | {(query, value)})
    return state if operation.answer is None or operation.answer == (asked, len(told)) else None


def linearizable(history: Sequence[Operation]) -> bool:
    """Whether some order of the operations explains all answers."""
    seen: set[tuple[frozenset[int], State]] = set()
    stack: list[tuple[frozenset[int], State]] = [(frozenset(range(len(history))), (0, frozenset()))]
    while stack:
        left, state = stack.pop()
        if all(history[i].returned == INFINITY for i in left):
            return True
        first = min(history[i].returned for i in left)
        for i in left:
            if history[i].called <= first and (after := step(state, history[i])) is not None:
                place = (left - {i}, after)
                if place not in seen:
                    seen.add(place)
                    stack.append(place)
    return False


def explained(history: Sequence[Operation], events: Sequence[dict[str, Any]]) -> str | None:
    """Say why the events of the study do not explain a history; None if they do."""
    asked = {event["id"]: at for at, event in enumerate(events) if event["event"] == "asked"}
    told = {(event["id"], event["value"]): at for at, event in enumerate(events) if event["event"] == "told"}
    if len(asked) + len(told) != len(events):
        return "an event is there twice"
    if sorted(asked) != list(range(len(asked))) or list(asked) != sorted(asked):
        return "queries are not numbered in order"
    places: list[tuple[float, Operation]] = []
    used: set[float] = set()
    for operation in history:
        if operation.kind == "look":
            counts = [operation.answer == (a, t) for a, t in _counts(events)]
            if operation.answer is not None and not any(counts):
                return f"nobody can have seen {operation.answer}"
            if operation.answer is not None:
                places.append((sum(operation.answer) - 0.5, operation))
            continue
        place = asked.get(operation.answer) if operation.kind == "ask" else told.get(operation.given)
        if place is None:
            if operation.returned < INFINITY:
                return f"{operation} was lost"
            continue
        if place in used:
            return f"{operation} was given out twice"
        used.add(place)
        places.append((place, operation))
    latest = -INFINITY
    for _, operation in sorted(places, key=lambda pair: pair[0]):
        if operation.returned < latest:
            return f"{operation} took effect after one that was called later"
        latest = max(latest, operation.called)
    return None


def _counts(events: Sequence[dict[str, Any]]) -> list[tuple[int, int]]:
    found = [(0, 0)]
    for event in events:
        a, t = found[-1]
        found.append((a + (event["event"] == "asked"), t + (event["event"] == "told")))
    return found


def recorded(
    url: str, token: str, id: str, *, workers: int, pairs: int, disturb: Callable[[Callable[[float], bool]], None]
) -> list[Operation]:
    """Let workers ask, tell and look while somebody disturbs the service; return what they did and saw."""
    history: list[Operation] = []
    errors: list[BaseException] = []

    def work(worker: int) -> None:
        chance = random.Random(worker)
        try:
            with Client(url, token=token, retries=60) as client:
                study = client.study(id)

                def do(kind: str, call: Callable[[], Any], given: Any = None) -> Any:
                    called = time.monotonic()
                    answer = call()
                    history.append(Operation(worker, kind, called, time.monotonic(), given, answer))
                    return answer

                for i in range(pairs):
                    query = do("ask", lambda: study.ask().id)
                    value = worker + i / 1e6
                    do("tell", lambda: study.tell(query, value), (query, value))  # noqa: B023 - called at once
                    if chance.random() < 0.2:
                        do("look", lambda: _seen(study.info()))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(workers)]

    def reached(share: float) -> bool:
        """Wait until this share of the pairs is done; False if it never will be."""
        while len(history) < 2 * share * workers * pairs and any(thread.is_alive() for thread in threads):
            time.sleep(0.001)
        return not errors and any(thread.is_alive() for thread in threads)

    for thread in threads:
        thread.start()
    disturb(reached)
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return history


def _seen(info: dict[str, Any]) -> tuple[int, int]:
    told = info["told"] + info["failed"]
    return info["pending"] + told, told
