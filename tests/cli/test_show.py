"""Looking at a run: any journal, any state of it, any terminal."""

from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console

import surefoot
from surefoot import (
    GPUCB,
    Box,
    Candidates,
    Choice,
    ExpectedImprovement,
    Float,
    Int,
    RandomSearch,
    Space,
    optimize,
)
from surefoot.cli.show import read, show
from surefoot.loop.types import Advice

SPACE = Space({"learning [rate]": Float(1e-4, 1.0, log=True)}, depth=Int(1, 6), kind=Choice(["a", "b", None]))


class Stepped(RandomSearch):
    """Random search that follows runs."""

    steps = True

    def _advise(self, query, step, value):
        return Advice(stop=False)


def printed(path, width=80, **options):
    screen = Console(file=io.StringIO(), width=width)
    policy = show(path, console=screen, **options)
    return policy, screen.file.getvalue()


def loss(params):
    return abs(np.log10(params["learning [rate]"]) + 2.0) + params["depth"]


def test_a_journal_is_shown_while_another_writes_it(tmp_path):
    path = tmp_path / "run.jsonl"
    policy = RandomSearch(SPACE, seed=0, direction="minimize", journal=path)
    queries = policy.ask(5)
    for query in queries[:2]:
        policy.tell(query, loss(query.params))
    policy.tell(queries[2], None)
    policy.cancel(queries[3])
    before = path.read_bytes()
    with path.open("ab") as file:
        file.write(b'{"event":"as')  # a line under way
    other, text = printed(path)
    path.write_bytes(before)
    assert other.history == policy.history
    assert other.journal is None
    assert "RandomSearch, minimize, seed 0" in text
    assert "5 trials: 2 measured, 1 failed, 1 cancelled, 1 pending" in text
    best = min(loss(query.params) for query in queries[:2])
    assert f"expect {best:.4g}" in text
    assert "Pending" in text
    assert "learning [rate]" in text
    policy.tell(queries[4], 9.0)  # the writer was not disturbed
    policy.close()
    assert len(surefoot.load(path).history) == 4


@pytest.mark.parametrize("width", [30, 40, 80, 160])
def test_every_line_fits(tmp_path, width):
    path = tmp_path / "run.jsonl"
    optimize(loss, SPACE, 12, policy=RandomSearch, seed=0, direction="minimize", journal=path)
    _, text = printed(path, width=width, top=3)
    pasted = [line for line in text.splitlines() if line.startswith(("{", "expect", str(tmp_path)))]
    assert all(len(line) <= width for line in text.splitlines() if line not in pasted)
    assert len(pasted) == 3
    assert "\x1b" not in text


# Finding 15 of the review of 0.1.0
def test_the_chart_leaves_blank_what_is_far_worse_and_says_so(tmp_path):
    path = tmp_path / "run.jsonl"
    policy = RandomSearch(Box.unit(1), seed=0, journal=path)
    for value in (-1e6, -3e5, *np.linspace(0.9, 1.0, 18)):
        policy.tell(policy.ask(), value)
    policy.close()
    _, text = printed(path)
    assert "2 values below the chart, lowest -1e6" in text
    chart = [line for line in text.splitlines() if "┤" in line]
    assert chart[0].split("┤")[0].strip() == "1"
    assert chart[-1].split("┤")[0].strip() == "0.9"  # the lowest that is drawn was measured
    assert chart[-1].split("┤ ")[1].startswith(" ")


def test_the_best_runs_come_first_and_only_the_top(tmp_path):
    for direction, best in (("maximize", [5.0, 4.0]), ("minimize", [0.0, 1.0])):
        path = tmp_path / f"{direction}.jsonl"
        points = Candidates(np.arange(6.0))
        optimize(
            lambda x: x[0], points, 6, policy=RandomSearch, repeats=False, direction=direction, journal=path, seed=0
        )
        _, text = printed(path, top=2)
        table = text[text.index("Best trials") :].splitlines()[3:6]
        assert [float(line.split()[1]) for line in table[:2]] == best
        assert table[2] == ""


def test_curves_of_finished_and_pending_runs(tmp_path):
    path = tmp_path / "run.jsonl"
    with Stepped(SPACE, seed=0, direction="minimize", journal=path) as policy:
        first, second = policy.ask(2)
        for step in range(1, 9):
            policy.report(first, step, 1.0 / step)
        policy.tell(first)
        policy.report(second, 1, 0.1)
        policy.report(second, 2, None)
        policy.report(second, 3, 0.9)
        _, text = printed(path, width=100)
    assert "█▄▃▂▂▁▁▁" in text  # a loss that falls
    finished, pending = text.split("Pending")
    assert " 8 " in finished
    assert "▁ █" in pending


