"""The page in a real browser: every picture is shown, in both themes, on a desk and on a phone, without the network."""

from __future__ import annotations

import io

import numpy as np
import pytest
from browser import COMMAND, Browser

from surefoot import GPUCB, Box, Choice, ExpectedImprovement, Float, Int, RandomSearch, Space, report
from surefoot.report.theme import variables

pytestmark = pytest.mark.skipif(COMMAND is None, reason="needs chromium on the PATH")

LOOK = """[...document.querySelectorAll('svg')].map(svg => {
  const box = svg.getBoundingClientRect(), frame = svg.closest('.scroll').getBoundingClientRect();
  const texts = [...svg.querySelectorAll('text')].filter(t => t.textContent.trim());
  return {
    name: svg.getAttribute('aria-label'),
    box: [Math.max(box.left, frame.left) + scrollX, box.top + scrollY,
          Math.min(box.right, frame.right) + scrollX, box.bottom + scrollY],
    visible: svg.checkVisibility({checkOpacity: true, checkVisibilityCSS: true}),
    letters: Math.min(...texts.map(t => parseFloat(getComputedStyle(t).fontSize) * t.getScreenCTM().a
                                        || parseFloat(getComputedStyle(t).fontSize) * Math.abs(t.getScreenCTM().b))),
    outside: texts.filter(t => { const r = t.getBoundingClientRect();
      return r.left < box.left - 3 || r.right > box.right + 3 || r.top < box.top - 3 || r.bottom > box.bottom + 3; })
      .map(t => t.textContent),
  };
})"""
STRONG = ("accent", "belief", *(f"level{i}" for i in range(4, 12)))
PAGE = "[innerWidth, document.documentElement.scrollWidth]"


def problems(browser, path, *, width, dark):
    """Return what is wrong with a page as a reader sees it."""
    browser.open(path, width=width, dark=dark, mobile=width < 500)
    found = []
    if browser.requests != [path.resolve().as_uri()] or browser.complaints:
        found.append(f"asked for {browser.requests}, complained {browser.complaints}")
    inner, scroll = browser.evaluate(PAGE)
    if (inner, scroll) != (width, width):
        found.append(f"the page is {scroll} wide, in a window of {inner} instead of {width}")
    import matplotlib.image

    pixels = (matplotlib.image.imread(io.BytesIO(browser.screenshot()))[..., :3] * 255).round().astype(int)
    colors = theme_colors("dark" if dark else "light")
    if np.abs(pixels[40, 2] - colors["paper"]).max() > 2:
        found.append(f"the paper has color {pixels[40, 2]}")
    pictures = browser.evaluate(LOOK)
    if not pictures:
        found.append("no pictures")
    for picture in pictures:
        left, top, right, bottom = (round(v) for v in picture["box"])
        region = pixels[top:bottom, left:right].reshape(-1, 3)
        name = picture["name"]
        if not picture["visible"] or right - left < 240 or bottom - top < 120:
            found.append(f"{name}: {right - left} x {bottom - top}, visible {picture['visible']}")
            continue
        drawn = np.abs(region - colors["card"]).max(axis=1) > 24
        if not 0.01 < drawn.mean() < 0.9:
            found.append(f"{name}: {drawn.mean():.1%} of it is drawn")
        colored = region[drawn & (np.ptp(region, axis=1) > 30)]  # smoothed edges of black and white are gray
        if max(near(colored, colors[role]) for role in STRONG) < 25 or near(region, colors["ink"], 48) < 25:
            found.append(f"{name}: lacks the theme's colors")
        if picture["letters"] < 8.0:
            found.append(f"{name}: letters of {picture['letters']:.1f} px")
        if picture["outside"]:
            found.append(f"{name}: cut off {picture['outside']}")
    return found


def theme_colors(name):
    pairs = (entry.split(":") for entry in variables(name).split(";") if entry)
    return {key[2:]: np.array([int(value[i : i + 2], 16) for i in (1, 3, 5)]) for key, value in pairs}


def near(region, color, distance=36):
    """How many pixels have nearly this color."""
    return int((np.abs(region - color).max(axis=1) <= distance).sum())


