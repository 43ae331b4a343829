"""A grid in this process: nodes are client apps with contexts of their own; answers may be lost, late or forged."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from uuid import uuid4

from flwr.app import Context, Message, RecordDict
from flwr.serverapp import Grid
from flwr.supercore.task_identity import TaskIdentity

TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id = 1, 1, 1  # what Flower's runtime sets in a process


class Node:
    """One client app and what becomes of its answers."""

    def __init__(
        self, app, number, folder, run_config, *, forge: Callable[[RecordDict, int], RecordDict] | None = None
    ):
        self.app, self.forge = app, forge
        config = {"agent": number, "state": str(folder)}
        self.context = Context(1, number, config, RecordDict(), run_config)
        self.present = True
        self.hold = 0  # answers arrive once this round is asked for
        self.lost = False

    def answer(self, message: Message) -> Message:
        reply = self.app(message, self.context)
        if self.forge is not None and reply.has_content():
            reply.content = self.forge(reply.content, int(message.metadata.group_id))
        return reply


class LocalGrid(Grid):
    """Nodes by their ids; every answer that arrives is kept."""

    def __init__(self, nodes: dict[int, Node]) -> None:
        self.nodes = nodes
        self.waiting: dict[str, tuple[int, Message]] = {}
        self.round = 0
        self.arrived: list[Message] = []
        self.asked: list[tuple[int, int]] = []
        self.before: Callable[[int], None] = lambda round: None

    def set_run(self, run) -> None:
        raise NotImplementedError

    @property
    def run(self):
        raise NotImplementedError

    def create_message(self, content, message_type, dst_node_id, group_id, ttl=None):
        raise NotImplementedError

    def get_node_ids(self) -> Iterable[int]:
        return [name for name, node in self.nodes.items() if node.present]

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        names = []
        for message in messages:
            if not names:
                self.round = int(message.metadata.group_id)
                self.before(self.round)
            message.metadata.__dict__["_message_id"] = name = str(uuid4())
            node = self.nodes[message.metadata.dst_node_id]
            self.asked.append((int(message.metadata.group_id), message.metadata.dst_node_id))
            if not node.lost:
                self.waiting[name] = (node.hold, node.answer(message))
            names.append(name)
        return names

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        known = [name for name in message_ids if name in self.waiting and self.waiting[name][0] <= self.round]
        ready = [self.waiting.pop(name)[1] for name in known]
        self.arrived += ready
        return ready

    def send_and_receive(self, messages, *, timeout=None):
        raise NotImplementedError
