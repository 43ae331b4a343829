"""What can be done with a study: ask, tell, report, cancel, recommend, look.

Each function takes a :class:`~surefoot.serve.live.LiveStudy` that nobody else uses meanwhile and the checked body of a
request, and returns JSON.

>>> from surefoot.serve.live import scratch
>>> ask(scratch(), AskRequest(n=2))[1]["id"]
1
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from surefoot.errors import BudgetSpent
from surefoot.loop.direction import turned_event
from surefoot.loop.journal import SCHEMA, dumps, loads
from surefoot.loop.state import pack
from surefoot.serve.failures import Conflict
from surefoot.serve.live import LiveStudy, digest
from surefoot.serve.rows import of_negated, options_of
from surefoot.serve.schemas import AskRequest, Cancel, Expire, Report, Tell, TellMany
from surefoot.serve.store import Store
from surefoot.serve.wire import advice_out, answer_out, oriented, outcome_in, query_out

__all__ = ["ask", "cancel", "described", "expire", "header", "recommend", "report", "tell", "tell_many", "trace"]


def described(row: Mapping[str, Any], *, whole: bool = True) -> dict[str, Any]:
    """Return what a list shows of a study; ``whole`` adds its domain, its options and the release that made it.

    >>> row = dict.fromkeys(["id", "name", "policy", "created", "updated", "told", "pending", "failed", "stopped"])
    >>> described({**row, "direction": "minimize", "version": 2, "best": -3.0, "state": "open"}, whole=False)["best"]
    3.0
    """
    names = ("id", "name", "policy", "direction", "created", "updated", "told", "pending", "failed", "stopped")
    shown = {name: row[name] for name in names}
    shown.update(events=row["version"], version=row["version"], state=row["state"])
    shown["best"] = oriented(row["best"], row["direction"])
    if whole:
        options = pack(options_of(row)) if of_negated(row) else loads(row["options"])
        options.pop("direction", None)
        shown.update(domain=loads(row["domain"]) if row["domain"] else None, options=options)
        shown["release"] = row["release"]
    return shown


def ask(study: LiveStudy, body: AskRequest) -> list[dict[str, Any]]:
    """Return new queries, or those that were given to the same key before.

    >>> from surefoot.serve.live import scratch
    >>> study = scratch()
    >>> [ask(study, AskRequest(key="k"))[0]["id"] for _ in range(2)]
    [0, 0]
    """
    study.require_open("asking")
    policy, journal = study.policy, study.writer
    if (given := _known(study, body)) is not None:
        queries = policy.trials.queries
        return [query_out(queries[id]) for id in given["ids"]]
    trials = policy.trials
    if body.most is not None and len(trials.told) + len(trials.pending) + body.n > body.most:
        over = len(trials.told) >= body.most
        raise BudgetSpent(f"this study has its {body.most} trials" + ("" if over else "; some are still pending"))
    context = {name: value for name in ("time", "at") if (value := getattr(body, name)) is not None}
    journal.answer = _remember(study, body)
    if body.lease is not None:
        journal.lease = {"seconds": body.lease, "worker": body.worker or ""}
    try:
        return [query_out(query) for query in policy.ask(body.n, **context)]
    finally:
        journal.answer = journal.lease = None


def tell(study: LiveStudy, body: Tell) -> dict[str, Any]:
    """Tell one outcome; the same again changes nothing.

    >>> from surefoot.serve.live import scratch
    >>> study = scratch()
    >>> [tell(study, Tell(x=[0.5], value=1.0, key="k"))["version"] for _ in range(2)]
    [1, 1]
    """
    study.require_open("telling")
    journal = study.writer
    if _known(study, body) is None:
        journal.answer = _remember(study, body)
        try:
            _tell(study, body)
        finally:
            journal.answer = None
    return {"version": journal.version}


def tell_many(study: LiveStudy, body: TellMany) -> dict[str, Any]:
    """Tell several outcomes in one transaction.

    >>> from surefoot.serve.live import scratch
    >>> tell_many(scratch(), TellMany(tells=[Tell(x=[0.5], value=1.0), Tell(x=[0.6], value=None)]))
    {'version': 2}
    """
    study.require_open("telling")
    journal = study.writer
    if _known(study, body) is None:
        journal.answer = _remember(study, body)
        try:
            with journal.together():
                for number, one in enumerate(body.tells):
                    _tell(study, one, f"tell {number}: ")
            journal.answer = None
        except BaseException:
            study.forget()  # the policy is ahead of what was stored
            raise
    return {"version": journal.version}


def report(study: LiveStudy, body: Report) -> dict[str, Any]:
    """Report a value of a run in progress, and return advice.

    >>> from surefoot.serve.live import scratch
    >>> study = scratch("BOBOS", epochs=10)
    >>> query = study.policy.ask()
    >>> report(study, Report(query=0, step=1, value=0.5))["stop"]
    False
    """
    study.require_open("reporting")
    policy = study.policy
    try:
        advice = policy.report(body.query, body.step, body.value)
    except ValueError as error:
        if body.step in policy.reports().get(body.query, {}):
            raise Conflict(f"step {body.step} of query {body.query} was already reported with another value") from error
        raise
    if advice.stop:
        stopped = len(policy.stopped)
        if stopped != study.row["stopped"]:
            study.writer.store.update(study.id, stopped=stopped)
    return advice_out(advice)


def cancel(study: LiveStudy, body: Cancel) -> dict[str, Any]:
    """Forget a pending query.

    >>> from surefoot.serve.live import scratch
    >>> study = scratch()
    >>> query = study.policy.ask()
    >>> cancel(study, Cancel(query=0))
    {'version': 2}
    """
    study.require_open("cancelling")
    if body.query in study.policy.trials.told:
        raise Conflict(f"query {body.query} was already told; it cannot be cancelled")
    study.policy.cancel(body.query)
    return {"version": study.writer.version}


def expire(study: LiveStudy, body: Expire) -> dict[str, Any]:
    """Take a query back whose lease has run out, unless it was told meanwhile.

    >>> from surefoot.serve.live import scratch
    >>> study = scratch()
    >>> query = ask(study, AskRequest(lease=1.0))
    >>> expire(study, Expire(query=0, beat=0)), [event["event"] for event in study.writer.store.events(study.id)]
    ({'version': 2}, ['asked', 'expired'])
    """
    study.require_open("expiring")
    if body.query in study.policy.trials.pending:
        study.writer.expiring = (body.query, body.beat)
        try:
            study.policy.cancel(body.query)
        finally:
            study.writer.expiring = None
    return {"version": study.writer.version}


def recommend(study: LiveStudy) -> dict[str, Any]:
    """Return the policy's answer.

    >>> from surefoot.serve.live import scratch
    >>> study = scratch()
    >>> study.policy.tell([0.5], 3.0)
    >>> recommend(study)["mean"]
    3.0
    """
    return study.once("answer", lambda: answer_out(study.policy.recommend()))


def header(study: LiveStudy) -> dict[str, Any]:
    """Return the first line of the study's journal.

    >>> from surefoot.serve.live import scratch
    >>> header(scratch())["policy"]
    'SobolSearch'
    """
    return {"schema": SCHEMA, **study.policy.header()}


def trace(store: Store, row: Mapping[str, Any], after: int, limit: int) -> dict[str, Any]:
    """Return events from number ``after`` on.

    >>> from surefoot.serve.live import scratch
    >>> study = scratch()
    >>> study.policy.tell([0.5], 3.0)
    >>> trace(study.writer.store, study.row, 0, 10)
    {'next': 1, 'events': [{'event': 'told', 'x': [0.5], 'value': 3.0, 'at': ...}]}
    """
    events = store.events(row["id"], after=after, limit=limit)
    if of_negated(row):
        events = [turned_event(event) for event in events]
    return {"next": after + len(events), "events": events}


def _tell(study: LiveStudy, body: Tell, where: str = "") -> None:
    policy = study.policy
    target: Any = body.query if body.query is not None else body.x if body.x is not None else body.params
    try:
        if body.omitted:
            policy.tell(target)
        else:
            policy.tell(target, outcome_in(body.model_dump()))
    except (ValueError, TypeError) as error:
        if body.query in policy.trials.told:
            raise Conflict(f"{where}query {body.query} was already told another outcome") from None
        raise type(error)(f"{where}{error}") from None


def _known(study: LiveStudy, body: AskRequest | Tell | TellMany) -> Any:
    """What was answered to this request before; None for one that is new or has no key."""
    return None if body.key is None else study.writer.store.answered(study.id, body.key, _request(body))


def _remember(study: LiveStudy, body: AskRequest | Tell | TellMany) -> Any:
    """What the journal keeps of a request with a key, in the same transaction as its events."""
    if body.key is None:
        return None
    key, request = body.key, _request(body)

    def answer(events: list[dict[str, Any]]) -> dict[str, str]:
        ids = [event["id"] for event in events if event["event"] == "asked"]
        return {"scope": study.id, "key": key, "request": request, "answer": dumps({"ids": ids})}

    return answer


def _request(body: AskRequest | Tell | TellMany) -> str:
    later = {name for name in ("lease", "worker", "most") if getattr(body, name, None) is None}  # since 0.2
    return digest([type(body).__qualname__, body.model_dump(exclude={"key", *later})])
