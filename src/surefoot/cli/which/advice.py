"""From answers to a class: which entries fit, which question is open, and what to say when nothing fits.

>>> advise({"special": "tasks,epochs", "points": "space"}).use
'surefoot.RMBOBOS'
>>> advise({"special": "drift,epochs"})
Traceback (most recent call last):
...
ValueError: no class answers drift and epochs together: drift is for TVGPUCB and RGPUCB; epochs is for BOBOS, ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any

from surefoot.cli.which.programs import compose
from surefoot.cli.which.table import ENTRIES, QUESTIONS, TABLE, Entry, Question

__all__ = ["Suggestion", "advise"]

_DOMAINS = {"box": "Box", "candidates": "Candidates", "space": "Space"}
_BY_KEY = {question.key: question for question in QUESTIONS}


@dataclass(frozen=True)
class Suggestion:
    """What to use, and all that is worth saying about it.

    ``alternatives`` are ``use`` and ``when`` of others, ``abilities`` what the class declares, if it is a policy, and
    ``answers`` those that led here, defaults included.

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
        """Return everything as JSON."""
        return asdict(self)


def read_answers(words: Iterable[str]) -> dict[str, str]:
    """Return ``key=value`` words as answers."""
    found: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise ValueError(f"an answer is key=value, got {word!r}")
        _check_key(key)
        if key in found:
            raise ValueError(f"{key} is answered twice: {found[key]!r} and {value!r}")
        found[key] = value
    return found


def _check_key(key: str) -> None:
    if key not in _BY_KEY:
        raise ValueError(f"there is no question {key!r}; there are {_listed(_BY_KEY)}")


def candidates(answers: Mapping[str, str]) -> list[Entry]:
    """Return the entries that fit the answers given so far, the one to be preferred first."""
    parallel = "moves" if "moves" in _special(answers) else answers.get("parallel", "")
    fitting = [entry for entry in ENTRIES if _fits(entry, answers, parallel)]
    return sorted(fitting, key=lambda entry: parallel not in entry.first)  # a stable sort: else the order of the table


def _fits(entry: Entry, answers: Mapping[str, str], parallel: str) -> bool:
    goal, special = answers.get("goal", "best"), _special(answers)
    if "matters" in answers and answers["matters"].lower() not in (entry.word, entry.name.lower()):
        return False
    if entry.snippet:
        return entry.goal == goal and (entry.special is None or entry.special == special)
    can = _abilities(entry)
    points = answers.get("points") if "moves" not in special else None
    return (
        goal in can.goals
        and can.needs <= special <= can.handles
        and (not points or _DOMAINS[points] in can.declared["domains"])
        and (parallel not in ("few", "dozens") or can.declared["parallel"])
        and (not parallel or not entry.workers or parallel in entry.workers)
    )


@cache
def _abilities(entry: Entry) -> Any:
    return entry.abilities


def _arises(question: Question, answers: Mapping[str, str]) -> bool:
    """Whether an answer to the question can be meant at all, given the answers to those before it."""
    if question.key == "goal":
        return True
    if question.key == "special":
        return answers.get("goal", "best") in ("best", "region")
    if question.key == "matters":
        return len(candidates(_without(answers, "matters"))) > 1
    # A vehicle is at one place at a time, and its places are given with its moves.
    fitting = candidates(_without(answers, "points", "parallel", "matters"))
    return "moves" not in _special(answers) and not all(entry.snippet for entry in fitting)


def _differs(question: Question, answers: Mapping[str, str]) -> bool:
    """Whether answers to the question lead to different classes, or to programs on different domains."""
    if question.key not in ("points", "parallel") or not _arises(question, answers):
        return _arises(question, answers)
    outcomes = [candidates({**answers, question.key: value}) for value in question.choices]
    return sum(map(bool, outcomes)) > 1 if question.key == "points" else any(one != outcomes[0] for one in outcomes)


def _with_choices(question: Question, answers: Mapping[str, str]) -> Question:
    if question.key != "matters":
        return question
    return replace(question, choices={entry.word: entry.when for entry in candidates(answers)})


def default(question: Question, answers: Mapping[str, str]) -> str:
    """Return the answer that Enter stands for: the first one to which something fits."""
    fitting = (value for value in question.choices if candidates({**answers, question.key: value}))
    return next(fitting, next(iter(question.choices)))


