"""The evidence page and the records it is made of."""

from __future__ import annotations

import json
import platform
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from surefoot.cli import app
from surefoot_lab import Budget, Exact, Metric, Order, Trace, Unit, experiment, find, names
from surefoot_lab.claim import FEWEST_UNITS
from surefoot_lab.evidence import Evidence, evidence, judged_again, keep, problems, record
from surefoot_lab.evidence_family import family_pages
from surefoot_lab.evidence_page import generated, picture
from surefoot_lab.runner import run

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
KEPT = Evidence.load(DOCS)
FILES = sorted((DOCS / "evidence" / "records").glob("*/*.json"))
S = Metric("score")


@experiment(
    "example/dice",
    source="folklore",
    quick=Budget(12),
    full=Budget(18),
    claims=[Order("one die is higher than itself plus one", S["die"] > S["more"]), Order("more", S["more"] > S["die"])],
)
def dice(replicate):
    """Two dice that are one."""
    score = int(replicate.rng("die").integers(1, 7))
    return {"die": Trace(score=score / 3), "more": Trace(score=score / 3 + 1 + replicate.index / 100)}


@experiment(
    "example/lake",
    source="folklore",
    quick=Budget(20),
    full=Budget(20),
    unit=Unit.single("lake"),
    claims=[Order("more", S["more"] > S["die"]), Exact("it is more", S["more"] > S["die"])],
)
def lake(replicate):
    """Twenty starts in one lake."""
    return {"die": Trace(score=0.0), "more": Trace(score=1 + replicate.rng("noise").random())}


@pytest.fixture
def docs(tmp_path):
    """A documentation folder without records."""
    folder = tmp_path / "docs"
    (folder / "evidence" / "records").mkdir(parents=True)
    (folder / "evidence" / "explanations.toml").write_text("")
    listed = [f'"{id}" = "not here"\n' for id in [*names(), "example/dice", "example/lake"]]
    (folder / "evidence" / "not-run.toml").write_text("# Reasons.\n" + "".join(listed))
    shutil.copy(DOCS / "evidence.md", folder)
    return folder


def rolled(folder: Path, mode: str = "quick") -> Path:
    """Run the dice and return the file of results."""
    run(dice, mode=mode, out=folder, workers=0)
    return folder / "example" / "dice" / "results.json"


def test_the_page_and_the_picture_are_the_ones_the_records_give():
    hint = "run `surefoot evidence` and look at the difference"
    assert generated(KEPT) in (DOCS / "evidence.md").read_text(), hint
    assert picture(KEPT) == (DOCS / "evidence" / "verdicts.svg").read_text(), hint
    for file, text in family_pages(KEPT, DOCS).items():
        assert text == file.read_text(), f"{file.name}: {hint}"


def test_stored_verdicts_are_those_of_the_rules_as_they_are_now():
    for id, entry in KEPT.records.items():
        assert judged_again(entry) == entry, f"{id}: run `surefoot evidence`"


# Finding 22 of the review of 0.1.0
def test_a_verdict_rests_on_ten_independent_units_or_is_exact():
    for id, entry in KEPT.records.items():
        claims = find(id).claims
        for claim, kept in zip(claims, entry["claims"], strict=True):
            if kept["verdict"] in ("holds", "fails") and not (claim.exact or claim.form == "EXACT"):
                assert entry["settings"]["units"] is not None, f"{id} {kept['code']}"
                decided = [test for test in kept["tests"] if test["verdict"] != "undecided"]
                assert min(test["n"] for test in decided) >= FEWEST_UNITS, f"{id} {kept['code']}"


def test_every_experiment_names_its_unit():
    for id in names():
        assert find(id).unit.name != Unit().name, id


# Finding 23 of the review of 0.1.0
def test_a_run_that_was_killed_says_so_wherever_it_is_shown():
    page = (DOCS / "evidence.md").read_text()
    killed = [id for id, entry in KEPT.records.items() if entry["settings"]["stopped"] == "killed while running"]
    assert "oblivious-greedy/logistic-synthetic" in killed
    for id in killed:
        count = f"{KEPT.records[id]['repetitions']} (killed)"
        rows = [line for line in page.splitlines() if line.startswith((f"| `{id}` |", f"| [{id}]"))]
        assert rows
        assert all(f"| {count} |" in row for row in rows), id
    selection = (DOCS / "evidence" / "selection.md").read_text()
    assert "### `logistic-synthetic`, 7 repetitions (killed)" in selection


# Finding 23 of the review of 0.1.0
def test_what_has_no_repetition_is_printed_as_not_run_and_has_no_verdict():
    for file in (DOCS / "evidence").glob("*.md"):
        assert " 0 repetitions" not in file.read_text(), file.name
    selection = (DOCS / "evidence" / "selection.md").read_text()
    section = selection.split("### `logistic-mnist`")[1].split("###")[0]
    assert section.startswith(", not run")
    assert "undecided" not in section


