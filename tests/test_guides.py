"""The guides: one for every scenario, with its parts, its picture, and errors that the library really raises."""

from __future__ import annotations

import html
import importlib.util
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from surefoot import (
    GP,
    GPLSE,
    GPUCB,
    SE,
    TVGPUCB,
    Ball,
    Box,
    Candidates,
    Choice,
    Dives,
    Float,
    MacroGPO,
    Paths,
    Space,
    StableOpt,
    TruVaR,
    WeightedBox,
    attack,
    optimize,
    select,
)
from surefoot.federated import Agent, SharedFeatures
from surefoot.games import Player, Round

ROOT = Path(__file__).resolve().parents[1]
GUIDES = sorted((ROOT / "docs" / "guides").glob("*.md"))
PICTURES = sorted((ROOT / "docs" / "pictures").iterdir())
SCENARIOS = ["tune", "drift", "robust", "level-set", "route", "private", "federated", "games", "attack"]
SCENARIOS += ["select", "serve"]
PARTS = [
    "The smallest program",
    "Reading the answer",
    "What matters",
    "What can go wrong",
    "When to use something else",
]
LINE, BOX = Candidates(np.linspace(0.0, 1.0, 21)), Box([(0.0, 1.0)])
CELLS = np.stack(np.meshgrid(np.arange(9.0), np.arange(9.0), indexing="ij"), axis=-1).reshape(-1, 2)


def rising(images: np.ndarray) -> np.ndarray:
    """Scores of a classifier that takes bright images for class 1."""
    bright = images.mean(axis=(1, 2))
    return np.stack([1.0 - bright, bright], axis=1)


def bright(image: np.ndarray, **options: object) -> object:
    return attack.bos2(attack.BlackBox(rising), image, ball=attack.NormBall(0.1), budget=40, **options)


def earlier() -> object:
    policy = TVGPUCB(LINE, forgetting=0.1, gp=GP(SE(0.2), noise=1e-3), seed=0)
    policy.ask(time=5.0)
    return policy.ask(time=4.0)


def move() -> object:
    policy = MacroGPO(Paths(CELLS, Dives((9, 9), 3), start=40), horizon=1, gp=GP(SE(2.0), noise=1e-3), seed=0)
    policy.tell(CELLS[40], 0.5)
    return policy.tell(policy.ask(), 1.0)


def features(seed: int) -> SharedFeatures:
    return SharedFeatures(1, 20, lengthscale=0.2, noise=0.01, seed=seed)


def foreign() -> object:
    other = Agent(BOX, features(1), agent=1, seed=1)
    other.tell([0.3], 1.0)
    return Agent(BOX, features(2), agent=0, seed=0).receive(other.message(round=0))


def told(*payoffs: float | None) -> object:
    player = Player(LINE, others=[LINE], level=2, seed=0)
    query = player.ask()
    return player.tell(query, Round([query.x, LINE.points[0]], payoffs) if len(payoffs) > 1 else payoffs[0])


DISTINCT = select.FacilityLocation(np.random.default_rng(0).normal(size=(50, 2)))
RAISED: dict[str, Callable[[], object]] = {
    "ValueError: pixels lie between 0.0 and 1.0": lambda: bright(np.full((20, 20), 40.0), target=1),
    "ValueError: the target of image 0 is its true class": lambda: bright(np.full((20, 20), 0.4), target=0),
    "ValueError: a latent image is at most as large as the image": lambda: bright(np.full((8, 8), 0.4), target=1),
    "ValueError: time runs backwards": earlier,
    "NotSupported: GPUCB.ask() takes no context": lambda: GPUCB(LINE, seed=0).ask(time=1.0),
    "ValueError: this message was made with the features ...": foreign,
    "ValueError: the shared features are for 1 coordinates": lambda: Agent(Box([(0.0, 1.0)] * 2), features(1), agent=0),
    "ValueError: level 2 here needs the payoff of player 1": lambda: told(0.3, None),
    "TypeError: a player is told a Round": lambda: told(0.3),
    "ValueError: give either threshold or fraction": lambda: GPLSE(LINE, seed=0),
    "ValueError: cost must be positive and finite": lambda: TruVaR(LINE, cost=np.zeros(21), seed=0).ask(),
    "NotSupported: the answer is a level set, not a point": lambda: (
        optimize(lambda x: float(x[0]), LINE, 4, policy=GPLSE, threshold=0.5, seed=0).x
    ),
    "NotSupported: ... is a choice, which has no distances": lambda: StableOpt(
        Space(resin=Choice(["north", "south"])), perturbation=Ball(0.1, over=["resin"]), seed=0
    ),
    "ValueError: unknown parameter": lambda: StableOpt(
        Space(width=Float(0.0, 1.0)), perturbation=WeightedBox({"height": 0.1}), seed=0
    ),
    "ValueError: a move of 3 stops is told 3 values": move,
    "ValueError: pro needs 11 elements for its robust part": lambda: select.pro(DISTINCT, 4, 3),
    "ValueError: tau = 3 deletions leave nothing": lambda: select.choose(DISTINCT, 3, 3),
    "ValueError: lazy evaluation needs a submodular objective": lambda: select.lazy_greedy(
        select.Custom(len, n=4, submodular=False), 2
    ),
    "ValueError: bounds are inverted": lambda: Space(rate=Float(1.0, 0.1)),
}


