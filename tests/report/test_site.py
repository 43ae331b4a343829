"""The documentation in a real browser: nothing comes from elsewhere, it fits a phone, turns dark, can be searched."""

from __future__ import annotations

import functools
import http.server
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from browser import COMMAND, Browser

pytestmark = pytest.mark.skipif(COMMAND is None, reason="needs chromium on the PATH")

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["index.html", "quick-start.html", "contract.html", "add-a-policy.html", "policies/gp-ucb.html"]
PAGES += ["errata.html", "benchmarks.html", "examples.html", "reference/index.html", "reference/loop.html"]
SEARCH = """new Promise((done, fail) => {
  const field = document.querySelector('input[name=query]'), deadline = Date.now() + 20000;
  field.focus();
  field.value = 'thompson';
  const look = () => {
    field.dispatchEvent(new Event('keyup'));
    const found = [...document.querySelectorAll('.md-search-result__link')].map(a => a.getAttribute('href'));
    found.length ? done(found) : Date.now() > deadline ? fail(new Error('nothing found')) : setTimeout(look, 200);
  };
  look();
})"""


class Silent(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "-f", str(ROOT / "mkdocs.yml"), "-d", str(folder)]
    subprocess.run(command, check=True, timeout=120, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Silent, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("profile")) as running:
        yield running


@pytest.mark.parametrize(("width", "dark"), [(390, True), (1280, False)], ids=["phone", "desk"])
def test_pages_stand_alone_and_fit(width, dark, site, browser):
    for page in PAGES:
        browser.open(f"{site}/{page}", width=width, dark=dark, mobile=width < 500)
        seen = browser.evaluate(
            "[innerWidth, document.documentElement.scrollWidth, document.body.dataset.mdColorScheme, document.title]"
        )
        assert seen[:2] == [width, width], page
        assert seen[2] == ("slate" if dark else "default"), page
        assert "Surefoot" in seen[3]
        elsewhere = [url for url in browser.requests if not url.startswith((site, "data:", "blob:"))]
        assert not elsewhere, page
        assert not browser.complaints, page


def test_the_search_finds_a_policy(site, browser):
    browser.open(f"{site}/index.html", width=1280)
    assert any("policies/thompson-sampling.html" in link for link in browser.evaluate(SEARCH))
