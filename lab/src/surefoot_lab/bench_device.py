"""``surefoot bench --device``: the array-heavy parts on NumPy, torch and a device, beside what the machine could do.

Every part (:mod:`surefoot_lab.bench_parts`) is run at each place on the same numbers: once to warm up, which is also
when its answer is compared with NumPy's, and then several times against the clock, which stops when the device has
finished. Floors are measured in the same run (:mod:`surefoot_lab.bench_rates`).

Only NumPy, SciPy, array-api-compat and torch are needed, so that it also runs where nothing can be installed::

    PYTHONPATH=src python -m surefoot_lab.bench_device --device cuda --size large --json bench.json
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

import numpy as np

from surefoot.errors import SurefootError
from surefoot.loop.device import torch_device
from surefoot.loop.journal import write_atomically
from surefoot.report.settings import environment
from surefoot_lab.bench_parts import PARTS, Case, Part
from surefoot_lab.bench_rates import ENOUGH, Place, Rates, machine_rates, repeated
from surefoot_lab.bench_table import legend, lines

__all__ = ["bench_device", "main"]

SIZES = {"small": 0.25, "large": 1.0}  # and the scale of what the machine is measured by
OWN_WARM_UP = ENOUGH  # seconds of a run of the processor beyond which warming up makes no difference


def bench_device(
    *,
    device: str = "cpu",
    parts: Sequence[str] | None = None,
    size: str = "small",
    json_file: str | os.PathLike[str] | None = None,
    minutes: float | None = None,
    sizes: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
    show: Callable[[str], None] = print,
) -> dict[str, Any]:
    """Measure the array-heavy parts, print one table, and return everything that was measured.

    Parameters
    ----------
    device : {"cpu", "cuda"}
        Where torch works, beside NumPy and torch on the processor.
    parts : sequence of str, optional
        Names in :data:`~surefoot_lab.bench_parts.PARTS`; by default all.
    size : {"small", "large"}
        Problems that take seconds on any machine, or those that a device is for.
    json_file : path, optional
        Where to write all timings, rates and the environment; rewritten after every row.
    minutes : float, optional
        What has not begun by then is left out.
    sizes : mapping, optional
        Problem sizes of parts in place of those of ``size``.
    show : callable
        Prints a line of the result; what is being measured is said on standard error.

    >>> tiny = {"draws": [{"agents": 8, "measurements": 3}]}
    >>> row = bench_device(parts=["draws"], sizes=tiny, show=lambda text: None)["rows"][0]
    >>> row["part"], row["difference"], sorted(row["seconds"])
    ('draws', 0.0, ['NumPy', 'torch on cpu'])
    """
    unknown = sorted(set(parts or ()) - set(PARTS))
    if unknown:
        raise ValueError(f"no part {unknown[0]!r}; the parts are {', '.join(PARTS)}")
    if size not in SIZES:
        raise ValueError(f"size must be small or large, got {size!r}")
    if minutes is not None and not minutes > 0:
        raise ValueError(f"minutes must be positive, got {minutes!r}")
    target = None if json_file is None else Path(json_file)
    if target is not None and not target.parent.is_dir():
        raise ValueError(f"there is no folder {target.parent} to write {target.name} in")
    # The device comes first: if time runs out, its numbers are there.
    places = [Place(device), Place()] if device == "cpu" else [Place(device), Place(), Place("cpu")]
    deadline = np.inf if minutes is None else time.perf_counter() + 60.0 * minutes
    say = _progress(sys.stderr)
    rates: dict[str, Rates] = {}
    for place in places:
        say(f"what {place.name} can do")
        rates[place.name] = machine_rates(place, scale=SIZES[size])
    found: dict[str, Any] = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "device": device,
        "size": size,
        "places": {place.name: place.describe() for place in [*places[1:], places[0]]},
        "rates": {name: rate.to_dict() for name, rate in rates.items()},
        "environment": {**environment(), "torch": torch_device("cpu")[0].__version__},
        "rows": [],
    }
    failures: list[RuntimeError] = []
    for name in parts or PARTS:
        part = PARTS[name]
        for options in (sizes or {}).get(name, part.small if size == "small" else part.large):
            if options.get("only") == "device" and device == "cpu":
                continue
            row = {"part": name, "title": part.title, **_measure(part, options, places, deadline, say, failures)}
            least = row.pop("least")
            row["floor"], row["bound"] = (None, None) if least is None else least.floor(rates[places[0].name])
            found["rows"].append(row)
            if target is not None:
                write_atomically(target, json.dumps(found, indent=1) + "\n")
    say("")
    for line in [*lines(found), "", *legend(found)]:
        show(line)
    if target is not None:
        show(f"\nwritten to {target}")
    if failures:
        raise failures[0]
    return found


def _measure(
    part: Part,
    options: Mapping[str, Any],
    places: Sequence[Place],
    deadline: float,
    say: Callable[[str], None],
    failures: list[RuntimeError],
) -> dict[str, Any]:
    """One row: seconds at every place, why some are missing, and how far the answers are apart."""
    size = {key: value for key, value in options.items() if key != "only"}
    row: dict[str, Any] = {"problem": part.named(size), "seconds": {}, "missing": {}}
    answers, least, case = {}, None, None
    for place in places:
        timed = place.host is False or options.get("only") != "device"
        if not timed and place.device is not None:  # NumPy's answer is compared with all the same
            continue
        if reason := _obstacle(part, size, place, deadline):
            row["missing"][place.name] = reason
            continue
        say(f"{part.title}, {row['problem']}: {place.name}")
        try:
            case = part.make(place, **size)
            if timed:
                row["seconds"][place.name], answers[place.name] = _timed(case, place, deadline)
            else:
                row["missing"][place.name], answers[place.name] = "too long", case.answer()
            least = least or case.least()
        except RuntimeError as error:  # torch's, also for memory that ran out: what was measured before is kept
            failures.append(error)
            row["missing"][place.name] = "failed"
        case = None
        if part.memory(**size) > 2**30:  # slow, and of use only where much is held
            gc.collect()
        place.release()
    reference, there = answers.get("NumPy"), answers.get(places[0].name)
    row["difference"] = None if reference is None or there is None else float(np.abs(reference - there).max())
    row["least"] = least
    return row


def _timed(case: Case, place: Place, deadline: float) -> tuple[list[float], Any]:
    """The seconds of several runs, and the answer of the one that came before them."""
    start = time.perf_counter()
    case.work()
    place.wait()
    first = time.perf_counter() - start
    answer = case.answer()
    if place.host and (first > OWN_WARM_UP or time.perf_counter() > deadline):
        return [first], answer
    return repeated(case.work, place, deadline=deadline).tolist(), answer


def _obstacle(part: Part, size: Mapping[str, Any], place: Place, deadline: float) -> str | None:
    """Why a case cannot be measured at a place."""
    if time.perf_counter() > deadline:
        return "no time left"
    needed = part.memory(**size)
    return f"needs {needed / 2**30:.0f} GiB" if needed > place.free() else None


def _progress(stream: IO[str]) -> Callable[[str], None]:
    """Say what is under way: one line that changes on a terminal, else one line after the other."""

    def say(text: str) -> None:
        if stream.isatty():
            stream.write(f"\r\x1b[2K{text[:78]}")
        elif text:
            stream.write(f"{text}\n")
        stream.flush()

    return say


def main(words: Sequence[str] | None = None) -> int:
    """Run the bench without the ``surefoot`` command; a mistake of the caller is one line and status 2.

    >>> main(["--device", "cpu", "--part", "nonsense"])
    2
    """
    told = "Measure the array-heavy parts of Surefoot beside what the machine could do."
    parser = argparse.ArgumentParser(prog="python -m surefoot_lab.bench_device", description=told)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--part", action="append", metavar="NAME", help=f"one of {', '.join(PARTS)}; may be repeated")
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--json", metavar="FILE", help="write all timings here")
    parser.add_argument("--minutes", type=float, metavar="M", help="begin nothing after so long")
    chosen = parser.parse_args(words)
    try:
        bench_device(
            device=chosen.device,
            parts=chosen.part,
            size=chosen.size,
            json_file=chosen.json,
            minutes=chosen.minutes,
        )
    except (SurefootError, ValueError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