def checked(question: Question, reply: str, answers: Mapping[str, str]) -> str:
    """Return a reply, which may be a number or the beginning of a word, as an answer; or say what is wrong with it.

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
        low = next((entry.word for entry in ENTRIES if entry.name.lower() == low), low)
    close = [word for word in words if low and word.startswith(low)]
    if low in words or len(close) == 1:
        return low if low in words else close[0]
    raise ValueError(f"{question.key} is one of {_listed(words, 'or')}, not {reply!r}")


def advise(
    answers: Mapping[str, str] | None = None, *, reply: Callable[[Question, Mapping[str, str]], str] | None = None
) -> Suggestion:
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
    >>> advise({"goal": "subset", "points": "space"})
    Traceback (most recent call last):
    ...
    ValueError: the question 'points' does not arise with goal=subset
    """
    given = dict(answers or {})
    for key in given:
        _check_key(key)
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
    only = candidates(settled)[0]
    holds = value in list(question.choices)[:1] or value.lower() in (only.word, only.name.lower())
    if holds or f"{question.key}={value}" in only.holds:
        return
    if question.key == "matters":
        raise ValueError(f"matters={value} is not to be chosen: the other answers lead to {only.name} alone")
    said = ", ".join(f"{key}={word}" for key, word in settled.items() if key != "points")
    raise ValueError(f"the question {question.key!r} does not arise with {said}")


def _answer(entry: Entry, answers: Mapping[str, str]) -> Suggestion:
    special, goal, can = _special(answers), answers.get("goal", "best"), _abilities(entry)
    others = [other for other in candidates(_without(answers, "matters")) if other != entry]
    when = {other.use: other.when for other in others[:3]}
    for text in entry.instead:
        use, _, case = text.partition(": ")
        when.setdefault(use, case)
    usual = (word for word, name in _DOMAINS.items() if can and name in can.declared["domains"])
    points = answers.get("points") or next(usual, "box")
    parallel = answers.get("parallel") or ("few" if "one" not in entry.workers and entry.workers else "one")
    needs = [*entry.needs, *(text for word, text in TABLE["needs"].items() if word in special and not entry.snippet)]
    if goal == "region":
        needs.append("threshold=, or fraction= of an unknown maximum")
    package = f"'surefoot[{entry.extra}]'" if entry.extra else "surefoot"
    return Suggestion(
        use=entry.use,
        why=entry.why,
        needs=tuple(needs) or ("a domain, and one number for each measurement; higher is better",),
        install=f"pip install {package if entry.use.startswith('surefoot') else entry.extra}",
        snippet=compose(entry, points=points, parallel=parallel, goal=goal, special=special),
        page=entry.page,
        alternatives=tuple({"use": use, "when": case} for use, case in when.items()),
        abilities=can.declared if can else None,
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
    homes = {word: _homes(word, goal) for word in special}
    whose = "; ".join(f"{word} is for {_listed(entry.name for entry in found)}" for word, found in homes.items())
    if goal == "region":
        near = [entry for found in homes.values() for entry in found]
        able = [entry for entry in near if goal in ({entry.goal} if entry.snippet else _abilities(entry).goals)]
        hint = f"; {_listed(dict.fromkeys(entry.name for entry in able))} can map a region" if able else ""
        return f"no class maps a region with {_listed(special)}: {whose}{hint}"
    return f"no class answers {_listed(special)} together: {whose}. Leave out what matters less"


def _limits(key: str, left: list[Entry]) -> str:
    names = _listed(entry.name for entry in left)
    if key == "points":
        domains = [name for entry in left if not entry.snippet for name in _abilities(entry).declared["domains"]]
        return f"{names} can do {_listed(dict.fromkeys(domains))}"
    if key == "parallel":
        fit = [entry for entry in left if entry.workers]
        return f"{names} is for {_listed(fit[0].workers, 'or')}" if fit else f"{names} chooses one point at a time"
    return f"choose among {_listed((entry.word for entry in left), 'or')}"


def _homes(word: str, goal: str) -> list[Entry]:
    """The entries that can do with one special thing; what is for regions alone is named where one is looked for."""
    return [
        entry
        for entry in ENTRIES
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
