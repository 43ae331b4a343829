"""``surefoot attack``: reading, running, interrupting, resuming, reporting, and how it fails."""

from __future__ import annotations

import io
import json
import pickle
import shlex
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from surefoot import cli
from surefoot.attack import ModelFault, NormBall
from surefoot.attack.robustness import Attacked, summarize
from surefoot.cli.attack import METHODS, attack, instances_of, method_named
from surefoot.cli.attack_images import read_images
from surefoot.cli.attack_report import AttackRecord
from surefoot.errors import MissingExtra

MODEL = '''
import numpy as np

CALLS = []

def scores(images):
    """Three classes: bright above, bright below, bright on the left."""
    CALLS.append(len(images))
    parts = [images[:, :8].mean(axis=(1, 2)), images[:, 8:].mean(axis=(1, 2)), images[:, :, :8].mean(axis=(1, 2))]
    z = 30.0 * np.stack(parts, axis=1)
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)

def logits(images):
    return 30.0 * np.stack([images[..., c].mean(axis=(1, 2)) for c in range(3)], axis=1)

def first_logits(images):
    assert images.shape[1] == 3
    return 30.0 * images.mean(axis=(2, 3))

def breaks(images):
    if sum(CALLS) > 40:
        raise RuntimeError("out of memory")
    return scores(images)

def flat(images):
    return np.ones(len(images))
'''


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / f"model_{tmp_path.name}.py").write_text(MODEL)
    rng = np.random.default_rng(0)
    images = rng.uniform(0.3, 0.6, (6, 16, 16))
    images[:3, :8] += 0.1
    images[3:, 8:] += 0.1
    np.savez(tmp_path / "images.npz", images=images, labels=np.array([0, 0, 0, 1, 1, 2]))
    return tmp_path


def name_of(home, function):
    return f"model_{home.name}.py:{function}"


def run(home, function="scores", out="out", **options):
    screen = Console(file=io.StringIO(), width=120)
    settings = {"radius": 0.15, "method": "square", "budget": 200, "picture": False, **options}
    summary = attack(name_of(home, function), "images.npz", out=home / out, console=screen, **settings)
    return summary, screen.file.getvalue()


def records(home, out="out"):
    return [AttackRecord.from_json(line) for line in (home / out / "attacks.jsonl").read_text().splitlines()]


def test_a_report(home):
    summary, said = run(home, targets="all", picture=True)
    found = json.loads((home / "out" / "report.json").read_text())
    assert found["accuracy"] == pytest.approx(5 / 6)
    assert found["planned"] == found["made"] == summary.attacks == 10  # five images, two other classes each
    done = records(home)
    assert found["queries"] == 6 + sum(r.queries for r in done) == sum(sys.modules[f"model_{home.name}"].CALLS)
    images = np.load(home / "images.npz")["images"]
    for record in done:
        moved = np.load(home / "out" / "adversarial" / f"{record.number:05d}.npy", allow_pickle=False)
        assert np.abs(moved - images[record.image]).max() <= 0.15 + 1e-9
        answer = sys.modules[f"model_{home.name}"].scores(moved[None]).argmax()
        assert (answer == record.target) == record.success
    page = (home / "out" / "report.html").read_text()
    assert page.count("<svg") == 2
    assert "entitled to test" in page
    assert "entitled to test" in said
    assert "http" not in page.replace("http://www.w3.org", "")


def test_an_interrupted_run_goes_on_as_it_would_have(home, monkeypatch):
    whole, _ = run(home, targets="all", out="whole")
    module = sys.modules[f"model_{home.name}"]
    real = module.scores
    monkeypatch.setattr(module, "scores", _stopping(real, after=40))
    with pytest.raises(KeyboardInterrupt):
        run(home, targets="all", out="part")
    some = records(home, "part")
    assert 0 < len(some) < whole.attacks
    assert json.loads((home / "part" / "report.json").read_text())["made"] == len(some)
    monkeypatch.setattr(module, "scores", real)
    summary, _ = run(home, targets="all", out="part", resume=True)
    assert summary == whole
    spent = json.loads((home / "part" / "report.json").read_text())["queries"]  # with what was cut short
    assert spent > json.loads((home / "whole" / "report.json").read_text())["queries"]
    order = {r.number: r for r in records(home, "part")}
    assert [order[i] for i in sorted(order)] == sorted(records(home, "whole"), key=lambda r: r.number)


