"""What stands between the network and the application: who calls, sizes, headers, logs, and the last word on errors.

It is plain ASGI. Whoever has no valid token is answered by the head of their request: not a byte of a body is read for
them but to throw it away. The body of a caller who is known is read here, never beyond the limit; it is parsed by
:mod:`surefoot.serve.bodies`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import secrets
import time
from collections import Counter
from collections.abc import Iterator, Mapping

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from surefoot.errors import SurefootError
from surefoot.serve.failures import Unauthorized
from surefoot.serve.limits import Buckets
from surefoot.serve.logs import frames
from surefoot.serve.service import Json, Service, refusal
from surefoot.serve.tokens import Caller

__all__ = ["Guard"]

log = logging.getLogger("surefoot.serve")

_OPEN = ("/api/v1/health", "/api/v1/ready", "/api/v1/openapi.json")  # beside the page: whatever is not below /api
_LARGE = 256 * 1024  # bytes from which on a tenant may send few bodies at once
_AT_ONCE = 4
_LINGER = 3.0  # seconds for a caller who was refused to stop sending and to read why
_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
_API = b"default-src 'none'; frame-ancestors 'none'"
_PAGE = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; "
    b"manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)


class _Refused(Exception):
    """A request that is answered here; ``unread`` if a body may still be on its way."""

    def __init__(self, response: Json, *, unread: bool = True) -> None:
        super().__init__(response.status_code)
        self.response, self.unread = response, unread


def _no(status: int, error: str, detail: str, headers: Mapping[str, str] | None = None) -> Json:
    return Json({"error": error, "detail": detail}, status, dict(headers or {}))


class Guard:
    """The outermost layer of the service.

    >>> from surefoot.serve.settings import Settings
    >>> from surefoot.serve.store import Store
    >>> Guard(None, service=Service(Store("sqlite://"), Settings(largest_body=100))).largest
    100
    """

    def __init__(self, app: ASGIApp, *, service: Service) -> None:
        self.app, self.service, self.metrics = app, service, service.metrics
        self.largest = service.settings.largest_body
        self._failures = Buckets(rate=20.0, burst=200.0)  # of each address: beyond that a refusal takes its time
        self._sending: Counter[str] = Counter()  # large bodies of each tenant that are here, or on their way

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, request, status = time.perf_counter(), secrets.token_hex(8), 0
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        api = path.startswith(("/api/", "/openapi"))

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [*message.get("headers", []), *_HEADERS, (b"x-request-id", request.encode())]
                headers.append((b"content-security-policy", _API if api else _PAGE))
                if api:
                    headers.append((b"cache-control", b"no-store"))
                message = {**message, "headers": headers}
            await send(message)

        self.metrics.running += 1
        try:
            if self.service.closing:
                raise _Refused(_stopping())
            if not path.startswith("/api/") or path in _OPEN or self._anybody(path):
                if _length(scope):
                    raise _Refused(_no(413, "TooLarge", "this request takes no body"))
                await self.app(scope, _replayed(b"", receive), answer)
            else:
                caller = await self._caller(scope)
                scope.setdefault("state", {})["caller"] = caller
                with self._sends(caller, scope):
                    body = await self._body(scope, receive)
                    await self.app(scope, _replayed(body, receive), answer)
        except _Refused as refused:
            await _refuse(refused, scope, receive, answer, self.largest)
        except asyncio.CancelledError:  # the server stops, and has waited for this one long enough
            if status:
                raise
            await _refuse(_Refused(_stopping(), unread=False), scope, receive, answer, 0)
        except Exception as error:  # a bug: the caller learns that there is one, the log where it is
            log.error("bug", extra={"fields": {"request": request, **frames(error)}})
            if not status:
                said = f"the service has a problem; its log knows more (request {request})"
                await _no(500, "Bug", said)(scope, receive, answer)
        finally:
            self.metrics.running -= 1
            seconds = time.perf_counter() - began
            # Whether a route knows the prefix it was included under depends on the release of FastAPI.
            route = getattr(scope.get("route"), "path", "other").removeprefix("/api/v1")
            caller = scope.get("state", {}).get("caller")
            self.metrics.request(scope["method"], route, status, seconds, None if caller is None else caller.tenant)
            fields = {"request": request, "method": scope["method"], "route": route, "status": status}
            who = {} if caller is None else {"token": caller.token}
            log.info("request", extra={"fields": {**fields, **who, "milliseconds": round(1000 * seconds, 2)}})

    def _anybody(self, path: str) -> bool:
        return path == "/api/v1/metrics" and self.service.settings.metrics_open

    async def _caller(self, scope: Scope) -> Caller:
        """Who is calling, by the head of the request; refused without a valid token, or when calling too often."""
        scheme, _, secret = dict(scope["headers"]).get(b"authorization", b"").partition(b" ")
        unread = bool(_length(scope))
        try:
            if scheme.lower() != b"bearer" or not secret.strip():
                raise Unauthorized("a token is needed: Authorization: Bearer sf_...", status=401)
            token = secret.strip().decode("latin-1")
            caller = await self.service.callers.caller(token)
        except SurefootError as error:
            if isinstance(error, Unauthorized):
                address = (scope.get("client") or ("",))[0]
                await asyncio.sleep(min(self._failures.take(address), 1.0))
            raise _Refused(refusal(error), unread=unread) from None
        if (wait := self.service.buckets.take(caller.token)) > 0.0:
            headers = {"Retry-After": str(math.ceil(wait))}
            raise _Refused(_no(429, "TooOften", "too many requests with this token", headers), unread=unread)
        return caller

    @contextlib.contextmanager
    def _sends(self, caller: Caller, scope: Scope) -> Iterator[None]:
        """A tenant's large bodies fill the memory of a few, however many connections they come over."""
        length = _length(scope)
        if length > self.largest:
            raise _Refused(_no(413, "TooLarge", f"a request has at most {self.largest} bytes"))
        if length <= _LARGE:
            yield
            return
        if self._sending[caller.tenant] >= _AT_ONCE:
            said = f"at most {_AT_ONCE} large requests of a tenant at once"
            raise _Refused(_no(429, "TooOften", said, {"Retry-After": "1"}))
        self._sending[caller.tenant] += 1
        try:
            yield
        finally:
            self._sending[caller.tenant] -= 1
            if not self._sending[caller.tenant]:
                del self._sending[caller.tenant]

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        """Read the body, up to the limit."""
        slow = self.service.settings.body_seconds
        parts, size, more = [], 0, True
        try:
            async with asyncio.timeout(slow):
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        break
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > self.largest:
                        raise _Refused(_no(413, "TooLarge", f"a request has at most {self.largest} bytes"))
                    more = message.get("more_body", False)
        except TimeoutError:
            said = f"the request was not here after {slow:g} seconds"
            raise _Refused(_no(408, "TooSlow", said, {"Connection": "close"}), unread=False) from None
        return b"".join(parts)