def test_a_record_of_0_1_whose_repetitions_share_a_unit_is_undecided_until_it_is_run_again(tmp_path, docs):
    run(lake, out=tmp_path, workers=0)
    entry = record(tmp_path / "example" / "lake" / "results.json")
    assert (entry["settings"]["units"], entry["settings"]["unit"]) == (1, "lake")
    assert [claim["verdict"] for claim in entry["claims"]] == ["undecided", "holds"]
    assert entry["claims"][0]["tests"][0]["n"] == 1
    old = json.loads(json.dumps(entry))
    del old["settings"]["units"], old["settings"]["unit"]
    old["claims"][0]["verdict"] = old["claims"][0]["tests"][0]["verdict"] = "holds"
    again = judged_again(old)
    assert [claim["verdict"] for claim in again["claims"]] == ["undecided", "holds"]
    assert "to be run again" in again["claims"][0]["note"]
    assert judged_again(again) == again
    target = docs / "evidence" / "records" / "example" / "lake.json"
    target.parent.mkdir()
    target.write_text(json.dumps({**again, "repetitions": 500}))
    keep([tmp_path], docs)  # a shorter run that counts its units is worth more
    assert json.loads(target.read_text())["settings"]["units"] == 1


def test_failures_are_explained_and_every_experiment_is_recorded_or_listed():
    assert problems(DOCS) == []


def test_every_explanation_and_every_reason_is_a_sentence():
    sentences = [text for entries in KEPT.explanations.values() for text in entries.values()] + [*KEPT.not_run.values()]
    assert all(len(text) > 30 and text.endswith(".") for text in sentences)


def test_the_page_counts_what_the_records_hold():
    claims = [re.sub(r'\{ "estimate.*', "", file.read_text()) for file in FILES]  # without their tests
    verdicts = re.findall(r'"verdict": (\S+?)[,\s}]', "\n".join(claims))
    counts = [verdicts.count(word) for word in ('"holds"', '"fails"', '"undecided"', "null")]
    row = next(line for line in (DOCS / "evidence.md").read_text().splitlines() if line.startswith("| **all** |"))
    cells = [int(re.match(r"\d+", cell.strip())[0]) for cell in row.split("|")[2:-1]]
    assert cells == [len(FILES), len(verdicts), *counts, len(KEPT.not_run)]


def test_the_readme_counts_as_the_page_does():
    said = re.search(r"(\d+) claims: (\d+) hold, (\d+) fail, (\d+) are undecided, and (\d+) ", generated(KEPT)).groups()
    readme = " ".join((ROOT / "README.md").read_text().split())
    assert "of {} claims {} hold, {} fail and {} are undecided; {} cannot be judged".format(*said) in readme


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_a_record_is_small_and_says_nothing_about_the_machine_but_its_kind(file):
    text = file.read_text()
    entry = json.loads(text)
    assert entry["id"] == f"{file.parent.name}/{file.stem}"
    assert len(text) < 40_000
    assert "replicates" not in text
    assert not re.search(r"(^|[\s\"'(=])(/|[A-Z]:\\|~/)\w+", text)
    assert len(platform.node()) < 4 or platform.node() not in text
    assert set(entry["environment"]) == {"cores", "machine", "packages", "python", "seconds", "system", "workers"}


def test_a_record_judges_again_and_rounds(tmp_path):
    file = rolled(tmp_path)
    data = json.loads(file.read_text())
    file.write_text(json.dumps({**data, "claims": []}))
    entry = record(file)
    assert [claim["verdict"] for claim in entry["claims"]] == ["fails", "holds"]
    assert [claim["code"] for claim in entry["claims"]] == ["C1", "C2"]
    assert entry["claims"][0]["tests"][0]["estimate"] == -1.055
    low = data["claims"][0]["tests"][0]["interval"][0]
    assert entry["claims"][0]["tests"][0]["interval"][0] == pytest.approx(low, rel=1e-5)
    assert len(str(entry["claims"][0]["tests"][0]["interval"][0])) == len("-1.23456") < len(str(low))


def test_the_run_with_more_repetitions_is_kept_unless_a_file_is_named(tmp_path, docs):
    many, few = rolled(tmp_path / "many", "full"), rolled(tmp_path / "few")
    target = docs / "evidence" / "records" / "example" / "dice.json"
    keep([tmp_path], docs)
    assert json.loads(target.read_text())["repetitions"] == 18
    assert "stays" in keep([tmp_path / "few"], docs)[0]
    assert json.loads(target.read_text())["repetitions"] == 18
    keep([few, tmp_path], docs)
    assert json.loads(target.read_text())["repetitions"] == 12
    keep([many], docs)
    before = target.read_text()
    assert keep([many], docs) == []  # nothing new, nothing written
    assert target.read_text() == before


