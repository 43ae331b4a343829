"""``surefoot which``: every policy can be reached, every snippet runs, and the dialogue is short."""

from __future__ import annotations

import inspect
import io
import itertools
import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

import surefoot
from surefoot import TVGPUCB, Box, Candidates, MaxiMinGPUCB, Paths, StableOpt, cli
from surefoot.cli.which import advice, advise, which
from surefoot.cli.which.advice import candidates, checked, default
from surefoot.cli.which.programs import compose
from surefoot.cli.which.table import ENTRIES, QUESTIONS, Entry
from surefoot.loop.policy import Policy

ROOT = Path(__file__).resolve().parents[1]
CHOICES = {question.key: list(question.choices) for question in QUESTIONS}
POLICIES = [
    name
    for name in surefoot.__all__
    if inspect.isclass(value := getattr(surefoot, name)) and issubclass(value, Policy) and value is not Policy
]
# Nothing, one or two special things.
SPECIALS = ["nothing", *CHOICES["special"][1:], *map(",".join, itertools.combinations(CHOICES["special"][1:], 2))]


def advised(**answers):
    """The advice, or None where the answers contradict each other."""
    try:
        return advise(answers)
    except ValueError:
        return None


def every_answer():
    """All that can be answered: every goal, special thing, domain, number of workers and thing that matters."""
    for goal, special in itertools.product(CHOICES["goal"], SPECIALS):
        if goal in ("subset", "classifier"):
            if special == "nothing":
                yield {"goal": goal}
            continue
        start = {"goal": goal, "special": special}
        if advised(**start) is None:
            continue
        yield start
        for points, parallel in itertools.product(CHOICES["points"], CHOICES["parallel"]):
            place = {**start, "points": points, "parallel": parallel}
            place = place if advised(**place) else start
            for found in candidates(place):
                if advised(**place, matters=found.word):
                    yield {**place, "matters": found.word}


@pytest.fixture(scope="module")
def everything():
    return {json.dumps(answers): advise(answers) for answers in every_answer()}


# -- the catalog -----------------------------------------------------------------------------------------------------


def test_every_policy_has_one_entry_and_every_answer_can_be_reached(everything):
    listed = [found.use for found in ENTRIES]
    assert len(set(listed)) == len(listed)
    assert {f"surefoot.{name}" for name in POLICIES} <= set(listed)
    assert {found.use for found in everything.values()} == set(listed)


def test_entries_say_what_a_reader_wants_to_know():
    for found in ENTRIES:
        assert (ROOT / found.page).exists(), found.page
        assert 1 <= found.why.count(". ") + 1 <= 3
        assert found.why.endswith(".")
        assert not found.when.endswith(".")
        assert len(found.when) <= 80
        assert not found.use.startswith("surefoot") or found.extra or found.use.count(".") <= 2
        if found.use.startswith("surefoot") and not found.use.startswith("surefoot.bridge"):
            home, _, name = found.use.rpartition(".")
            assert hasattr(sys.modules.get(home) or __import__(home, fromlist=[name]), name)


def test_alternatives_and_needs_are_complete(everything):
    for found in everything.values():
        assert found.needs
        assert found.why
        names = [other["use"] for other in found.alternatives]
        assert found.use not in names or "Modeler" in found.use
        assert len(set(names)) == len(names) <= 6
        for name in names:
            if name.startswith("surefoot.") and name.count(".") == 1 and name != "surefoot.stopping":
                assert name.removeprefix("surefoot.").split(" ")[0] in POLICIES


def test_smooth_ground_is_left_to_others():
    assert "Optuna" in str(advise().alternatives)
    assert "BoTorch" in str(advise().alternatives)
    assert advise({"matters": "scale"}).install == "pip install optuna"
    assert "no multi-objective search" in advise({"special": "tradeoff"}).why


# -- what classes declare --------------------------------------------------------------------------------------------


@pytest.fixture
def fresh():
    """Abilities are read once; here they change."""
    advice._abilities.cache_clear()
    yield
    advice._abilities.cache_clear()


