"""What a party remembers between sums, so that nobody gets two sums of which the difference is one vector.

- A round is summed once. A server that asks again, with one party less, is refused.
- A vector that was masked is not masked again in another round, unless it is zero.
- A question is answered once, also by a process that was put back to an earlier state.
- A mask key that any party showed in another round is refused: whoever was dropped then is an open book with it.

>>> diary = Diary()
>>> diary.begin("ab" * 32, 0, "cd" * 32)
>>> diary.begin("ab" * 32, 0, "ef" * 32)
Traceback (most recent call last):
...
surefoot.federated.secure.cipher.Aborted: round 0 was begun before: two sums of nearly the same parties would show one

With a path it is a file, and every line is on disk before the party goes on. It holds hashes, no vector and no key.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.federated.secure.cipher import Aborted
from surefoot.loop.journal import Journal

__all__ = ["Diary"]


class Diary:
    """The rounds, vectors and keys that a party has seen.

    Parameters
    ----------
    path : path, optional
        A file that only the party reads; without one the diary lives as long as the object.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "diary.jsonl"
    >>> with Diary(path) as diary:
    ...     diary.begin("ab" * 32, 3, "cd" * 32)
    >>> with Diary(path) as diary:
    ...     diary.rounds["ab" * 32, 3] == "cd" * 32
    True
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.rounds: dict[tuple[str, int], str] = {}
        self._seen: dict[str, str] = {}  # hash of a vector or a key -> session
        self._asked: dict[str, str] = {}  # question and session -> hash of the question
        self._journal = None if path is None else Journal(path)
        if self._journal is not None:
            for event in self._journal.open({"diary": "secure sums"}):
                self._learn(event)

    def begin(self, federation: str, round: int, session: str) -> None:
        """Enter a round, or abort if it was entered before."""
        if (federation, round) in self.rounds:
            raise Aborted(f"round {round} was begun before: two sums of nearly the same parties would show one")
        self._write({"event": "begun", "federation": federation, "round": round, "session": session})

    def keys(self, session: str, keys: Iterable[str]) -> None:
        """Enter the mask keys of a session, or abort if one of them belongs to another."""
        self._enter(session, [hashlib.sha256(f"key {key}".encode()).hexdigest() for key in keys], "a mask key")

    def vector(self, session: str, steps: NDArray[np.int64]) -> None:
        """Enter a vector that is about to be masked, or abort if it was masked in another session."""
        mark = hashlib.sha256(b"vector " + steps.astype("<i8").tobytes()).hexdigest()
        self.once(session, "vector", mark)
        if steps.any():
            self._enter(session, [mark], "this party's vector")

    def once(self, session: str, question: str, mark: str) -> None:
        """Enter what a question of a session was, or abort if it was another one before."""
        name = f"{question} {session}"
        if (known := self._asked.get(name)) is None:
            self._write({"event": "asked", "name": name, "mark": mark})
        elif known != mark:
            raise Aborted(f"asked to {question} a second time for something else")

    def _enter(self, session: str, marks: list[str], what: str) -> None:
        for mark in marks:
            if self._seen.get(mark, session) != session:
                raise Aborted(f"{what} was used in an earlier session")
        if new := [mark for mark in marks if mark not in self._seen]:
            self._write({"event": "seen", "session": session, "marks": new})

    def _write(self, event: dict[str, Any]) -> None:
        if self._journal is not None:
            self._journal.append(event)
        self._learn(event)

    def _learn(self, event: dict[str, Any]) -> None:
        if event["event"] == "begun":
            self.rounds[event["federation"], event["round"]] = event["session"]
        elif event["event"] == "asked":
            self._asked[event["name"]] = event["mark"]
        else:
            self._seen |= dict.fromkeys(event["marks"], event["session"])

    def close(self) -> None:
        """Release the file, if there is one."""
        if self._journal is not None:
            self._journal.close()

    def __enter__(self) -> Diary:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
