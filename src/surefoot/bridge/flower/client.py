"""One party of a federation as a Flower client app.

A SuperNode runs the app in a new process for every request, so nothing lives in memory: the agent is rebuilt from its
journal in a folder of the node, makes its query, measures it on its own data, and answers with one message. A request
that comes twice (the server was restarted) gets the same message again.

What the answer can hold is a :class:`~surefoot.federated.messages.Message` or one word. Flower would send the text of
an exception to the server, and a text may quote data: here every exception ends on the node, in its log.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from flwr.app import Context, Message, RecordDict, UserConfig
from flwr.clientapp import ClientApp

from surefoot.bridge.flower.records import message_to_records, request_from_records, word_to_records
from surefoot.errors import Exhausted
from surefoot.federated.agent import Agent
from surefoot.loop.types import FAILED, Query

__all__ = ["ACTION", "FederationClient", "client_app"]

ACTION = "surefoot"
"""The action of Flower's query messages that carry a round."""

_log = logging.getLogger("surefoot.bridge.flower")


class FederationClient:
    """Answers the server's requests for one agent.

    Parameters
    ----------
    agent : callable
        ``agent(number, journal, config)`` makes the agent with this number on the public roster, writing to this
        journal; ``config`` is the run's configuration, the same at all parties.
    objective : callable
        ``objective(query, context)`` measures on the node's own data and returns what ``tell`` takes.
        ``context.node_config`` says where the data lies. An exception is a failed measurement.
    state : path, optional
        Folder of the node for the agent's journal. None: the node's configuration ``state``, else the run's
        ``agent-state``.

    The agent's number is ``agent`` in the node's configuration; in Flower's simulation it is the partition.

    Examples
    --------
    >>> from flwr.app import Context, RecordDict
    >>> FederationClient(agent=None, objective=None).number(Context(1, 2, {"agent": 3}, RecordDict(), {}))
    3
    """

    def __init__(
        self,
        agent: Callable[[int, Path, UserConfig], Agent],
        objective: Callable[[Query, Context], Any],
        *,
        state: str | Path | None = None,
    ) -> None:
        self.agent = agent
        self.objective = objective
        self.state = state

    def number(self, context: Context) -> int:
        """Return which agent of the public roster this node is."""
        number = context.node_config.get("agent", context.node_config.get("partition-id"))
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            raise ValueError(f"the node's configuration must say agent=K, its number on the roster, got {number!r}")
        return number

    def journal(self, context: Context) -> Path:
        """Return where the agent's events are."""
        folder = self.state or context.node_config.get("state") or context.run_config.get("agent-state")
        if not folder:
            raise ValueError('the node\'s configuration must say state="FOLDER", where the agent keeps its journal')
        return Path(str(folder)) / f"agent-{self.number(context)}.jsonl"

    def __call__(self, message: Message, context: Context) -> Message:
        """Answer one request."""
        try:
            content = self._answer(message, context)
        except Exception:
            # The text of an exception may quote data; it stays here.
            _log.exception("the request could not be answered")
            content = word_to_records("failed")
        return Message(content, reply_to=message)

    def _answer(self, message: Message, context: Context) -> RecordDict:
        round, features, broadcast, last = request_from_records(message.content)
        journal = self.journal(context)
        journal.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        agent = self.agent(self.number(context), journal, context.run_config)
        try:
            if agent.shared.hash != features:
                _log.error("the server has the features %s, this node %s", features[:12], agent.shared.hash[:12])
                return word_to_records("features")
            if round not in _sent(agent):  # else it is asked again: the same answer, and no second query
                if broadcast is not None:
                    agent.receive(broadcast)
                self._measure(agent, context)
            sent = agent.message(round)
            return word_to_records("done") if last else message_to_records(sent)
        finally:
            agent.close()

    def _measure(self, agent: Agent, context: Context) -> None:
        """Make the queries of a round: the initial ones before the first message, then one for each."""
        kinds = [event["event"] for event in agent.events]
        last = len(kinds) - kinds[::-1].index("sent") if "sent" in kinds else 0
        due = (1 if last else agent.initial) - kinds[last:].count("told")
        for query in agent.pending:  # of a process that was killed
            agent.tell(query, self._measured(query, context))
            due -= 1
        for _ in range(due):
            try:
                query = agent.ask()
            except Exhausted:
                return
            agent.tell(query, self._measured(query, context))

    def _measured(self, query: Query, context: Context) -> Any:
        try:
            return self.objective(query, context)
        except Exception:
            _log.exception("a measurement failed")
            return FAILED


def client_app(
    agent: Callable[[int, Path, UserConfig], Agent],
    objective: Callable[[Query, Context], Any],
    *,
    state: str | Path | None = None,
    mods: list[Any] | None = None,
) -> ClientApp:
    """Return the Flower client app of one party; see :class:`FederationClient`.

    >>> type(client_app(agent=None, objective=None)).__name__
    'ClientApp'
    """
    app = ClientApp(mods=mods)
    app.query(ACTION)(FederationClient(agent, objective, state=state))
    return app


def _sent(agent: Agent) -> set[int]:
    return {event["round"] for event in agent.events if event["event"] == "sent"}
