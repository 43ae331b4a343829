"""A scientist with a spreadsheet and a terminal: from past measurements to the next batch in two commands."""

from __future__ import annotations

import csv
import io

PAST = """date;temperature;time;solvent;yield;remark
2026-01-02;28,6;3;water;0,61;
2026-01-03;55;4;acetone;0,70;stirred
2026-01-04;80;6;water;failed;leak
2026-01-05;62,5;5;acetone;;
2026-01-06;55;4;acetone;0,72;again
2026-01-07;40;8;water;0,66;
2026-01-08;70;7,0;ethanol;0,58;
"""


def test_from_a_spreadsheet_to_the_next_batch_and_the_one_after(desk):
    desk.write("past.csv", PAST)
    first = desk.surefoot("space", "past.csv", "--target", "yield", "--out", "space.toml")
    assert "date: left out" in first
    text = desk.surefoot(
        "suggest", "past.csv", "--space", "space.toml", "--target", "yield", "-n", "4", "--out", "next.csv"
    )
    assert desk.typed <= 3  # from a table to the next batch
    assert "5 measured, 1 failed, 1 not measured yet; maximize yield" in text
    assert "Next 4 points" in text
    assert text.count("expect yield") == 4
    rows = list(csv.DictReader(io.StringIO(desk.read("next.csv"))))
    assert [row["yield"] for row in rows] == [""] * 4
    assert all(28.6 <= float(row["temperature"]) <= 80.0 for row in rows)
    assert all(float(row["lower"]) < float(row["predicted"]) < float(row["upper"]) for row in rows)
    for i, row in enumerate(rows):  # two days later, in the spreadsheet
        row["yield"] = ["0.73", "failed", "0.69", ""][i]
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    desk.write("next.csv", out.getvalue())
    text = desk.surefoot("suggest", "past.csv", "next.csv", "--space", "space.toml", "--target", "yield")
    assert "7 measured, 2 failed, 2 not measured yet" in text
    assert desk.typed == 3


def test_a_slip_in_the_table_is_named_by_line_and_column(desk):
    desk.write("past.csv", "temperature,yield\n30,0.5\n55,o.61\n80,0.4\n")
    said = desk.surefoot("suggest", "past.csv", "--target", "yield", status=2)
    assert said.startswith("surefoot: past.csv, line 3, column 'yield': 'o.61' is not a number")
