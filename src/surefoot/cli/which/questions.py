"""The questions of ``surefoot which``, in the order in which they are asked.

>>> [question.key for question in QUESTIONS]
['goal', 'special', 'points', 'parallel', 'matters']
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["QUESTIONS", "Question"]


@dataclass(frozen=True)
class Question:
    """One question and the answers it takes.

    Attributes
    ----------
    key : str
        Its name in ``key=value``.
    text : str
        What is asked.
    choices : mapping
        What each answer means; the first is the default. Empty: they follow from the answers before.
    several : bool
        Whether answers may be combined.

    >>> list(QUESTIONS[0].choices)
    ['best', 'region', 'subset', 'classifier']
    """

    key: str
    text: str
    choices: Mapping[str, str] = field(default_factory=dict)
    several: bool = False


QUESTIONS = (
    Question(
        "goal",
        "What are you looking for?",
        {
            "best": "the best point, or a good one at every turn",
            "region": "a map: where is a limit exceeded?",
            "subset": "a few items, sensors, rows or features that serve together",
            "classifier": "how few queries mislead a classifier that I am entitled to test",
        },
    ),
    Question(
        "special",
        "What is special about it? (several: 1,4)",
        {
            "nothing": "none of these",
            "drift": "the best point moves with time",
            "costs": "some measurements, or the way to them, cost more than others",
            "precision": "precision can be bought: a coarse measurement is cheaper",
            "epochs": "a run reports on its way and can be stopped early",
            "tasks": "similar problems were measured before, and may help",
            "perturbation": "an adversary, or tolerances: what is used is not what was chosen",
            "moves": "moves are constrained: where I am decides where I can go next",
            "losses": "some measurements of a batch may get lost",
            "private": "the data may not leave their owner",
            "owners": "several owners, each with data and an objective of its own",
            "players": "other players choose too, and answer me",
            "conditional": "some parameters exist only with others",
            "tradeoff": "several objectives to trade off, or limits on other outcomes",
        },
        several=True,
    ),
    Question(
        "points",
        "What is a point?",
        {
            "box": "a vector of real numbers",
            "candidates": "one of a list of candidates",
            "space": "named parameters: numbers, integers, choices",
        },
    ),
    Question(
        "parallel",
        "How many measurements are under way at the same time?",
        {"one": "one", "few": "a batch of a few", "dozens": "dozens, each asked for when a worker is free"},
    ),
    Question("matters", "What matters most?"),
)
