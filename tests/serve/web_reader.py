"""What the tests of the page share: the real service with something in it, a real Chromium, and readers in it."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from running import Server

SPACE = {
    "rate": {"type": "float", "low": 1e-4, "high": 0.1, "log": True},
    "dropout": {"type": "float", "low": 0.0, "high": 0.6},
    "units": {"type": "int", "low": 16, "high": 256, "log": True},
    "activation": {"type": "choice", "values": ["relu", "tanh"]},
}


class Service(Server):
    """The service on a database of its own, and an administrator's way to it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(f"sqlite:///{folder / 'service.sqlite'}", folder)
        self.admin = ""
        self.client = httpx.Client(base_url=f"{self.url}/api/v1/", timeout=30.0)

    def __enter__(self) -> Service:
        self.start()
        self.admin = self.token("lab")
        self.client.headers["Authorization"] = f"Bearer {self.admin}"
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()
        self.stop()

    def status(self, path: str, token: str | None = None) -> int:
        """Return the status that a token gets."""
        return self.client.get(path, headers={"Authorization": f"Bearer {token or self.admin}"}).status_code

    def get(self, path: str) -> Any:
        """Return what an address answers."""
        return self._read(self.client.get(path))

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """Return what an address answers to a body."""
        return self._read(self.client.post(path, json=body))

    @staticmethod
    def _read(answer: httpx.Response) -> Any:
        if not answer.is_success:
            raise RuntimeError(f"{answer.request.url}: {answer.status_code} {answer.text}")
        return answer.json()

    def study(self, name: str, parameters: dict[str, Any], **fields: Any) -> dict[str, Any]:
        """Begin a study."""
        return self.post("studies", {"name": name, "seed": 0, "space": {"parameters": parameters}, **fields})

    def ask(self, study: dict[str, Any]) -> dict[str, Any]:
        """Return the next query of a study."""
        return self.post(f"studies/{study['id']}/ask", {})["queries"][0]

    def tell(self, study: dict[str, Any], **fields: Any) -> None:
        """Tell an outcome."""
        self.post(f"studies/{study['id']}/tell", fields)


class Reader:
    """One reader: a tab, what it asked for, and what it complained about."""

    def __init__(
        self, chromium: Any, service: Service, *, width: int = 1280, dark: bool = False, **options: Any
    ) -> None:
        theme = "dark" if dark else "light"
        self.service = service
        self.context = chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme=theme, reduced_motion="reduce", **options
        )
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.failed: list[tuple[str, Any]] = []
        self.page = self.watch(self.context.new_page())
        self.page.set_default_timeout(20_000)

    def watch(self, page: Any) -> Any:
        """Note what a tab asks for, and everything that goes wrong in it."""
        page.on("console", lambda message: message.type == "error" and self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("response", lambda answer: answer.status >= 400 and self.failed.append((answer.url, answer.status)))
        return page

    def enter(self, token: str | None = None, place: str = "") -> None:
        """Sign in at a place of the page."""
        self.page.goto(f"{self.service.url}/#/{place}")
        self.page.get_by_label("Token", exact=True).fill(token or self.service.admin)
        self.page.get_by_role("button", name="Sign in").click()
        self.page.get_by_role("button", name="Sign out").wait_for()

    def open(self, study: dict[str, Any]) -> None:
        """Go to a study and wait until it is live."""
        self.page.goto(f"{self.service.url}/#/studies/{study['id']}")
        self.page.locator(".pulse.live").wait_for()

    def settled(self) -> None:
        """Nothing went wrong, and nobody else was asked for anything."""
        assert self.complaints == []
        assert self.failed == []
        assert {url for url in self.requests if not url.startswith(self.service.url + "/")} == set()

    def overflow(self) -> int:
        """By how many pixels the page is wider than the window."""
        width, scroll = self.page.evaluate("[innerWidth, document.documentElement.scrollWidth]")
        return int(scroll - width)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """A Chromium without a window."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs pip install playwright")
    command = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if command is None:
        pytest.skip("needs chromium on the PATH")
    flags = [
        "--no-sandbox",  # continuous integration often runs as root, where the sandbox refuses to start
        "--disable-dev-shm-usage",
        "--force-color-profile=srgb",
        "--hide-scrollbars",
    ]
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=command, args=flags)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory, chromium: Any) -> Iterator[Service]:
    """A running service."""
    with Service(tmp_path_factory.mktemp("page")) as running:
        yield running


@pytest.fixture
def reader(chromium: Any, service: Service) -> Iterator[Any]:
    """Make readers that leave at the end of the test."""
    with contextlib.ExitStack() as stack:

        def make(**options: Any) -> Reader:
            made = Reader(chromium, service, **options)
            stack.callback(made.context.close)
            return made

        yield make


def _value(params: dict[str, Any]) -> float:
    shape = 0.1 * (np.log10(params["rate"]) + 2.0) ** 2 + 0.2 * params["dropout"]
    return float(0.05 + shape + 0.04 * (params.get("activation") == "tanh"))


@pytest.fixture(scope="session")
def tuned(service: Service) -> dict[str, Any]:
    """A study that minimizes, with eight measured runs, one failed and one pending."""
    study = service.study("Digits", SPACE, policy="ExpectedImprovement", direction="minimize")
    for turn in range(9):
        query = service.ask(study)
        service.tell(study, query=query["id"], value=None if turn == 4 else _value(query["params"]))
    service.ask(study)
    return study


@pytest.fixture(scope="session")
def followed(service: Service) -> dict[str, Any]:
    """A study whose runs report step by step; some are stopped."""
    parameters = {"rate": SPACE["rate"], "dropout": SPACE["dropout"]}
    study = service.study("Early", parameters, policy="BOBOS", options={"epochs": 12})
    for _ in range(8):
        query = service.ask(study)
        top = 1.0 - _value(query["params"])
        for step in range(1, 13):
            told = {"query": query["id"], "step": step, "value": top * (1.0 - 0.7**step)}
            if service.post(f"studies/{study['id']}/report", told)["stop"]:
                break
        service.tell(study, query=query["id"])
    return study
