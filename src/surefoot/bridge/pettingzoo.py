"""Players as agents of PettingZoo environments: everybody chooses the parameters of its controller, then all run.

An action of the game is the parameter vector of a controller; its payoff is the mean return of some episodes. Any
parallel environment whose agents observe boxes will do; sequential ones are converted by PettingZoo's own
``aec_to_parallel``.

>>> import os; os.environ["SDL_VIDEODRIVER"] = "dummy"
>>> from mpe2 import simple_tag_v3
>>> from surefoot.bridge.pettingzoo import environment_game
>>> tag = simple_tag_v3.parallel_env(num_good=1, num_adversaries=2, max_cycles=10, continuous_actions=True)
>>> game = environment_game(tag, episodes=1, seed=0)
>>> [space.dimension for space in game.spaces]
[19, 19, 17]
>>> from surefoot.games import Player, RandomStrategy, play
>>> players = [
...     Player(space, others=[s for j, s in enumerate(game.spaces) if j != i], position=i, level=0,
...            strategies=RandomStrategy(), seed=i)
...     for i, space in enumerate(game.spaces)
... ]
>>> play(game, players, rounds=2).payoffs.shape
(2, 3)
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

if importlib.util.find_spec("pettingzoo") is None:
    from surefoot.errors import MissingExtra

    raise MissingExtra("the PettingZoo bridge needs PettingZoo: pip install 'surefoot[pettingzoo]'")

from pettingzoo import AECEnv

from surefoot.bridge.gymnasium import LinearPolicy
from surefoot.experimental import experimental
from surefoot.games.game import Game
from surefoot.loop.streams import stream

__all__ = ["Episodes", "environment_game", "pursuit_rewards"]

Array = NDArray[np.float64]
Rewards = Callable[[Mapping[str, Array], Mapping[str, float]], Mapping[str, float]]

EDGE = 1.0  # the prey of simple_tag is inside while both of its coordinates are


class Episodes:
    """Runs the controllers of all agents, and returns what each of them earned on average.

    Parameters
    ----------
    env : pettingzoo.ParallelEnv
        Its ``possible_agents`` are the players, in this order.
    policies : mapping from agent to LinearPolicy, optional
        None: linear controllers of rank one.
    episodes : int
        Runs that are averaged, each from a beginning of its own.
    rewards : callable, optional
        ``rewards(observations, rewards)`` replaces the rewards of one step.
    scale : pair of float, optional
        Mean returns are cut to this range and scaled to [0, 1].
    seed : int
        Names the beginnings: evaluation number k uses the same ones in every program.

    Attributes
    ----------
    agents : list of str
    runs : int
        Evaluations so far.

    >>> import os; os.environ["SDL_VIDEODRIVER"] = "dummy"
    >>> from mpe2 import simple_tag_v3
    >>> tag = simple_tag_v3.parallel_env(num_good=1, num_adversaries=2, max_cycles=5, continuous_actions=True)
    >>> payoffs = Episodes(tag, episodes=1)
    >>> payoffs.agents
    ['adversary_0', 'adversary_1', 'agent_0']
    >>> len(payoffs([np.zeros(19), np.zeros(19), np.zeros(17)]))
    3
    """

    def __init__(
        self,
        env: Any,
        policies: Mapping[str, LinearPolicy] | None = None,
        *,
        episodes: int = 5,
        rewards: Rewards | None = None,
        scale: Sequence[float] | None = None,
        seed: int = 0,
    ) -> None:
        if episodes < 1:
            raise ValueError(f"episodes must be at least 1, got {episodes!r}")
        if isinstance(env, AECEnv):
            raise TypeError(
                "this environment lets its agents move one after the other: make it parallel, by parallel_env() of its "
                "module or pettingzoo.utils.conversions.aec_to_parallel(env)"
            )
        if scale is not None and not (len(scale) == 2 and scale[0] < scale[1]):
            raise ValueError(f"scale is a range, the lower end first, got {scale!r}")
        self.env, self.episodes, self.rewards, self.scale, self.seed = env, episodes, rewards, scale, seed
        self.agents = list(env.possible_agents)
        if len(self.agents) < 2:
            raise ValueError(f"a game needs at least two agents, this environment has {self.agents}")
        self.policies = dict(policies) if policies is not None else self._rank_one()
        if set(self.policies) != set(self.agents):
            raise ValueError(f"there must be one policy for each of {self.agents}, got {sorted(self.policies)}")
        self.runs = 0

    def _rank_one(self) -> dict[str, LinearPolicy]:
        env = self.env
        return {a: LinearPolicy(env.observation_space(a), env.action_space(a), rank=1) for a in self.agents}

    def __call__(self, actions: Sequence[Array]) -> list[float]:
        parameters = dict(zip(self.agents, actions, strict=True))
        beginnings = stream(self.seed, "episodes", self.runs).integers(2**31, size=self.episodes)
        self.runs += 1
        returns = np.mean([self.episode(parameters, int(seed)) for seed in beginnings], axis=0)
        if self.scale is not None:
            low, high = self.scale
            returns = (np.clip(returns, low, high) - low) / (high - low)
        return [float(value) for value in returns]

    def episode(self, parameters: Mapping[str, Array], seed: int) -> Array:
        """Return what each agent earns in one run, shape (agents,)."""
        observations, _ = self.env.reset(seed=seed)
        matrices = {agent: self.policies[agent] for agent in self.agents}
        total = dict.fromkeys(self.agents, 0.0)
        while self.env.agents:
            moves = {agent: matrices[agent].act(parameters[agent], observations[agent]) for agent in self.env.agents}
            observations, earned, *_ = self.env.step(moves)
            if self.rewards is not None:
                earned = self.rewards(observations, earned)
            for agent, reward in earned.items():
                total[agent] += float(reward)
        return np.array([total[agent] for agent in self.agents])


@experimental
def environment_game(env: Any, policies: Mapping[str, LinearPolicy] | None = None, **options: Any) -> Game:
    """Return a game whose players choose the controllers of the agents of a parallel environment.

    Parameters
    ----------
    env, policies, **options
        As for :class:`Episodes`.

    >>> import os; os.environ["SDL_VIDEODRIVER"] = "dummy"
    >>> from mpe2 import simple_tag_v3
    >>> tag = simple_tag_v3.parallel_env(num_good=1, num_adversaries=1, max_cycles=5, continuous_actions=True)
    >>> environment_game(tag, episodes=1)
    Game(2 players, payoffs by a function)
    """
    payoffs = Episodes(env, policies, **options)
    return Game(payoffs, [payoffs.policies[agent].domain for agent in payoffs.agents])


def pursuit_rewards(observations: Mapping[str, Array], rewards: Mapping[str, float]) -> dict[str, float]:
    """Return the rewards of predator and prey as in the R2-B2 study, for one step of ``simple_tag``.

    The study gives no formula. Here the prey earns a tenth of its distance to each predator and pays 1 whenever it is
    outside, |x| or |y| above 1. A predator earns 1 less a tenth of the distance of the nearest predator to the prey,
    the same for all of them, and nothing while the prey is outside.

    >>> prey = np.array([0, 0, 0.5, 0.0, 9, 9, 9, 9, 3.0, 4.0, 0.0, 1.0])  # velocity, position, landmarks, predators
    >>> pursuit_rewards({"adversary_0": prey, "adversary_1": prey, "agent_0": prey}, {})
    {'adversary_0': 0.9, 'adversary_1': 0.9, 'agent_0': 0.6000000000000001}
    """
    prey = [agent for agent in observations if agent.startswith("agent")]
    predators = [agent for agent in observations if agent not in prey]
    if len(prey) != 1 or not predators:
        raise ValueError(f"these rewards are for one prey and some predators, got {list(observations)}")
    seen = np.asarray(observations[prey[0]], dtype=np.float64)
    distances = np.linalg.norm(seen[-2 * len(predators) :].reshape(-1, 2), axis=1)
    inside = bool((np.abs(seen[2:4]) <= EDGE).all())
    hunt = float(inside) * (1.0 - 0.1 * float(distances.min()))
    return {**dict.fromkeys(predators, hunt), prey[0]: 0.1 * float(distances.sum()) - (0.0 if inside else 1.0)}