def test_domains_are_read_from_the_class(monkeypatch, fresh):
    for name in ("StableOpt", "RobustReport", "MaxiMinGPUCB"):
        monkeypatch.setattr(getattr(surefoot, name), "domains", (Candidates,))
    with pytest.raises(ValueError, match=r"points=box does not go with special=perturbation: .* can do Candidates"):
        advise({"special": "perturbation", "points": "box"})
    found = advise({"special": "perturbation"})
    assert found.abilities["domains"] == ["Candidates"]
    assert "Candidates(" in found.snippet
    assert "points" not in found.answers  # one domain only: nothing to ask


def test_declared_abilities_decide_what_is_offered(monkeypatch, fresh):
    monkeypatch.setattr(TVGPUCB, "context", ())
    assert [found.name for found in candidates({"goal": "best", "special": "drift"})] == ["RGPUCB"]
    advice._abilities.cache_clear()
    monkeypatch.setattr(TVGPUCB, "steps", True)
    assert "TVGPUCB" in [found.name for found in candidates({"goal": "best", "special": "epochs"})]
    advice._abilities.cache_clear()
    monkeypatch.setattr(StableOpt, "parallel", False)
    monkeypatch.setattr(MaxiMinGPUCB, "parallel", True)
    with pytest.raises(ValueError, match="matters is one of report or maximin, not 'StableOpt'"):
        advise({"special": "perturbation", "parallel": "few", "matters": "StableOpt"})


def test_a_new_policy_is_offered_where_its_abilities_fit(monkeypatch, fresh):
    class Sailor(Policy):
        """Asks with the time, on paths and boxes, and takes earlier tasks."""

        domains = (Box, Paths)
        context = ("time",)

        def __init__(self, domain, *, tasks, **options):
            super().__init__(domain, **options)

    monkeypatch.setattr(surefoot, "Sailor", Sailor, raising=False)
    new = Entry("surefoot.Sailor", "sail", "wind", "It sails.", "docs/which.md")
    monkeypatch.setattr(advice, "ENTRIES", [*ENTRIES, new])
    assert advise({"special": "drift,tasks"}).use == "surefoot.Sailor"
    assert advise({"special": "drift,tasks,moves"}).use == "surefoot.Sailor"
    assert "policy.ask(time=time)" in advise({"special": "drift,tasks"}).snippet