def _stopping(real, after):
    seen = []

    def scores(images):
        seen.append(len(images))
        if sum(seen) > after:
            raise KeyboardInterrupt
        return real(images)

    return scores


# Finding 18 of the review of 0.1.0
@pytest.mark.parametrize("layout", [None, "given"])
def test_files_with_channels_first_and_last_are_the_same_images(home, layout):
    rng = np.random.default_rng(1)
    last = rng.uniform(0.3, 0.6, (4, 20, 20, 3))
    last[np.arange(4), :, :, [0, 1, 2, 0]] += 0.2
    found = {}
    for name, images in (("NHWC", last), ("NCHW", np.moveaxis(last, -1, 1))):
        np.savez(home / f"{name}.npz", images=images, labels=[0, 1, 2, 0])
        pictures = read_images(home / f"{name}.npz", layout=layout and name)
        assert pictures.images.shape == (4, 20, 20, 3)
        np.testing.assert_array_equal(pictures.images, last)
        settings = {"radius": 0.05, "method": "square", "budget": 60, "logits": True, "channels": "first"}
        screen = Console(file=io.StringIO())
        found[name] = attack(
            name_of(home, "first_logits"), home / f"{name}.npz", out=home / name, picture=False, console=screen,
            layout=layout and name, **settings,
        )  # fmt: skip
        assert json.loads((home / name / "report.json").read_text())["accuracy"] == 1.0
        assert np.load(home / name / "adversarial" / "00000.npy").shape == (3, 20, 20)
    assert found["NHWC"] == found["NCHW"]


# Finding 18 of the review of 0.1.0
@pytest.mark.parametrize(
    ("shape", "layout", "said"),
    [
        ((4, 20, 20, 20), None, r"20 \(NCHW\) or 20 \(NHWC\) channels; images have at most 4"),
        ((4, 3, 20, 20), "NHWC", r"read as NHWC, 20 channels; images have at most 4"),
        ((4, 20, 20, 3), "NCHW", r"read as NCHW, 20 channels"),
        ((4, 5, 20, 20), None, r"5 \(NCHW\) or 20 \(NHWC\) channels"),
        ((4, 3, 8, 3), None, r"can be read in two ways; say --layout NCHW or --layout NHWC"),
        ((4, 3, 8, 3), "CHWN", r"the layout is NCHW or NHWC, got 'CHWN'"),
    ],
)
def test_a_layout_that_the_shape_does_not_tell_is_not_guessed(home, shape, layout, said):
    np.savez(home / "odd.npz", images=np.full(shape, 0.5))
    with pytest.raises(ValueError, match=said):
        read_images(home / "odd.npz", layout=layout)
    if said.startswith("can be read"):
        assert read_images(home / "odd.npz", layout="NCHW").images.shape == (4, 8, 3, 3)
        assert read_images(home / "odd.npz", layout="NHWC").images.shape == (4, 3, 8, 3)


def test_a_torn_line_is_made_again(home):
    whole, _ = run(home)
    log = home / "out" / "attacks.jsonl"
    text = log.read_text()
    log.write_text(text[:-20])
    again, _ = run(home, resume=True)
    assert again == whole
    assert sorted(log.read_text().splitlines()) == sorted(text.splitlines())


def test_a_model_that_breaks_keeps_what_is_done_and_says_what_was_spent(home):
    with pytest.raises(ModelFault, match="out of memory") as fault:
        run(home, "breaks", targets="all")
    assert fault.value.queries == json.loads((home / "out" / "report.json").read_text())["queries"] > 40
    assert json.loads((home / "out" / "report.json").read_text())["made"] == len(records(home)) > 0


def test_two_runs_are_not_mixed(home):
    run(home)
    with pytest.raises(ValueError, match="holds an earlier run"):
        run(home)
    with pytest.raises(ValueError, match="begun with other radius"):
        run(home, radius=0.2, resume=True)
    with pytest.raises(ValueError, match="nothing to resume"):
        run(home, out="fresh", resume=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"radius": 0.0}, "radius of a ball must be positive"),
        ({"method": "guess"}, "the method is one of"),
        ({"targets": "7"}, "a class from 0 to 2"),
        ({"budget": 0}, "budget must be a positive"),
        ({"function": "flat"}, "need scores of shape"),
        ({"function": "nothing"}, "has no 'nothing'"),
        ({"method": "square", "norm": "l2"}, "L∞"),
        ({"first": 0}, "at least 1"),
        ({"method": "bos2", "radius": float("nan")}, "positive and finite"),
    ],
)
def test_bad_input(home, options, message):
    with pytest.raises(Exception, match=message):
        run(home, **options)


