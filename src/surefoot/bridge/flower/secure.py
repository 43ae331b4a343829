"""Secure sums on Flower: the server app sees masked vectors, and learns their sum.

A round of the federation is one session of :mod:`surefoot.federated.secure`, five requests to every node. With the
first one comes the broadcast of the round before, and the node measures; the last one opens the sum, after it was
charged. A session that aborts is lost: its round is not summed again, parties would refuse; the next one begins.

A node keeps between two requests, in its ``state`` folder, the agent's journal, its party's secrets of the session that
is open, and its diary. The server keeps its broadcasts and which sessions were begun.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from flwr.app import ConfigRecord, Context, Message, MessageType, RecordDict, UserConfig
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp

from surefoot.bridge.flower.client import ACTION, FederationClient
from surefoot.errors import BudgetSpent
from surefoot.federated.agent import Agent
from surefoot.federated.messages import Broadcast
from surefoot.federated.secure.cipher import Aborted, Identity
from surefoot.federated.secure.diary import Diary
from surefoot.federated.secure.party import Party
from surefoot.federated.secure.plan import SumPlan
from surefoot.federated.secure.server import KINDS, SumServer
from surefoot.federated.secure.session import Confirmation, PublicKeys, Said
from surefoot.loop.durable import write_atomically
from surefoot.loop.journal import Journal
from surefoot.loop.types import Query
from surefoot.private.ledger import Ledger
from surefoot.private.noise import Noise

__all__ = ["SecureClient", "SecureServer", "secure_client_app", "secure_server_app"]

_log = logging.getLogger("surefoot.bridge.flower")
RECORD = "secure"
LAST = len(KINDS)  # the request after the last sum: receive, measure, and that was it


def to_records(round: int, phase: int, content: Any) -> RecordDict:
    """Return one request or answer: which round and phase it is of, and JSON.

    >>> from_records(to_records(3, 0, {"a": 1}))
    (3, 0, {'a': 1})
    """
    return RecordDict({RECORD: ConfigRecord({"round": round, "phase": phase, "json": json.dumps(content)})})


def from_records(content: RecordDict) -> tuple[int, int, Any]:
    """Read it; anything beside it is a ``ValueError``.

    >>> from_records(RecordDict({"other": ConfigRecord({})}))
    Traceback (most recent call last):
    ...
    ValueError: these records are not of a secure sum: other
    """
    record = dict(content.config_records.get(RECORD, {}))
    if set(content) != {RECORD} or set(record) != {"round", "phase", "json"}:
        raise ValueError(f"these records are not of a secure sum: {', '.join(sorted(content))}")
    round, phase, text = record["round"], record["phase"], record["json"]
    if not isinstance(round, int) or not isinstance(phase, int) or not isinstance(text, str) or round < 0:
        raise ValueError("a record of a secure sum has a round, a phase and a text")
    if not 0 <= phase <= LAST:
        raise ValueError(f"a secure sum has the phases 0 to {LAST}, got {phase}")
    return round, phase, json.loads(text)


class SecureClient(FederationClient):
    """Answers the server's requests for one agent, and shows it no vector.

    Parameters
    ----------
    agent, objective, state
        As of a :class:`~surefoot.bridge.flower.FederationClient`.
    plan : SumPlan
        What all parties agreed on.
    roster : sequence of str
        The public keys of all parties, in the order of their numbers.
    identity : callable
        ``identity(context)`` returns the node's own :class:`~surefoot.federated.secure.Identity`, from a file that only
        the node reads.
    noise : Noise, optional
        Where its share of the noise comes from; by default the operating system.

    >>> SecureClient(agent=None, objective=None, plan=None, roster=[], identity=None).roster
    ()
    """

    def __init__(
        self,
        agent: Callable[[int, Path, UserConfig], Agent],
        objective: Callable[[Query, Context], Any],
        *,
        plan: SumPlan,
        roster: Sequence[str],
        identity: Callable[[Context], Identity],
        state: str | Path | None = None,
        noise: Noise | None = None,
    ) -> None:
        super().__init__(agent, objective, state=state)
        self.plan, self.roster, self.identity, self.noise = plan, tuple(roster), identity, noise

    def _answer(self, message: Message, context: Context) -> RecordDict:
        round, phase, asked = from_records(message.content)
        number, journal = self.number(context), self.journal(context)
        journal.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        secrets = journal.parent / f"secure-{number}.json"
        if phase in (0, LAST):
            self._take_part(round, asked, context)
        if phase == LAST:
            secrets.unlink(missing_ok=True)
            return to_records(round, phase, "done")
        with Diary(journal.parent / f"diary-{number}.jsonl") as diary:
            party = self._party(number, round, phase, secrets, self.identity(context), diary)
            try:
                said = self._say(party, phase, asked, context)
            finally:
                secrets.touch(mode=0o600)
                write_atomically(secrets, json.dumps(party.state()))
                secrets.chmod(0o600)
        return to_records(round, phase, said.to_wire())

    def _take_part(self, round: int, asked: Any, context: Context) -> None:
        """Receive what the server released last, measure, and draw this round's message; once, however often asked."""
        agent = self.agent(self.number(context), self.journal(context), context.run_config)
        try:
            if agent.shared.hash != self.plan.features.hash:
                raise ValueError("the agent has other features than the plan")
            if round not in {event["round"] for event in agent.events if event["event"] == "sent"}:
                if asked is not None:
                    agent.receive(Broadcast.from_wire(asked))
                self._measure(agent, context)
                agent.message(round)
        finally:
            agent.close()

    def _party(self, number: int, round: int, phase: int, secrets: Path, identity: Identity, diary: Diary) -> Party:
        session = self.plan.session(round, self.roster)
        stored = json.loads(secrets.read_text()) if secrets.exists() else None
        if stored is not None and stored["session"]["round"] == round:
            party = Party.from_state(stored, identity, diary)
            if party.session.hash != session.hash:
                raise ValueError("the plan changed within a session")
            return party
        if phase:
            raise Aborted("this node is not in the session")
        return Party(session, number, identity, diary)

    def _say(self, party: Party, phase: int, asked: Any, context: Context) -> Said:
        if phase == 0:
            return party.advertise()
        if phase == 1:
            return party.share([PublicKeys.from_wire(key) for key in asked])
        if phase == 2:
            round = party.session.round
            agent = self.agent(party.number, self.journal(context), context.run_config)
            try:
                vector = agent.message(round).vector
            finally:
                agent.close()
            steps = self.plan.contribution(party.number, vector, round, self.noise)
            return party.mask({int(v): text for v, text in asked.items()}, steps, self.plan.ring(round))
        if phase == 3:
            return party.confirm(asked)
        return party.open([Confirmation.from_wire(one) for one in asked])


