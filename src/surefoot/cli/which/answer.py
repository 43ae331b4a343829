"""From answers to a class: which entries fit, which question is open, and what to say when nothing fits.

>>> advise({"special": "tasks,epochs", "points": "space"}).use
'surefoot.RMBOBOS'
>>> advise({"special": "drift,epochs"})
Traceback (most recent call last):
...
ValueError: no class answers drift and epochs together: drift is for TVGPUCB and RGPUCB; epochs is for BOBOS, ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from surefoot.cli.which.catalog import entries
from surefoot.cli.which.entry import Entry
from surefoot.cli.which.questions import QUESTIONS, Question
from surefoot.cli.which.snippets import compose

__all__ = ["Answer", "advise", "candidates", "checked", "default", "read_answers"]

_DOMAINS = {"box": "Box", "candidates": "Candidates", "space": "Space"}
_BY_KEY = {question.key: question for question in QUESTIONS}
_NEEDS = {
    "tasks": "earlier tasks: Task(points, values), or Task.from_journal(path)",
    "perturbation": "what may happen to the choice: Ball, WeightedBox, UnknownParameters (also several objectives) or"
    " Groups",
    "epochs": "a score after each epoch, in policy.report(query, epoch, score)",
    "drift": "the time of each ask: ask(time=t)",
    "losses": "tau, how many points of a batch may be lost; cancel(query) says which were",
    "costs": "cost: an array over the candidates, a function of points, or of the place before and points",
    "precision": "fidelities: the variance and the price of each; query.fidelity says which one to buy",
    "moves": "Paths: the places, the moves between them, a start and a budget",
}


@dataclass(frozen=True)
class Answer:
    """What to use, and all that is worth saying about it.

    Attributes
    ----------
    use : str
        The full name of a class or a function.
    why : str
        One or two sentences.
    needs : tuple of str
        What it has to be given.
    install : str
        The line that installs it.
    snippet : str
        A program that runs.
    page : str
        Its page in the documentation.
    alternatives : tuple of dict
        ``use`` and ``when`` of others.
    abilities : dict or None
        What the class declares, if it is a policy.
    answers : dict
        The answers that led here, defaults included.

    >>> advise({"goal": "subset"}).install
    'pip install surefoot'
    """

    use: str
    why: str
    needs: tuple[str, ...]
    install: str
    snippet: str
    page: str
    alternatives: tuple[dict[str, str], ...]
    abilities: dict[str, Any] | None
    answers: dict[str, str]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON.

        >>> advise({"goal": "subset"}).to_dict()["page"]
        'docs/selection.md'
        """
        return asdict(self)


def read_answers(words: Iterable[str]) -> dict[str, str]:
    """Return ``key=value`` words as answers.

    >>> read_answers(["goal=region", "special=costs,precision"])
    {'goal': 'region', 'special': 'costs,precision'}
    >>> read_answers(["drift"])
    Traceback (most recent call last):
    ...
    ValueError: an answer is key=value, got 'drift'
    """
    found: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise ValueError(f"an answer is key=value, got {word!r}")
        if key not in _BY_KEY:
            raise ValueError(f"there is no question {key!r}; there are {_listed(_BY_KEY)}")
        if key in found:
            raise ValueError(f"{key} is answered twice: {found[key]!r} and {value!r}")
        found[key] = value
    return found


def candidates(answers: Mapping[str, str]) -> list[Entry]:
    """Return the entries that fit the answers given so far, the one to be preferred first.

    >>> [entry.name for entry in candidates({"goal": "best", "special": "drift"})]
    ['TVGPUCB', 'RGPUCB']
    """
    parallel = "moves" if "moves" in _special(answers) else answers.get("parallel", "")
    fitting = [entry for entry in entries() if _fits(entry, answers, parallel)]
    return sorted(
        fitting, key=lambda entry: parallel not in entry.first
    )  # a stable sort: else the order of the catalog


def _fits(entry: Entry, answers: Mapping[str, str], parallel: str) -> bool:
    goal, special = answers.get("goal", "best"), _special(answers)
    matters = answers.get("matters")
    if matters is not None and matters.lower() not in (entry.word, entry.name.lower()):
        return False
    if entry.snippet:
        return entry.goal == goal and (entry.special is None or entry.special == special)
    can = _abilities(entry)
    if goal not in can.goals or not special <= can.handles or not can.needs <= special:
        return False
    points = answers.get("points") if "moves" not in special else None
    if points and _DOMAINS[points] not in {domain.__name__ for domain in can.domains}:
        return False
    if parallel in ("few", "dozens") and not can.parallel:
        return False
    return not parallel or not entry.workers or parallel in entry.workers


@cache
def _abilities(entry: Entry) -> Any:
    return entry.abilities


