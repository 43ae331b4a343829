"""What successful answers look like: the other half of the OpenAPI document.

Answers are written by :class:`~surefoot.serve.service.Json` as the rooms make them; these classes describe them, and
the document is checked against the service. A field that is not listed here is not sent.

>>> Version.model_validate({"version": 3}).version
3
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from surefoot.serve.schemas import Direction

__all__ = [
    "Advised",
    "Asked",
    "Closed",
    "Health",
    "Held",
    "LeaseLine",
    "LeaseLines",
    "LevelSetAnswer",
    "OutsourcedRun",
    "OutsourcedRuns",
    "Point",
    "Queries",
    "Row",
    "Stored",
    "Studies",
    "Study",
    "StudyLine",
    "StudyView",
    "Token",
    "TokenSecret",
    "Tokens",
    "Trace",
    "Version",
]

State = Literal["new", "open", "closed"]
Coordinates = list[float] | list[list[float]]
Values = list[float | None]


class _Answer(BaseModel):
    """What all answers share."""

    model_config = ConfigDict(extra="forbid", model_title_generator=lambda cls: cls.__qualname__)


class StudyLine(_Answer):
    """A study in a list.

    >>> sorted(StudyLine.model_fields)[:3]
    ['best', 'created', 'direction']
    """

    id: str
    name: str
    policy: str
    direction: Direction
    created: str
    updated: str
    told: int
    pending: int
    failed: int
    stopped: int
    events: int = Field(description="How many events it has.")
    version: int = Field(description="The number of the next event.")
    state: State
    best: float | None = Field(description="The best value told, in the user's direction.")


class Study(StudyLine):
    """A study with its domain and options.

    >>> sorted(set(Study.model_fields) - set(StudyLine.model_fields))
    ['domain', 'options', 'release']
    """

    domain: dict[str, Any] | None
    options: dict[str, Any]
    release: str = Field(description="The release of Surefoot with which it was begun.")


class Studies(_Answer):
    """A page of studies, the newest first.

    >>> Studies(studies=[], next=None).next is None
    True
    """

    studies: list[StudyLine]
    next: str | None = Field(description="What to pass as after for the next page.")


class Asked(_Answer):
    """Where to measure.

    >>> Asked(id=0, x=[0.5], index=None, params=None, fidelity=None, time=None, cost=None, note={}).x
    [0.5]
    """

    id: int
    x: Coordinates
    index: int | None
    params: dict[str, Any] | None
    fidelity: int | None
    time: float | None
    cost: float | None
    note: dict[str, Any]


class Queries(_Answer):
    """The answer to an ask.

    >>> Queries(queries=[]).queries
    []
    """

    queries: list[Asked]


class Version(_Answer):
    """How many events a study has now.

    >>> Version(version=1).version
    1
    """

    version: int


class Held(_Answer):
    """The queries whose lease runs on.

    >>> Held(held=[3]).held
    [3]
    """

    held: list[int]


class LeaseLine(_Answer):
    """Who has a query.

    >>> LeaseLine(query=3, worker="bench 2", seconds=600.0, since="2026-01-01T00:00:00.000+00:00").query
    3
    """

    query: int
    worker: str
    seconds: float
    since: str


class LeaseLines(_Answer):
    """The leases of a study.

    >>> LeaseLines(leases=[]).leases
    []
    """

    __qualname__ = "Leases"  # in the OpenAPI document
    leases: list[LeaseLine]


class Advised(_Answer):
    """Whether a run should go on.

    >>> Advised(stop=False, reason="", probability=None, saved=None).stop
    False
    """

    stop: bool
    reason: str
    probability: float | None
    saved: float | None


class Point(_Answer):
    """A recommended point.

    >>> Point(kind="point", x=[0.5], index=None, params=None, mean=1.0, lower=0.5, upper=1.5, rule="best").mean
    1.0
    """

    kind: Literal["point"]
    x: Coordinates
    index: int | None
    params: dict[str, Any] | None
    mean: float | None
    lower: float | None
    upper: float | None
    rule: str
    confidence: float | None = None
    next_lower: float | None = None
    next_upper: float | None = None


class LevelSetAnswer(_Answer):
    """Where the function is above a threshold, and where below.

    >>> LevelSetAnswer.model_fields["kind"].annotation
    typing.Literal['level set']
    """

    __qualname__ = "Level"  # in the OpenAPI document
    kind: Literal["level set"]
    above: list[bool]
    below: list[bool]
    undecided: list[bool]
    rule: str
    points: list[list[float]] | None
    threshold: float | None
    predicted: list[bool] | None


class Trace(_Answer):
    """Events of a study, and with ``raw`` the journal's header.

    >>> Trace(next=0, events=[]).header is None
    True
    """

    next: int
    events: list[dict[str, Any]]
    header: dict[str, Any] | None = None


class _Axis(_Answer):
    index: int
    name: str
    low: float
    high: float
    log: bool
    whole: bool
    labels: list[Any]


class _MarkedAxis(_Axis):
    marks: list[tuple[float, str]]


class _Trial(_Answer):
    number: int
    id: int | None
    x: Coordinates
    params: dict[str, Any] | None
    value: float | None
    state: str
    index: int | None
    initial: bool
    steps: list[tuple[int, float | None]]
    stopped: str | None


class _Best(_Answer):
    trial: list[int]
    value: Values
    measured: Values


class _Slice(_Answer):
    axis: int
    name: str
    grid: list[float]
    at: float
    mean: Values
    lower: Values
    upper: Values


class _Map(_Answer):
    axes: tuple[int, int]
    names: tuple[str, str]
    u: list[float]
    v: list[float]
    mean: list[Values]
    lower: list[Values]
    upper: list[Values]


class _Parallel(_Answer):
    axes: list[_MarkedAxis]
    lines: list[Values]
    values: Values


class StudyView(_Answer):
    """What the page of a study draws.

    >>> "slices" in StudyView.model_fields
    True
    """

    __qualname__ = "View"  # in the OpenAPI document
    study: Study
    direction: Direction
    axes: list[_Axis]
    trials: list[_Trial]
    total: int
    best: _Best
    slices: list[_Slice]
    map: _Map | None
    parallel: _Parallel
    recommendation: Point | LevelSetAnswer | None
    confidence: float


class OutsourcedRun(StudyLine):
    """An outsourced run.

    >>> "answered" in OutsourcedRun.model_fields
    True
    """

    __qualname__ = "Run"  # in the OpenAPI document
    asks: int
    step: int
    answered: int
    rows: int
    numbers: int = Field(description="How many numbers of the release have arrived.")
    index: int | None = Field(description="The row to use, of a run that is over.")


class OutsourcedRuns(_Answer):
    """A page of outsourced runs, the newest first.

    >>> OutsourcedRuns(runs=[], next=None).runs
    []
    """

    __qualname__ = "Runs"  # in the OpenAPI document
    runs: list[OutsourcedRun]
    next: str | None


class Stored(_Answer):
    """A part of a release that has arrived, and how many numbers there are by now.

    >>> Stored(part=0, numbers=8).numbers
    8
    """

    part: int
    numbers: int


class _Message(_Answer):
    version: int = Field(alias="schema")
    run: str


class Row(_Message):
    """Which row to measure.

    >>> Row.model_validate({"schema": 1, "message": "ask", "run": "k3", "step": 0, "index": 2}).index
    2
    """

    message: Literal["ask"]
    step: int
    index: int


class Closed(_Message):
    """Which row to use; null if nothing was measured.

    >>> Closed.model_validate({"schema": 1, "message": "close", "run": "k3", "index": None}).index is None
    True
    """

    message: Literal["close"]
    index: int | None


class Token(_Answer):
    """A token without its secret.

    >>> "secret" in Token.model_fields
    False
    """

    id: str
    tenant: str
    name: str
    scope: str
    created: str
    expires: str | None
    revoked: str | None


class TokenSecret(Token):
    """A new token: the only time that it can be seen.

    >>> set(TokenSecret.model_fields) - set(Token.model_fields)
    {'token'}
    """

    token: str


class Tokens(_Answer):
    """The tokens of a tenant.

    >>> Tokens(tokens=[]).tokens
    []
    """

    tokens: list[Token]


class Health(_Answer):
    """That the service and its database answer.

    >>> Health(status="ok", version="0.1.0").status
    'ok'
    """

    status: Literal["ok"]
    version: str
