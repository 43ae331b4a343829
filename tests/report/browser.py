"""A real Chromium without a window, driven over a pipe by its DevTools protocol; nothing but the standard library.

One browser serves a whole test module. It runs with a profile of its own in a temporary folder and a proxy that leads
nowhere, so that a page which needs the network shows it by failing.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any, Self

COMMAND = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = [
    "--headless=new",
    "--no-sandbox",  # continuous integration often runs as root, where the sandbox refuses to start
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--proxy-server=127.0.0.1:9",
    "--remote-debugging-pipe",
]


class Browser:
    """Chromium on a pipe: ``open`` a file at a width and theme, ``evaluate`` in it, take a ``screenshot``."""

    def __init__(self, profile: Path) -> None:
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        command = f'exec "$@" 3<&{to_read} 4>&{to_write}'  # the protocol speaks on descriptors 3 and 4
        self._process = subprocess.Popen(
            ["bash", "-c", command, "bash", str(COMMAND), *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(to_read, to_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self._buffer, self._number = b"", 0
        self._session: str | None = None
        self.requests: list[str] = []
        self.complaints: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._session = None
        with contextlib.suppress(OSError, TimeoutError, RuntimeError):
            self.call("Browser.close")
        os.close(self._write)
        os.close(self._read)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send one command and return its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self._number:
            pass
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def open(
        self, path: Path | str, *, width: int, height: int = 900, dark: bool = False, mobile: bool = False
    ) -> None:
        """Show a file, or an address, in a window of this size and theme, and wait until it is loaded."""
        self.requests, self.complaints = [], []
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile}
        self.call("Emulation.setDeviceMetricsOverride", **metrics)
        theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[theme])
        self.call("Page.navigate", url=path if isinstance(path, str) else path.resolve().as_uri())
        self.evaluate(
            "new Promise(done => document.readyState == 'complete' ? done() : addEventListener('load', done))"
        )

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"].get("description", "an exception"))
        return answer["result"].get("value")

    def screenshot(self) -> bytes:
        """Return the whole page, not only what fits the window, as PNG."""
        answer = self.call("Page.captureScreenshot", captureBeyondViewport=True, optimizeForSpeed=True)
        return base64.b64decode(answer["data"])

    def _next(self, patience: float = 60.0) -> dict[str, Any]:
        """The next message; what the page asked the network for, and what it complained about, is noted."""
        deadline = time.monotonic() + patience
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(deadline - time.monotonic(), 0.0))
            if not ready:
                raise TimeoutError(f"Chromium did not answer for {patience:.0f} s")
            piece = os.read(self._read, 1 << 20)
            if not piece:
                raise RuntimeError("Chromium ended")
            self._buffer += piece
        line, self._buffer = self._buffer.split(b"\0", 1)
        message = json.loads(line)
        kind, params = message.get("method"), message.get("params", {})
        if kind == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif kind == "Log.entryAdded":
            self.complaints.append(params["entry"]["text"])
        elif kind == "Runtime.exceptionThrown":
            self.complaints.append(params["exceptionDetails"]["text"])
        return message
