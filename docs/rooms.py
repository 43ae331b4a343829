"""Draw the rooms of the house from what their modules import: python docs/rooms.py writes docs/rooms.svg.

An arrow from one room to another: the first imports the second. Arrows that follow from others are left out, and the
height of a room is the longest way down from it. What only type checkers read does not count, as for import-linter.
"""

from __future__ import annotations

import html
from pathlib import Path

import grimp

from surefoot.report.theme import variables

PICTURE = Path(__file__).with_name("rooms.svg")
ROOMS = {  # where it stands from left to right, and what it is about
    "domain": (0.0, "where a point may lie"),
    "belief": (1.0, "what is known"),
    "stopping": (2.0, "when to give a run up"),
    "select": (3.0, "which of many to take"),
    "loop": (0.5, "how a policy is driven"),
    "policy": (2.0, "which point next"),
    "games": (0.0, "other players too"),
    "private": (2.0, "data stay where they are"),
    "attack": (1.0, "which input fools a model"),
    "optimizer": (3.0, "the loop in one call"),
    "testing": (4.0, "the contract, as a suite"),
    "federated": (2.0, "parties learn together"),
    "report": (3.0, "pictures and pages"),
    "bridge": (0.5, "other people's programs"),
    "serve": (3.0, "optimization as a service"),
    "cli": (2.0, "the command"),
    "surefoot_lab": (1.0, "experiments and evidence"),
}
PITCH, STEP, WIDE, HIGH, MARGIN = 172, 66, 158, 40, 14


def imports() -> dict[str, set[str]]:
    """Return the rooms that each room imports; modules that lie in no room belong to all of them."""
    graph = grimp.build_graph("surefoot", "surefoot_lab", exclude_type_checking_imports=True)
    found: dict[str, set[str]] = {}
    for module in graph.modules:
        found.setdefault(room(module), set()).update(map(room, graph.find_modules_directly_imported_by(module)))
    packages = {room(module) for module in graph.modules if graph.find_children(module)} - {"", "surefoot"}
    if missing := packages - set(ROOMS):
        raise ValueError(f"rooms without a place in the picture: {sorted(missing)}")
    return {name: {other for other in found[name] if other in ROOMS and other != name} for name in ROOMS}


def room(module: str) -> str:
    """Return the room of a module."""
    package, *rest = module.split(".")
    return rest[0] if rest and package == "surefoot" else package


def reachable(imported: dict[str, set[str]], start: str) -> set[str]:
    """Return all rooms below one."""
    return imported[start].union(*(reachable(imported, other) for other in imported[start]))


def reduced(imported: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return the imports that do not follow from others."""
    return {
        name: others.difference(*(reachable(imported, other) for other in others)) for name, others in imported.items()
    }


def draw() -> str:
    """Return the picture: an SVG file that follows the reader's theme."""
    imported = imports()

    def height(name: str) -> int:
        return 1 + max(map(height, imported[name]), default=-1)

    rows = {name: height(name) for name in ROOMS}
    top = max(rows.values())
    at = {name: (ROOMS[name][0] * PITCH + WIDE / 2, (top - rows[name]) * STEP) for name in ROOMS}
    wide, high = 4 * PITCH + WIDE + 2 * MARGIN, top * STEP + HIGH + 2 * MARGIN
    style = f":root{{{variables('light')}}}@media(prefers-color-scheme:dark){{:root{{{variables('dark')}}}}}"
    style += "text{font-family:system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif;text-anchor:middle}"
    about = "The rooms of Surefoot. Arrows point from the command down to domains and beliefs, and never back."
    lines = [
        f'<svg role="img" aria-label="{about}" xmlns="http://www.w3.org/2000/svg" '
        f'viewBox="{-MARGIN} {-MARGIN} {wide} {high}" width="{wide}" height="{high}">',
        f'<style>{style}</style><rect x="{-MARGIN}" y="{-MARGIN}" width="{wide}" height="{high}" rx="6" '
        'fill="var(--card)"/>',
        '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0.5L8 4L0 7.5z" fill="var(--muted)"/></marker>',
    ]
    for name, others in reduced(imported).items():
        for other in sorted(others):
            (x, y), (u, v) = at[name], at[other]
            u += max(min((x - u) / 6, WIDE / 3), -WIDE / 3)  # arrows that meet stay apart
            bend = (v - y - HIGH) / 2
            lines.append(
                f'<path d="M{x:.0f} {y + HIGH}C{x:.0f} {y + HIGH + bend:.0f} {u:.0f} {v - bend:.0f} {u:.0f} {v}" '
                'fill="none" stroke="var(--muted)" marker-end="url(#tip)"/>'
            )
    for name, (x, y) in at.items():
        lines.append(
            f'<rect x="{x - WIDE / 2:.0f}" y="{y}" width="{WIDE}" height="{HIGH}" rx="5" fill="var(--level1)" '
            f'stroke="var(--belief)"/><text x="{x:.0f}" y="{y + 17}" font-size="13" font-weight="600" '
            f'fill="var(--ink)">{name}</text><text x="{x:.0f}" y="{y + 32}" font-size="11" fill="var(--ink)">'
            f"{html.escape(ROOMS[name][1], quote=False)}</text>"
        )
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")
