"""Runnable programs, put together from what a policy declares and from what was answered."""

from __future__ import annotations

import re
import textwrap
from itertools import pairwise

from surefoot.cli.which.table import TABLE, Entry

__all__: list[str] = []


def compose(
    entry: Entry,
    *,
    points: str = "box",
    parallel: str = "one",
    goal: str = "best",
    special: frozenset[str] = frozenset(),
) -> str:
    """Return a program that uses an entry, as the answers have it."""
    can = entry.abilities
    if entry.snippet or can is None:
        return entry.snippet
    where = "moves" if "moves" in special | can.needs else points
    place, timed, steps = TABLE["places"][where], "time" in can.declared["context"], can.declared["steps"]
    names, arguments = {entry.name, *place["imports"]}, ["domain"]
    objective = "timed" if timed else "steps" if steps else "plain"
    blocks = [
        place["domain"].format(d=entry.coordinates),
        TABLE["objectives"][objective].format(value=place["value"].format(best="best" if timed else "0.3")),
    ]
    if "policy" in can.arguments:  # a policy around another one
        names |= {"Ball", "GPUCB"}
        arguments = ["GPUCB(domain, seed=0)", "Ball(0.1)"]
    else:
        wanted = can.needs & {"tasks", "perturbation", "epochs", "losses"} | special & {"costs", "precision"}
        wanted |= ({"region"} | can.arguments & {"goal"} if goal == "region" else set()) | {where} & {"moves"}
        for word in (word for word in TABLE["parts"] if word in wanted):
            part = TABLE["parts"][word]
            names |= set(part.get("imports", ()))
            arguments.append(part["argument"])
            if "before" in part:
                rows = "[domain.params(x) for x in rows]" if where == "space" else "rows"
                result = "list(train(x))[-1]" if steps else "score(x)"
                blocks.append(part["before"].format(rows=rows, result=result))
        arguments += [*entry.options, "seed=0"]
    tell = TABLE["tells"]["steps" if steps else objective].format(x="query.params" if where == "space" else "query.x")
    if "precision" in special and not steps:
        tell += "  # at levels[query.fidelity]"
    kind = "moves" if where == "moves" else "losses" if "losses" in can.needs else parallel.replace("moves", "one")
    loop = TABLE["loops"][kind]
    words = {"time": "time", "clock": "time=time", "batch": "4, time=time", "dozen": "12, time=0"}
    plain = {"time": "_", "clock": "", "batch": "4", "dozen": "12"}
    loop = re.sub(r" *\{tell\}", lambda found: textwrap.indent(tell, found[0][: -len("{tell}")]), loop)
    for key, word in (words if timed else plain).items():
        loop = loop.replace(f"{{{key}}}", word)
    blocks.append(f"{_call(entry.name, arguments)}\n{loop}\nprint(policy.recommend())")
    body = blocks[0]
    for above, below in pairwise(blocks):  # two lines around a function, else one
        body += ("\n\n\n" if "def " in (above[:4], below[:4]) else "\n\n") + below
    listed = ", ".join(sorted(names, key=lambda name: (not name.isupper(), name)))
    line = f"from surefoot import {listed}"
    line = line if len(line) <= 80 else f"from surefoot import (\n    {listed},\n)"
    return "\n".join([*(["import numpy as np"] if "np." in body else []), line, "", body, ""])


def _call(name: str, arguments: list[str]) -> str:
    line = f"policy = {name}({', '.join(arguments)})"
    return line if len(line) <= 80 else "\n".join([f"policy = {name}(", *(f"    {each}," for each in arguments), ")"])