def test_saved_states_say_no_direction_so_one_may_be_given(tmp_path):
    path = tmp_path / "state.json"
    policy = ExpectedImprovement(Box([(0.0, 1.0)]), seed=0)
    for x in (0.1, 0.5, 0.7):
        policy.tell([x], -((x - 0.5) ** 2) - 2.0)
    policy.save(path)
    same, text = printed(path, direction="minimize")
    assert same.history == policy.history
    assert "minimize" in text
    assert "[0.5]" in text
    assert "expect 2" in text
    assert "maximize" in printed(path)[1]


def test_a_policy_that_is_not_installed_is_shown_from_its_events(tmp_path):
    path = tmp_path / "run.jsonl"
    with Stepped(SPACE, seed=0, journal=path) as policy:
        query = policy.ask()
        policy.report(query, 1, 0.5)
        policy.tell(query)
    path.write_text(path.read_text().replace('"Stepped"', '"Elsewhere"'))
    other, text = printed(path)
    assert other.history == policy.history
    assert "Elsewhere, maximize" in text
    assert "shown from its events alone: 'Elsewhere' is not a registered Policy" in text
    assert "expect 0.5 (best measured value)" in text


def test_a_policy_whose_options_are_code_is_shown_from_its_events(tmp_path):
    path = tmp_path / "run.jsonl"
    with GPUCB(Box.unit(1), width=lambda step, **_: 2.0, seed=0, journal=path) as policy:
        policy.tell(policy.ask(), 1.0)
    other, direction, name, note = read(path)
    assert (other.history, direction, name) == (policy.history, "maximize", "GPUCB")
    assert "is code" in note


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "there is no journal or saved state"),
        ("", "holds no run"),
        ('{"schema":1,"dir', "holds no run"),
        ("print('hello')\n", "neither a journal nor a saved state"),
        ('{"a": 1}\n', "neither a journal nor a saved state"),
        ('{"schema": 99}\n', "schema 99, newer than"),
    ],
)
def test_what_is_no_run_is_said(content, said, tmp_path):
    path = tmp_path / "file"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ValueError, match=said) as caught:
        read(path)
    assert str(path) in str(caught.value)


def test_a_policy_that_is_not_installed_and_had_no_domain_is_said(tmp_path):
    path = tmp_path / "state.json"
    path.write_text('{"schema": 1, "policy": "Absent", "seed": 0, "config": {}, "events": [], "cache": {}}\n')
    with pytest.raises(ValueError, match="Absent"):
        read(path)


def test_a_state_without_its_options_is_said(tmp_path):
    path = tmp_path / "state.json"
    path.write_text('{"schema": 1, "events": []}\n')
    with pytest.raises(ValueError, match="not a whole state"):
        read(path)


def test_damaged_journals_are_not_guessed_at(tmp_path):
    path = tmp_path / "run.jsonl"
    with RandomSearch(SPACE, seed=0, journal=path) as policy:
        policy.tell(policy.ask(), 1.0)
    path.write_text(path.read_text().replace('"asked"', "asked"))
    with pytest.raises(ValueError, match="line 2 is damaged"):
        show(path)


def test_top_is_checked(tmp_path):
    with pytest.raises(ValueError, match="top must be at least 1, got 0"):
        show(tmp_path / "run.jsonl", top=0)


def test_the_page_is_in_the_direction_of_the_journal(tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "run.jsonl"
    optimize(loss, SPACE, 4, policy=RandomSearch, seed=0, direction="minimize", journal=path)
    _, text = printed(path, page=tmp_path / "run.html")
    assert "minimize" in (tmp_path / "run.html").read_text(encoding="utf-8")
    assert f"page: {tmp_path / 'run.html'}" in text


def test_terminals_without_unicode(tmp_path):
    path = tmp_path / "run.jsonl"
    optimize(lambda x: x[0], Box.unit(2), 5, policy=RandomSearch, seed=0, journal=path)
    raw = io.BytesIO()
    screen = Console(file=io.TextIOWrapper(raw, encoding="ascii"), width=80)
    show(path, console=screen)
    screen.file.flush()
    assert b"Best so far" in raw.getvalue()
