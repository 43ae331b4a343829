"""Everything, in one run and one document: latency, regret, grid.

    python benchmarks/all.py [--runs benchmarks/runs] [--out benchmarks/RESULTS.md] [--seeds 20]

Regret runs are stored one file per library and repeated only where they are missing; Surefoot's own are made anew.
Takes a few hours the first time, nearly all of them the peers'; keep the machine quiet.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
from pathlib import Path

import ask_latency
import grid
import regret
from peers import OPTIMIZERS, threads


def settings() -> str:
    """Return the date, the machine and what each library was told to do, as Markdown."""
    lines = [f"{datetime.date.today()}, {os.cpu_count()} cores, {platform.processor() or platform.machine()}, "]
    lines[0] += f"Python {platform.python_version()}, {platform.system()}.\n"
    for name in ask_latency.LIBRARIES:
        kind = OPTIMIZERS[name]
        lines.append(f"- {name} {kind.version()}: {kind.settings}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, default=Path(__file__).parent / "runs")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "RESULTS.md")
    parser.add_argument("--seeds", type=int, default=20)
    options = parser.parse_args()
    options.runs.mkdir(parents=True, exist_ok=True)

    own = options.runs / "surefoot.jsonl"
    own.unlink(missing_ok=True)
    with threads(1):
        for method in ask_latency.LIBRARIES:
            path = options.runs / f"{method}.jsonl"
            regret.run(path, [method], list(regret.CASES), options.seeds, regret.FIRST_SEED)
        appends = "\n".join([grid.HEAD, grid.measure("numpy", "cpu", "se", 1_000_000, 200)])
    latency = ask_latency.collect(
        list(ask_latency.LIBRARIES), list(ask_latency.DIMENSIONS), list(ask_latency.SIZES), 9, [1, 2], 10.0
    )
    text = [
        settings(),
        "One full ask, fit included:",
        ask_latency.table(latency),
        "Mean log10 regret, and Surefoot minus the better peer, paired by seed (below zero: Surefoot is better):",
        regret.table(sorted(options.runs.glob("*.jsonl"))),
        "`GridPosterior.append` beside the time to read its rows once:",
        appends,
    ]
    options.out.write_text("\n\n".join(text) + "\n", encoding="utf-8")
    print(options.out.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
