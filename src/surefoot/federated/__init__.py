"""Many parties learn together without showing their data.

Each party runs an :class:`Agent`, a policy of its own. All of them share random features of a public seed; what an
agent sends is one drawn vector of weights, and what comes back is a function to follow now and then. With noise at the
:class:`Coordinator` nobody who reads the broadcasts can tell whether an agent took part.

>>> from surefoot import Box
>>> from surefoot.federated import Agent, Coordinator, SharedFeatures
>>> features = SharedFeatures(1, 64, lengthscale=0.2, noise=0.01, seed=0)
>>> agents = [Agent(Box.unit(1), features, agent=n, initial=3, seed=n) for n in range(4)]
>>> coordinator = Coordinator(features, agents=len(agents))
>>> for number in range(3):
...     for agent in agents:
...         query = agent.ask()
...         agent.tell(query, -((query.x[0] - 0.3) ** 2))
...         news = coordinator.collect(agent.message(number))
...     broadcast = coordinator.release(number)
...     heard = [agent.receive(broadcast) for agent in agents]
>>> all(heard), coordinator.round
(True, 3)

References: Dai, Low & Jaillet 2020 (FTS); Dai, Low & Jaillet 2021 (DP-FTS-DE).
"""

from __future__ import annotations

from surefoot import lazy

__getattr__, __dir__, __all__ = lazy.names(
    __name__,
    {
        "agent": ["Agent", "regional_start"],
        "aggregate": ["audit_case", "clip_norms"],
        "argmax": ["best_point", "regional_values", "spread_points", "spread_table"],
        "coordinator": ["Coordinator"],
        "features": ["SharedFeatures", "draw_weights", "to_unit", "transform_outputs"],
        "messages": ["Broadcast", "Message"],
        "regions": ["Regions", "Weighting", "effective_multiplier"],
        "simulation": ["GridFamily", "Simulation", "agent_seed", "random_messages", "simulate", "synthetic_family"],
        "schedules": ["Decay", "FixedProbability", "Schedule", "expected_uses"],
    },
    renamed={"Fixed": "FixedProbability"},
)
