"""Experiments with planted answers, importable by the processes of the runner."""

from __future__ import annotations

import os
import time

from surefoot.errors import MissingExtra
from surefoot_lab import Budget, Data, Exact, Metric, Number, Order, Share, Trace, Trend, experiment, rises

V = Metric("value")

truths = [
    Order("true: low < high", V["low"] < V["high"]),
    Order("false: high < low", V["high"] < V["low"]),
    Order("noise: low < same", V["low"] < V["same"]),
    Number("another machine's number", {V["low"]: 0.3}, marks=("needs-original",)),
    Exact("wrong by proof: the steps are 3", {Metric("steps")["low"]: 3}, marks=("contradicted",)),
    Share("heads in at least 95 %", Metric("heads")["low"] >= 0.95),
    Trend("rises", rises(V["low"], V["high"], V["highest"])),
    Number("no such method", {V["nobody"]: 1.0}),
]


@experiment("planted/truths", source="here", quick=Budget(40, shift=2.0), full=Budget(80, shift=2.0), claims=truths)
def run_truths(replicate):
    """Methods whose order is known"""
    base = replicate.rng("base").normal()
    error = {name: replicate.rng(name).normal(scale=0.5) for name in ("low", "same", "high", "highest")}
    shift = {"low": 0.0, "same": 0.0, "high": replicate["shift"], "highest": 2 * replicate["shift"]}
    traces = {name: Trace(value=[0.0, base + shift[name] + error[name]]) for name in shift}
    traces["low"] = Trace(value=traces["low"]["value"], steps=4, heads=replicate.rng("coin").random() < 0.5)
    return traces


@experiment("planted/slow", source="here", quick=Budget(200, pause=0.2), full=Budget(400, pause=0.2), claims=truths[:1])
def run_slow(replicate):
    """One repetition takes a fifth of a second"""
    print("a print that must not disturb the runner")
    time.sleep(replicate["pause"])
    return {"low": Trace(value=0.0), "high": Trace(value=replicate.rng("high").normal(1.0, 0.1))}


@experiment("planted/endless", source="here", quick=Budget(4), full=Budget(4), claims=truths[:1])
def run_endless(replicate):
    """Repetition 0 is quick, the others never end"""
    time.sleep(600 if replicate.index else 0)
    return {"low": Trace(value=0.0)}


@experiment("planted/broken", source="here", quick=Budget(4), full=Budget(4), claims=[])
def run_broken(replicate):
    """Repetition 1 raises, repetition 2 kills its process, repetition 3 returns nothing"""
    if replicate.index == 1:
        raise ArithmeticError("one is not well")
    if replicate.index == 2:
        os.write(2, b"out of memory, say\n")
        os._exit(3)
    return {} if replicate.index == 3 else {"a": Trace(value=1.0)}


@experiment(
    "planted/substitute",
    source="here",
    data=Data("substitute", ("svm_grid",), "the lake"),
    quick=Budget(1),
    full=Budget(1),
)
def run_substitute(replicate):
    """Needs data"""
    return {"a": Trace(value=1.0)}


@experiment("planted/extra", source="here", quick=Budget(50), full=Budget(50), claims=[])
def run_extra(replicate):
    """Needs what nobody has"""
    raise MissingExtra("this needs nothing.at.all: pip install 'surefoot[nothing]'")


@experiment("planted/always", source="here", quick=Budget(9), full=Budget(9), claims=[])
def run_always(replicate):
    """Raises in every repetition"""
    raise ValueError("no")


@experiment("planted/lost", source="here", data="unobtainable", quick=Budget(3), full=Budget(3), claims=truths[3:4])
def run_lost(replicate):
    """Cannot be run"""
    raise NotImplementedError


@experiment("planted/overall", source="here", quick=Budget(2), full=Budget(9), limit=3, claims=[])
def run_overall(replicate):
    """Computed from the results of another experiment; three repetitions exist"""
    values = [traces["high"]["value"][-1] for traces in replicate.stored("planted/truths").values()]
    return {"all": Trace(count=len(values), largest=max(values))}
