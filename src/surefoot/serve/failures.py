"""What can go wrong between a client and the service, beside the errors of :mod:`surefoot.errors`.

The service answers every error with ``{"error": NAME, "detail": SENTENCE}`` and a status; the client raises the same
error again. :data:`STATUS` is the table both use.

>>> status_of(NotFound("there is no study 'x'"))
404
"""

from __future__ import annotations

from typing import Any

import numpy as np

from surefoot import errors
from surefoot.errors import SurefootError

__all__ = [
    "Conflict",
    "NotFound",
    "ServiceError",
    "TooLarge",
    "TooMany",
    "Unauthorized",
    "Unavailable",
    "again",
    "status_of",
]


class ServiceError(SurefootError):
    """The service said no, or something is wrong with it; ``status`` is that of HTTP where there was an answer.

    >>> ServiceError("the service has a problem", status=500).status
    500
    """

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class NotFound(ServiceError):
    """There is no such thing, or it belongs to somebody else: the two look the same."""


class Conflict(ServiceError):
    """The request contradicts what the service already holds."""


class Unauthorized(ServiceError):
    """The token is missing, unknown, revoked, or may not do this.

    >>> Unauthorized("this token may only read", status=403).status
    403
    """


class TooLarge(ServiceError):
    """More than may be stored."""


class TooMany(ServiceError):
    """More at once than one tenant may have: try again when some are done."""


class Unavailable(ServiceError):
    """The database does not answer, too many wrote at once, or the work took too long: try again ``after`` seconds.

    >>> Unavailable("the database is busy", after=5).after
    5
    """

    def __init__(self, message: str, *, status: int | None = None, after: int = 1) -> None:
        super().__init__(message, status=status)
        self.after = after


STATUS: dict[type[Exception], int] = {
    NotFound: 404,
    Conflict: 409,
    Unauthorized: 401,
    TooLarge: 413,
    TooMany: 429,
    Unavailable: 503,
    errors.NoData: 409,
    errors.PendingQuery: 409,
    errors.Exhausted: 409,
    errors.BudgetSpent: 409,
    errors.NotSupported: 422,
    errors.MissingData: 422,
    errors.MissingExtra: 422,
    SurefootError: 422,
    ValueError: 422,
    TypeError: 422,
}
"""The status of each error a caller can do something about; anything else is a bug, and a 500."""


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status of an error, None for one that nobody raised on purpose.

    >>> status_of(errors.NoData("nothing was told yet")), status_of(KeyError("x"))
    (409, None)
    """
    if isinstance(error, np.linalg.LinAlgError):  # a ValueError by inheritance, but not the caller's
        return None
    if isinstance(error, ServiceError) and error.status is not None:
        return error.status
    return next((status for kind, status in STATUS.items() if isinstance(error, kind)), None)


def again(status: int, body: Any) -> Exception:
    """Return the error that a client raises for an answer of the service.

    >>> again(409, {"error": "NoData", "detail": "nothing was told yet"})
    NoData('nothing was told yet')
    """
    body = body if isinstance(body, dict) else {}
    name, detail = body.get("error"), str(body.get("detail") or f"the service answered with status {status}")
    for kind in STATUS:
        if kind.__name__ == name:
            return kind(detail, status=status) if issubclass(kind, ServiceError) else kind(detail)
    known: dict[int, type[ServiceError]] = {401: Unauthorized, 403: Unauthorized, 404: NotFound, 409: Conflict}
    return known.get(status, ServiceError)(detail, status=status)