@pytest.mark.parametrize(
    ("answers", "use"),
    [
        ({}, "ExpectedImprovement"),
        ({"parallel": "few"}, "GPUCB"),
        ({"parallel": "dozens"}, "ThompsonSampling"),
        ({"parallel": "few", "matters": "best-of-batch"}, "QEI"),
        ({"matters": "noise"}, "MaxValueEntropySearch"),
        ({"matters": "gp-ucb".replace("-", "")}, "GPUCB"),
        ({"special": "drift"}, "TVGPUCB"),
        ({"special": "costs"}, "TruVaR"),
        ({"special": "epochs"}, "BOBOS"),
        ({"special": "tasks"}, "RMGPUCB"),
        ({"special": "tasks", "parallel": "dozens"}, "RMGPTS"),
        ({"special": "tasks,epochs"}, "RMBOBOS"),
        ({"special": "perturbation"}, "StableOpt"),
        ({"special": "moves"}, "MacroGPO"),
        ({"special": "losses"}, "RobustBatch"),
        ({"special": "players"}, "Player"),
        ({"special": "private"}, "Curator"),
        ({"special": "owners"}, "Agent"),
        ({"special": "owners,private"}, "Coordinator"),
        ({"special": "conditional"}, "SurefootSampler"),
        ({"goal": "region"}, "GPLSE"),
        ({"goal": "region", "special": "costs"}, "TruVaR"),
        ({"goal": "region", "special": "private"}, "Modeler"),
        ({"special": "conditional,epochs"}, "PolicyPruner"),
        ({"goal": "subset"}, "choose"),
        ({"goal": "classifier"}, "bos2"),
        # Not asked there, and true all the same.
        ({"goal": "subset", "special": "losses"}, "choose"),
        ({"goal": "classifier", "special": "perturbation"}, "bos2"),
        ({"special": "private", "points": "candidates"}, "Curator"),
        ({"special": "conditional", "points": "space"}, "SurefootSampler"),
    ],
)
def test_problems_lead_to_their_class(answers, use):
    assert advise(answers).use.rpartition(".")[2] == use


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ({"special": "drift,epochs"}, "no class answers drift and epochs together: drift is for TVGPUCB and RGPUCB; "),
        ({"special": "private,drift"}, "private is for Curator and Coordinator. Leave out what matters less"),
        ({"special": "tradeoff,drift"}, "tradeoff is for Optuna"),
        ({"goal": "region", "special": "drift"}, "no class maps a region with drift"),
        ({"goal": "region", "special": "costs,epochs"}, "TruVaR can map a region"),
        ({"goal": "region", "special": "private,drift"}, "Modeler can map a region"),
        ({"special": "nothing,drift"}, "nothing special, and yet drift"),
        ({"special": "losses", "parallel": "one"}, "RobustBatch is for few or dozens"),
        ({"special": "moves", "parallel": "few"}, "the question 'parallel' does not arise with goal=best, special="),
        ({"special": "players", "points": "space"}, "the question 'points' does not arise"),
        ({"goal": "subset", "special": "drift"}, "the question 'special' does not arise with goal=subset"),
        ({"special": "epochs", "matters": "GPUCB"}, "the other answers lead to BOBOS alone"),
        ({"points": "space", "matters": "AddGPUCB"}, "not 'AddGPUCB'"),
        ({"points": "sphere"}, "points is one of box, candidates or space, not 'sphere'"),
        ({"special": "p"}, "special is one of nothing, drift, "),
        ({"special": ""}, "special is one of nothing"),
        ({"goal": "0"}, "goal is one of"),
        ({"color": "red"}, "there is no question 'color'; there are goal, special, points, parallel and matters"),
    ],
)
def test_contradictions_get_a_sentence(answers, said):
    with pytest.raises(ValueError) as caught:
        advise(answers)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_numbers_and_beginnings_of_words_are_understood():
    special, points = QUESTIONS[1], QUESTIONS[2]
    assert checked(special, "5,6", {}) == checked(special, "tasks, EPO", {}) == "epochs,tasks"
    assert checked(points, "cand", {}) == "candidates"


def test_nothing_is_asked_when_all_is_answered(everything):
    """The line at the end of an answer leads to the same answer, and to no question."""

    def never(question, answers):
        raise AssertionError(question.key)

    for found in everything.values():
        assert advise(found.answers, reply=never) == found


def test_defaults_never_contradict(everything):
    """Enter is always a way to an answer, whatever was said before."""
    for found in everything.values():
        for count in range(len(found.answers)):
            begun = dict(itertools.islice(found.answers.items(), count))
            assert advised(**begun) is not None, begun
    assert default(QUESTIONS[3], {"goal": "best", "special": "losses"}) == "few"


# -- snippets --------------------------------------------------------------------------------------------------------


def run(program, name):
    exec(compile(program, name, "exec"), {"__name__": "snippet"})


