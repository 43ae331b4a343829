"""The coordinator of a federation as a Flower server app.

In every round the server asks each registered node for its message, waits until all have answered or the deadline is
over, and releases one broadcast, which goes out with the next request. Nodes that are late are not asked again before
they answer; their last vector stands in. Nodes may leave, come back, or come late, if the public roster has a
place for them.

Everything the server must not lose lies in one folder: the coordinator's state with its ledger, and which node holds
which place of the roster. A run that was killed is continued by starting it again with the same folder.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from pathlib import Path

from flwr.app import Context, Message, MessageType, RecordDict, UserConfig
from flwr.serverapp import Grid, ServerApp

from surefoot.arguments import whole
from surefoot.bridge.flower.client import ACTION
from surefoot.bridge.flower.records import message_from_records, request_to_records
from surefoot.federated.coordinator import Coordinator
from surefoot.federated.messages import Broadcast
from surefoot.federated.messages import Message as AgentMessage
from surefoot.loop.journal import write_atomically

__all__ = ["FederationServer", "server_app"]

_log = logging.getLogger("surefoot.bridge.flower")


class FederationServer:
    """Drives a coordinator through its rounds over Flower's grid.

    Parameters
    ----------
    coordinator : callable
        ``coordinator(folder, config)`` makes the coordinator with its journal, its vectors and its ledger in this
        folder, or continues it; ``config`` is the run's configuration. Its ``rounds`` are the queries of every agent
        after its initial ones.
    deadline : float
        Seconds to wait for the messages of a round.
    patience : float, optional
        Seconds after which a node that did not answer is asked again. None: four times the deadline.
    minimum : int
        Nodes that must be there before a round begins, and sound messages before it is released: a release without
        news would cost privacy for nothing.
    poll : float
        Seconds between two looks for answers.
    state : path, optional
        The folder. None: ``state`` of the run's configuration.

    The object is the ``main`` of a server app: ``app.main()(FederationServer(...))``, or :func:`server_app`.

    >>> FederationServer(lambda folder, config: None, deadline=0)
    Traceback (most recent call last):
    ...
    ValueError: deadline must be positive and finite, got 0
    """

    def __init__(
        self,
        coordinator: Callable[[Path, UserConfig], Coordinator],
        *,
        deadline: float = 600.0,
        patience: float | None = None,
        minimum: int = 1,
        poll: float = 0.5,
        state: str | Path | None = None,
    ) -> None:
        whole(minimum, "minimum", 1)
        patience = 4.0 * deadline if patience is None else patience
        for name, seconds in (("deadline", deadline), ("patience", patience), ("poll", poll)):
            if not 0.0 < seconds < float("inf"):
                raise ValueError(f"{name} must be positive and finite, got {seconds!r}")
        self.coordinator = coordinator
        self.deadline, self.patience, self.poll = float(deadline), float(patience), float(poll)
        self.minimum = minimum
        self.state = state

    def folder(self, context: Context) -> Path:
        """Return where the state is."""
        folder = self.state or context.run_config.get("state")
        if not folder:
            raise ValueError('the run\'s configuration must say state="FOLDER", where the coordinator keeps its state')
        return Path(str(folder))

    def __call__(self, grid: Grid, context: Context) -> None:
        """Run, or continue, all rounds."""
        folder = self.folder(context)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # the agents' vectors are nobody else's business
        coordinator = self.coordinator(folder, context.run_config)
        try:
            if coordinator.rounds is None:
                raise ValueError("a coordinator on Flower needs rounds: how many queries each agent makes")
            office = _Office(grid, coordinator, _Roster(folder / "roster.json"), self)
            broadcast = coordinator.broadcasts[-1] if coordinator.broadcasts else None
            for round in range(coordinator.round, coordinator.rounds):
                office.collect(round, broadcast)
                broadcast = coordinator.release(round)
                _log.info("round %d of %d: %s", round, coordinator.rounds, broadcast.silence or "released")
            office.collect(coordinator.rounds, broadcast, last=True)
        finally:
            coordinator.close()
            if coordinator.ledger is not None:
                coordinator.ledger.close()


class _Office:
    """Requests that are out, and what comes back."""

    def __init__(self, grid: Grid, coordinator: Coordinator, roster: _Roster, server: FederationServer) -> None:
        self.grid, self.coordinator, self.roster, self.server = grid, coordinator, roster, server
        self.out: dict[str, tuple[int, int, float]] = {}  # request -> node, round, and until when it is waited for
        self.round, self.heard = -1, set[int]()  # agents that sent a sound message of this round

    def collect(self, round: int, broadcast: Broadcast | None, *, last: bool = False) -> None:
        """Ask until enough agents sent a sound message of this round; the last request asks who is there, once."""
        self.round, self.heard = round, set()
        content = request_to_records(round, self.coordinator.features.hash, broadcast, last=last)
        minimum = 0 if last else self.server.minimum
        self._ask(content, minimum)
        while len(self.heard) < minimum:
            _log.warning("round %d: %d sound messages, %d are needed", round, len(self.heard), minimum)
            time.sleep(self.server.poll)
            self._ask(content, minimum)

    def _ask(self, content: RecordDict, minimum: int) -> None:
        """Ask every node that owes no answer, and take in what comes before the deadline."""
        nodes, round = self._free(minimum), self.round
        requests = [
            Message(content, node, f"{MessageType.QUERY}.{ACTION}", ttl=self.server.patience, group_id=str(round))
            for node in nodes
        ]
        until = time.monotonic() + self.server.patience
        accepted = set(self.grid.push_messages(requests))
        names = [request.metadata.message_id for request in requests]
        awaited = {name: (node, round, until) for name, node in zip(names, nodes, strict=True) if name in accepted}
        self.out |= awaited
        end = time.monotonic() + self.server.deadline
        self._look()
        while awaited.keys() & self.out.keys() and time.monotonic() < end:
            time.sleep(self.server.poll)
            self._look()
        _log.info("round %d: %d nodes asked, %d answers due", round, len(nodes), len(self.out))

    def _free(self, minimum: int) -> list[int]:
        """Wait for enough nodes that owe no answer."""
        seen = -1
        while True:
            self._look()
            busy = {node for node, _, _ in self.out.values()}
            nodes = [node for node in sorted(self.grid.get_node_ids()) if node not in busy]
            if self.heard and len(self.heard) >= minimum:
                return []  # late answers were enough
            if len(nodes) >= minimum:
                return nodes
            if len(nodes) != seen:
                _log.info("%d nodes are free, %d are needed", len(nodes), minimum)
            seen = len(nodes)
            time.sleep(self.server.poll)

    def _look(self) -> None:
        """Take in what has arrived, late answers too, and give up what was waited for too long."""
        for answer in self.grid.pull_messages(list(self.out)) if self.out else []:
            self._take(answer)
        now = time.monotonic()
        self.out = {name: request for name, request in self.out.items() if request[2] > now}

    def _take(self, answer: Message) -> None:
        """Hand one answer to the coordinator; whatever is wrong with it harms nobody else."""
        node, round, _ = self.out.pop(answer.metadata.reply_to_message_id)
        if answer.has_error():
            _log.warning("node %d did not answer: error %d", node, answer.error.code)
            return
        try:
            message = message_from_records(answer.content)
            if isinstance(message, str):
                _log.log(logging.INFO if message == "done" else logging.WARNING, "node %d says: %s", node, message)
                return
            if message.round != round:
                raise ValueError(f"it was asked for round {round} and answers for round {message.round}")
            self.roster.check(message, node)
            self.coordinator.collect(message)
        except (ValueError, TypeError) as error:
            _log.warning("refused an answer of node %d: %s", node, error)
            return
        self.roster.enter(message, node)
        if message.round == self.round:
            self.heard.add(message.agent)


class _Roster:
    """Which node holds which place, for good: the first that sent a sound message. One node, one place, one voice."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.holder: dict[int, int] = {}
        if path.exists():
            self.holder = {int(place): int(node) for place, node in json.loads(path.read_text()).items()}

    def check(self, message: AgentMessage, node: int) -> None:
        if (holder := self.holder.get(message.agent, node)) != node:
            raise ValueError(f"agent {message.agent} is node {holder}, not node {node}; {self.path.name} says so")
        if others := [place for place in self.holder if self.holder[place] == node and place != message.agent]:
            raise ValueError(f"node {node} is agent {others[0]} and cannot be agent {message.agent} as well")

    def enter(self, message: AgentMessage, node: int) -> None:
        if message.agent not in self.holder:
            held = {**self.holder, message.agent: node}
            write_atomically(self.path, json.dumps({str(place): str(held[place]) for place in held}))
            self.holder = held  # what could not be written down is not so


def server_app(
    coordinator: Callable[[Path, UserConfig], Coordinator],
    *,
    deadline: float = 600.0,
    patience: float | None = None,
    minimum: int = 1,
    poll: float = 0.5,
    state: str | Path | None = None,
) -> ServerApp:
    """Return the Flower server app of a federation; see :class:`FederationServer`.

    >>> type(server_app(lambda folder, config: None, deadline=60.0)).__name__
    'ServerApp'
    """
    server = FederationServer(
        coordinator, deadline=deadline, patience=patience, minimum=minimum, poll=poll, state=state
    )
    app = ServerApp()
    app.main()(server)
    return app
