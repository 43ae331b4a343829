"""The tables and pictures of docs/comparison.md, from the curves that are kept.

The text between two markers is replaced; the rule above it is written by hand.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from surefoot.report.theme import canvas, color, svg, variables
from surefoot_lab.suite import judge
from surefoot_lab.suite.problems import problem
from surefoot_lab.suite.record import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["BEGIN", "END", "number"]

BEGIN, END = "<!-- begin: figures -->", "<!-- end: figures -->"
OURS = ("surefoot", "surefoot-0.1")
LINES = {  # color and dashes
    "surefoot": ("accent", "-"),
    "surefoot-0.1": ("accent", ":"),
    "botorch": ("belief", "-"),
    "optuna-gp": ("belief", "--"),
    "hebo": ("belief", "-."),
    "ax": ("belief", ":"),
    "smac": ("ink", "-."),
    "cma": ("ink", "--"),
    "optuna-tpe": ("ink", ":"),
    "random": ("muted", "-"),
}
FONTS = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"
MARGIN = 8  # around a picture, in points
FEWEST = 5  # problems that a method has finished before it is compared


def of_methods(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Return the runs of each method, ours first, then by name."""
    methods = sorted({run.method for run in runs}, key=lambda name: (name not in OURS, name))
    return {method: [run for run in runs if run.method == method] for method in methods}