def test_snippets_are_tidy(everything, tmp_path):
    """Formatted, no name imported in vain, and no line longer than a terminal."""
    programs = sorted({found.snippet for found in everything.values()})
    assert len(programs) > 100
    for number, program in enumerate(programs):
        (tmp_path / f"snippet_{number}.py").write_text(program, encoding="utf-8")
    ruff = [sys.executable, "-m", "ruff"]
    options = ["--isolated", "--line-length", "80", str(tmp_path)]
    for words in (["check", "--select", "E,F,W", "--no-cache"], ["format", "--check", "--no-cache"]):
        done = subprocess.run([*ruff, *words, *options], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout


SHARES = {found.use: found for found in ENTRIES}


@pytest.mark.parametrize("use", SHARES)
def test_a_snippet_of_every_class_runs(use, capsys):
    """Each on one of its domains and with one number of workers, in turn."""
    found = SHARES[use]
    if "optuna" in use:
        pytest.importorskip("optuna")
    if found.snippet:
        run(found.snippet, use)
    else:
        turn = list(SHARES).index(use)
        can = found.abilities
        words = [domain.lower() for domain in can.declared["domains"] if domain != "Paths"]
        workers = found.workers or CHOICES["parallel"]
        answers = {"goal": max(can.goals), "parallel": workers[turn % len(workers)]}
        answers["parallel"] = "one" if use == "surefoot.StableOpt" else answers["parallel"]
        answers["points"] = words[turn % len(words)] if words else "box"
        special = can.needs or frozenset(["costs", "precision"] if "costs" in can.handles else [])
        run(compose(found, special=special, **answers), use)
    assert capsys.readouterr().out.strip()


@pytest.mark.parametrize("found", [found for found in ENTRIES if "moves" in getattr(found.abilities, "handles", ())])
def test_snippets_for_moves_run(found, capsys):
    run(compose(found, special=frozenset(["moves"])), found.use)
    assert "Recommendation" in capsys.readouterr().out


@pytest.mark.slow
def test_every_snippet_runs(everything, capsys):
    for program in sorted({found.snippet for found in everything.values()}):
        run(program, "snippet")
    assert capsys.readouterr().out


# -- the dialogue ----------------------------------------------------------------------------------------------------


def talk(replies, *words, width=80):
    """What is printed for these replies, and the answer."""
    screen = Console(file=io.StringIO(), width=width)
    found = which(words, console=screen, stdin=io.StringIO(replies))
    return screen.file.getvalue(), found


@pytest.mark.parametrize(
    ("replies", "words", "asked", "use"),
    [
        ("", [], 5, "surefoot.ExpectedImprovement"),  # a pipe at its end
        ("\n\n\n\n\n", [], 5, "surefoot.ExpectedImprovement"),
        ("3\n", [], 1, "surefoot.select.choose"),
        ("classifier\n", [], 1, "surefoot.attack.bos2"),
        ("1\n10\n", [], 2, "surefoot.private.Curator"),
        ("\nprivate,owners\n", [], 2, "surefoot.federated.Coordinator"),
        ("\nmoves\n", [], 3, "surefoot.MacroGPO"),
        ("\nepochs\n3\n", [], 3, "surefoot.BOBOS"),
        ("\n2\n\nreset\n", [], 4, "surefoot.RGPUCB"),
        ("space\n", ["special=drift"], 2, "surefoot.TVGPUCB"),
        ("", ["special=players"], 0, "surefoot.Player"),
    ],
)
def test_questions_stop_when_the_answer_is_decided(replies, words, asked, use):
    text, found = talk(replies, *words)
    assert found.use == use
    assert text.count("] > ") == asked
    assert f"Use {use}" in text
    assert found.snippet in text
    assert found.page in text


@pytest.mark.parametrize("width", [40, 80])
def test_the_dialogue_fits_a_narrow_terminal(width, everything):
    for found in {found.use: found for found in everything.values()}.values():
        words = [f"{key}={value}" for key, value in found.answers.items()]
        text, again = talk("", *words, width=width)
        prose = text.replace(again.snippet, "")
        assert max(map(len, text.splitlines())) <= 80
        long = [line for line in prose.splitlines() if len(line) > width]
        assert all(max(map(len, line.split())) > width - 12 for line in long), long  # a single long word at most
    text, _ = talk("", width=width)
    assert max(map(len, text.partition("Use ")[0].splitlines())) <= width
    assert not [line for line in text.splitlines() if line.rstrip() != line and "] > " not in line]


class Terminal(io.StringIO):
    """A terminal, as far as the dialogue can see."""

    def isatty(self):
        return True


def test_the_end_of_the_input_at_a_terminal_takes_the_defaults(monkeypatch):
    monkeypatch.setattr(sys, "stdin", Terminal("worst\n\n"))
    screen = Console(file=io.StringIO(), width=80)
    found = which([], console=screen, stdin=sys.stdin)
    assert "not 'worst'" in screen.file.getvalue()
    assert found.use == "surefoot.ExpectedImprovement"


def test_a_wrong_reply_from_a_pipe_is_an_error():
    with pytest.raises(ValueError, match="goal is one of best, region, subset or classifier, not 'worst'"):
        talk("worst\n")
    with pytest.raises(ValueError, match="no class answers drift and epochs together"):
        talk("best\ndrift,epochs\n")


@pytest.fixture
def command(monkeypatch, capsys):
    """Run the command in this process; returns its status, output and errors."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["surefoot", "which", *words])
        with pytest.raises(SystemExit) as end:
            cli.main()
        return int(end.value.code or 0), *capsys.readouterr()

    return run


def test_json_for_scripts(command):
    status, out, _ = command("--json", "--answers", "goal=region", "special=costs")
    assert status == 0
    assert json.loads(out) == json.loads(json.dumps(advise({"goal": "region", "special": "costs"}).to_dict()))
    assert json.loads(out)["abilities"]["fidelities"] is True


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--json", "special=drift,epochs"], "no class answers drift and epochs together: "),
        (["special=drift,epochs"], "no class answers drift and epochs together: "),
        (["goal"], "an answer is key=value, got 'goal'"),
        (["--snippet", "size=large"], "there is no question 'size'; there are goal, special, points, parallel and"),
        (["goal=best", "--answers", "goal=region"], "goal is answered twice: 'best' and 'region'"),
    ],
)
def test_bad_answers_are_one_line_and_status_2(words, said, command):
    status, out, errors = command(*words)
    assert (status, out) == (2, "")
    assert errors.startswith(f"surefoot: {said}")
    assert errors.count("\n") == 1


def test_the_snippet_alone_can_be_piped_to_python(capsys):
    which(["goal=subset"], snippet=True)
    assert capsys.readouterr().out == SHARES["surefoot.select.choose"].snippet
    which(listing=True)
    listed = capsys.readouterr().out
    assert all(word in listed for words in CHOICES.values() for word in words)
    assert all(name in listed for name in POLICIES)


# -- at a terminal ---------------------------------------------------------------------------------------------------

pty = pytest.importorskip("pty")
# A process that was started in the background may ignore or block Ctrl-C, and so would its children.
START = """import signal
signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
signal.signal(signal.SIGINT, signal.default_int_handler)
from surefoot.cli import main
main()"""
COMMAND = [sys.executable, "-c", START, "which"]


def at_a_terminal(*actions):
    """Run the command at a pseudo-terminal: for each prompt, type a text or press Ctrl-C. Returns status and screen.

    Ctrl-C is pressed every second until the command ends: Python misses one that comes after it has written its
    prompt and before it waits for the reply.
    """
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "dumb", "COLUMNS": "80"}
    streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
    process = subprocess.Popen(COMMAND, **streams, env=environment, start_new_session=True)
    os.close(theirs)
    seen, left, pressed, end = b"", list(actions), False, time.monotonic() + 60.0
    try:
        while time.monotonic() < end:
            if not select.select([ours], [], [], 1.0)[0]:
                if pressed:
                    os.killpg(process.pid, signal.SIGINT)
                continue
            try:
                chunk = os.read(ours, 4096)
            except OSError:  # the other side is closed
                break
            if not chunk:
                break
            seen += chunk
            if left and seen.endswith(b"] > "):
                action = left.pop(0)
                if action == "Ctrl-C":
                    pressed = True
                    os.killpg(process.pid, signal.SIGINT)
                else:
                    os.write(ours, action.encode())
        return process.wait(timeout=30), seen.decode(errors="replace")
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def test_at_a_terminal_a_wrong_reply_is_asked_for_again():
    status, screen = at_a_terminal("worst\n", "1\n", "drift,epochs\n", "drift\n", "\n", "\n")
    assert status == 0
    assert "Goal is one of best, region, subset or classifier, not 'worst'." in screen
    assert "No class answers drift and epochs together" in screen
    assert "Use surefoot.TVGPUCB" in screen


def test_ctrl_c_is_status_130():
    status, screen = at_a_terminal("1\n", "Ctrl-C")
    assert status == 130
    assert "Traceback" not in screen
