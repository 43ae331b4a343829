"""The README's promises: its one-liners work, its figures have a date and a command, and it stays short."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import surefoot
import surefoot_lab
from surefoot.federated import SharedFeatures
from surefoot.loop.policy import Policy

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def table(heading: str) -> list[list[str]]:
    """Return the cells of the first table below a heading of the README, without its two head lines."""
    section = README[README.index(f"## {heading}\n") :]
    lines = re.search(r"(?:^\|.*\|\n)+", section, flags=re.MULTILINE).group().splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def prepared() -> dict[str, object]:
    """Return what the one-liners of the README take for granted: a problem of every kind, tiny."""
    rng = np.random.default_rng(0)
    space = surefoot.Space(rate=surefoot.Float(1e-4, 1.0, log=True), depth=surefoot.Int(1, 10))
    side = np.arange(9.0)
    rows = surefoot.Candidates(np.linspace(0.0, 1.0, 21))
    return {
        **{name: getattr(surefoot, name) for name in surefoot.__all__},
        "box": surefoot.Box([(0.0, 1.0)] * 2),
        "wide": surefoot.Box([(0.0, 1.0)] * 12),
        "rows": rows,
        "space": space,
        "score": lambda params: -abs(params["depth"] - 4),
        "earlier": [space.params(x) for x in space.design(8, rng)],
        "values": rng.normal(size=8),
        "price": np.linspace(1.0, 2.0, len(rows.points)),
        "cells": np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2),
        "table": rng.uniform(0.0, 1.0, (40, 2)),
        "measure": lambda row: float(row[0]),
        "features": SharedFeatures(2, 20, lengthscale=0.2, noise=0.01, seed=0),
        "scores": lambda images: np.stack([1.0 - images.mean(axis=(1, 2)), images.mean(axis=(1, 2))], axis=1),
        "image": np.full((20, 20), 0.46),
        "points": rng.normal(size=(60, 2)),
        "token": "sf_1_secret",
    }


@pytest.mark.parametrize("row", table("Your problem, and the class to use"), ids=lambda row: row[1].split("`")[1])
def test_the_one_liners_of_the_readme_work(row):
    """Column three makes an instance of the class in column two, or calls the function there; policies can be asked."""
    name = re.match(r"\[`(\w+)`\]", row[1]).group(1)
    code = re.match(r"`([^`]+)`", row[2]).group(1)
    made = eval(code, prepared())
    assert name in code
    if isinstance(made, Policy):
        assert type(made).__name__ == name
        made.ask()
    elif name[0].isupper():
        assert type(made).__name__ == name
    else:
        assert made is not None


def blocks(page: str) -> str:
    """Return the Python of a page as one program."""
    return "\n".join(re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.M | re.S))


# Finding 25 of the review of 0.1.0
def test_readme_and_quick_start_find_the_best_point_and_share_a_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    pages = {page: blocks(page) for page in ("README.md", "docs/quick-start.md")}
    said = "a rate within a tenth of 0.01, depth 4, rbf"
    for page in (*pages, "README.md"):  # in one folder, and a second time: each goes on with what it wrote
        assert said in pages[page]
        names: dict[str, object] = {}
        exec(compile(pages[page], page, "exec"), names)
        answers = [names["result"].params]
        if page == "README.md":
            with surefoot.load("batches.jsonl") as policy:
                answers.append(policy.recommend().params)
        for params in answers:
            assert 0.009 < params["rate"] < 0.011, page
            assert (params["depth"], params["kernel"]) == (4, "rbf"), page
        assert str(answers[0]) in capsys.readouterr().out


def test_the_readme_is_short_and_says_what_a_stranger_asks():
    assert len(README.splitlines()) < 200
    headings = re.findall(r"^## (.*)$", README, flags=re.MULTILINE)
    assert {"Two commands", "Quick start", "When to use something else", "Measured", "Status"} <= set(headings)
    assert "make demo" in README
    assert "make test" in README
    for peer in ("BoTorch", "Ax", "Optuna", "SMAC", "Trieste"):
        assert peer in README


def test_every_figure_of_the_readme_has_a_date_and_a_command_that_exists():
    section = README[README.index("## Measured\n") :]
    assert re.search(r"\b20\d\d-\d\d-\d\d\b", section)
    known = set(surefoot_lab.names())
    for *_, command in table("Measured"):
        words = shlex.split(command.strip("`"))
        if words[0] == "python":
            assert (ROOT / words[1]).is_file(), command
        else:
            assert words[:2] == ["surefoot", "reproduce"]
            assert words[2] in known, command
