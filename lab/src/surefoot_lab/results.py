"""Results: what the repetitions of an experiment gave, on disk and as a table.

``results.json`` is rewritten as a whole and replaced atomically, so that a run that is killed leaves the last complete
version. Its keys: ``id``, ``source``, ``settings`` (title, data, budget, seed, planned repetitions, parameters, how it
stopped, what its independent units are and how many), ``repetitions``, ``methods`` (for each its repetitions, its
metrics in that order, and means with standard errors of the last entries), ``claims`` (``name, form, published,
estimate, interval, verdict`` and the single tests), ``failures`` (repetitions that raised), ``environment``.
"""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

import surefoot
from surefoot.loop.journal import write_atomically
from surefoot_lab.registry import Budget, Experiment, Trace

__all__ = ["Failure", "Results", "markdown"]

FILE = "results.json"
KEYS = {"id", "source", "settings", "repetitions", "methods", "claims", "failures", "environment"}


@dataclass(frozen=True)
class Failure:
    """A repetition that raised: its error and where, innermost call last.

    >>> Failure("ValueError: no", ("run.py:3 in run",)).error
    'ValueError: no'
    """

    error: str
    where: tuple[str, ...] = ()


@dataclass
class Results:
    """The repetitions of one experiment, judged on demand.

    >>> from surefoot_lab.registry import find
    >>> results = Results.fresh(find("gp-ucb/regret-bound"), "quick")
    >>> results.to_dict()["repetitions"]
    0
    >>> {claim["verdict"] for claim in results.to_dict()["claims"]}
    {'undecided'}
    """

    experiment: Experiment
    settings: dict[str, Any]
    replicates: dict[int, dict[str, Trace]] = field(default_factory=dict)
    failures: dict[int, Failure] = field(default_factory=dict)
    seconds: float = 0.0

    @classmethod
    def fresh(cls, experiment: Experiment, mode: str, root: int = 0) -> Results:
        """Return empty results for a budget."""
        budget = experiment.budget(mode)
        settings = {
            "title": experiment.heading,
            "data": experiment.data.label,
            "unit": experiment.unit.name,
            "budget": mode,
            "seed": root,
            "planned": budget.repetitions,
            "stopped": "",
            "parameters": _plain(budget.settings),
        }
        return cls(experiment, settings)

    @classmethod
    def load(cls, folder: Path, experiment: Experiment) -> Results:
        """Read results back, to add repetitions or to judge them again."""
        data = read(folder / FILE)
        if data["id"] != experiment.id:
            raise ValueError(f"{folder / FILE} holds {data['id']!r}, not {experiment.id!r}")
        settings = {**data["settings"], "unit": experiment.unit.name}  # files of version 0.1.0 do not name it
        results = cls(experiment, settings, seconds=data["environment"].get("seconds", 0.0))
        for method, entry in data["methods"].items():
            for position, index in enumerate(entry["replicates"]):
                # A metric that a repetition does not have is stored as an empty series; a missing number as null.
                metrics = {name: rows[position] for name, rows in entry["metrics"].items() if rows[position] != []}
                results.replicates.setdefault(index, {})[method] = Trace.from_json(metrics)
        for entry in data["failures"]:
            results.failures[entry["replicate"]] = Failure(entry["error"], tuple(entry["where"]))
        return results

    def check(self, budget: Budget, root: int) -> None:
        """Refuse to mix repetitions made with other settings."""
        mine = {"seed": self.settings["seed"], **self.settings["parameters"]}
        asked = {"seed": root, **_plain(budget.settings)}
        if mine != asked:
            differ = sorted(k for k in {*mine, *asked} if mine.get(k, ...) != asked.get(k, ...))
            raise ValueError(
                f"the stored results of {self.experiment.id} differ in {', '.join(differ)} "
                f"(stored {[mine.get(k) for k in differ]}, asked {[asked.get(k) for k in differ]}): "
                "resume with the same budget, or use another output folder"
            )

    def units(self) -> list[int]:
        """Return the number of the independent unit of each repetition, in the order of the repetitions."""
        return [self.experiment.unit.number(index, self.settings["parameters"]) for index in sorted(self.replicates)]

    def judge(self) -> list[dict[str, Any]]:
        """Return the claims with their verdicts; claim k has the code ``C<k>``."""
        ordered, units = [self.replicates[index] for index in sorted(self.replicates)], self.units()
        entries = []
        for number, claim in enumerate(self.experiment.claims, start=1):
            try:
                entry = claim.judge(ordered, units)
            except (ValueError, TypeError, KeyError, IndexError) as error:
                # A claim that does not fit its data must not cost the run.
                note = f"cannot be judged: {type(error).__name__}: {error}"
                entry = {"name": claim.name, "form": claim.form, "published": None, "estimate": None, "interval": None}
                entry |= {"verdict": "undecided", "marks": list(claim.marks), "note": note, "tests": []}
            entries.append({"code": f"C{number}", **entry})
        return entries

    def to_dict(self, *, workers: int = 0) -> dict[str, Any]:
        """Return the content of ``results.json``."""
        return {
            "id": self.experiment.id,
            "source": self.experiment.source,
            "settings": {**self.settings, "units": len(set(self.units()))},
            "repetitions": len(self.replicates),
            "methods": self._methods(),
            "claims": self.judge(),
            "failures": [
                {"replicate": index, "error": failure.error, "where": list(failure.where)}
                for index, failure in sorted(self.failures.items())
            ],
            "environment": _environment(workers, self.seconds),
        }

    def _methods(self) -> dict[str, Any]:
        order = sorted(self.replicates)
        methods: dict[str, Any] = {}
        for method in dict.fromkeys(name for index in order for name in self.replicates[index]):
            rows = {i: self.replicates[i][method].to_json() for i in order if method in self.replicates[i]}
            metrics = list(dict.fromkeys(name for row in rows.values() for name in row))
            methods[method] = {
                "replicates": list(rows),
                "metrics": {name: [row.get(name, []) for row in rows.values()] for name in metrics},
                "summary": {name: _summary([row[name] for row in rows.values() if name in row]) for name in metrics},
            }
        return methods

    def save(self, folder: Path, *, workers: int = 0) -> dict[str, Any]:
        """Judge, write ``results.json`` atomically, and return its content."""
        data = self.to_dict(workers=workers)
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / FILE, _layout(data))
        return data


