"""Somebody who chooses rows that serve although some are lost: one command, three files."""

from __future__ import annotations

import csv
import io
import json

TABLE = "name,x,y\n" + "".join(f"site {i},{(i * 7) % 11},{(i * 5) % 13}\n" for i in range(30))


def test_rows_are_chosen_and_written(desk):
    desk.write("sites.csv", TABLE)
    text = desk.surefoot("select", "sites.csv", "--k", "5", "--tau", "2", "--ignore", "name", "--no-picture")
    assert desk.typed == 1
    chosen = list(csv.DictReader(io.StringIO(desk.read("surefoot-select/selected.csv"))))
    assert len(chosen) == 5
    assert {row["name"] for row in chosen} <= {f"site {i}" for i in range(30)}
    found = json.loads(desk.read("surefoot-select/selection.json"))
    assert len(found["chosen"]) == 5
    assert "after the worst loss of 2" in text
    said = desk.surefoot("select", "sites.csv", "--k", "5", "--tau", "2", status=2)
    assert "--ignore" in said
    assert said.count("\n") == 1
