"""Runnable snippets, put together from what a policy declares and from what was answered.

>>> from surefoot.cli.which.catalog import find
>>> print(compose(find("surefoot.TVGPUCB"), points="candidates"))
import numpy as np
from surefoot import TVGPUCB, Candidates
<BLANKLINE>
domain = Candidates(np.random.default_rng(0).random((60, 2)))  # your rows
...
policy = TVGPUCB(domain, seed=0)
for time in range(8):
    query = policy.ask(time=time)
    policy.tell(query, score(query.x, time))
print(policy.recommend())
<BLANKLINE>
"""

from __future__ import annotations

import textwrap
from itertools import pairwise

from surefoot.cli.which.abilities import Abilities
from surefoot.cli.which.entry import Entry

__all__ = ["compose"]

_BATCH = 4

_DOMAINS = {
    "box": "domain = Box([(0.0, 1.0)] * {d})  # your limits",
    "candidates": "domain = Candidates(np.random.default_rng(0).random((60, 2)))  # your rows",
    "space": """\
domain = Space(
    rate=Float(1e-4, 1.0, log=True),
    layers=Int(1, 8),
    kind=Choice(["relu", "tanh"]),
)""",
    "moves": """\
side = np.arange(12.0)
cells = np.array([(north, east) for north in side for east in side])
domain = Paths(cells, Dives((12, 12), 3), start=78, budget=12)  # 3 cells a move""",
}
_IMPORTS = {
    "box": ["Box"],
    "candidates": ["Candidates"],
    "space": ["Choice", "Float", "Int", "Space"],
    "moves": ["Dives", "GP", "Paths", "SE"],
}
_VALUES = {
    "box": "-float(((x - {best}) ** 2).sum())",
    "candidates": "-float(((x - {best}) ** 2).sum())",
    "space": """\
(
        -((x["rate"] - {best}) ** 2)
        - 0.05 * abs(x["layers"] - 3)
        - 0.1 * (x["kind"] == "relu")
    )""",
    "moves": "np.exp(-((x - [3.0, 8.0]) ** 2).sum(axis=1) / 18.0)",
}


def compose(
    entry: Entry,
    *,
    points: str = "box",
    parallel: str = "one",
    goal: str = "best",
    special: frozenset[str] = frozenset(),
) -> str:
    """Return a program that uses an entry of the catalog, as the answers have it.

    Parameters
    ----------
    entry
        What to use.
    points, parallel, goal, special
        The answers.

    >>> from surefoot.cli.which.catalog import find
    >>> "Ball(0.1)" in compose(find("surefoot.StableOpt"))
    True
    """
    can = entry.abilities
    if entry.snippet or can is None:
        return entry.snippet
    where = "moves" if "moves" in special or "moves" in can.needs else points
    names = {entry.name, *_IMPORTS[where]}
    before, arguments = _arguments(entry, can, where, goal, special, names)
    blocks = [_DOMAINS[where].format(d=entry.coordinates), _objective(can, where), *before]
    blocks.append("\n".join([_call(entry.name, arguments), *_loop(can, where, parallel, special), _ANSWER]))
    body = blocks[0]
    for above, below in pairwise(blocks):  # two lines around a function, else one
        body += ("\n\n\n" if "def " in (above[:4], below[:4]) else "\n\n") + below
    return "\n".join([*(["import numpy as np"] if "np." in body else []), _imports(names), "", body, ""])


_ANSWER = "print(policy.recommend())"


def _imports(names: set[str]) -> str:
    listed = ", ".join(sorted(names, key=lambda name: (not name.isupper(), name)))
    line = f"from surefoot import {listed}"
    return line if len(line) <= 80 else f"from surefoot import (\n    {listed},\n)"


def _objective(can: Abilities, where: str) -> str:
    value = _VALUES[where]
    if "time" in can.context:
        text = f"""\
def score(x, time):  # your measurement at that time; higher is better
    best = 0.4 + 0.02 * time
    return {value.format(best="best")}"""
    elif can.steps:
        text = f"""\
def train(x):  # your run: a score after each epoch; higher is better
    final = {value.format(best="0.3")}
    for epoch in range(1, 21):
        yield final - 0.6 * 0.7**epoch"""
    else:
        text = f"def score(x):  # your measurement; higher is better\n    return {value.format(best='0.3')}"
    return text


