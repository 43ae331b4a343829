"""An owner of private rows: what a release would be good for, and a search by somebody who never sees a row."""

from __future__ import annotations

import pytest

EXTRA = "private"

TABLE = "name,age,bmi\n" + "".join(f"P{i},{20 + i % 60},{16 + i % 24}\n" for i in range(120))
PROGRAM = """
import csv

import numpy as np
from surefoot.private import Curator, GaussianRelease, Ledger, Modeler

with open("patients.csv", newline="") as file:
    patients = np.array([[float(row["age"]), float(row["bmi"])] for row in csv.DictReader(file)])

def response(row):
    return float(-(((row[0] - 55.0) / 20.0) ** 2) - ((row[1] - 30.0) / 8.0) ** 2)

mechanism = GaussianRelease(
    epsilon=3.0, delta=1e-5, bounds=[(18.0, 90.0), (15.0, 45.0)], radius=25.0, neighbor=1.0
)
ledger = Ledger(epsilon=3.0, delta=1e-5)
curator = Curator(patients, response, mechanism, asks=4, ledger=ledger)
modeler = Modeler(curator.release(), seed=0)
curator.close(modeler.run(curator.answer))
print("use row", curator.chosen)
try:
    Curator(patients, response, mechanism, asks=4, ledger=ledger).release()
except Exception as error:
    print(type(error).__name__)
"""


def test_a_release_is_tried_then_made_once(desk):
    if desk.settings.get("PYTHONPATH"):
        pytest.importorskip("opendp", reason="the extra private is not installed")
    desk.write("patients.csv", TABLE)
    desk.write("owner.py", PROGRAM)
    said = desk.python("owner.py")
    first, second = said.splitlines()[-2:]
    assert first.startswith("use row ")
    assert 0 <= int(first.split()[-1]) < 120
    assert second == "BudgetSpent"
    assert desk.typed == 1