def test_a_record_takes_its_line_off_the_list(tmp_path, docs):
    listed = docs / "evidence" / "not-run.toml"
    rolled(tmp_path / "out")
    keep([tmp_path / "out"], docs)
    assert "example/dice" not in listed.read_text()
    assert listed.read_text().startswith(f'# Reasons.\n"{names()[0]}"')


def test_a_run_without_repetitions_is_left_out(tmp_path, docs):
    file = rolled(tmp_path / "out")
    file.write_text(json.dumps({**json.loads(file.read_text()), "repetitions": 0}))
    assert "no repetition was completed" in keep([tmp_path / "out"], docs)[0]
    assert not list((docs / "evidence" / "records").iterdir())


def test_problems_name_what_must_be_mended(docs):
    folder = docs / "evidence"
    chosen = next(file for file in FILES if '"fails"' in file.read_text())
    id = f"{chosen.parent.name}/{chosen.stem}"
    shutil.copytree(chosen.parent, folder / "records" / chosen.parent.name)
    for other in (folder / "records" / chosen.parent.name).glob("*.json"):
        if other.stem != chosen.stem:
            other.unlink()
    found = "\n".join(problems(docs))
    assert f"{id}: recorded, and in not-run.toml" in found
    assert re.search(rf"{id} C\d+: fails without an explanation", found)
    (folder / "not-run.toml").write_text("")
    (folder / "explanations.toml").write_text('["gp-ucb/regret-bound"]\nC1 = "Why it fails."\n')
    copy = folder / "records" / f"{id}.json"
    entry = json.loads(copy.read_text())
    entry["claims"][0]["name"] += ", or so"
    copy.write_text(json.dumps(entry))
    found = "\n".join(problems(docs))
    assert "gp-ucb/regret-bound C1: explained, but does not fail" in found
    assert "gp-ucb/regret-bound: neither recorded nor in not-run.toml" in found
    assert f"{id}: the claims have changed since it was recorded" in found


def test_a_record_of_changed_claims_gives_way_to_a_shorter_run(tmp_path, docs):
    target = docs / "evidence" / "records" / "example" / "dice.json"
    keep([rolled(tmp_path / "many", "full")], docs)
    entry = json.loads(target.read_text())
    entry["claims"][0]["name"] = "another"
    target.write_text(json.dumps(entry))
    rolled(tmp_path / "few")
    keep([tmp_path / "few"], docs)
    assert json.loads(target.read_text())["repetitions"] == 12


def test_the_command_writes_the_page_and_tells_what_is_missing(tmp_path, docs):
    rolled(tmp_path / "out")
    made = CliRunner().invoke(app, ["evidence", str(tmp_path / "out"), "--docs", str(docs)])
    assert made.exit_code == 1
    assert "example/dice: kept, repetitions 12, from" in made.stdout
    assert "example/dice C1: fails without an explanation" in made.stdout
    page = (docs / "evidence.md").read_text()
    assert "**not explained yet**" in page
    assert "**`example/dice` C1**" in page
    assert page.startswith((DOCS / "evidence.md").read_text().partition("<!-- generated")[0])
    shutil.rmtree(docs / "evidence" / "records" / "example")
    assert CliRunner().invoke(app, ["evidence", "--docs", str(docs)]).exit_code == 0


def test_bad_input_is_refused(tmp_path, docs):
    with pytest.raises(ValueError, match="there are no results in"):
        evidence([tmp_path / "nowhere"], docs=docs)
    with pytest.raises(ValueError, match="there is no folder evidence in it"):
        evidence(docs=tmp_path)
    (docs / "evidence.md").write_text("# Evidence\n")
    with pytest.raises(ValueError, match="must hold the lines"):
        evidence(docs=docs)


def test_the_picture_is_readable_and_holds_every_family():
    drawn = picture(KEPT)
    ElementTree.fromstring(drawn)
    families = {id.split("/")[0] for id in KEPT.records}
    assert drawn.count('text-anchor="end"') >= len(families)


def test_a_file_of_the_same_name_that_is_something_else_is_left_out(tmp_path):
    for name, text in {"a": "{}", "b": "[1]", "c": "not JSON"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "results.json").write_text(text)
    (tmp_path / "evidence").mkdir()
    (tmp_path / "evidence" / "not-run.toml").write_text("")
    lines = keep([tmp_path], tmp_path)
    assert len(lines) == 3
    assert all("left out" in line for line in lines)
