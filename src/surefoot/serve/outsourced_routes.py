"""``/outsourced``: upload a release, ask which row to measure, answer with its value, close."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from starlette.responses import Response

from surefoot.serve import answers
from surefoot.serve.bodies import Checked
from surefoot.serve.outsourced import KIND, Releases
from surefoot.serve.schemas import Chunk, Measured, NewRun, Start
from surefoot.serve.service import After, Json, Limit, Reader, Served, Service, Writer

__all__ = ["router"]

router = APIRouter(prefix="/outsourced", tags=["outsourced"], route_class=Checked)


def _runs(service: Service) -> Releases:
    return Releases(service.store, largest=service.settings.largest_release)


@router.post("", status_code=201, response_model=answers.OutsourcedRun, summary="Begin an outsourced run.")
async def create(service: Served, caller: Writer, body: NewRun) -> Json:
    """Begin a run; its release is uploaded next."""
    await service.light(service.quotas.begin, caller.tenant)
    return Json(await service.write(_runs(service).create, caller.tenant, body), 201)


@router.get("", response_model=answers.OutsourcedRuns, summary="List outsourced runs, the newest first.")
async def index(service: Served, caller: Reader, limit: Limit = 100, after: After = None) -> Json:
    """List runs; ``after`` is the id of the last one of the page before."""
    found = await service.light(lambda: _runs(service).list(caller.tenant, limit=limit, after=after))
    return Json({"runs": found, "next": found[-1]["id"] if len(found) == limit else None})


@router.get("/{run}", response_model=answers.OutsourcedRun, summary="How a run stands.")
async def show(service: Served, caller: Reader, run: str) -> Json:
    """Return the state of a run."""
    return Json(await service.light(_runs(service).described, caller.tenant, run))


@router.delete("/{run}", status_code=204, summary="Delete a run, its release and its answers.")
async def delete(service: Served, caller: Writer, run: str) -> Response:
    """Delete a run for good."""
    await service.write(service.store.delete, caller.tenant, run, KIND)
    service.live.drop(run)
    return Response(status_code=204)


@router.put("/{run}/chunks/{k}", response_model=answers.Stored, summary="Upload a part of the release.")
async def put(service: Served, caller: Writer, run: str, k: Annotated[int, Path(ge=0, le=99_999)], body: Chunk) -> Json:
    """Store rows of the release; the same part again replaces it."""
    await service.light(service.quotas.room, caller.tenant)
    return Json(await service.write(_runs(service).put, caller.tenant, run, k, body))


@router.post("/{run}/start", response_model=answers.OutsourcedRun, summary="Check the release and open the run.")
async def start(service: Served, caller: Writer, run: str, body: Start) -> Json:
    """Open a run whose release is complete."""
    runs = _runs(service)
    done = await service.light(runs.check, caller.tenant, run, body)
    if done is None:
        row, release = await service.light(runs.whole, caller.tenant, run, body)
        seed = await service.seed(caller, row, release)
        done = await service.write(runs.open, caller.tenant, run, body, seed)
    return Json(done or await service.light(runs.check, caller.tenant, run, body))  # started meanwhile


@router.post("/{run}/ask", response_model=answers.Row, summary="Ask which row to measure.")
async def ask(service: Served, caller: Writer, run: str) -> Json:
    """Return a step and a row's number: the same until it is answered."""
    return Json(await service.use(caller, run, "outsourced ask", kind=KIND))


@router.post("/{run}/answer", response_model=answers.Version, summary="Answer with the value of a row.")
async def answer(service: Served, caller: Writer, run: str, body: Measured) -> Json:
    """Take the value of a step in; the same again changes nothing."""
    return Json(await service.use(caller, run, "outsourced answer", body, light=True, kind=KIND))


@router.post("/{run}/close", response_model=answers.Closed, summary="End a run, and learn which row to use.")
async def close(service: Served, caller: Writer, run: str) -> Json:
    """Return the number of the row to use, null if nothing was measured."""
    runs = _runs(service)
    done = await service.light(runs.closing, caller.tenant, run)
    if done is None and (message := await service.use(caller, run, "outsourced close", kind=KIND)) is not None:
        await service.write(runs.closed, run, message["index"])
        done = message
    return Json(done or await service.light(runs.closing, caller.tenant, run))
