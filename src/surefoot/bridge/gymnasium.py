"""Policy search in Gymnasium environments: the parameters of a controller are the point, its mean return the value.

>>> import gymnasium
>>> from surefoot import optimize
>>> from surefoot.bridge.gymnasium import PolicySearch
>>> search = PolicySearch(gymnasium.make("CartPole-v1", max_episode_steps=60), episodes=2, seed=0)
>>> search.domain.dimension
8
>>> result = optimize(search, search.domain, budget=6, seed=0)
>>> bool(result.recommendation.mean > 0.0)
True

Controllers are linear in the observation. A full matrix W has (observations × actions) parameters; ``rank=1`` takes
W = u vᵀ with (observations + actions), which is what keeps multi-agent games small.
"""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

if importlib.util.find_spec("gymnasium") is None:
    from surefoot.errors import MissingExtra

    raise MissingExtra("the Gymnasium bridge needs Gymnasium: pip install 'surefoot[gymnasium]'")

from gymnasium import spaces

from surefoot.domain import Box
from surefoot.errors import NotSupported
from surefoot.experimental import experimental
from surefoot.loop.streams import stream

__all__ = ["LinearPolicy", "PolicySearch"]

Array = NDArray[np.float64]


class LinearPolicy:
    """A controller that is linear in the observation, with its parameters in [−1, 1].

    Parameters
    ----------
    observation_space : gymnasium.spaces.Box
        Of one axis.
    action_space : gymnasium.spaces.Box or Discrete
        A box of one axis gets Wᵀs cut to its bounds; of discrete actions the one with the largest entry is taken.
    rank : {1, None}
        1: W = u vᵀ; None: any matrix.

    >>> low, high = np.zeros(5, dtype=np.float32), np.ones(5, dtype=np.float32)
    >>> policy = LinearPolicy(spaces.Box(-np.inf, np.inf, (14,)), spaces.Box(low, high), rank=1)
    >>> policy.domain.dimension
    19
    >>> policy.act(np.ones(19), np.full(14, 0.05)).round(3)
    array([0.7, 0.7, 0.7, 0.7, 0.7], dtype=float32)
    """

    def __init__(self, observation_space: spaces.Space, action_space: spaces.Space, *, rank: int | None = None) -> None:
        if not isinstance(observation_space, spaces.Box) or len(observation_space.shape) != 1:
            raise NotSupported(f"a linear policy needs observations in a Box of one axis, not {observation_space}")
        flat = isinstance(action_space, spaces.Box) and len(action_space.shape) == 1
        if not flat and not isinstance(action_space, spaces.Discrete):
            raise NotSupported(f"a linear policy acts in a Box of one axis or in Discrete, not in {action_space}")
        if rank not in (1, None):
            raise ValueError(f"rank must be 1 or None, got {rank!r}")
        self.action_space, self.rank = action_space, rank
        self.observations = int(observation_space.shape[0])
        self.actions = int(action_space.shape[0]) if flat else int(action_space.n)
        count = self.observations + self.actions if rank == 1 else self.observations * self.actions
        self.domain = Box([(-1.0, 1.0)] * count)

    def matrix(self, parameters: ArrayLike) -> Array:
        """Return W, shape (observations, actions)."""
        x = np.asarray(parameters, dtype=np.float64)
        if x.shape != (self.domain.dimension,):
            raise ValueError(f"this policy has {self.domain.dimension} parameters, got an array of shape {x.shape}")
        if self.rank == 1:
            return np.outer(x[: self.observations], x[self.observations :])
        return x.reshape(self.observations, self.actions)

    def act(self, parameters: ArrayLike, observation: ArrayLike) -> Any:
        """Return the action for an observation."""
        wanted = np.asarray(observation, dtype=np.float64) @ self.matrix(parameters)
        if isinstance(self.action_space, spaces.Discrete):
            return int(np.argmax(wanted)) + int(self.action_space.start)
        clipped = np.clip(wanted, self.action_space.low, self.action_space.high)
        return clipped.astype(self.action_space.dtype)


@experimental
class PolicySearch:
    """The mean return of a controller, as a function of its parameters.

    Parameters
    ----------
    env : gymnasium.Env
        Where episodes are run.
    policy : LinearPolicy, optional
        None: a full matrix.
    episodes : int
        Runs that are averaged, each from a beginning of its own.
    steps : int, optional
        Longest run, where the environment does not say.
    seed : int
        Names the beginnings: call number k uses the same ones in every program.

    >>> import gymnasium
    >>> cart = gymnasium.make("CartPole-v1")
    >>> one, two = (PolicySearch(cart, episodes=2, steps=20, seed=1) for _ in range(2))
    >>> one(np.zeros(8)) == two(np.zeros(8))
    True
    """

    def __init__(
        self,
        env: Any,
        policy: LinearPolicy | None = None,
        *,
        episodes: int = 5,
        steps: int | None = None,
        seed: int = 0,
    ) -> None:
        if episodes < 1 or (steps is not None and steps < 1):
            raise ValueError(f"episodes and steps must be at least 1, got {episodes!r} and {steps!r}")
        self.env, self.episodes, self.steps, self.seed = env, episodes, steps, seed
        self.policy = LinearPolicy(env.observation_space, env.action_space) if policy is None else policy
        self.domain = self.policy.domain
        self.calls = 0

    def __call__(self, x: ArrayLike) -> float:
        beginnings = stream(self.seed, "episodes", self.calls).integers(2**31, size=self.episodes)
        self.calls += 1
        return float(np.mean([self._episode(x, int(seed)) for seed in beginnings]))

    def _episode(self, x: ArrayLike, seed: int) -> float:
        observation, _ = self.env.reset(seed=seed)
        total, step, over = 0.0, 0, False
        while not over and (self.steps is None or step < self.steps):
            observation, reward, ended, cut, _ = self.env.step(self.policy.act(x, observation))
            total, step, over = total + float(reward), step + 1, ended or cut
        return total