class Watched(ExpectedImprovement):
    """Expected improvement whose runs are reported; every third run was given up."""

    steps = True
    tasks = ()

    @property
    def stopped(self):
        return {id: "will not beat 0.9 (probability 0.03)" for id in self.reports() if id % 3 == 2}

    @property
    def weight_history(self):
        rng = np.random.default_rng(0)
        return rng.dirichlet(np.ones(4), len(self.queries))


def watched():
    space = Space(
        learning_rate=Float(1e-4, 0.1, log=True),
        hidden_units=Int(16, 256, log=True),
        dropout=Float(0.0, 0.6),
        activation=Choice(["relu", "tanh", "logistic"]),
    )
    policy = Watched(space, seed=0)
    for _ in range(12):
        query = policy.ask()
        top = 0.95 - 0.1 * (np.log10(query.params["learning_rate"]) + 2.0) ** 2 - 0.2 * query.params["dropout"]
        for step in range(1, 7 if query.id % 3 == 2 else 21):
            policy.report(query, step, top * (1.0 - 0.8**step))
        policy.tell(query, None) if query.id == 7 else policy.tell(query)
    policy.report(policy.ask(), 1, 0.2)
    return policy


def flat():
    policy = GPUCB(Box([(-5.0, 10.0), (0.0, 15.0)]), seed=0)
    for _ in range(9):
        query = policy.ask()
        policy.tell(query, -float(np.sum((query.x - 4.0) ** 2)))
    policy.tell(policy.ask(), None)
    policy.ask(2)
    return policy


def plain():
    policy = RandomSearch(Space({f"a rather long name of parameter {i}": Float(0.0, 1.0) for i in range(7)}), seed=0)
    for value in np.linspace(0.0, 1.0, 20):
        policy.tell(policy.ask(), value)
    return policy


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("profile")) as running:
        yield running


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    return {
        "watched": report.page(watched(), folder / "watched.html", title="Watched runs", label="accuracy"),
        "flat": report.page(flat(), folder / "flat.html", title="Two coordinates", direction="minimize"),
        "plain": report.page(plain(), folder / "plain.html", title="W" * 80, summary="long" * 60, label="v" * 70),
    }


@pytest.mark.parametrize(
    ("name", "width", "dark"),
    [
        *(("watched", width, dark) for width in (390, 1280) for dark in (False, True)),
        ("flat", 390, False),
        ("flat", 1280, True),
        ("plain", 390, True),
        ("plain", 1280, False),
    ],
)
def test_every_picture_is_shown(name, width, dark, browser, pages):
    assert problems(browser, pages[name], width=width, dark=dark) == []


def test_the_page_has_the_pictures_it_should_have(browser, pages):
    browser.open(pages["watched"], width=1280)
    titles = browser.evaluate("[...document.querySelectorAll('h2')].map(h => h.textContent)")
    assert titles == [
        "Recommended", "Progress", "Learning curves", "Along each parameter", "All parameters at once",
        "Previous tasks", "Runs", "Settings", "Environment",
    ]  # fmt: skip
    assert browser.evaluate("document.querySelectorAll('svg').length") == 2 + 2 + 4 + 1 + 1
    status = browser.evaluate("[...document.querySelectorAll('.runs tr td:nth-child(3)')].map(c => c.textContent)")
    assert sorted(set(status)) == ["failed", "measured", "pending", "stopped"]


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda html: html.replace("var(--", "var(--no-"), "lacks the theme's colors"),
        (lambda html: html.replace("<figcaption>", '<figcaption style="width:700px">'), "instead of 390"),
        (lambda html: html.replace("<path", "<nothing").replace("<use", "<nothing"), "is drawn"),
        (lambda html: html.replace('<div class="scroll"><svg', '<div class="scroll" hidden><svg'), "visible False"),
        (lambda html: html.replace("<title>", '<link rel="stylesheet" href="other.css"><title>'), "other.css"),
        (lambda html: html.replace("<body>", '<body><img src="http://127.0.0.1:9/dot.png">'), "dot.png"),
    ],
    ids=["colors", "overflow", "nothing drawn", "hidden", "another file", "the network"],
)
def test_the_check_notices_a_spoiled_page(spoil, said, browser, pages, tmp_path):
    path = tmp_path / "spoiled.html"
    path.write_text(spoil(pages["flat"].read_text(encoding="utf-8")), encoding="utf-8")
    assert said in " ".join(problems(browser, path, width=390, dark=False))
