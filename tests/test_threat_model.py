"""The page of threats names tests, and they exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_every_row_has_a_test():
    page = (ROOT / "docs" / "privacy" / "threat-model.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| ") and not line.startswith("| who looks")]
    written = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    assert len(rows) > 10
    for row in rows:
        named = re.findall(r"`(test_\w+)`", row.rsplit("|", 2)[1])
        assert named, row
        assert not [name for name in named if f"def {name}(" not in written], row