def test_nothing_is_unpickled(home):
    class Trap:
        def __reduce__(self):
            return (print, ("unpickled",))

    np.savez(home / "trap.npz", images=np.array([Trap()], dtype=object))
    with pytest.raises(ValueError, match="plain arrays"):
        read_images(home / "trap.npz")
    (home / "trap2.npz").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(ValueError, match="plain arrays"):
        read_images(home / "trap2.npz")


def test_pictures_in_a_folder(home):
    from PIL import Image

    folder = home / "pictures"
    folder.mkdir()
    rng = np.random.default_rng(1)
    for i in range(3):
        pixels = rng.integers(80, 160, (16, 16, 3), dtype=np.uint8)
        pixels[..., i] += 40
        Image.fromarray(pixels).save(folder / f"{i}.png")
    (home / "classes.csv").write_text("2.png,2\n0.png,0\n1.png,1\n")
    pictures = read_images(folder, home / "classes.csv")
    assert pictures.images.shape == (3, 16, 16, 3)
    assert pictures.labels.tolist() == [0, 1, 2]
    for function, channels in (("logits", "last"), ("first_logits", "first")):
        summary = attack(
            name_of(home, function), folder, radius=0.2, labels=home / "classes.csv", logits=True, channels=channels,
            targets="random", method="square", budget=300, out=home / channels, quiet=True,
            console=Console(file=io.StringIO()),
        )  # fmt: skip
        assert summary.attacks == 3
    last, first = records(home, "last"), records(home, "first")
    assert [r.queries for r in last] == [r.queries for r in first]  # the same attack in either layout
    Image.fromarray(np.zeros((4, 4), dtype=np.uint8)).save(folder / "z.png")
    with pytest.raises(ValueError, match="use one size"):
        read_images(folder)


GRAY = np.full((2, 4, 4), 0.5)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"pixels": GRAY}, r"needs an array called images \(or X\); it has pixels"),
        ({}, "it has nothing"),
        ({"images": GRAY, "labels": [1]}, r"one whole number per image, got int64 of shape \(1,\)"),
        ({"images": GRAY, "labels": [0.5, 1.0]}, "one whole number per image, got float64"),
        ({"images": GRAY[0]}, r"got \(4, 4\)"),
        ({"images": GRAY[:0]}, r"got \(0, 4, 4\)"),
        ({"images": GRAY.astype(str)}, "must be numbers"),
        ({"images": 3.0 * GRAY}, "pixels must be whole numbers"),
        ({"images": np.full((2, 4, 4), np.nan)}, "pixels must be whole numbers"),
        ({"images": np.full((2, 4, 4), 256)}, "pixels must be whole numbers"),
        ({"images": np.full((2, 4, 4), -1)}, "pixels must be whole numbers"),
    ],
)
def test_arrays_that_are_no_images(arrays, message, tmp_path):
    np.savez(tmp_path / "some.npz", **arrays)
    with pytest.raises(ValueError, match=rf"some\.npz.*{message}"):
        read_images(tmp_path / "some.npz")


