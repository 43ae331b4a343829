"""``/tokens``: an administrator's own tenant only."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from surefoot.serve import answers, tokens
from surefoot.serve.bodies import Checked
from surefoot.serve.schemas import NewToken
from surefoot.serve.service import Administrator, Json, Served

__all__ = ["router"]

router = APIRouter(prefix="/tokens", tags=["tokens"], route_class=Checked)


@router.post(
    "", status_code=201, response_model=answers.TokenSecret, summary="Make a token; its secret is shown this once."
)
async def create(service: Served, caller: Administrator, body: NewToken) -> Json:
    """Make a token for the caller's tenant."""
    made = await service.write(tokens.create, service.store, caller.tenant, body.name, body.scope, body.expires)
    return Json(made, 201)


@router.get("", response_model=answers.Tokens, summary="List the tokens of the tenant, revoked ones included.")
async def index(service: Served, caller: Administrator) -> Json:
    """List tokens, without their secrets."""
    rows = await service.light(service.store.tokens, caller.tenant)
    return Json({"tokens": [tokens.listed(row) for row in rows]})


@router.delete("/{id}", status_code=204, summary="Revoke a token.")
async def revoke(service: Served, caller: Administrator, id: str) -> Response:
    """Make a token worthless."""
    if not (id.isalnum() and id.isascii()):
        id = ""
    await service.write(service.store.revoke, id, caller.tenant)
    return Response(status_code=204)