def _arises(question: Question, answers: Mapping[str, str]) -> bool:
    """Whether an answer to the question can be meant at all, given the answers to those before it."""
    if question.key == "goal":
        return True
    if question.key == "special":
        return answers.get("goal", "best") in ("best", "region")
    composed = [entry for entry in candidates(_without(answers, "points", "parallel", "matters")) if not entry.snippet]
    if question.key == "matters":
        return len(candidates(_without(answers, "matters"))) > 1
    # A vehicle is at one place at a time, and its places are given with its moves.
    return bool(composed) and "moves" not in _special(answers)


def _differs(question: Question, answers: Mapping[str, str]) -> bool:
    """Whether answers to the question lead to different classes, or to snippets on different domains."""
    if question.key in ("goal", "special", "matters") or not _arises(question, answers):
        return _arises(question, answers)
    outcomes = [candidates({**answers, question.key: value}) for value in question.choices]
    if question.key == "points":
        return sum(map(bool, outcomes)) > 1
    return any(outcome != outcomes[0] for outcome in outcomes)


def _with_choices(question: Question, answers: Mapping[str, str]) -> Question:
    if question.key != "matters":
        return question
    return Question(question.key, question.text, {entry.word: entry.when for entry in candidates(answers)})


def default(question: Question, answers: Mapping[str, str]) -> str:
    """Return the answer that Enter stands for: the first one to which something fits.

    >>> default(QUESTIONS[3], {"goal": "best", "special": "losses"})
    'few'
    """
    for value in question.choices:
        if candidates({**answers, question.key: value}):
            return value
    return next(iter(question.choices))


def checked(question: Question, reply: str, answers: Mapping[str, str]) -> str:
    """Return a reply, which may be a number or the beginning of a word, as an answer; or say what is wrong with it.

    >>> checked(QUESTIONS[1], "2, epo", {"goal": "best"})
    Traceback (most recent call last):
    ...
    ValueError: no class answers drift and epochs together: ...
    >>> checked(QUESTIONS[2], "3", {"goal": "best"})
    'space'
    """
    question = _with_choices(question, answers)
    words = [_word(question, part.strip()) for part in (reply.split(",") if question.several else [reply])]
    if "nothing" in words and len(set(words)) > 1:
        raise ValueError(f"nothing special, and yet {_listed(word for word in words if word != 'nothing')}")
    value = ",".join(word for word in question.choices if word in words)
    trial = {**answers, question.key: value}
    if not candidates(trial):
        raise ValueError(_contradiction(trial))
    return value


def _word(question: Question, reply: str) -> str:
    words = list(question.choices)
    if reply.isdecimal() and 1 <= int(reply) <= len(words):
        return words[int(reply) - 1]
    low = reply.lower()
    if question.key == "matters":  # the name of a class will do, too
        low = next((entry.word for entry in entries() if entry.name.lower() == low), low)
    close = [word for word in words if low and word.startswith(low)]
    if low in words or len(close) == 1:
        return low if low in words else close[0]
    raise ValueError(f"{question.key} is one of {_listed(words, 'or')}, not {reply!r}")


def advise(
    answers: Mapping[str, str] | None = None, *, reply: Callable[[Question, Mapping[str, str]], str] | None = None
) -> Answer:
    """Return what to use for these answers.

    Parameters
    ----------
    answers
        What is known, by the keys of the questions.
    reply
        Answers an open question, given the answers so far; by default with its default.

    Raises
    ------
    ValueError
        An answer is unknown, does not arise, or contradicts the others.

    >>> advise().use
    'surefoot.ExpectedImprovement'
    >>> advise({"parallel": "dozens"}).use
    'surefoot.ThompsonSampling'
    >>> advise({"goal": "subset", "points": "space"})
    Traceback (most recent call last):
    ...
    ValueError: the question 'points' does not arise with goal=subset
    """
    given = dict(answers or {})
    for key in given:
        if key not in _BY_KEY:
            raise ValueError(f"there is no question {key!r}; there are {_listed(_BY_KEY)}")
    if "special" in given and "goal" not in given:
        given |= _implied(given["special"])
    settled: dict[str, str] = {}
    for question in QUESTIONS:
        if question.key in given and _arises(question, settled):
            settled[question.key] = checked(question, given[question.key], settled)
        elif question.key in given:
            _refuse(question, given[question.key], settled)
        elif _differs(question, settled):
            settled[question.key] = (reply or default)(_with_choices(question, settled), settled)
    return _answer(candidates(settled)[0], settled)


def _implied(special: str) -> dict[str, str]:
    """The goal, where what is special goes with one only; raises where it goes with none."""
    goals, errors = [], []
    for goal in ("best", "region"):
        try:
            checked(_BY_KEY["special"], special, {"goal": goal})
            goals.append(goal)
        except ValueError as error:
            errors.append(error)
    if not goals:
        raise errors[0]
    return {"goal": goals[0]} if len(goals) == 1 else {}


