"""Three parties tune their own models in three processes and help each other through a coordinator.

Only two kinds of objects cross the pipes, as strict JSON: a message (one drawn vector of weights) from a party, and the
same broadcast to all. Points and values stay in their process. Between machines, over TLS and with authenticated nodes,
the same agents and coordinator run on Flower: see examples/flower_federation.
With three parties there is no noise and so no privacy; `surefoot federate --plan --agents N` says how many it takes.
"""

from __future__ import annotations

import json
from math import log10
from multiprocessing import Pipe, Process
from multiprocessing.connection import Connection

from surefoot import Float, Space
from surefoot.federated import Agent, Broadcast, Coordinator, Message, SharedFeatures

PARTIES, ROUNDS, START = 3, 8, 4
SPACE = Space(rate=Float(1e-4, 1.0, log=True), decay=Float(0.0, 0.9))
FEATURES = SharedFeatures(2, 100, lengthscale=0.2, noise=0.01, seed=2026)  # public, agreed on beforehand


def loss(rate: float, decay: float, party: int) -> float:
    """Stands for training on this party's own data: best near rate 0.03, a little elsewhere for each."""
    return (log10(rate) + 1.5 + 0.1 * party) ** 2 + (decay - 0.5) ** 2


def party(number: int, pipe: Connection) -> None:
    agent = Agent(SPACE, FEATURES, agent=number, initial=START, seed=number)
    for step in range(START + ROUNDS):
        if step >= START:
            pipe.send(json.dumps(agent.message(step - START).to_wire()))
            agent.receive(Broadcast.from_wire(json.loads(pipe.recv())))
        query = agent.ask()
        agent.tell(query, -loss(**query.params, party=number))
    print(f"party {number}: {agent.recommend().params}")


def main() -> None:
    pipes = [Pipe() for _ in range(PARTIES)]
    processes = [Process(target=party, args=(n, theirs)) for n, (_, theirs) in enumerate(pipes)]
    for process in processes:
        process.start()
    coordinator = Coordinator(FEATURES, agents=PARTIES, rounds=ROUNDS)
    for round in range(ROUNDS):
        for ours, _ in pipes:
            coordinator.collect(Message.from_wire(json.loads(ours.recv())))
        wire = json.dumps(coordinator.release(round).to_wire())
        for ours, _ in pipes:
            ours.send(wire)
    for process in processes:
        process.join()


if __name__ == "__main__":
    main()
