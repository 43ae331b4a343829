"""Requests that do not give up at once: the part of the client that talks HTTP.

A request that may have been lost is sent again after a growing pause; each carries a key, or is harmless to repeat, so
that the service does it once. What the service refuses is raised as the error it would have been at home.

>>> [round(pause, 2) for pause in pauses(0.1, 2.0, 6, jitter=0.0)]
[0.1, 0.2, 0.4, 0.8, 1.6, 2.0]
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from surefoot.errors import MissingExtra
from surefoot.loop.journal import dumps, loads
from surefoot.serve.failures import ServiceError, again

if TYPE_CHECKING:
    import ssl

__all__ = ["Transport", "pauses"]

_AGAIN = (429, 502, 503, 504)


def pauses(first: float, longest: float, count: int, *, jitter: float = 0.5) -> Iterator[float]:
    """Yield how long to wait before each further attempt: twice as long each time, a random part of it less.

    >>> len(list(pauses(0.1, 1.0, 3)))
    3
    """
    for attempt in range(count):
        yield min(first * 2.0**attempt, longest) * (1.0 - jitter * random.random())


class Transport:
    """Sends requests to one service with one token.

    Parameters
    ----------
    url : str
        Address of the service.
    token : str
        Who is calling.
    verify : bool or str or ssl.SSLContext
        Whose certificates to trust: the system's, those of a file, none at all (False; for trying things out).
    timeout : float
        Seconds until an answer must have come; an ask of a large study takes its time.
    retries : int
        How often a request that may have been lost is sent again.

    >>> Transport("ftp://somewhere", token="sf_...")
    Traceback (most recent call last):
    ...
    ValueError: the address of a service begins with http:// or https://, got 'ftp://somewhere'
    """

    def __init__(
        self,
        url: str,
        *,
        token: str,
        verify: bool | str | ssl.SSLContext = True,
        timeout: float = 120.0,
        retries: int = 8,
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise ValueError(f"the address of a service begins with http:// or https://, got {url!r}")
        token = token.strip()  # of a file it has the end of its line
        if not (token and token.isascii() and token.isprintable()):
            raise ValueError("a token is one word of plain characters, sf_...; this one is not")
        if not (isinstance(retries, int) and retries >= 0):
            raise ValueError(f"retries must be a whole number from 0 on, got {retries!r}")
        try:
            import httpx
        except ImportError:
            raise MissingExtra("the client of the service needs httpx: pip install 'surefoot[serve]'") from None
        if isinstance(verify, str):
            import ssl

            verify = ssl.create_default_context(cafile=verify)
        self.url = url.rstrip("/")
        self.retries = retries
        self._lost = httpx.TransportError
        self._http = httpx.Client(
            base_url=f"{self.url}/api/v1",
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
            verify=verify,
            timeout=httpx.Timeout(timeout, connect=10.0),
        )

    def send(self, method: str, path: str, body: Any = None, *, query: Mapping[str, Any] | None = None) -> Any:
        """Return the JSON of the answer, or raise what the service says is wrong."""
        content = None if body is None else dumps(body).encode()
        waits = pauses(0.1, 5.0, self.retries)
        while True:
            try:
                answer = self._http.request(method, path, content=content, params=query)
            except self._lost as error:
                wait = next(waits, None)
                if wait is None:
                    raise ServiceError(f"{self.url} cannot be reached ({type(error).__name__}: {error})") from error
                time.sleep(wait)
                continue
            if answer.status_code in _AGAIN and (wait := next(waits, None)) is not None:
                asked = answer.headers.get("Retry-After", "")
                time.sleep(max(wait, min(float(asked), 30.0)) if asked.isdigit() else wait)
                continue
            if answer.is_success:
                return loads(answer.text) if answer.content else None
            try:
                said = loads(answer.text)
            except ValueError:
                said = None
            raise again(answer.status_code, said)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()
