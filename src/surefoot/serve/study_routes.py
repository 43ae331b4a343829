"""``/studies``: begin a study, ask, tell, look, delete."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from surefoot.serve import answers, studies
from surefoot.serve.bodies import Checked
from surefoot.serve.schemas import AskRequest, Cancel, NewStudy, Renew, Report, Tell, TellMany
from surefoot.serve.service import After, Json, Limit, Reader, Served, Writer

__all__ = ["router"]

router = APIRouter(prefix="/studies", tags=["studies"], route_class=Checked)
Count = Annotated[int, Query(ge=0, le=2**31 - 1)]


# Routes are tried in this order: those of every trial stand first.


@router.post("/{id}/ask", response_model=answers.Queries, summary="Ask where to measure next.")
async def ask(service: Served, caller: Writer, id: str, body: AskRequest | None = None) -> Json:
    """Return queries; with a key, the same ones however often the request is sent."""
    body = body or AskRequest()
    if body.n > service.settings.largest_ask:
        raise ValueError(f"at most {service.settings.largest_ask} queries at once, got n = {body.n}")
    queries = await service.use(caller, id, "ask", body)
    return Json({"queries": queries})


@router.post("/{id}/tell", response_model=answers.Version, summary="Tell what a measurement gave.")
async def tell(service: Served, caller: Writer, id: str, body: Tell) -> Json:
    """Tell an outcome; the same again changes nothing, another one for the same query is a conflict."""
    return Json(await service.use(caller, id, "tell", body, light=True))


@router.post("", status_code=201, response_model=answers.Study, summary="Begin a study.")
async def create(service: Served, caller: Writer, body: NewStudy) -> Json:
    """Begin a study of any policy on any domain."""

    fields = body.model_dump(include={"name", "policy", "options", "direction", "seed"})
    id = await service.begin(caller, {**fields, "domain": body.description()}, body.key)
    return Json(studies.described(await service.light(service.store.study, caller.tenant, id)), 201)


@router.get("", response_model=answers.Studies, summary="List studies, the newest first.")
async def index(service: Served, caller: Reader, limit: Limit = 100, after: After = None) -> Json:
    """List studies; ``after`` is the id of the last one of the page before."""

    def work() -> list[dict[str, Any]]:
        rows = service.store.studies(caller.tenant, limit=limit, after=after)
        return [studies.described(row, whole=False) for row in rows]

    found = await service.light(work)
    return Json({"studies": found, "next": found[-1]["id"] if len(found) == limit else None})


@router.get("/{id}", response_model=answers.Study, summary="How a study stands.")
async def show(service: Served, caller: Reader, id: str) -> Json:
    """Return the study, its domain and its options."""
    row = await service.light(service.store.study, caller.tenant, id)
    return Json(studies.described(row))


@router.delete("/{id}", status_code=204, summary="Delete a study and everything told to it.")
async def delete(service: Served, caller: Writer, id: str) -> Response:
    """Delete a study for good."""
    await service.write(service.store.delete, caller.tenant, id)
    service.live.drop(id)
    return Response(status_code=204)


@router.post("/{id}/tell-many", response_model=answers.Version, summary="Tell several outcomes: all, or none.")
async def tell_many(service: Served, caller: Writer, id: str, body: TellMany) -> Json:
    """Tell several outcomes in one transaction."""
    return Json(await service.use(caller, id, "tell-many", body, light=True))


@router.post("/{id}/report", response_model=answers.Advised, summary="Report a value of a run in progress; get advice.")
async def report(service: Served, caller: Writer, id: str, body: Report) -> Json:
    """Report a step of a run, and learn whether to go on."""
    return Json(await service.use(caller, id, "report", body))


@router.post("/{id}/cancel", response_model=answers.Version, summary="Give a query up.")
async def cancel(service: Served, caller: Writer, id: str, body: Cancel) -> Json:
    """Forget a pending query whose worker is gone."""
    return Json(await service.use(caller, id, "cancel", body, light=True))


@router.post("/{id}/renew", response_model=answers.Held, summary="Say that queries are still being measured.")
async def renew(service: Served, caller: Writer, id: str, body: Renew) -> Json:
    """Renew leases; a query that is missing from the answer has gone back, or never had one."""
    return Json({"held": await service.write(service.leases.renew, caller.tenant, id, body.queries)})


@router.get("/{id}/leases", response_model=answers.LeaseLines, summary="Who has which query, since when.")
async def leases(service: Served, caller: Reader, id: str) -> Json:
    """Return the queries that have a lease."""
    return Json({"leases": await service.light(service.leases.of, caller.tenant, id)})


@router.post("/{id}/close", response_model=answers.Study, summary="Close a study: it can be looked at, not changed.")
async def close(service: Served, caller: Writer, id: str) -> Json:
    """Close a study."""

    def work() -> dict[str, Any]:
        service.store.study(caller.tenant, id)
        service.store.update(id, state="closed")
        return studies.described(service.store.study(caller.tenant, id))

    return Json(await service.write(work))


@router.get("/{id}/recommend", response_model=answers.Point | answers.LevelSetAnswer, summary="The policy's answer.")
async def recommend(service: Served, caller: Reader, id: str) -> Json:
    """Return the recommended point, or the level set; a conflict while nothing was measured."""
    return Json(await service.use(caller, id, "recommend"))


@router.get("/{id}/trace", response_model=answers.Trace, summary="The events of a study.")
async def trace(
    service: Served,
    caller: Reader,
    id: str,
    after: Count = 0,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
    raw: bool = False,
) -> Json:
    """Return events from number ``after`` on; ``raw`` gives the journal's lines, with its header."""

    def work() -> dict[str, Any]:
        return studies.trace(service.store, service.store.study(caller.tenant, id), after, limit)

    shown = await service.light(work)
    if raw:
        shown["header"] = await service.use(caller, id, "header")
    return Json(shown)


@router.get("/{id}/view", response_model=answers.StudyView, summary="What the page of a study draws.")
async def show_view(
    service: Served, caller: Reader, id: str, trials: Annotated[int, Query(ge=1, le=10_000)] = 500
) -> Json:
    """Return trials, best so far, slices and map of the belief, parallel coordinates."""

    drawn = await service.use(caller, id, "view", trials)
    row = await service.light(service.store.study, caller.tenant, id)
    return Json({"study": studies.described(row), **drawn})
