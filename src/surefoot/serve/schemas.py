"""What requests and answers look like: the OpenAPI document is made of these.

Types are strict: a number in quotes is not a number, and a field that is not listed is refused.

>>> Tell(query=0, value=1.5).value
1.5
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

__all__ = [
    "AskRequest",
    "Cancel",
    "Chunk",
    "Direction",
    "ErrorAnswer",
    "Expire",
    "Measured",
    "NewRun",
    "NewStudy",
    "NewToken",
    "Renew",
    "Report",
    "Start",
    "Tell",
    "TellMany",
]

Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Key = Annotated[str, StringConstraints(pattern=r"^[!-~]{1,200}$")]
Direction = Literal["maximize", "minimize"]
Id = Annotated[int, Field(ge=0, le=2**31 - 1)]
Scalar = str | bool | int | float | None


class _Body(BaseModel):
    """What all request bodies share."""

    model_config = ConfigDict(
        strict=True, extra="forbid", allow_inf_nan=False, model_title_generator=lambda cls: cls.__qualname__
    )


def _one_of(body: BaseModel, *names: str) -> None:
    given = [name for name in names if getattr(body, name) is not None]
    if len(given) != 1:
        raise ValueError(f"give exactly one of {', '.join(names)}; got {', '.join(given) or 'none'}")


class NewToken(_Body):
    """A token to make.

    >>> NewToken(name="the cluster", scope="write").scope
    'write'
    """

    name: Name
    scope: Literal["admin", "write", "read"]
    expires: Annotated[str, StringConstraints(pattern="^[1-9][0-9]{0,4}[smhd]$")] | None = Field(
        default=None, description="How long it is valid, such as 90d or 12h; null: until it is revoked."
    )


class NewStudy(_Body):
    """A study to begin.

    >>> NewStudy(name="beam", policy="SobolSearch", domain={"domain": "Box", "bounds": [[0, 1]]}).direction
    'maximize'
    """

    name: Name
    policy: Annotated[str, StringConstraints(min_length=1, max_length=100)] = "GPUCB"
    domain: dict[str, Any] | None = Field(default=None, description="to_dict() of any domain.")
    space: dict[str, Any] | None = Field(default=None, description="Space.to_dict(), or its parameters alone.")
    options: dict[str, Any] = Field(default={}, description="Options of the policy, as its state writes them.")
    direction: Direction = "maximize"
    seed: Annotated[int, Field(ge=0, lt=2**128)] | None = None
    key: Key | None = Field(default=None, description="A request repeated with its key is done once.")

    @model_validator(mode="after")
    def _check(self) -> NewStudy:
        _one_of(self, "domain", "space")
        if not self.name.isprintable():
            raise ValueError("a name has printable characters only")
        return self

    def description(self) -> dict[str, Any]:
        """Return the domain as ``to_dict()`` writes it; the tables of a space may stand alone."""
        if self.domain is not None:
            return self.domain
        space = self.space or {}
        return space if "parameters" in space else {"parameters": space}


class AskRequest(_Body):
    """How many queries, and in which context.

    >>> AskRequest(n=3).n
    3
    """

    __qualname__ = "Ask"  # in the OpenAPI document, and in the digest by which a repeated request is known
    n: Annotated[int, Field(ge=1, le=100_000)] = 1
    time: float | None = None
    at: list[float] | float | None = None
    key: Key | None = Field(default=None, description="A request repeated with its key gets the same queries.")
    lease: Annotated[float, Field(gt=0, le=30 * 86400)] | None = Field(
        default=None, description="Seconds without a sign of life after which the queries go back by themselves."
    )
    worker: Name | None = Field(default=None, description="Who asks, for people.")
    most: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = Field(
        default=None, description="Refused when the study has so many trials: told or pending."
    )


class Tell(_Body):
    """What a measurement gave: of a query, or of a point that was not asked for.

    ``value`` is null for a failed run, a list for the stops of a move, and may be left out after reports.

    >>> Tell(query=1, x=[0.5], value=1.0)
    Traceback (most recent call last):
    ...
    pydantic_core...ValidationError: 1 validation error for Tell
    ...
    """

    query: Id | None = None
    x: list[float] | list[list[float]] | None = None
    params: dict[str, Scalar] | None = None
    value: float | list[float | None] | None = None
    noise: Annotated[float, Field(ge=0)] | None = None
    cost: Annotated[float, Field(ge=0)] | None = None
    time: float | None = None
    failed: bool = False
    key: Key | None = Field(default=None, description="Told once, however often it is sent.")

    @model_validator(mode="after")
    def _check(self) -> Tell:
        _one_of(self, "query", "x", "params")
        if self.failed and self.value is not None:
            raise ValueError("a failed run has no value")
        if self.omitted and (self.noise, self.cost, self.time) != (None, None, None):
            raise ValueError("noise, cost and time belong to a value: give it too")
        return self

    @property
    def omitted(self) -> bool:
        """Whether the value is that of the last report."""
        return not self.failed and "value" not in self.model_fields_set


class TellMany(_Body):
    """Several outcomes, told together: all of them, or none.

    >>> len(TellMany(tells=[Tell(query=0, value=1.0)]).tells)
    1
    """

    tells: Annotated[list[Tell], Field(min_length=1, max_length=10_000)]
    key: Key | None = None


class Report(_Body):
    """A value of a run in progress.

    >>> Report(query=0, step=3, value=0.5).step
    3
    """

    query: Id
    step: Id
    value: float | None


class Cancel(_Body):
    """A query whose worker is gone.

    >>> Cancel(query=0).query
    0
    """

    query: Id


class Renew(_Body):
    """Queries that are still being measured.

    >>> Renew(queries=[0, 3]).queries
    [0, 3]
    """

    queries: Annotated[list[Id], Field(min_length=1, max_length=10_000)]


class Expire(_Body):
    """A query whose lease has run out; the service sends this to itself.

    >>> Expire(query=0, beat=2).beat
    2
    """

    query: Id
    beat: Id


class NewRun(_Body):
    """An outsourced run to begin: its data stay with somebody else, who sends a release of them.

    >>> NewRun(name="loans", asks=50).policy
    'GPUCB'
    """

    name: Name
    policy: Annotated[str, StringConstraints(min_length=1, max_length=100)] = "GPUCB"
    options: dict[str, Any] = {}
    direction: Direction = "maximize"
    asks: Annotated[int, Field(ge=1, le=1_000_000)]
    seed: Annotated[int, Field(ge=0, lt=2**128)] | None = None
    key: Key | None = None

    @model_validator(mode="after")
    def _check(self) -> NewRun:
        if not self.name.isprintable():
            raise ValueError("a name has printable characters only")
        return self


class Chunk(_Body):
    """A part of a release: some of its rows, one after the other, as base64 of little-endian float64.

    >>> Chunk(rows="AAAAAAAA8D8=").rows
    'AAAAAAAA8D8='
    """

    rows: Annotated[str, StringConstraints(min_length=1)]


class Start(_Body):
    """The release without its rows, and the SHA-256 of the bytes of all rows.

    >>> len(Start(release={}, sha256="0" * 64).sha256)
    64
    """

    release: dict[str, Any]
    sha256: Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]


class Measured(_Body):
    """The answer to an ask; null for a measurement that failed. The wire form of an ``Answer`` is one.

    >>> Measured(step=0, value=0.5).value
    0.5
    """

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, populate_by_name=True)

    step: Id
    value: float | None
    run: str | None = None
    message: Literal["answer"] = "answer"
    version: Annotated[int, Field(alias="schema", ge=1, le=1)] = 1


class ErrorAnswer(BaseModel):
    """What every error looks like.

    >>> ErrorAnswer(error="NoData", detail="nothing was told yet").error
    'NoData'
    """

    __qualname__ = "Failure"  # in the OpenAPI document
    model_config = ConfigDict(title="Failure")
    error: str = Field(description="Name of the error.")
    detail: str = Field(description="A sentence for people.")
