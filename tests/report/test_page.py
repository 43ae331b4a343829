"""The page: self-contained, safe, complete; readable whatever the run looks like."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest

import surefoot
from surefoot import (
    BOBOS,
    Box,
    Candidates,
    Choice,
    ExpectedImprovement,
    Float,
    Int,
    RandomSearch,
    Space,
    StableOpt,
    UnknownParameters,
    report,
)
from surefoot.loop.events import timeless
from surefoot.report import theme

HOSTILE = '<script>alert("x")</script>'


class Reader(HTMLParser):
    """Collects tags and attributes, and checks that tags nest."""

    void = frozenset({"meta", "wbr", "br", "link", "img"})

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.void:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def tuned(space, runs=7, **options):
    policy = ExpectedImprovement(space, seed=0, **options)
    for i in range(runs):
        query = policy.ask()
        policy.tell(query, None if i == 3 else float(-np.sum(np.asarray(query.x) ** 2)))
    return policy


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    space = Space(
        {
            HOSTILE: Float(1e-3, 1.0, log=True),
            "a$b_{c}$ & 'd'": Int(1, 8),
            "層": Choice([HOSTILE, "--><!--", None]),
            "fixed": Float(2.0, 2.0),
        }
    )
    policy = tuned(space)
    policy.ask(2)
    policy.cancel(policy.ask())
    path = tmp_path_factory.mktemp("page") / "deep" / "run.html"
    report.page(policy, path, title=HOSTILE, label=HOSTILE, summary=f"{HOSTILE}\n\nsecond", facts={HOSTILE: HOSTILE})
    return policy, path.read_text(encoding="utf-8")


def test_page_is_self_contained(hostile):
    _, html = hostile
    assert not re.search(r"https?:|//[a-z]|@import|url\((?!#)", html)
    reader = Reader(html)
    assert reader.open == []
    assert not {tag for tag, _ in reader.tags} & {"script", "link", "iframe", "img", "object", "embed"}
    for tag, attributes in reader.tags:
        assert not [name for name in attributes if name.startswith("on")]
        for name in ("src", "href"):
            target = attributes.get(name)
            assert target is None or target.startswith(("#", "data:image/png;base64,")), (tag, target)


def test_page_escapes_what_users_write(hostile):
    _, html = hostile
    assert "<script" not in html
    words = " ".join(Reader(html).words)
    assert HOSTILE in words
    assert "a$b_{c}$ & 'd'" in words
    assert "層" in words


def test_pictures_refer_to_their_own_parts(hostile):
    """Several figures share a page: identifiers are unique, and every reference finds its own."""
    _, html = hostile
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', html) + re.findall(r"url\(#([^)]+)\)", html)) <= set(ids)


def test_page_shows_every_run(hostile):
    policy, html = hostile
    table = html[html.index("<h2>Runs</h2>") : html.index("<h2>Settings</h2>")]
    rows = re.findall(r'<tr class="(\w+)">', table)
    assert len(rows) == len(report.runs(policy)) == 10
    assert (rows.count("failed"), rows.count("pending"), rows.count("cancelled"), rows.count("best")) == (1, 2, 1, 1)


def test_page_shows_settings_and_environment(hostile):
    _, html = hostile
    for text in ("ExpectedImprovement", "confidence", "seed", surefoot.__version__, np.__version__, "python"):
        assert text in html[html.index("<h2>Settings</h2>") :]
    assert 'name="viewport"' in html
    assert "prefers-color-scheme: dark" in html


def test_pictures_follow_the_theme(hostile):
    """No color of the light theme is left in a picture: all are variables, and both themes define them."""
    _, html = hostile
    pictures = re.findall(r"<svg.*?</svg>", html, flags=re.DOTALL)
    assert len(pictures) >= 5
    for picture in pictures:
        assert not re.search(r"(?:fill|stroke): #", picture)
    used = set(re.findall(r"var\(--(\w+)\)", html))
    for name in ("light", "dark"):
        assert used <= set(re.findall(r"--(\w+):", theme.variables(name)))


def test_colors_of_a_theme_differ():
    """A color stands for one role, or the pictures could not be recolored."""
    colors = re.findall(r":(#\w+);", theme.variables("light"))
    assert len(colors) == len(set(colors))


@pytest.mark.parametrize(
    "policy",
    [
        tuned(Box([(0.0, 1.0)])),
        tuned(Box([(0.0, 1.0), (-2.0, 5.0)])),
        tuned(Box([(0.0, 1.0), (3.0, 3.0)]), runs=5),
        tuned(Candidates(np.random.default_rng(0).random((9, 3)))),
        tuned(Space(a=Choice(["x", "y"]), b=Choice([1, 2, 3])), runs=4),
        tuned(Space(only=Choice(["x"])), runs=2),
        tuned(Box([(0.0, 1.0)] * 15), runs=2),
    ],
    ids=lambda policy: repr(policy.domain)[:40],
)
def test_page_of_any_domain(policy, tmp_path):
    direction = "minimize" if policy.domain.dimension % 2 else "maximize"
    html = report.page(policy, tmp_path / "run.html", direction=direction).read_text(encoding="utf-8")
    assert Reader(html).open == []
    assert "<svg" in html


@pytest.mark.parametrize("values", [[], [None, None], [2.0], [1.0, 1.0, 1.0], [1e-300, 2e-300], [-1e30, 5.0, 1e30]])
def test_page_of_any_values(values, tmp_path):
    policy = RandomSearch(Box.unit(2), seed=0)
    for value in values:
        policy.tell(policy.ask(), value)
    policy.ask()
    html = report.page(policy, tmp_path / "run.html").read_text(encoding="utf-8")
    assert Reader(html).open == []
    assert ("<svg" in html) == any(value is not None for value in values)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("domain", [Candidates([[2.0]]), Candidates([[0.0, 3.0]]), Space(k=Int(3, 3, log=True))])
def test_page_of_a_single_point(domain, tmp_path):
    policy = surefoot.GPUCB(domain, seed=0)
    for value in (1.0, 2.0):
        policy.tell(policy.ask(), value)
    assert report.page(policy, tmp_path / "run.html").exists()


def test_page_of_an_answer_that_is_no_point_of_the_domain(tmp_path):
    """A design beside unknown parameters: what is measured has two coordinates, what is recommended one."""
    policy = StableOpt(Box.unit(1), perturbation=UnknownParameters([[0.0], [1.0]]), seed=0)
    for _ in range(2):
        query = policy.ask()
        policy.tell(query, float(-np.sum(query.x**2)))
    html = report.page(policy, tmp_path / "run.html").read_text(encoding="utf-8")
    assert Reader(html).open == []
    assert '<div class="card pad"><pre>Recommendation(' in html


def test_page_of_runs_that_only_reported_so_far(tmp_path):
    policy = BOBOS(Box.unit(1), epochs=6, seed=0)
    query = policy.ask()
    for step in (1, 2):
        policy.report(query, step, 0.1 * step)
    html = report.page(policy, tmp_path / "run.html").read_text(encoding="utf-8")
    assert Reader(html).open == []
    assert "1 runs were followed step by step, 2 steps in all." in html
    assert "Nothing was measured yet, so there is nothing to recommend." in html


def test_page_leaves_the_policy_alone(tmp_path):
    one, two = tuned(Box.unit(2)), tuned(Box.unit(2))
    report.page(one, tmp_path / "run.html")
    assert timeless(one.events) == timeless(two.events)
    assert one.ask() == two.ask()


def test_direction_comes_from_the_policy(tmp_path):
    result = surefoot.optimize(
        lambda x: x[0] + 7.0, Box.unit(1), 3, seed=0, direction="minimize", journal=tmp_path / "run.jsonl"
    )
    assert all(run.value >= 7.0 for run in report.runs(result.policy))
    html = report.page(result.policy, tmp_path / "run.html").read_text(encoding="utf-8")
    assert "<td><pre>minimize</pre></td>" in html
    with pytest.raises(ValueError, match="direction"):
        report.page(result.policy, tmp_path / "run.html", direction="sideways")