class SecureServer:
    """Runs the sums of a federation: the main function of a server app.

    Parameters
    ----------
    plan : SumPlan
        What all parties agreed on; its ``rounds`` are the queries of every agent after its initial ones.
    roster : sequence of str
        The public keys of all parties.
    ledger : callable, optional
        ``ledger(folder)`` opens the ledger, which composes by "rdp"; charged before a sum is opened. None: a plan
        without noise.
    deadline : float
        Seconds to wait for the answers of a phase.
    poll : float
        Seconds between two looks for answers.
    state : path, optional
        The folder. None: ``state`` of the run's configuration.

    >>> SecureServer(None, [], deadline=0.0)
    Traceback (most recent call last):
    ...
    ValueError: deadline must be positive and finite, got 0.0
    """

    def __init__(
        self,
        plan: SumPlan,
        roster: Sequence[str],
        *,
        ledger: Callable[[Path], Ledger] | None = None,
        deadline: float = 120.0,
        poll: float = 0.5,
        state: str | Path | None = None,
    ) -> None:
        for name, seconds in (("deadline", deadline), ("poll", poll)):
            if not 0.0 < seconds < float("inf"):
                raise ValueError(f"{name} must be positive and finite, got {seconds!r}")
        if plan.noise_multiplier and ledger is None:
            raise ValueError("sums with noise are charged: give a ledger")
        self.plan, self.roster, self.ledger = plan, tuple(roster), ledger
        self.deadline, self.poll, self.state = float(deadline), float(poll), state

    def __call__(self, grid: Grid, context: Context) -> None:
        """Run, or continue, all rounds."""
        folder = self.state or context.run_config.get("state")
        if not folder:
            raise ValueError('the run\'s configuration must say state="FOLDER", where the server keeps its state')
        place = Path(str(folder))
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        ledger = None if self.ledger is None else self.ledger(place)
        try:
            with Journal(place / "sums.jsonl") as journal:
                events = journal.open({"sums": self.plan.features.hash})
                begun = [event["round"] for event in events if event["event"] == "begun"]
                told = [Broadcast(**event["broadcast"]) for event in events if event["event"] == "released"]
                broadcast = told[-1] if told else None
                for round in range(max(begun, default=-1) + 1, self.plan.rounds):
                    self._wait(grid)
                    journal.append({"event": "begun", "round": round})
                    if broadcast is not None and broadcast.silence is not None:  # agents go on alone
                        self._ask(grid, round, LAST, dict.fromkeys(grid.get_node_ids(), broadcast.to_wire()))
                        continue
                    made = self._sum(grid, round, broadcast, ledger)
                    if made is not None:
                        broadcast = made
                        journal.append({"event": "released", "broadcast": made.to_fields()})
                wire = None if broadcast is None else broadcast.to_wire()
                self._ask(grid, self.plan.rounds, LAST, dict.fromkeys(grid.get_node_ids(), wire))
        finally:
            if ledger is not None:
                ledger.close()

    def _wait(self, grid: Grid) -> None:
        """Wait until there are as many nodes as a sum needs."""
        while len(list(grid.get_node_ids())) < self.plan.stay:
            time.sleep(self.poll)

    def _sum(self, grid: Grid, round: int, broadcast: Broadcast | None, ledger: Ledger | None) -> Broadcast | None:
        """One session; None if it was given up."""
        server = SumServer(self.plan.session(round, self.roster))
        node_of: dict[int, int] = {}
        wire = None if broadcast is None else broadcast.to_wire()
        asked = dict.fromkeys(grid.get_node_ids(), wire)
        try:
            for phase, kind in enumerate(KINDS):
                if phase == LAST - 1 and ledger is not None:
                    self.plan.charge(ledger, round)  # before anybody opens anything
                for node, content in self._ask(grid, round, phase, asked).items():
                    try:
                        said = kind.from_wire(content)
                        if node_of.setdefault(said.party, node) != node:
                            raise ValueError(f"party {said.party} is node {node_of[said.party]}, not node {node}")
                        server.take(said)
                    except (ValueError, TypeError) as error:
                        _log.warning("refused an answer of node %d: %s", node, error)
                asked = {node_of[party]: _json(content) for party, content in server.advance().items()}
        except BudgetSpent:
            _log.info("round %d: the privacy budget is spent; agents go on alone", round)
            return Broadcast(round, self.plan.features.hash, self.plan.parts.parts, silence="budget")
        except Aborted as reason:
            _log.warning("round %d is lost: %s", round, reason)
            return None
        _log.info("round %d of %d: a sum of %d parties", round, self.plan.rounds, len(server.survivors))
        return self.plan.broadcast(round, self.plan.ring(round).lift(server.total))

    def _ask(self, grid: Grid, round: int, phase: int, asked: dict[int, Any]) -> dict[int, Any]:
        """Ask nodes, and return what those answered who did before the deadline."""
        requests = [
            Message(to_records(round, phase, content), node, f"{MessageType.QUERY}.{ACTION}", ttl=2.0 * self.deadline)
            for node, content in asked.items()
        ]
        accepted = set(grid.push_messages(requests))
        due = {
            request.metadata.message_id: request.metadata.dst_node_id
            for request in requests
            if request.metadata.message_id in accepted
        }
        found: dict[int, Any] = {}
        end = time.monotonic() + self.deadline
        while due and time.monotonic() < end:
            for answer in grid.pull_messages(list(due)):
                node = due.pop(answer.metadata.reply_to_message_id)
                try:
                    if answer.has_error():
                        raise ValueError(f"error {answer.error.code}")
                    of_round, of_phase, content = from_records(answer.content)
                    if (of_round, of_phase) != (round, phase):
                        raise ValueError("it answers something else")
                    found[node] = content
                except (ValueError, TypeError) as error:
                    _log.warning("no answer of node %d: %s", node, error)
            if due:
                time.sleep(self.poll)
        return found


