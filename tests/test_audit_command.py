"""``surefoot audit``: every shipped mechanism under attack, what is printed and written, and how it fails."""

from __future__ import annotations

import io
import json
import re
import shlex
import sys

import pytest
from rich.console import Console

from surefoot import cli
from surefoot.cli.audit import BROKEN, audit, available
from surefoot.private.audit import AUDITS

SETTINGS = [(1.0, 1e-2), *(pytest.param(epsilon, 1e-3, marks=pytest.mark.slow) for epsilon in (0.5, 3.0))]


def command(*words, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["surefoot", *words])
    with pytest.raises(SystemExit) as end:
        cli.main()
    return int(end.value.code or 0)


def quietly(names, folder, **options):
    screen = Console(file=io.StringIO(), width=120)
    return audit(names, out=folder, console=screen, picture=False, **options), screen.file.getvalue()


@pytest.mark.parametrize(("epsilon", "delta"), SETTINGS)
def test_every_claim_survives_and_the_broken_one_does_not(epsilon, delta, tmp_path):
    """10⁵ releases of each input at 99.9 %: every mechanism that claims (ε, δ), and one with half the noise."""
    found, _ = quietly(["all"], tmp_path, epsilon=epsilon, delta=delta, trials=100_000, broken=True)
    verdicts = {finding.name: finding.verdict for finding in found}
    assert verdicts.keys() == available(broken=True).keys()
    assert {verdicts.pop(name) for name in BROKEN} == {"refuted"}
    assert verdicts.pop("published-projection") == "no claim"
    assert set(verdicts.values()) == {"not refuted"}
    for finding in found:
        if finding.audit.claim is not None:
            assert finding.case.epsilon == epsilon
            assert finding.case.delta in (delta, 0.0)
    # An audit that finds nothing anywhere would pass as well: the sharp ones come near their claims.
    sharp = [
        f.audit.bound.epsilon / epsilon for f in found if f.name in ("gaussian", "outputs", "laplace", "DP-FTS-DE")
    ]
    assert min(sharp) > 0.25
    assert len(sharp) == 4


def test_known_rows_reveal_the_projection_and_nothing_else(tmp_path):
    found, said = quietly(["all"], tmp_path, trials=1000)
    tried = {finding.name: finding for finding in found if finding.error is not None}
    assert {"gaussian", "laplace", "full-lift", "published-projection"} <= tried.keys()
    revealed = tried.pop("published-projection")
    assert revealed.works
    assert revealed.error < 1e-9
    for finding in tried.values():
        assert finding.works is False
        assert finding.error > 0.01
    assert said.count("all rows") == 1


def test_every_mechanism_of_the_table_is_audited():
    from surefoot.private.mechanisms import Mechanism

    available()
    shipped = {each.__name__ for each in subclasses(Mechanism)}
    audited = " ".join(build(1.0, 1e-3).name for build in AUDITS.values())
    assert not {name for name in shipped if name not in audited}
    assert "OutputRelease" in audited
    assert "DP-FTS-DE" in audited


def subclasses(kind):
    """All classes below one that the library itself ships."""
    for each in kind.__subclasses__():
        if each.__module__.startswith("surefoot."):
            yield each
        yield from subclasses(each)


def test_what_is_written_and_printed(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "out"
    words = ["audit", "gaussian", "half", "--broken", "--trials", "20000", "--out", str(folder)]
    assert command(*words, monkeypatch=monkeypatch) == 0  # what is broken on purpose does not count
    said = capsys.readouterr().out
    assert re.search(r"^half-noise +1 +1\.\d+ +refuted", said, flags=re.MULTILINE)
    assert re.search(r"^gaussian +1 +0\.\d+ +not refuted", said, flags=re.MULTILINE)
    facts = json.loads((folder / "audit.json").read_text())
    assert [fact["mechanism"] for fact in facts] == ["gaussian", "half-noise"]
    assert facts[1]["lower_bound"] > facts[1]["claim"] == 1.0
    assert facts[0]["trials"] == 20000
    assert (folder / "audit.png").stat().st_size > 10_000


def test_without_matplotlib_there_is_no_picture(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for quiet in (False, True):
        screen = Console(file=io.StringIO(), width=120)
        audit(["gaussian"], trials=1000, out=tmp_path, console=screen, quiet=quiet)
        assert ("no picture: " in screen.file.getvalue()) is not quiet
    assert [file.name for file in tmp_path.iterdir()] == ["audit.json"]


def test_a_refuted_claim_of_ours_is_status_1(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(AUDITS, "wrong", BROKEN["half-noise"])
    words = ["audit", "wrong", "--trials", "20000", "--out", str(tmp_path), "--no-picture", "--quiet"]
    assert command(*words, monkeypatch=monkeypatch) == 1
    assert json.loads(capsys.readouterr().out)[0]["verdict"] == "refuted"


def test_an_audit_is_repeatable(tmp_path):
    first, second, other = (
        quietly(["half"], tmp_path, broken=True, trials=1000, seed=seed)[0][0].audit.bound.epsilon for seed in (1, 1, 2)
    )
    assert first == second != other


def test_the_noise_of_real_releases_is_audited_too(tmp_path):
    """OpenDP's sampler, with few trials."""
    found, _ = quietly(["outputs", "half"], tmp_path, epsilon=2.0, delta=1e-2, trials=8000, broken=True, system=True)
    assert [finding.verdict for finding in found] == ["not refuted", "refuted"]
    assert found[0].audit.bound.epsilon > 0.3


def test_names_are_listed(monkeypatch, capsys):
    assert command("audit", "--list", "--broken", monkeypatch=monkeypatch) == 0
    assert capsys.readouterr().out.split() == [*available(), "half-noise"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nonsense"], "there is no mechanism 'nonsense'; there are: "),
        (["half-noise"], "there is no mechanism 'half-noise'"),
        (["--epsilon", "0"], "epsilon must be positive and finite, got 0.0"),
        (["--delta", "1"], "delta must lie strictly between 0 and 1, got 1.0"),
        (["--trials", "10"], "trials must be at least 1000, got 10"),
    ],
)
def test_user_errors_are_one_line_and_status_2(words, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert command("audit", *words, monkeypatch=monkeypatch) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.err.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("columns", [40, 120])
def test_help_fits_and_its_examples_parse(columns, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(columns))
    assert command("audit", "--help", monkeypatch=monkeypatch) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= columns
    examples = re.findall(r"^ +(surefoot audit\b.*)$", re.sub(r"\\\n\s+", "", text), flags=re.MULTILINE)
    assert len(examples) == 3
    for line in examples:
        monkeypatch.setattr("surefoot.cli.audit.command.callback", lambda **options: [])
        assert command(*shlex.split(line)[1:], monkeypatch=monkeypatch) == 0