def _arguments(
    entry: Entry, can: Abilities, where: str, goal: str, special: frozenset[str], names: set[str]
) -> tuple[list[str], list[str]]:
    """The arguments of the constructor, and what has to be made before; adds to the names that are imported."""
    before: list[str] = []
    if "policy" in can.arguments:  # a policy around another one
        names |= {"Ball", "GPUCB"}
        return before, ["GPUCB(domain, seed=0)", "Ball(0.1)"]
    arguments = ["domain"]
    if "tasks" in can.needs:
        names.add("Task")
        before.append(_tasks(can, where))
        arguments.append("tasks=tasks")
    if "perturbation" in can.needs:
        names.add("Ball")
        arguments.append("perturbation=Ball(0.1)")
    if "epochs" in can.needs:
        arguments.append("epochs=20")
    if "losses" in can.needs:
        arguments.append("tau=1")
    if goal == "region":
        arguments += [*(['goal="level"'] if "goal" in can.arguments else []), "threshold=-0.1"]
    if "costs" in special:
        before.append("def price(points):  # what a measurement costs\n    return 1.0 + points[:, 0]")
        arguments.append("cost=price")
    if "precision" in special:
        names.add("Fidelity")
        before.append("levels = [Fidelity(0.001, 3.0), Fidelity(0.1, 1.0)]  # (variance, price)")
        arguments.append("fidelities=levels")
    if where == "moves":
        arguments.append("gp=GP(SE(3.0), noise=1e-4)")
    return before, [*arguments, *entry.options, "seed=0"]


def _tasks(can: Abilities, where: str) -> str:
    points = "[domain.params(x) for x in rows]" if where == "space" else "rows"
    value = "list(train(x))[-1]" if can.steps else "score(x)"
    return f"""\
rows = domain.sample(12, np.random.default_rng(1))  # or Task.from_journal(path)
points = {points}
values = [{value} + 0.01 for x in points]
tasks = [Task(points, values, name="last year")]"""


def _call(name: str, arguments: list[str]) -> str:
    line = f"policy = {name}({', '.join(arguments)})"
    if len(line) <= 80:
        return line
    return f"policy = {name}(\n" + "".join(f"    {argument},\n" for argument in arguments) + ")"


def _loop(can: Abilities, where: str, parallel: str, special: frozenset[str]) -> list[str]:
    """The loop of asking and telling that these abilities and answers want."""
    if where == "moves":
        return [
            "policy.tell(cells[78], score(cells[78:79])[0])  # known at the start",
            "while policy.journey.stages:",
            "    move = policy.ask()",
            "    policy.tell(move, score(move.x))  # one value for each stop",
        ]
    x = "query.params" if where == "space" else "query.x"
    timed = "time" in can.context
    value = f"score({x}, time)" if timed else f"score({x})"
    note = "  # at levels[query.fidelity]" if "precision" in special else ""
    tell = [f"policy.tell(query, {value}){note}"]
    if can.steps:
        tell = [
            f"for epoch, value in enumerate(train({x}), start=1):",
            "    if policy.report(query, epoch, value).stop:",
            "        break  # it will not beat the best one",
            "policy.tell(query)  # its last score",
        ]
    clock = "time=time" if timed else ""
    rounds = "for time in range(8):" if timed else "for _ in range(8):"
    body: list[str]
    if "losses" in can.needs:
        body = [
            f"*batch, lost = policy.ask({_BATCH})  # measured at the same time",
            "policy.cancel(lost)  # or any other one",
            "for query in batch:",
            *_indented(tell),
        ]
    elif parallel == "few":
        asked = ", ".join(filter(None, [str(_BATCH), clock]))
        body = [f"for query in policy.ask({asked}):  # measured at the same time", *_indented(tell)]
    elif parallel == "dozens":
        first = "policy.ask(12, time=0)" if timed else "policy.ask(12)"
        return [
            f"running = {first}  # one for each worker",
            rounds,
            "    query = running.pop(0)  # whichever has finished",
            *_indented(tell),
            f"    running.append(policy.ask({clock}))",
        ]
    else:
        return [rounds, f"    query = policy.ask({clock})", *_indented(tell)]
    return [rounds.replace("8", "3"), *_indented(body)]


def _indented(lines: list[str]) -> list[str]:
    return textwrap.indent("\n".join(lines), "    ").splitlines()
