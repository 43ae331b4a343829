"""Players in a real multi-agent environment, and policy search in a single-agent one."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
pytest.importorskip("gymnasium", reason="gymnasium is not installed")
pytest.importorskip("pettingzoo", reason="pettingzoo is not installed")
simple_tag_v3 = pytest.importorskip("mpe2.simple_tag_v3", reason="mpe2 is not installed")

import gymnasium  # noqa: E402
from gymnasium import spaces  # noqa: E402
from mpe2 import simple_v3  # noqa: E402

from surefoot import GP, SE, NotSupported, Player, optimize  # noqa: E402
from surefoot.bridge.gymnasium import LinearPolicy, PolicySearch  # noqa: E402
from surefoot.bridge.pettingzoo import Episodes, environment_game, pursuit_rewards  # noqa: E402
from surefoot.games import RandomStrategy, play  # noqa: E402


def tag(cycles=25, **options):
    settings = {"num_good": 1, "num_adversaries": 2, "num_obstacles": 2, "continuous_actions": True, **options}
    return simple_tag_v3.parallel_env(max_cycles=cycles, **settings)


def seats(game, levels, profiles, **options):
    given = {"strategies": RandomStrategy(), "samples": 16, "gp": GP(SE(lengthscale=3.0), noise=0.05), **options}
    return [
        Player(
            space,
            others=[s for j, s in enumerate(game.spaces) if j != i],
            position=i,
            level=levels[i],
            profile=profiles[i],
            seed=i,
            **given,
        )
        for i, space in enumerate(game.spaces)
    ]


def test_fifty_five_inputs():
    game = environment_game(tag(), episodes=1)
    assert [space.dimension for space in game.spaces] == [19, 19, 17]


def test_payoffs_are_mean_returns_of_the_environment():
    env, seed = tag(), 123
    payoffs = Episodes(env, episodes=3)
    rng = np.random.default_rng(0)
    parameters = {agent: policy.domain.sample(1, rng)[0] for agent, policy in payoffs.policies.items()}
    observations, _ = env.reset(seed=seed)
    total = dict.fromkeys(payoffs.agents, 0.0)
    while env.agents:
        moves = {}
        for agent in env.agents:
            x, n = parameters[agent], env.observation_space(agent).shape[0]
            moves[agent] = np.clip(observations[agent] @ np.outer(x[:n], x[n:]), 0.0, 1.0).astype(np.float32)
        observations, rewards, *_ = env.step(moves)
        for agent, reward in rewards.items():
            total[agent] += reward
    expected = [total[agent] for agent in payoffs.agents]
    np.testing.assert_allclose(payoffs.episode(parameters, seed), expected, rtol=1e-5)
    actions = [parameters[agent] for agent in payoffs.agents]
    again = Episodes(tag(), episodes=3)
    assert payoffs(actions) == again(actions)  # evaluation 0 in both
    assert payoffs.runs == 1


def test_discrete_actions_and_scaled_returns():
    payoffs = Episodes(tag(continuous_actions=False), episodes=2, rewards=pursuit_rewards, scale=(0.0, 25.0))
    values = payoffs([np.full(19, 0.5), np.full(19, -0.5), np.full(17, 0.5)])
    assert all(0.0 <= value <= 1.0 for value in values)
    assert values[0] == values[1]


def test_pursuit_rewards():
    here = np.zeros(12)
    here[8:] = [0.3, 0.4, 0.6, 0.8]
    names = ("adversary_0", "adversary_1", "agent_0")
    inside = pursuit_rewards(dict.fromkeys(names, here), {})
    assert inside["adversary_0"] == inside["adversary_1"] == pytest.approx(0.95)
    assert inside["agent_0"] == pytest.approx(0.15)
    here[2] = 1.2
    outside = pursuit_rewards(dict.fromkeys(names, here), {})
    assert outside["adversary_0"] == 0.0
    assert outside["agent_0"] == pytest.approx(0.15 - 1.0)
    with pytest.raises(ValueError, match="one prey"):
        pursuit_rewards({"agent_0": here, "agent_1": here}, {})


def test_levels_meet_in_the_environment():
    """Profiles (predator 1, predator 2, prey) = 2, 0, 1, as in the study, a few rounds of it."""
    game = environment_game(tag(10), episodes=1, rewards=pursuit_rewards, scale=(-10.0, 10.0), seed=4)
    profiles = [[None, 0, 1], None, None]
    players = seats(game, [2, 0, 1], profiles, share_samples=True)
    match = play(game, players, 2, initial=3)
    assert np.isfinite(match.payoffs).all()
    assert players[0].queries[0].note["assumed"]["2"] == match.rounds[0].actions[2].tolist()


def test_agents_and_policies_are_checked():
    with pytest.raises(ValueError, match="one policy for each"):
        Episodes(tag(), {"agent_0": LinearPolicy(spaces.Box(-1.0, 1.0, (12,)), spaces.Discrete(5))})
    with pytest.raises(ValueError, match="episodes"):
        Episodes(tag(), episodes=0)
    with pytest.raises(ValueError, match=r"at least two agents, this environment has \['agent_0'\]"):
        Episodes(simple_v3.parallel_env(max_cycles=5))
    with pytest.raises(TypeError, match="aec_to_parallel"):
        environment_game(simple_tag_v3.env(max_cycles=5))
    with pytest.raises(ValueError, match="scale"):
        Episodes(tag(), scale=(1.0,))
    with pytest.raises(ValueError, match="scale"):
        Episodes(tag(), scale=(1.0, 0.0))


def test_linear_policies():
    policy = LinearPolicy(spaces.Box(-1.0, 1.0, (3,)), spaces.Discrete(2, start=1))
    W = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    assert policy.act(W.ravel(), [1.0, 0.0, 5.0]) == 1
    assert policy.act(W.ravel(), [0.0, 1.0, 5.0]) == 2
    one = LinearPolicy(spaces.Box(-1.0, 1.0, (3,)), spaces.Box(-0.5, 0.5, (2,)), rank=1)
    np.testing.assert_allclose(one.matrix([1, 2, 3, 4, 5]), np.outer([1, 2, 3], [4, 5]))
    assert one.act(np.ones(5), [1.0, 1.0, 1.0]).tolist() == [0.5, 0.5]
    with pytest.raises(ValueError, match="5 parameters"):
        one.matrix(np.ones(4))
    with pytest.raises(NotSupported, match="one axis"):
        LinearPolicy(spaces.Box(-1.0, 1.0, (3, 3)), spaces.Discrete(2))
    with pytest.raises(NotSupported, match="acts in"):
        LinearPolicy(spaces.Box(-1.0, 1.0, (3,)), spaces.MultiBinary(2))
    with pytest.raises(ValueError, match="rank"):
        LinearPolicy(spaces.Box(-1.0, 1.0, (3,)), spaces.Discrete(2), rank=2)


def test_policy_search_learns_to_balance():
    search = PolicySearch(gymnasium.make("CartPole-v1", max_episode_steps=100), episodes=3, seed=0)
    result = optimize(search, search.domain, budget=25, seed=0)
    falling = np.mean([PolicySearch(search.env, episodes=3, seed=s)(np.zeros(8)) for s in range(3)])
    assert result.recommendation.mean > 3.0 * falling
    with pytest.raises(ValueError, match="at least 1"):
        PolicySearch(search.env, episodes=0)


@pytest.mark.parametrize(("name", "result"), [("pettingzoo", "players"), ("gymnasium", "result")])
def test_the_pages_run(name, result):
    page = (Path(__file__).parents[2] / "docs" / "bridges" / f"{name}.md").read_text(encoding="utf-8")
    names: dict = {}
    for block in re.findall(r"^```py\n(.*?)^```$", page, flags=re.M | re.S):
        exec(block, names)
    assert result in names
