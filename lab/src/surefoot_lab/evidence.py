"""``surefoot evidence``: keep what runs have shown, and write the page that counts it.

Results hold every number of every repetition and stay where they were made. What the documentation keeps of a run is a
*record*, ``docs/evidence/records/<id>.json``: how it was run, and for every claim its tests, their numbers and the
verdict, judged by the claims as they are now. Beside the records two lists are written by hand:

``explanations.toml``
    For every claim that fails, one sentence of why, under the id and the claim's code.
``not-run.toml``
    For every experiment without a record, the reason, one line each; a record takes its line away.

:mod:`surefoot_lab.evidence_page` makes the page of these three; :func:`problems` says where they contradict each other.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from surefoot.loop.journal import write_atomically
from surefoot_lab.registry import find, names
from surefoot_lab.results import FILE, Results, read

__all__ = ["Evidence", "evidence", "judged_again", "keep", "problems", "record"]

_DIGITS = 6  # significant ones: more than any interval supports, and the same on every machine
_SETTINGS = ("budget", "data", "minutes", "parameters", "planned", "seed", "stopped", "title", "unit", "units")
_CLAIM = ("code", "form", "marks", "name", "note", "verdict", "tests")
_ENVIRONMENT = ("cores", "machine", "packages", "python", "seconds", "system", "workers")


@dataclass(frozen=True)
class Evidence:
    """All that is kept below ``docs/evidence``: records and reasons by id, explanations by id and code.

    >>> Evidence({}, {"a/b": {"C1": "The noise is larger here."}}, {}).explanation("a/b", "C1")
    'The noise is larger here.'
    """

    records: Mapping[str, Mapping[str, Any]]
    explanations: Mapping[str, Mapping[str, str]]
    not_run: Mapping[str, str]

    @classmethod
    def load(cls, docs: str | os.PathLike[str]) -> Evidence:
        """Read the records and both lists of a documentation folder."""
        folder = _folder(docs)
        found = [json.loads(file.read_text()) for file in sorted((folder / "records").glob("*/*.json"))]
        lists = [tomllib.loads((folder / name).read_text()) for name in ("explanations.toml", "not-run.toml")]
        return cls({entry["id"]: entry for entry in found}, *lists)

    def explanation(self, id: str, code: str) -> str:
        """Return why a claim fails, or an empty text."""
        return self.explanations.get(id, {}).get(code, "")


def record(file: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what is kept of a ``results.json``: no repetition, numbers to six digits, claims judged as they are now.

    Raises
    ------
    ValueError
        The file or the experiment is not one of Surefoot's, or no repetition was completed.

    >>> import tempfile
    >>> results = Results.fresh(find("gp-ucb/regret-bound"), "quick")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = results.save(Path(folder))
    ...     record(Path(folder) / FILE)
    Traceback (most recent call last):
    ...
    ValueError: gp-ucb/regret-bound: no repetition was completed
    """
    path = Path(file)
    data = read(path)
    if not data["repetitions"]:
        raise ValueError(f"{data['id']}: no repetition was completed")
    results = Results.load(path.parent, find(data["id"]))
    claims = [{key: claim[key] for key in _CLAIM} for claim in results.judge()]
    settings = {**results.settings, "units": len(set(results.units()))}
    made = {
        "claims": claims,
        "date": datetime.fromtimestamp(path.stat().st_mtime, UTC).date().isoformat(),
        "environment": {key: data["environment"][key] for key in _ENVIRONMENT},
        "failures": len(results.failures),
        "id": data["id"],
        "repetitions": len(results.replicates),
        "settings": {key: settings[key] for key in _SETTINGS if key in settings},
        "source": results.experiment.source,
    }
    return dict(_rounded(made))


