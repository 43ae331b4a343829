"""Draw the pictures of the guides: each shows the ``figure`` that the guide's own program makes.

python examples/pictures/draw.py              # all of them, into docs/pictures
python examples/pictures/draw.py drift route  # some

A picture is an SVG file that follows the reader's light or dark theme, with its own background.
"""

import os
import re
import sys
import tempfile
from pathlib import Path
from types import ModuleType

from surefoot.report.theme import svg, variables

DOCS = Path(__file__).resolve().parents[2] / "docs"
FENCE = re.compile(r"^```python\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
FONTS = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"
MARGIN = 8  # around the picture, in points


def figure_of(guide: Path):
    """Run the blocks of a guide as a reader would; return the figure they leave, and what the guide says it shows."""
    text = guide.read_text(encoding="utf-8")
    page = sys.modules["page"] = ModuleType("page")  # where the blocks' own classes look for themselves
    for block in FENCE.finditer(text):
        exec(compile(block.group(1), guide.name, "exec"), vars(page))
    shown = re.search(rf"!\[([^\]]*)\]\(\.\./pictures/{guide.stem}\.svg\)", text)
    return vars(page).get("figure"), shown.group(1) if shown else ""


def standalone(figure, name: str, description: str) -> str:
    """Return a figure as an SVG file of its own."""
    element = svg(figure, name=name, description=description)
    inside = element.index(">") + 1
    wide, high = (72.0 * inches + 2 * MARGIN for inches in figure.get_size_inches())
    port = f'viewBox="{-MARGIN} {-MARGIN} {wide:g} {high:g}" width="{1.3 * wide:.0f}" height="{1.3 * high:.0f}"'
    head = re.sub(r'viewBox="[^"]*"', f'xmlns="http://www.w3.org/2000/svg" {port}', element[:inside])
    style = f":root{{{variables('light')}}}@media(prefers-color-scheme:dark){{:root{{{variables('dark')}}}}}"
    style += f"text{{font-family:{FONTS}!important}}"
    ground = f'<rect x="{-MARGIN}" y="{-MARGIN}" width="{wide:g}" height="{high:g}" rx="6" fill="var(--card)"/>'
    return f"{head}<style>{style}</style>{ground}{element[inside:]}\n"


def main(names: list[str]) -> None:
    guides = sorted(DOCS.glob("guides/*.md"))
    for guide in [guide for guide in guides if not names or guide.stem in names]:
        here = Path.cwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            figure, description = figure_of(guide)
            os.chdir(here)
        if figure is not None:
            path = DOCS / "pictures" / f"{guide.stem}.svg"
            path.write_text(standalone(figure, guide.stem, description), encoding="utf-8")
            print(f"{path.relative_to(DOCS.parent)}: {path.stat().st_size / 1024:.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
