"""The HTTP application.

>>> from surefoot.serve.store import Store
>>> app = create_app(Store("sqlite://"))
>>> "/api/v1/studies/{id}/ask" in app.openapi()["paths"]
True
"""

from __future__ import annotations

from typing import Annotated, Any

from anyio import CapacityLimiter
from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, Response

import surefoot
from surefoot.errors import SurefootError
from surefoot.serve import answers, outsourced_routes, pages, study_routes, token_routes
from surefoot.serve.failures import Unavailable
from surefoot.serve.guard import Guard
from surefoot.serve.schemas import ErrorAnswer
from surefoot.serve.service import Json, Served, Service, bearer, calling, refusal
from surefoot.serve.settings import Settings
from surefoot.serve.store import Store

__all__ = ["create_app"]

PREFIX = "/api/v1"
_SAID = {
    401: "No token, or not a valid one",
    403: "The token may not do this",
    404: "There is no such thing",
    409: "Against what the service holds",
    413: "Too large",
    422: "Not understood",
    429: "Too often",
    503: "Not now",
}
_FAILURES: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorAnswer, "description": said} for status, said in _SAID.items()
}


def create_app(store: Store, settings: Settings | None = None) -> FastAPI:
    """Return the application on a store whose tables are there.

    Parameters
    ----------
    store : Store
        The database.
    settings : Settings, optional
        Limits.

    >>> create_app(Store("sqlite://"), Settings(rate=10.0)).state.service.settings.rate
    10.0
    """
    service = Service(store, settings or Settings())
    app = FastAPI(
        title="Surefoot",
        summary="Where to measure next, as a service.",
        version=surefoot.__version__,
        openapi_url=f"{PREFIX}/openapi.json",
        docs_url=None,  # their pages come from elsewhere
        redoc_url=None,
        default_response_class=Json,
        lifespan=lambda _app: service.watching(),
    )
    app.state.service = service
    app.state.parsing = CapacityLimiter(2)  # of long bodies
    for routes in (study_routes.router, outsourced_routes.router, token_routes.router):
        app.include_router(routes, prefix=PREFIX, responses=_FAILURES)
    app.include_router(pages.router)
    app.mount("/assets", pages.assets(), name="assets")
    _health(app)
    for kind in (SurefootError, ValueError, TypeError, HTTPException):
        app.add_exception_handler(kind, _refused)
    app.add_exception_handler(RequestValidationError, _not_understood)
    app.add_middleware(Guard, service=service)
    return app


def _health(app: FastAPI) -> None:
    """The routes that watch over the service."""

    @app.get(f"{PREFIX}/health", tags=["service"], response_model=answers.Health, responses={503: _FAILURES[503]})
    async def health(service: Served) -> dict[str, Any]:
        """Whether the service and its database answer."""
        await service.light(service.store.ping)
        return {"status": "ok", "version": surefoot.__version__}

    @app.get(f"{PREFIX}/ready", tags=["service"], response_model=answers.Health, responses={503: _FAILURES[503]})
    async def ready(service: Served) -> dict[str, Any]:
        """Whether the service can work: its database answers, a worker process is there, and it is not stopping."""
        await service.light(service.store.ping)
        if not service.pool.ready:
            raise Unavailable("no worker process is ready yet")
        return {"status": "ok", "version": surefoot.__version__}

    @app.get(
        f"{PREFIX}/metrics",
        tags=["service"],
        response_class=Response,  # text; what is refused is JSON, as everywhere
        responses={
            200: {"description": "One line for each number", "content": {"text/plain": {"schema": {"type": "string"}}}},
            **{status: _FAILURES[status] for status in (401, 403, 429, 503)},
        },
    )
    async def metrics(request: Request, service: Served, given: Annotated[Any, Depends(bearer)]) -> Response:
        """Counts and times, for Prometheus: of all tenants for the operator, of their own for an administrator."""
        if not service.settings.metrics_open:
            caller = await calling(request, given)
            if not caller.may("admin"):
                return Json({"error": "Unauthorized", "detail": "this needs a token with scope admin"}, 403)
            if not caller.may("operator"):
                return _plain(service.metrics.text(tenant=caller.tenant))
        return _plain(service.metrics.text({"policies_cached": service.live.size + service.pool.size}))

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi() -> Response:
        """The OpenAPI document, where tools look for it first."""
        return Json(app.openapi())


def _plain(text: str) -> Response:
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4; charset=utf-8")


async def _refused(_request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException):
        body = ErrorAnswer(error="HTTPException", detail=str(error.detail)).model_dump()
        return Json(body, error.status_code, dict(error.headers or {}))
    return refusal(error)


async def _not_understood(_request: Request, error: Exception) -> Response:
    """Say what is wrong where, without repeating what was sent."""
    found = error.errors() if isinstance(error, RequestValidationError) else []
    said = [f"{'.'.join(str(part) for part in one['loc'])}: {one['msg']}" for one in found[:10]]
    return refusal(ValueError("; ".join(said) or "this request was not understood"))
