"""What stands between the network and the application: sizes, strict JSON, headers, logs, and the last word on errors.

It is plain ASGI. A body is read here, never beyond the limit, and handed on only if it is JSON of finite numbers and
proper text; so nothing further in meets NaN, a number too large for a float, half a character, or a body too deep.

>>> strict(b'{"value": 1.5}')
>>> strict(b'{"value": NaN}')
'NaN is not JSON'
>>> strict(b'{"value": 1e999}')
'a number is too large'
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import re
import secrets
import time
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from surefoot.serve.logs import frames
from surefoot.serve.metrics import Metrics

__all__ = ["Guard", "strict"]

log = logging.getLogger("surefoot.serve")

_DEEP = 50
_SLOW = 60.0  # seconds until a body must be here
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
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")


class _Refused(Exception):
    """A request that is answered here."""

    def __init__(self, status: int, error: str, detail: str) -> None:
        super().__init__(detail)
        self.status, self.error, self.detail = status, error, detail


def strict(body: bytes) -> str | None:
    """Return what is wrong with a body: None for JSON of finite numbers and proper text.

    >>> strict(b"[" * 100_000)
    'this is nested too deeply'
    """
    try:
        if b"\\u0000" in body:
            raise ValueError("text must not contain a null character")
        value = json.loads(body.decode(), parse_constant=_constant, parse_float=_float, parse_int=_int)
        if _depth(value) > _DEEP:
            raise RecursionError
        if _HALF.search(body):
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        return "this is nested too deeply"
    except UnicodeError:
        return "text must be proper UTF-8"
    except json.JSONDecodeError as error:
        return f"this is not JSON ({error.msg.lower()})"
    except ValueError as error:
        return str(error)
    return None


def _depth(value: Any) -> int:
    """How many lists and objects lie in each other."""
    depth, level = 0, [value] if isinstance(value, (dict, list)) else []
    while level and depth <= _DEEP:
        inside = (item for one in level for item in (one.values() if isinstance(one, dict) else one))
        depth, level = depth + 1, [item for item in inside if isinstance(item, (dict, list))]
    return depth


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _float(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError("a number is too large")
    return number


def _int(text: str) -> int:
    if len(text) > 40:
        raise ValueError("a number is too large")
    return int(text)


class Guard:
    """The outermost layer of the service.

    >>> Guard(None, largest=100, metrics=Metrics()).largest
    100
    """

    def __init__(self, app: ASGIApp, *, largest: int, metrics: Metrics) -> None:
        self.app, self.largest, self.metrics = app, largest, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, request, status = time.perf_counter(), secrets.token_hex(8), 0
        api = scope["path"].startswith(("/api/", "/openapi"))

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
            body = await self._body(scope, receive)
            await self.app(scope, _replayed(body, receive), answer)
        except _Refused as refused:
            await _say(answer, refused.status, refused.error, refused.detail)
        except Exception as error:  # a bug: the caller learns that there is one, the log where it is
            log.error("bug", extra={"fields": {"request": request, **frames(error)}})
            if not status:
                await _say(answer, 500, "Bug", f"the service has a problem; its log knows more (request {request})")
        finally:
            self.metrics.running -= 1
            seconds = time.perf_counter() - began
            # Whether a route knows the prefix it was included under depends on the release of FastAPI.
            route = getattr(scope.get("route"), "path", "other").removeprefix("/api/v1")
            self.metrics.request(scope["method"], route, status, seconds)
            fields = {"request": request, "method": scope["method"], "route": route, "status": status}
            caller = scope.get("state", {}).get("caller")
            who = {} if caller is None else {"token": caller.token}
            log.info("request", extra={"fields": {**fields, **who, "milliseconds": round(1000 * seconds, 2)}})

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        """Read the body, up to the limit."""
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        if not declared.isdigit() or int(declared[:20]) > self.largest:
            raise _Refused(413, "TooLarge", f"a request has at most {self.largest} bytes")
        parts, size, more = [], 0, True
        try:
            async with asyncio.timeout(_SLOW):
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        break
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > self.largest:
                        raise _Refused(413, "TooLarge", f"a request has at most {self.largest} bytes")
                    more = message.get("more_body", False)
        except TimeoutError:
            raise _Refused(408, "TooSlow", f"the request was not here after {_SLOW:g} seconds") from None
        body = b"".join(parts)
        if body and (wrong := strict(body)) is not None:
            raise _Refused(422, "ValueError", wrong)
        return body


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


async def _say(send: Send, status: int, error: str, detail: str) -> None:
    body = json.dumps({"error": error, "detail": detail}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status in (408, 413):
        headers.append((b"connection", b"close"))  # what follows on this connection is not worth reading
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
