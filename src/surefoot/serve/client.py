"""The client of the service: studies elsewhere, with the face of a policy here.

.. code-block:: python

    client = surefoot.Client("https://surefoot.example", token="sf_...")
    study = client.create("beam", surefoot.Box([(0.0, 1.0)]), policy="GPUCB", direction="minimize")
    query = study.ask()
    study.tell(query, measure(query.x))
    study.recommend()

Many workers may share a study: each makes its own client and takes ``client.study(id)``. Requests that may have been
lost are sent again, and done once.

>>> Client("http://127.0.0.1:8000", token="sf_...")
Client('http://127.0.0.1:8000')
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, cast, overload

import numpy as np

from surefoot.domain import Domain
from surefoot.experimental import experimental
from surefoot.loop.events import as_outcome
from surefoot.loop.state import pack
from surefoot.loop.types import Advice, LevelSet, Outcome, Query, Recommendation
from surefoot.serve.transport import Transport
from surefoot.serve.wire import answer_in, query_in

if TYPE_CHECKING:
    import ssl

    from surefoot.serve.remote_run import RemoteRun

__all__ = ["Client", "RemoteStudy"]

_OMITTED = object()


@experimental
class Client:
    """A connection to the service.

    Parameters
    ----------
    url : str
        Its address.
    token : str
        Who is calling; from ``surefoot token create``, or from the web page.
    verify : bool or str or ssl.SSLContext
        Whose certificates to trust: the system's (True), those in a file, or anybody's (False).
    timeout : float
        Seconds until an answer must have come.
    retries : int
        How often a request that may have been lost is sent again, after growing pauses.

    >>> with Client("http://127.0.0.1:8000/", token="sf_...") as client:
    ...     client.url
    'http://127.0.0.1:8000'
    """

    def __init__(
        self,
        url: str,
        *,
        token: str,
        verify: bool | str | ssl.SSLContext = True,
        timeout: float = 120.0,
        retries: int = 8,
    ) -> None:
        self._transport = Transport(url, token=token, verify=verify, timeout=timeout, retries=retries)

    @property
    def url(self) -> str:
        """Address of the service."""
        return self._transport.url

    def create(
        self,
        name: str,
        domain: Domain,
        *,
        policy: str = "GPUCB",
        direction: str = "maximize",
        seed: int | None = None,
        **options: Any,
    ) -> RemoteStudy:
        """Begin a study and return it.

        ``options`` are those of the policy; what can be kept in a state can be sent (kernels, widths, perturbations,
        earlier tasks), a function cannot.
        """
        if not isinstance(policy, str):
            raise TypeError(f"policy is the name of a policy, such as 'GPUCB', got {policy!r}")
        if not isinstance(domain, Domain):
            raise TypeError(f"domain is a domain, such as a Box or a Space, got {domain!r}")
        body = {"name": name, "policy": policy, "domain": domain.description(), "direction": direction}
        body["options"] = pack(options)
        made = self._transport.send("POST", "/studies", {**body, "seed": _plain(seed), "key": _key()})
        return RemoteStudy(self._transport, made["id"], made)

    def study(self, id: str) -> RemoteStudy:
        """Return a study by its id."""
        return RemoteStudy(self._transport, id, self._transport.send("GET", f"/studies/{_part(id)}"))

    def studies(self) -> list[RemoteStudy]:
        """Return all studies of the tenant, the newest first."""
        found: list[RemoteStudy] = []
        after: dict[str, str] = {}
        while True:
            page = self._transport.send("GET", "/studies", query=after)
            found += [RemoteStudy(self._transport, row["id"], row) for row in page["studies"]]
            if page["next"] is None:
                return found
            after = {"after": page["next"]}

    def outsource(self, name: str, release: Any, *, policy: str = "GPUCB", **given: Any) -> RemoteRun:
        """Send a release of private data, and return the run that says which of its rows to measure next.

        ``release`` is a :class:`surefoot.private.Release`; ``given`` are ``direction``, ``seed`` and options of the
        policy.
        """
        from surefoot.serve.remote_run import begin

        return begin(self._transport, name, release, policy=policy, **given)

    def outsourced(self, id: str) -> RemoteRun:
        """Return a run that was begun before, by its id."""
        from surefoot.serve.remote_run import RemoteRun

        return RemoteRun(self._transport, _part(id), self._transport.send("GET", f"/outsourced/{_part(id)}"))

    def health(self) -> dict[str, Any]:
        """Return whether the service answers, and its version."""
        return cast("dict[str, Any]", self._transport.send("GET", "/health"))

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self.url!r})"


class RemoteStudy:
    """A study at the service, used as a policy is: ``ask``, ``tell``, ``report``, ``cancel``, ``recommend``.

    Made by :meth:`Client.create` and :meth:`Client.study`.

    >>> RemoteStudy(Transport("http://127.0.0.1:8000", token="sf_..."), "0f", {"name": "beam"})
    RemoteStudy('0f', name='beam')
    """

    def __init__(self, transport: Transport, id: str, info: Mapping[str, Any]) -> None:
        self._transport = transport
        self.id = id
        self._info = dict(info)

    @property
    def name(self) -> str:
        """What the study is called."""
        return str(self._info["name"])

    @property
    def direction(self) -> str:
        """Which way is better."""
        return str(self._info["direction"])

    def info(self) -> dict[str, Any]:
        """Return how the study stands: counts, best value, state, domain and options."""
        self._info = self._get("")
        return dict(self._info)

    @overload
    def ask(self, n: None = None, **context: Any) -> Query: ...
    @overload
    def ask(self, n: int, **context: Any) -> list[Query]: ...
    def ask(self, n: int | None = None, **context: Any) -> Query | list[Query]:
        """Return the next query, or a list of ``n``.

        With ``lease=`` a query goes back by itself after so many seconds without :meth:`renew`; ``worker=`` says who
        asks, for people; ``most=`` refuses (``BudgetSpent``) beyond so many trials of the study. Anything else is for
        the policy.
        """
        given = {name: _plain(value) for name, value in context.items()}
        body = {"n": 1 if n is None else _plain(n), "key": _key(), **given}
        queries = [query_in(one) for one in self._post("ask", body)["queries"]]
        return queries[0] if n is None else queries

    def renew(self, *queries: Query | int) -> list[int]:
        """Say that queries are still being measured; return those whose lease runs on."""
        return [int(id) for id in self._post("renew", {"queries": [_id(query) for query in queries]})["held"]]

    def leases(self) -> list[dict[str, Any]]:
        """Return who has which query, and since when."""
        return cast("list[dict[str, Any]]", self._get("/leases")["leases"])

    def tell(self, query: Query | int | Sequence[float] | Mapping[str, Any], value: Any = _OMITTED) -> None:
        """Tell the outcome of a query, of a query id, or of any point of the domain, as to a policy."""
        self._post("tell", {**_told(query, value), **({} if isinstance(query, (Query, int)) else {"key": _key()})})

    def tell_many(self, tells: Iterable[tuple[Any, Any]]) -> None:
        """Tell pairs of query and value together: all of them, or none."""
        self._post("tell-many", {"tells": [_told(query, value) for query, value in tells], "key": _key()})

    def report(self, query: Query | int, step: int, value: float | None) -> Advice:
        """Report a value of a run in progress, and get advice."""
        body = {"query": _id(query), "step": _plain(step), "value": as_outcome(value).value}
        return Advice(**self._post("report", body))

    def cancel(self, query: Query | int) -> None:
        """Forget a pending query whose worker is gone."""
        self._post("cancel", {"query": _id(query)})

    def recommend(self) -> Recommendation | LevelSet:
        """Return the policy's answer; raises ``NoData`` while nothing was measured."""
        return answer_in(self._get("/recommend"))

    def trace(self, after: int = 0) -> list[dict[str, Any]]:
        """Return all events from number ``after`` on, as its journal has them."""
        events: list[dict[str, Any]] = []
        while page := self._get("/trace", after=after + len(events))["events"]:
            events += page
        return events

    def view(self) -> dict[str, Any]:
        """Return what the study's page draws."""
        return self._get("/view")

    def close(self) -> None:
        """Close the study: it can be looked at, and no longer changed."""
        self._info = self._post("close", None)

    def delete(self) -> None:
        """Delete the study and everything told to it."""
        self._transport.send("DELETE", f"/studies/{_part(self.id)}")

    def _post(self, what: str, body: Any) -> dict[str, Any]:
        return cast("dict[str, Any]", self._transport.send("POST", f"/studies/{_part(self.id)}/{what}", body))

    def _get(self, what: str, **query: Any) -> dict[str, Any]:
        answer = self._transport.send("GET", f"/studies/{_part(self.id)}{what}", query=query or None)
        return cast("dict[str, Any]", answer)

    def __repr__(self) -> str:
        return f"RemoteStudy({self.id!r}, name={self._info.get('name')!r})"


