"""Bodies of requests: JSON of finite numbers and proper text, read and checked where the event loop is not held up.

The guard has read the bytes of a caller it knows, never beyond the limit. A body longer than a few thousand bytes is
parsed and checked against its schema in one of two threads; how many values it has is counted first, as a short text
can be a long list.

>>> parsed(b'{"value": 1.5}')
{'value': 1.5}
>>> parsed(b'{"value": NaN}')
Traceback (most recent call last):
...
ValueError: NaN is not JSON
>>> parsed(b'{"value": 1e999}')
Traceback (most recent call last):
...
ValueError: a number is too large
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Coroutine
from typing import Any, get_type_hints

from anyio import to_thread
from fastapi import HTTPException
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.responses import Response

__all__ = ["Checked", "parsed"]

_DEEP = 50
_SHORT = 4096  # bytes that are checked at once: a thread would take longer
_BYTES_PER_VALUE = 16  # of the largest body: of numbers with all their digits, as many as fit; of empty lists, not
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")


def parsed(body: bytes, most: int | None = None) -> Any:
    """Return the value of a body, or raise what is wrong with it.

    >>> parsed(b"[" * 100_000)
    Traceback (most recent call last):
    ...
    ValueError: this is nested too deeply
    >>> parsed(b"[[],[],[]]", most=4)
    Traceback (most recent call last):
    ...
    fastapi.exceptions.HTTPException: 413: a request has at most 4 values
    """
    if most is not None and body.count(b",") + body.count(b"[") + body.count(b"{") > most:
        raise HTTPException(413, f"a request has at most {most} values")
    try:
        if b"\\u0000" in body:
            raise ValueError("text must not contain a null character")
        value = json.loads(body.decode(), parse_constant=_constant, parse_float=_float, parse_int=_int)
        if _depth(value) > _DEEP:
            raise RecursionError
        if _HALF.search(body):
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("this is nested too deeply") from None
    except UnicodeError:
        raise ValueError("text must be proper UTF-8") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"this is not JSON ({error.msg.lower()})") from None
    return value


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


def _checked(body: bytes, most: int, adapter: TypeAdapter[Any]) -> Any:
    """The body as the class that a route takes; what is wrong is said of a few places, not of ten thousand."""
    value = parsed(body, most)
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)[:10]
        raise RequestValidationError([{**one, "loc": ("body", *one["loc"])} for one in found]) from None


class _Read(Request):
    """A request whose body was checked before."""

    made: Any = None

    async def json(self) -> Any:
        return self.made


class Checked(APIRoute):
    """A route that finds its argument ``body`` checked, off the event loop."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request."""
        handler = super().get_route_handler()
        kind = get_type_hints(self.endpoint).get("body")
        if kind is None:
            return handler
        adapter: TypeAdapter[Any] = TypeAdapter(kind)

        async def checked(request: Request) -> Response:
            if body := await request.body():
                state = request.app.state
                given = body, max(state.service.settings.largest_body // _BYTES_PER_VALUE, 1), adapter
                if len(body) <= _SHORT:
                    made = _checked(*given)
                else:
                    made = await to_thread.run_sync(_checked, *given, limiter=state.parsing)
                request = _Read(request.scope, request.receive)
                request.made, request._body = made, body
            return await handler(request)

        return checked