def groups(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Return the runs of each part of the suite: bbob by dimension, the other suites whole.

    >>> groups([])
    {}
    """
    found: dict[str, list[Run]] = {}
    for run in runs:
        suite, *rest = problem(run.name).split("/")
        at = [part for part in rest if suite in ("bbob", "mixint") and part[0] == "d" and part[1:].isdigit()]
        found.setdefault(f"{suite}, {at[0][1:]} dimensions" if at else suite, []).append(run)
    return dict(sorted(found.items()))


def number(made: judge.Difference | None) -> str:
    """Return a mean with its interval.

    >>> number(judge.Difference(-0.5, -1.0, 0.0, 3)), number(judge.Difference(1.0, -math.inf, math.inf, 1))
    ('−0.50 [−1.00, +0.00]', '+1.00 (one)')
    """
    if made is None:
        return ""
    text = f"{made.mean:+.2f}"
    text += " (one)" if math.isinf(made.low) else f" [{made.low:+.2f}, {made.high:+.2f}]"
    return text.replace("-", "−")


def tables(runs: Sequence[Run], own: str = "surefoot") -> str:
    """Return everything that is printed, as Markdown."""
    by_method, found = of_methods(runs), judge.table(runs)
    lines = [
        "What is done:",
        "",
        "| method | version | runs | problems | processor seconds per ask |",
        "|---|---|---|---|---|",
    ]
    for method, own_runs in by_method.items():
        versions = ", ".join(sorted({run.version for run in own_runs}))
        problems = len({problem(run.name) for run in own_runs})
        seconds = float(np.mean([run.seconds for run in own_runs]))
        lines.append(f"| `{method}` | {versions} | {len(own_runs)} | {problems} | {seconds:.3g} |")
    for title, part in groups(runs).items():
        lines += ["", f"### {title}", "", *_part(part, own)]
    if len(groups(runs)) > 1:
        lines += ["", "### All together", "", *_part(runs, own)]
    peers = [m for m in _compared(runs) if m not in OURS]
    if own in by_method and peers:
        _, _, against = judge.behind(found, own, peers)
        lines += [
            "",
            "Each problem, against its best peer:",
            "",
            "| problem | instances | best peer | difference |",
            "|---|---|---|---|",
        ]
        for name, (peer, made) in against.items():
            lines.append(f"| {name} | {made.count} | `{peer}` | {number(made)} |")
    return "\n".join(lines)


def _compared(runs: Sequence[Run]) -> list[str]:
    """Methods that have finished at least half as many problems as any here, and five."""
    counts = {m: len({problem(run.name) for run in part}) for m, part in of_methods(runs).items()}
    most = max(counts.values(), default=0)
    return [m for m, count in counts.items() if 2 * count >= most and count >= FEWEST]


def _part(runs: Sequence[Run], own: str) -> list[str]:
    found, by_method = judge.table(runs), of_methods(runs)
    ranked = _compared(runs)
    means = judge.common(found, ranked) if ranked else {}
    places = judge.ranks(means)
    lines = [f"Ranks are over the {len(means)} problems that all ranked methods have finished.", ""]
    lines += [f"| method | problems | mean log10 regret there | mean rank | `{own}` less this one, over problems |"]
    lines += ["|---|---|---|---|---|"]
    for method in by_method:
        rank = places.get(method)
        mean = f"{np.mean([row[method] for row in means.values()]):.2f}".replace("-", "−") if rank else ""
        cell = f"{rank.mean:.2f} [{rank.low:.2f}, {rank.high:.2f}]" if rank else "too few problems"
        made = judge.overall(found, own, method) if own in ranked and method != own else None
        less = "too few problems" if made and made.count < FEWEST else number(made)
        lines.append(f"| `{method}` | {len({problem(r.name) for r in by_method[method]})} | {mean} | {cell} | {less} |")
    peers = [m for m in ranked if m not in OURS]
    if own in ranked and peers:
        significantly, clearly, against = judge.behind(found, own, peers)
        several = sum(made.count > 1 for _, made in against.values())
        lines += [
            "",
            f"Behind the best peer: significantly on {significantly} of the {several} problems with several instances, "
            f"by more than {judge.CLEARLY:g} on {clearly} of {len(against)}.",
        ]
    return lines


def draw_profiles(runs: Sequence[Run]) -> str:
    """Return the data profiles as an SVG file, one panel for each part of the suite."""
    parts = {title: part for title, part in groups(runs).items() if len({problem(run.name) for run in part}) >= FEWEST}
    with canvas(3.6 * max(len(parts), 1), 3.0) as figure:
        for k, (title, part) in enumerate(parts.items()):
            axes = figure.add_subplot(1, len(parts), k + 1)
            by_method = {m: own for m, own in of_methods(part).items() if len(own) >= FEWEST}
            shared = set.intersection(*({run.name for run in own} for own in by_method.values()))
            for method, own in by_method.items():
                curve = judge.profile([run for run in own if run.name in shared])
                role, dash = LINES.get(method, ("line", "-"))
                wide = 2.2 if method == "surefoot" else 1.2
                axes.plot(np.arange(1, curve.size + 1), curve, dash, color=color(role), linewidth=wide, label=method)
            axes.set(xlabel="measurements", title=f"{title} ({len(shared)} runs each)", ylim=(0.0, 1.0))
            if k == 0:
                axes.set_ylabel("share of targets reached")
            axes.legend(loc="upper left")
        return _file(figure, "profiles", "Data profiles: share of targets reached after each measurement, by method.")


def draw_ranks(runs: Sequence[Run]) -> str:
    """Return the mean ranks with their intervals as an SVG file, best above."""
    ranked = _compared(runs)
    found = judge.ranks(judge.common(judge.table(runs), ranked)) if ranked else {}
    places = sorted(found.items(), key=lambda item: -item[1].mean)
    with canvas(4.4, 0.3 * len(places) + 0.7) as figure:
        axes = figure.add_subplot()
        for k, (method, rank) in enumerate(places):
            tint = color("accent" if method == "surefoot" else "belief")
            if math.isfinite(rank.low):
                axes.plot([rank.low, rank.high], [k, k], color=tint)
            axes.plot([rank.mean], [k], "o", color=tint)
        axes.set_yticks(range(len(places)), [method for method, _ in places])
        count = places[0][1].count if places else 0
        axes.set(xlabel=f"mean rank over {count} problems, 95 % interval")
        return _file(figure, "ranks", "Mean rank of every method with its 95 % interval.")


def _file(figure: Figure, name: str, description: str) -> str:
    """Return a figure as an SVG file of its own that follows the reader's theme, with its own background."""
    element = svg(figure, name=name, description=description)
    inside = element.index(">") + 1
    wide, high = (72.0 * inches + 2 * MARGIN for inches in figure.get_size_inches())
    port = f'viewBox="{-MARGIN} {-MARGIN} {wide:g} {high:g}" width="{1.3 * wide:.0f}" height="{1.3 * high:.0f}"'
    head = re.sub(r'viewBox="[^"]*"', f'xmlns="http://www.w3.org/2000/svg" {port}', element[:inside])
    style = f":root{{{variables('light')}}}@media(prefers-color-scheme:dark){{:root{{{variables('dark')}}}}}"
    style += f"text{{font-family:{FONTS}!important}}"
    ground = f'<rect x="{-MARGIN}" y="{-MARGIN}" width="{wide:g}" height="{high:g}" rx="6" fill="var(--card)"/>'
    return f"{head}<style>{style}</style>{ground}{element[inside:]}\n"


def write(page: Path, runs: Sequence[Run], pictures: Path) -> None:
    """Replace what stands between the markers of the page, and draw the pictures."""
    before, middle, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, last, after = rest.partition(END)
    if not (middle and last):
        raise ValueError(f"{page} lacks the markers {BEGIN} and {END}")
    (pictures / "comparison-profiles.svg").write_text(draw_profiles(runs), encoding="utf-8")
    (pictures / "comparison-ranks.svg").write_text(draw_ranks(runs), encoding="utf-8")
    page.write_text(f"{before}{BEGIN}\n{tables(runs)}\n{END}{after}", encoding="utf-8")
