"""The page of the demo in a real browser."""

from __future__ import annotations

import io

import pytest
from browser import COMMAND, Browser
from rich.console import Console
from test_browser import problems

from surefoot.cli import demo

pytestmark = pytest.mark.skipif(COMMAND is None, reason="needs chromium on the PATH")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "EPOCHS", 8)
        patch.setattr(demo, "EARLIER", 4)
        yield demo.demo(trials=8, seed=0, out=tmp_path_factory.mktemp("demo"), console=Console(file=io.StringIO()))


def test_the_page_of_the_demo_is_shown(page, tmp_path):
    with Browser(tmp_path / "profile") as browser:
        for width, dark in [(1280, False), (390, True)]:
            assert problems(browser, page, width=width, dark=dark) == []
        titles = browser.evaluate("[...document.querySelectorAll('h2')].map(h => h.textContent)")
        assert {"Learning curves", "Previous tasks", "Runs"} <= set(titles)
        status = browser.evaluate("[...document.querySelectorAll('.runs tr td:nth-child(3)')].map(c => c.textContent)")
        assert "stopped" in status
        reasons = browser.evaluate("[...document.querySelectorAll('.runs tr td:last-child')].map(c => c.textContent)")
        assert any(reason.startswith("will not beat") for reason in reasons)
