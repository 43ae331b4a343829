"""The web page: ``/`` and its assets, as they lie in the package."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.staticfiles import StaticFiles

__all__ = ["FOLDER", "assets", "router"]

FOLDER = Path(__file__).with_name("static")
router = APIRouter(include_in_schema=False)


@router.get("/")
async def front() -> Response:
    """Return the page."""
    index = FOLDER / "index.html"
    if index.is_file():
        return FileResponse(index, headers={"Cache-Control": "no-cache"})
    return PlainTextResponse("The web page is not part of this installation; the API is at /api/v1.\n", 404)


def assets() -> StaticFiles:
    """Return the application that serves the page's files.

    >>> assets().directory.name
    'assets'
    """
    return StaticFiles(directory=FOLDER / "assets", check_dir=False)