def _length(scope: Scope) -> int:
    """How long the body is, as far as the head tells; one in chunks may become as long as any."""
    headers = dict(scope["headers"])
    declared = headers.get(b"content-length", b"0")
    if b"transfer-encoding" in headers:
        return _LARGE + 1
    return int(declared[:20]) if declared.isdigit() else 2**63


def _stopping() -> Json:
    headers = {"Retry-After": "2", "Connection": "close"}
    return _no(503, "Unavailable", "this server is stopping; try again in a moment", headers)


async def _refuse(refused: _Refused, scope: Scope, receive: Receive, send: Send, most: int) -> None:
    """Answer at once; where a body is on its way, hang up, but not before the caller could read the answer.

    To close a connection on which something arrives destroys what was sent to the other side. So what arrives is thrown
    away, for a moment and up to the largest body.
    """
    response = refused.response
    if not (refused.unread and _length(scope)):
        await response(scope, receive, send)
        return
    if "connection" not in response.headers:
        response.headers["Connection"] = "close"
    await send({"type": "http.response.start", "status": response.status_code, "headers": response.raw_headers})
    await send({"type": "http.response.body", "body": bytes(response.body), "more_body": True})
    if (rest := scope.get("state", {}).get("rest")) is not None:
        rest()  # whoever needs the connection may have it
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_LINGER):
            more = True
            while more and most > 0:
                message = await receive()
                most -= len(message.get("body", b""))
                more = message.get("more_body", False)
    await send({"type": "http.response.body", "body": b""})


def _replayed(body: bytes, receive: Receive) -> Receive:
    """The body once more, for the application; then whatever else the connection says."""
    sent = False

    async def again() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