def _json(content: Any) -> Any:
    """What a server sends to a party, as JSON holds it."""
    if isinstance(content, dict):
        return {str(key): value for key, value in content.items()}
    return [one.to_wire() if isinstance(one, Said) else one for one in content]


def secure_client_app(
    agent: Callable[[int, Path, UserConfig], Agent], objective: Callable[[Query, Context], Any], **options: Any
) -> ClientApp:
    """Return the Flower client app of one party; options are those of :class:`SecureClient`.

    >>> type(secure_client_app(None, None, plan=None, roster=[], identity=None)).__name__
    'ClientApp'
    """
    app = ClientApp()
    app.query(ACTION)(SecureClient(agent, objective, **options))
    return app


def secure_server_app(plan: SumPlan, roster: Sequence[str], **options: Any) -> ServerApp:
    """Return the Flower server app; options are those of :class:`SecureServer`.

    >>> from surefoot.federated import SharedFeatures
    >>> plan = SumPlan(SharedFeatures(1, 4, lengthscale=0.2, noise=0.01, seed=0), agents=3)
    >>> type(secure_server_app(plan, ["1" * 64, "2" * 64, "3" * 64])).__name__
    'ServerApp'
    """
    server = SecureServer(plan, roster, **options)
    app = ServerApp()
    app.main()(server)
    return app