def _key() -> str:
    return uuid.uuid4().hex


def _part(id: str) -> str:
    """An id as a part of a path."""
    if not (isinstance(id, str) and id.isalnum() and id.isascii()):
        raise ValueError(f"{id!r} is not the id of a study")
    return id


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays as JSON has them; anything else as it is."""
    return value.tolist() if isinstance(value, (np.generic, np.ndarray)) else value


def _id(query: Query | int) -> int:
    return query.id if isinstance(query, Query) else int(query)


def _told(query: Any, value: Any) -> dict[str, Any]:
    """The body of a tell."""
    target: dict[str, Any]
    if isinstance(query, (Query, int, np.integer)):
        target = {"query": _id(cast("Query | int", query))}
    elif isinstance(query, Mapping):
        target = {"params": pack(dict(query))}
    else:
        x = np.asarray(query, dtype=np.float64)
        if not np.isfinite(x).all():
            raise ValueError(f"a point has finite coordinates, got {query!r}")
        target = {"x": x.tolist()}
    if value is _OMITTED:
        return target
    if isinstance(value, np.ndarray) and value.size == 1:
        value = value.item()  # as a policy takes it
    outcome = value if isinstance(value, Outcome) else Outcome(values=value) if np.ndim(value) else Outcome(value)
    told = outcome.value if outcome.values is None else list(outcome.values)
    rest = {"noise": outcome.noise, "cost": outcome.cost, "time": outcome.time}
    return {**target, "value": told, **{key: one for key, one in rest.items() if one is not None}}