def read(file: Path) -> dict[str, Any]:
    """Return the content of a ``results.json``; a file of that name that is something else is a ``ValueError``."""
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{file} is not JSON: {error}") from None
    if not isinstance(data, dict) or not data.keys() >= KEYS:
        raise ValueError(f"{file} holds no results of an experiment")
    return data


def _plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as JSON gives them back (tuples become lists), so that stored and asked ones compare."""
    plain: dict[str, Any] = json.loads(json.dumps(dict(settings), allow_nan=False))
    return plain


def _summary(rows: list[Any]) -> dict[str, Any]:
    """Mean and standard error of the last entries."""
    last = [row[-1] if isinstance(row, list) and row else row for row in rows]
    values = np.array([x for x in last if isinstance(x, int | float)], dtype=np.float64)
    mean = float(values.mean()) if values.size else None
    se = float(values.std(ddof=1) / math.sqrt(values.size)) if values.size > 1 else None
    return {"mean": mean, "se": se, "n": int(values.size)}


def _environment(workers: int, seconds: float) -> dict[str, Any]:
    packages = {"surefoot": surefoot.__version__, **{name: metadata.version(name) for name in ("numpy", "scipy")}}
    return {
        "python": platform.python_version(),
        "system": platform.system(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "workers": workers,
        "blas_threads_per_worker": 1 if workers else None,
        "packages": packages,
        "seconds": round(seconds, 3),
    }


def _layout(data: Mapping[str, Any]) -> str:
    """Strict JSON that a person can read: claims are indented, each series of a method is one line."""
    parts = []
    for key, value in data.items():
        if key == "methods":
            rows = [f"  {json.dumps(name)}: {_method(entry)}" for name, entry in value.items()]
            text = "{\n" + ",\n".join(rows) + "\n }" if rows else "{}"
        else:
            text = json.dumps(value, indent=1, allow_nan=False, ensure_ascii=False).replace("\n", "\n ")
        parts.append(f" {json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _method(entry: Mapping[str, Any]) -> str:
    rows = [f"   {json.dumps(key)}: {json.dumps(value, allow_nan=False)}" for key, value in entry.items()]
    return "{\n" + ",\n".join(rows) + "\n  }"


def number_text(value: Any) -> str:
    """Return a number, or a number and its standard error, in four digits; a dash for None."""
    if isinstance(value, list):
        return " ± ".join(number_text(v) for v in value)
    return "–" if value is None else f"{value:.4g}" if isinstance(value, int | float) else str(value)


def _cells(code: str, text: str, test: Mapping[str, Any], verdict: str) -> list[str]:
    interval = test.get("interval") or [None, None]
    span = f" [{number_text(interval[0])}, {number_text(interval[1])}]" if interval != [None, None] else ""
    published = test.get("published")
    shown = "" if published == test.get("label") else number_text(published)
    return [code, text, shown, f"{number_text(test.get('estimate'))}{span}", str(test.get("n", "")), verdict]


def claim_rows(data: Mapping[str, Any], *, most: int | None = None) -> list[list[str]]:
    """Return the rows code, claim, published, ours, n, verdict; a claim of several tests has one more row per test.

    Of a claim with more than ``most`` tests, only those that do not hold get a row.
    """
    rows = []
    for claim in data["claims"]:
        verdict, tests = claim["verdict"] or "not judged", claim["tests"]
        if claim.get("expected"):
            verdict += f" (expected: {claim['expected']})"
        marks = f" ({', '.join(claim['marks'])})" if claim["marks"] else ""
        text = f"{claim['form']}: {claim['name']}{marks}" + (f". {claim['note']}" if claim["note"] else "")
        if len(tests) == 1:
            rows.append(_cells(claim["code"], text, tests[0], verdict))
            continue
        agree = f"{sum(test['verdict'] == 'holds' for test in tests)} of {len(tests)} hold" if claim["verdict"] else ""
        rows.append([claim["code"], text, "", agree, "", verdict])
        if most is not None and len(tests) > most:
            tests = [test for test in tests if test["verdict"] != "holds"]
        rows.extend(_cells("", f"· {test['label']}", test, test["verdict"] or "") for test in tests)
    return rows


def markdown(data: Mapping[str, Any]) -> str:
    """Return the claims beside the published numbers, and the means of all methods, as a Markdown page.

    >>> from surefoot_lab.registry import find
    >>> print(markdown(Results.fresh(find("gp-ucb/regret-bound"), "quick").to_dict()).splitlines()[0])
    # gp-ucb/regret-bound
    """
    settings = data["settings"]
    status = f"{data['repetitions']} of {settings['planned']} repetitions ({settings['budget']}; {settings['stopped']})"
    if "units" in settings:
        status += f"; independent units ({settings['unit']}): {settings['units']}"
    if data["failures"]:
        status += f"; {len(data['failures'])} FAILED, first: {data['failures'][0]['error']}"
    lines = [f"# {data['id']}", "", f"{settings['title']}", "", f"Source: {data['source']}  "]
    lines += [f"Data: {settings['data']}  ", f"Run: {status}", ""]
    lines += table_lines(["", "claim", "published", "ours [interval]", "units", "verdict"], claim_rows(data))
    summary = [
        [method, metric, number_text(s["mean"]), number_text(s["se"]), str(s["n"])]
        for method, entry in data["methods"].items()
        for metric, s in entry["summary"].items()
    ]
    return "\n".join([*lines, "", *table_lines(["method", "metric (last entry)", "mean", "se", "n"], summary), ""])


def table_lines(header: list[str], rows: list[list[str]]) -> list[str]:
    """Return the lines of a Markdown table."""
    body = [[cell.replace("|", "∣").replace("\n", " ") for cell in row] for row in rows]
    return ["| " + " | ".join(row) + " |" for row in [header, ["---"] * len(header), *body]]