def test_an_archive_that_was_cut_short_is_named(tmp_path):
    np.savez(tmp_path / "some.npz", images=GRAY)
    whole = (tmp_path / "some.npz").read_bytes()
    (tmp_path / "some.npz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"some\.npz cannot be read as an \.npz file"):
        read_images(tmp_path / "some.npz")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "there is no file"),
        ("0\n1\n2\n", "3 lines for 2 images"),
        ("", "0 lines for 2 images"),
        ("0\ncat\n", "got 'cat'"),
        ("0\n-1\n", "got '-1'"),
        ("0,3\n", r"no class for 1 \(1 such images\)"),
    ],
)
def test_classes_that_do_not_fit_the_images(text, message, tmp_path):
    np.savez(tmp_path / "some.npz", images=GRAY)
    if text is not None:
        (tmp_path / "classes.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_images(tmp_path / "some.npz", tmp_path / "classes.csv")


def test_the_first_images_only(tmp_path):
    np.savez(tmp_path / "some.npz", images=GRAY)
    (tmp_path / "classes.csv").write_text("4\n7\n")
    first = read_images(tmp_path / "some.npz", tmp_path / "classes.csv", first=1)
    assert first.images.shape == (1, 4, 4)
    assert (first.names, first.labels.tolist()) == (["0"], [4])
    assert read_images(tmp_path / "some.npz", first=1).labels is None


def test_files_that_are_no_images(tmp_path, monkeypatch):
    (tmp_path / "notes.txt").write_text("nothing")
    with pytest.raises(ValueError, match=r"\.npz file or a folder of pictures, got .*notes\.txt"):
        read_images(tmp_path / "notes.txt")
    with pytest.raises(ValueError, match="there is no picture in"):
        read_images(tmp_path)
    (tmp_path / "torn.png").write_bytes(b"\x89PNG")
    with pytest.raises(ValueError, match=r"torn\.png cannot be read as a picture"):
        read_images(tmp_path)
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(MissingExtra, match=r"surefoot\[plot\]"):
        read_images(tmp_path)


def test_without_matplotlib_the_report_has_no_pictures(home, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    summary, said = run(home, picture=True)
    assert "no pictures: " in said
    assert summary.attacks == 5
    assert "<img" not in (home / "out" / "report.html").read_text()
    _, said = run(home, out="quiet", picture=True, quiet=True)
    assert "no pictures" not in said


def test_which_attacks_are_made():
    answers, labels = np.array([0, 1, 2, 1]), np.array([0, 1, 2, 0])
    assert [(i.image, i.target) for i in instances_of(answers, labels, "any", 3, 0)] == [
        (0, None),
        (1, None),
        (2, None),
    ]
    assert len(instances_of(answers, labels, "all", 3, 0)) == 6
    assert [(i.image, i.target) for i in instances_of(answers, labels, "1", 3, 0)] == [(0, 1), (2, 1)]
    drawn = instances_of(np.zeros(200, dtype=int), None, "random", 3, 0)
    assert {i.target for i in drawn} == {1, 2}
    with pytest.raises(ValueError, match=r"labels must lie in 0\.\.2"):
        instances_of(answers, np.array([0, 1, 2, 5]), "any", 3, 0)


def test_a_summary_against_counting_by_hand():
    runs = [Attacked(True, 10), Attacked(True, 30), Attacked(True, 30), Attacked(False, 100), Attacked(False, 100)]
    summary = summarize(runs, 100)
    assert (summary.rate, summary.mean, summary.median, summary.most) == (0.6, 70 / 3, 30.0, 30)
    assert (summary.capped_mean, summary.capped_median) == (54.0, 30.0)
    assert summary.curve == [(10, 0.2), (30, pytest.approx(0.6))]
    assert [summary.at(q) for q in (9, 10, 29, 30, 100)] == [0.0, 0.2, 0.2, pytest.approx(0.6), pytest.approx(0.6)]
    low, high = summary.capped_interval
    assert low < 54.0 < high


def test_the_command(home, monkeypatch, capsys):
    words = ["attack", name_of(home, "scores"), "--images", "images.npz", "--radius", "0.15", "--method", "square"]
    monkeypatch.setattr(sys, "argv", ["surefoot", *words, "--budget", "100", "--quiet", "--out", "cli"])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert not end.value.code
    assert json.loads(capsys.readouterr().out)["made"] == 5
    monkeypatch.setattr(sys, "argv", ["surefoot", *words[:-1], "guess"])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 2
    assert capsys.readouterr().err.strip().count("\n") == 0


def test_every_method_has_a_name():
    for name in METHODS:
        assert method_named(name) is not None


@pytest.mark.parametrize("page", ["docs/command.md", "src/surefoot/cli/attack.py"])
def test_the_examples_name_methods_that_work_in_their_ball(page):
    text = (Path(__file__).resolve().parents[2] / page).read_text(encoding="utf-8").replace("\\\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip().startswith("surefoot attack ")]
    assert len(lines) >= 2
    for line in lines:
        words = shlex.split(line)
        options = {a: b for a, b in pairwise(words) if a.startswith("--")}
        ball = NormBall(float(options["--radius"]), norm=options.get("--norm", "linf"))
        method_named(options.get("--method", "bos2")).check((1, 28, 28), ball)