def judged_again(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record with the verdicts that its stored tests give under the rules as they are now.

    Records of version 0.1.0 counted repetitions. Where several of them belong to one independent unit, what is stored
    is not enough: every claim that is not exact is undecided, and says so, until the experiment is run again.

    >>> test = {"label": "a < b", "published": "", "estimate": 1.0, "interval": [0.5, 1.5], "n": 9, "verdict": "holds"}
    >>> claim = {"code": "C1", "form": "ORD", "marks": [], "name": "better", "note": "", "verdict": "holds"}
    >>> old = {"id": "gp-ucb/against-random", "repetitions": 9, "settings": {}}
    >>> judged_again({**old, "claims": [{**claim, "tests": [test]}]})["claims"][0]["verdict"]
    'undecided'
    """
    found = find(entry["id"])
    settings = {**entry["settings"], "unit": found.unit.name}
    settings.setdefault("units", None if found.unit.shared else entry["repetitions"])
    claims = []
    for claim, kept in zip(found.claims, entry["claims"], strict=False):
        exact = claim.exact or claim.form == "EXACT"
        if settings["units"] is None and not exact and kept["verdict"] is not None:
            tests = [{**test, "verdict": "undecided"} for test in kept["tests"]]
            note = f"recorded over repetitions, not over units ({found.unit.name}): to be run again"
            claims.append({**kept, "tests": tests, "note": note, "verdict": "undecided"})
        elif kept["tests"]:
            again = claim.judge_again(kept["tests"])
            claims.append({**kept, **{key: again[key] for key in ("note", "verdict", "tests")}})
        else:  # it could not be judged
            claims.append(dict(kept))
    return {**entry, "settings": settings, "claims": claims}


def keep(paths: Sequence[str | os.PathLike[str]], docs: str | os.PathLike[str] = "docs") -> list[str]:
    """Keep records of results, and return one line about each run.

    Parameters
    ----------
    paths : sequence of paths
        Folders are searched for ``results.json``: of several runs of an experiment, the record there is included, the
        one with the most repetitions is kept, among equals the latest. A file named by itself is kept in any case.
    docs : path
        The documentation folder.

    >>> keep(["nowhere"])
    Traceback (most recent call last):
    ...
    ValueError: there are no results in nowhere
    """
    best: dict[str, tuple[Path, dict[str, Any]]] = {}
    lines, chosen = [], set()
    for path in map(Path, paths):
        files = [path] if path.is_file() else sorted(path.rglob(FILE))
        if not files:
            raise ValueError(f"there are no results in {path}")
        for file in files:
            try:
                made = record(file)
            except ValueError as error:
                lines.append(f"{file}: left out, {error}")
                continue
            id = made["id"]
            if path.is_file():
                chosen.add(id)
            elif id in chosen or (id in best and _weight(best[id][1]) >= _weight(made)):
                continue
            best[id] = file, made
    folder = _folder(docs)
    for id, (file, made) in sorted(best.items()):
        target = folder / "records" / f"{id}.json"
        before = json.loads(target.read_text()) if target.exists() else None
        if before and id not in chosen and not _stale(before) and _weight(before) > _weight(made):
            lines.append(f"{id}: stays as it is, with {before['repetitions']} repetitions; {made['repetitions']} here")
            continue
        if made == before:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(target, _layout(made))
        lines.append(f"{id}: kept, repetitions {made['repetitions']}, from {file}")
    _strike(folder / "not-run.toml", best)
    return lines


def problems(docs: str | os.PathLike[str] = "docs") -> list[str]:
    """Return what must be mended by hand, one line each: nothing, if the evidence is complete.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as docs:
    ...     problems(docs)
    Traceback (most recent call last):
    ...
    ValueError: ...: there is no folder evidence in it
    """
    kept, known = Evidence.load(docs), names()
    found = [f"{id}: neither recorded nor in not-run.toml" for id in known if not {id} & {*kept.records, *kept.not_run}]
    found += [f"{id}: recorded, and in not-run.toml" for id in kept.not_run if id in kept.records]
    found += [f"{id}: recorded, but no experiment has this id" for id in kept.records if id not in known]
    failing = {(id, c["code"]) for id, r in kept.records.items() for c in r["claims"] if c["verdict"] == "fails"}
    explained = {(id, code) for id, entries in kept.explanations.items() for code in entries}
    found += [f"{id} {code}: fails without an explanation" for id, code in sorted(failing - explained)]
    found += [f"{id} {code}: explained, but does not fail" for id, code in sorted(explained - failing)]
    for id, entry in kept.records.items():
        if id in known and _stale(entry):
            found.append(f"{id}: the claims have changed since it was recorded; keep a run again")
    return found


def evidence(
    paths: Sequence[str | os.PathLike[str]] = (),
    *,
    docs: str | os.PathLike[str] = "docs",
    console: Console | None = None,
) -> list[str]:
    """Keep records of results, write the page and its picture, print and return what must be mended by hand.

    >>> import io
    >>> evidence(docs="nowhere", console=Console(file=io.StringIO()))
    Traceback (most recent call last):
    ...
    ValueError: nowhere: there is no folder evidence in it
    """
    from surefoot_lab.evidence_page import write

    screen = console or Console()
    _judge_all(docs)
    for line in keep(paths, docs) if paths else []:
        screen.print(line, markup=False, highlight=False, soft_wrap=True)
    screen.print(f"written: {write(docs)}", markup=False, highlight=False, soft_wrap=True)
    found = problems(docs)
    for line in found:
        screen.print(line, style="yellow", markup=False, highlight=False, soft_wrap=True)
    return found


def _judge_all(docs: str | os.PathLike[str]) -> None:
    """Bring the verdicts of all records to the rules as they are now; records of changed claims are left alone."""
    known = set(names())
    for file in sorted((_folder(docs) / "records").glob("*/*.json")):
        entry = json.loads(file.read_text())
        if entry["id"] in known and not _stale(entry):
            again = judged_again(entry)
            if again != entry:
                write_atomically(file, _layout(again))


def _folder(docs: str | os.PathLike[str]) -> Path:
    folder = Path(docs) / "evidence"
    if not folder.is_dir():
        raise ValueError(f"{docs}: there is no folder evidence in it")
    return folder


def _weight(entry: Mapping[str, Any]) -> tuple[bool, int, str]:
    """Of two runs, the one whose units are counted is kept, then the longer, then the later."""
    return entry["settings"].get("units") is not None, entry["repetitions"], entry["date"]


def _stale(entry: Mapping[str, Any]) -> bool:
    """Whether the experiment claims something else by now."""
    now = [(claim.name, claim.form, list(claim.marks)) for claim in find(entry["id"]).claims]
    return now != [(claim["name"], claim["form"], claim["marks"]) for claim in entry["claims"]]


def _strike(file: Path, ids: Mapping[str, Any]) -> None:
    """Take the lines of what has been run off the list of what has not."""
    lines = file.read_text().splitlines(keepends=True)
    left = [line for line in lines if not (line.startswith('"') and line.split('"')[1] in ids)]
    if left != lines:
        write_atomically(file, "".join(left))


def _rounded(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _rounded(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_rounded(entry) for entry in value]
    return float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value


def _layout(entry: Mapping[str, Any]) -> str:
    """JSON with sorted keys, a test on one line: a run repeated changes few lines."""
    text = json.dumps(entry, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False)
    for inner in (r"\[[^\[\]{}]*\]", r"\{[^{}]*\}"):  # lists of numbers first, then what holds only these
        text = re.sub(inner, lambda match: re.sub(r"\s*\n\s*", " ", match[0]), text)
    return text + "\n"