def test_there_is_a_guide_for_every_scenario():
    assert {guide.stem for guide in GUIDES} == set(SCENARIOS)
    front = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    for name in SCENARIOS:
        assert f"guides/{name}.md" in front


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.stem)
def test_a_guide_has_its_parts(guide):
    text = guide.read_text(encoding="utf-8")
    assert re.findall(r"^## (.*)$", text, flags=re.MULTILINE) == PARTS
    assert "```python" in text
    assert "**Further:**" in text
    for example in re.findall(r"`(examples/\w+(?:\.py)?)`", text):
        assert (ROOT / example).exists(), example


@pytest.mark.parametrize("quoted", RAISED)
def test_an_error_that_a_guide_quotes_is_raised(quoted):
    kind, _, sentence = quoted.partition(": ")
    with pytest.raises(Exception, match=re.escape(sentence.strip(" ."))) as caught:
        RAISED[quoted]()
    assert type(caught.value).__name__ == kind


def test_every_quoted_error_is_provoked_above():
    text = "".join(guide.read_text(encoding="utf-8") for guide in GUIDES)
    assert set(re.findall(r"^- `([A-Z]\w+: [^`]+)`", text, flags=re.MULTILINE)) == set(RAISED)


@pytest.mark.parametrize("picture", PICTURES, ids=lambda path: path.name)
def test_a_picture_is_small_shown_and_legible_in_both_themes(picture):
    assert picture.stat().st_size < 150_000
    text = picture.read_text(encoding="utf-8")
    assert "prefers-color-scheme:dark" in text
    assert re.search(r'<rect [^>]*fill="var\(--card\)"', text)  # its own ground, whatever page it stands on
    assert not re.search(r"(?:href|src)=\"(?:https?:)?//", text)
    described = html.unescape(re.search(r'aria-label="([^"]*)"', text).group(1))
    guide = ROOT / "docs" / "guides" / f"{picture.stem}.md"
    assert f"![{described}](../pictures/{picture.name})" in guide.read_text(encoding="utf-8")


def test_pictures_are_drawn_from_the_guides(tmp_path, monkeypatch, capsys):
    """The script makes the picture that the repository holds, as far as Matplotlib's version allows."""
    spec = importlib.util.spec_from_file_location("draw", ROOT / "examples" / "pictures" / "draw.py")
    draw = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(draw)
    (tmp_path / "guides").mkdir()
    (tmp_path / "pictures").mkdir()
    (tmp_path / "guides" / "games.md").write_bytes((ROOT / "docs" / "guides" / "games.md").read_bytes())
    monkeypatch.setattr(draw, "DOCS", tmp_path)
    draw.main(["games"])
    made = (tmp_path / "pictures" / "games.svg").read_text(encoding="utf-8")
    kept = (ROOT / "docs" / "pictures" / "games.svg").read_text(encoding="utf-8")
    for pattern in (r"<style>.*?</style>", r'aria-label="[^"]*"', r">([^<>]*level[^<>]*)<"):
        assert re.findall(pattern, made) == re.findall(pattern, kept)