def _refuse(question: Question, value: str, settled: Mapping[str, str]) -> None:
    """Raise for an answer to a question that does not arise, unless it says what holds anyhow."""
    only = candidates(settled)
    if value in list(question.choices)[:1] or value.lower() in (only[0].word, only[0].name.lower()):
        return
    if f"{question.key}={value}" in only[0].holds:
        return
    if question.key == "matters":
        raise ValueError(f"matters={value} is not to be chosen: the other answers lead to {only[0].name} alone")
    said = ", ".join(f"{key}={word}" for key, word in settled.items() if key != "points")
    raise ValueError(f"the question {question.key!r} does not arise with {said}")


def _answer(entry: Entry, answers: Mapping[str, str]) -> Answer:
    special, goal = _special(answers), answers.get("goal", "best")
    others = [other for other in candidates(_without(answers, "matters")) if other != entry]
    when = {other.use: other.when for other in others[:3]}
    for text in entry.instead:
        use, _, case = text.partition(": ")
        when.setdefault(use, case)
    can = _abilities(entry)
    points = answers.get("points") or next(
        (word for word, name in _DOMAINS.items() if can and name in {d.__name__ for d in can.domains}), "box"
    )
    parallel = answers.get("parallel") or ("few" if "one" not in entry.workers and entry.workers else "one")
    needs = [*entry.needs, *(text for word, text in _NEEDS.items() if word in special and not entry.snippet)]
    if goal == "region":
        needs.append("threshold=, or fraction= of an unknown maximum")
    package = f"'surefoot[{entry.extra}]'" if entry.extra else "surefoot"
    return Answer(
        use=entry.use,
        why=entry.why,
        needs=tuple(needs) or ("a domain, and one number for each measurement; higher is better",),
        install=f"pip install {package if entry.use.startswith('surefoot') else entry.extra}",
        snippet=compose(entry, points=points, parallel=parallel, goal=goal, special=special),
        page=entry.page,
        alternatives=tuple({"use": use, "when": case} for use, case in when.items()),
        abilities=can.to_dict() if can else None,
        answers=dict(answers),
    )


# -- what to say when nothing fits -----------------------------------------------------------------------------------


def _contradiction(answers: Mapping[str, str]) -> str:
    """Say why no entry fits: the answer without which something would."""
    special, goal = sorted(_special(answers), key=list(_BY_KEY["special"].choices).index), answers.get("goal", "best")
    for key in ("matters", "parallel", "points"):
        left = candidates(_without(answers, key)) if key in answers else []
        if left:
            said = _listed(f"{name}={value}" for name, value in answers.items() if name not in ("goal", key))
            return f"{key}={answers[key]} does not go with {said}: {_limits(key, left)}"
    homes = [f"{word} is for {_listed(e.name for e in _homes(word, goal))}" for word in special]
    if goal == "region":
        near = [e for word in special for e in _homes(word, goal)]
        able = [e for e in near if goal in ({e.goal} if e.snippet else _abilities(e).goals)]
        hint = f"; {_listed(dict.fromkeys(e.name for e in able))} can map a region" if able else ""
        return f"no class maps a region with {_listed(special)}: {'; '.join(homes)}{hint}"
    return f"no class answers {_listed(special)} together: {'; '.join(homes)}. Leave out what matters less"


def _limits(key: str, left: Sequence[Entry]) -> str:
    names = _listed(entry.name for entry in left)
    if key == "points":
        domains = dict.fromkeys(d.__name__ for e in left if not e.snippet for d in _abilities(e).domains)
        return f"{names} can do {_listed(domains)}"
    if key == "parallel":
        fit = [entry for entry in left if entry.workers]
        return f"{names} is for {_listed(fit[0].workers, 'or')}" if fit else f"{names} chooses one point at a time"
    return f"choose among {_listed((entry.word for entry in left), 'or')}"


def _homes(word: str, goal: str) -> list[Entry]:
    """The entries that can do with one special thing; what is for regions alone is named where one is looked for."""
    return [
        entry
        for entry in entries()
        if (word in (entry.special or ()) if entry.snippet else word in _abilities(entry).handles)
        and not (entry.snippet and entry.goal == "region" != goal)
    ]


def _special(answers: Mapping[str, str]) -> frozenset[str]:
    return frozenset(answers.get("special", "").split(",")) - {"", "nothing"}


def _without(answers: Mapping[str, str], *keys: str) -> dict[str, str]:
    return {key: value for key, value in answers.items() if key not in keys}


def _listed(words: Iterable[str], last: str = "and") -> str:
    """The words with commas, and an "and" before the last."""
    several = list(words)
    return f" {last} ".join(filter(None, [", ".join(several[:-1]), *several[-1:]]))
