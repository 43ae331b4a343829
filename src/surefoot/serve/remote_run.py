"""An outsourced run, from the side of whoever holds the data: a release goes out, row numbers come back.

.. code-block:: python

    release = curator.release()
    run = client.outsource("loans", release)
    close = run.run(curator.answer)
    curator.close(close)
"""

from __future__ import annotations

import base64
import hashlib
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from surefoot.errors import BudgetSpent
from surefoot.loop.state import pack
from surefoot.private.messages import Answer, Ask, Close, Release
from surefoot.serve.transport import Transport

__all__ = ["RemoteRun", "begin"]

_PART = 1_500_000  # bytes of rows in one request, about two million as base64


class RemoteRun:
    """A run at the service, with the face of a modeler: ``ask``, ``tell``, ``close``.

    Made by :meth:`surefoot.Client.outsource` and :meth:`surefoot.Client.outsourced`.

    >>> RemoteRun(Transport("http://127.0.0.1:8000", token="sf_..."), "0f", {"name": "loans"})
    RemoteRun('0f', name='loans')
    """

    def __init__(self, transport: Transport, id: str, info: Mapping[str, Any]) -> None:
        self._transport = transport
        self.id = id
        self._info = dict(info)

    def info(self) -> dict[str, Any]:
        """Return how the run stands."""
        self._info = self._transport.send("GET", f"/outsourced/{self.id}")
        return dict(self._info)

    def ask(self) -> Ask:
        """Return which row to measure: the same until it is answered; ``BudgetSpent`` when there are no more."""
        return Ask.from_wire(self._post("ask"))

    def tell(self, answer: Answer) -> None:
        """Send an answer; the same again changes nothing."""
        self._post("answer", answer.to_wire())

    def close(self) -> Close:
        """End the run, and return which row to use."""
        return Close.from_wire(self._post("close"))

    def run(self, answer: Callable[[Ask], Answer]) -> Close:
        """Ask and answer until no ask is left, and return the closing message."""
        while True:
            try:
                ask = self.ask()
            except BudgetSpent:
                return self.close()
            self.tell(answer(ask))

    def _post(self, what: str, body: Any = None) -> dict[str, Any]:
        answer: dict[str, Any] = self._transport.send("POST", f"/outsourced/{self.id}/{what}", body)
        return answer

    def __repr__(self) -> str:
        return f"RemoteRun({self.id!r}, name={self._info.get('name')!r})"


def begin(
    transport: Transport,
    name: str,
    release: Release,
    *,
    policy: str = "GPUCB",
    direction: str = "maximize",
    seed: int | None = None,
    **options: Any,
) -> RemoteRun:
    """Upload a release in parts and start the run; a release that was simulated is refused.

    >>> import numpy as np
    >>> begin(Transport("http://127.0.0.1:8000", token="sf_..."), "x", Release("k3", np.eye(2), simulated=True))
    Traceback (most recent call last):
    ...
    surefoot.errors.SurefootError: this release was made with reproducible noise, ...
    """
    wire = release.to_wire()
    content = base64.b64decode(wire.pop("rows"))
    body = {"name": name, "policy": policy, "direction": direction, "asks": release.asks, "options": pack(options)}
    made = transport.send("POST", "/outsourced", {**body, "seed": seed, "key": uuid.uuid4().hex})
    run = RemoteRun(transport, made["id"], made)
    for part, at in enumerate(range(0, len(content), _PART - _PART % 8)):
        rows = base64.b64encode(content[at : at + _PART - _PART % 8]).decode("ascii")
        transport.send("PUT", f"/outsourced/{run.id}/chunks/{part}", {"rows": rows})
    start = {"release": wire, "sha256": hashlib.sha256(content).hexdigest()}
    run._info = transport.send("POST", f"/outsourced/{run.id}/start", start)
    return run
