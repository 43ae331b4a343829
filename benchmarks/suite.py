"""Surefoot beside its peers on problems of others: environments, runs, curves, the page. The rule: docs/comparison.md.

    python benchmarks/suite.py install FOLDER [NAME ...]
    python benchmarks/suite.py run --environments FOLDER --runs RUNS [--suites bbob] [--dimensions 2] [--instances 1]
    python benchmarks/suite.py record --runs RUNS
    python benchmarks/suite.py page

Runs that are there are not repeated; one that was interrupted begins anew.
"""

from __future__ import annotations

import argparse
import datetime
from pathlib import Path

from surefoot_lab.suite import environments, page, play, problems, record
from surefoot_lab.suite.methods import METHODS

DOCS = Path(__file__).parents[1] / "docs"
CURVES = DOCS / "comparison.jsonl"


def run(options: argparse.Namespace) -> None:
    def say(text: str) -> None:
        print(f"{datetime.datetime.now():%H:%M:%S} {text}", flush=True)

    names = problems.names(options.suites, options.dimensions, options.instances)
    play.play_all(
        names, options.methods, options.runs, environments=options.environments, budget=options.budget, say=say
    )
    for which, reason in record.failures(options.runs).items():
        print(f"failed: {which}: {reason}")


def make(options: argparse.Namespace) -> None:
    constraints = Path(__file__).parents[1] / "constraints.txt"
    for name, there in environments.install(options.folder, options.names, constraints).items():
        print(f"{name}: {'ready' if there else 'FAILED'}")


def keep(options: argparse.Namespace) -> None:
    runs = record.stored(options.runs)
    record.save(runs, options.out)
    print(f"{len(runs)} runs, {options.out.stat().st_size / 1024:.0f} kB: {options.out}")


def write(options: argparse.Namespace) -> None:
    page.write(DOCS / "comparison.md", record.load(options.curves), DOCS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_subparsers(required=True)
    action = actions.add_parser("install", help="make environments")
    action.add_argument("folder", type=Path)
    action.add_argument("names", nargs="*", default=list(environments.PACKAGES))
    action.set_defaults(act=make)
    action = actions.add_parser("record", help="keep the curves of the runs")
    action.add_argument("--runs", type=Path, required=True)
    action.add_argument("--out", type=Path, default=CURVES)
    action.set_defaults(act=keep)
    action = actions.add_parser("page", help="write tables and pictures")
    action.add_argument("--curves", type=Path, default=CURVES)
    action.set_defaults(act=write)
    action = actions.add_parser("run", help="run what is missing")
    action.add_argument("--runs", type=Path, required=True)
    action.add_argument("--environments", type=Path)
    action.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    action.add_argument("--suites", nargs="+", default=["bbob"], choices=problems.SUITES)
    action.add_argument("--dimensions", nargs="+", type=int, default=[2, 5])
    action.add_argument("--instances", nargs="+", type=int, default=[1, 2, 3])
    action.add_argument("--budget", type=int, default=100)
    action.set_defaults(act=run)
    options = parser.parse_args()
    options.act(options)


if __name__ == "__main__":
    main()
