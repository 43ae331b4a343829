"""References lead somewhere a reader can go."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = sorted([*(ROOT / "src").rglob("*.py"), *(ROOT / "lab" / "src").rglob("*.py"), *(ROOT / "docs").rglob("*.md")])

# Of Bogunovic's thesis (2019), chapter 3, on which TruVaR is built.
SECTIONS = {"3.1.1", "3.1.2", "3.1.3", "3.2.1", "3.2.2", "3.3.1", "3.3.2", "3.7.1", "3.7.2", "3.7.3"}


def test_finding_24_no_reference_counts_the_lines_of_a_text():
    # Finding 24 of the review of 0.1.0: an algorithm's box has a few dozen lines.
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in SOURCES
        for match in re.finditer(r"\blines? \d{3,}", path.read_text(encoding="utf-8"))
    ]
    assert not found


def test_finding_24_what_truvar_cites_of_the_thesis_is_there():
    text = (ROOT / "src/surefoot/policy/levels/truvar.py").read_text(encoding="utf-8")
    cited = set(re.findall(r"section (3\.\d\.\d)", text))
    assert cited
    assert cited <= SECTIONS
    assert "equations 3.3 to 3.8" in text  # the acquisition and the sets of Algorithms 3 to 6
    assert not re.search(r"Theorem 3\.\d\b(?!\.)", text)  # its theorems have three numbers
