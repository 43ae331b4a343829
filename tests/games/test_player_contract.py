"""A player keeps the contract of policies: it is told rounds, and everything else applies as it stands.

Replaced are only the tests that tell a bare number, and the one that forbids repeats, which a player refuses.
"""

import numpy as np
import pytest

from surefoot import FAILED, GP, GPUCB, SE, Candidates, NotSupported, Player
from surefoot.games import EXP3, EXP3P, GPMW, PolicyStrategy, RandomStrategy, Round
from surefoot.testing import PolicyContract

every_domain = pytest.mark.parametrize("kind", ["Box", "Candidates", "Space"])
RIVAL = Candidates(np.linspace(0.0, 1.0, 4))


class PlayerContract(PolicyContract):
    """Two players; the other one walks through its actions."""

    policy = Player
    seats = 2

    def build(self, domain, **options):
        return super().build(domain, **{"others": [RIVAL] * (self.seats - 1), "initial": 2, **options})

    def rivals(self, x):
        step = int(abs(np.asarray(x)).sum() * 1000)
        return [RIVAL.points[(step + seat) % 4] for seat in range(self.seats - 1)]

    def told(self, x, value):
        return Round([x, *self.rivals(x)], [value] + [1.0 - value] * (self.seats - 1))

    def value(self, domain, x):
        rivals = self.rivals(x)
        return self.told(x, super().value(domain, x) + 0.2 * float(sum(r[0] for r in rivals)))

    def alike(self, query, value):
        return self.told(query.x, value)

    def outcome(self, query, value, **fields):
        return self.told(query.x, value)

    def test_a_policy_refuses_other_domains(self):
        with pytest.raises(NotSupported, match="works on"):
            self.build(self.domain("Paths"))
        with pytest.raises(TypeError):
            self.build([(0.0, 1.0)])

    def test_repeats_can_be_forbidden(self):
        with pytest.raises(NotSupported, match="repeats=False"):
            self.make("Candidates", repeats=False)

    @every_domain
    @pytest.mark.parametrize("data", ["constant", "tiny", "huge", "shifted"])
    def test_hard_outputs(self, kind, data):
        scale = {"constant": 0.0, "tiny": 1e-8, "huge": 1e8, "shifted": 1e-3}[data]
        policy = self.make(kind)
        for _ in range(5):
            query = self.ask(policy)
            number = self.value(policy.domain, query.x).payoffs[0]
            policy.tell(query, self.told(query.x, (1e6 if data == "shifted" else 0.0) + scale * number))
        answer = policy.recommend()
        assert policy.domain.contains(answer.x[None])[0]
        assert np.isfinite([answer.mean, answer.lower, answer.upper]).all()

    @every_domain
    def test_one_observation_and_duplicates(self, kind):
        policy = self.make(kind)
        x = policy.domain.sample(1, np.random.default_rng(1))[0]
        for value in (1.0, 1.0, 1.5, 1.0):
            policy.tell(self.told(x, value))
            policy.recommend()
        self.step(policy)
        assert len(policy.history) == 5

    @every_domain
    def test_bad_rounds_change_nothing(self, kind):
        policy = self.make(kind)
        query = self.ask(policy)
        before = policy.state()
        other = policy.domain.sample(3, np.random.default_rng(3))
        other = next(x for x in other if not np.array_equal(x, query.x))
        for bad, message in [
            (self.told(other, 1.0), "own action"),
            (Round([query.x] + [[0.123]] * (self.seats - 1), [1.0] * self.seats), "does not belong"),
            (Round([query.x] + [[0.0]] * self.seats, [1.0] * (self.seats + 1)), "players"),
        ]:
            with pytest.raises(ValueError, match=message):
                policy.tell(query, bad)
        with pytest.raises(TypeError, match="Round"):
            policy.tell(query, 1.0)
        with pytest.raises(TypeError, match="alone"):
            policy.tell(self.told(query.x, 1.0), 1.0)
        assert policy.state() == before
        policy.tell(query, Round([query.x, *self.rivals(query.x)], [None] * self.seats))
        assert policy.history[-1].outcome == FAILED


GIVEN = GP(SE(lengthscale=1.0), noise=1e-3, mean=1.5)


class TestLevel0(PlayerContract):
    options = {"level": 0, "strategies": RandomStrategy(), "gp": GIVEN}


class TestLevel1(PlayerContract):
    options = {"level": 1, "samples": 4}


class TestLevel2(PlayerContract):
    options = {"level": 2, "strategies": RandomStrategy(), "gp": GIVEN.refit(every=2), "samples": 6}


class TestLite(PlayerContract):
    options = {"level": 1, "lite": True, "gp": GIVEN}


@pytest.mark.slow
class TestBelowAPolicy(PlayerContract):
    """The other one is believed to run GP-UCB on its own payoff alone."""

    options = {
        "level": 1,
        "gp": GIVEN,
        "strategies": [RandomStrategy(), PolicyStrategy(GPUCB(RIVAL, gp=GP(SE(), mean=0.5), seed=3))],
    }


class TestThreePlayers(PlayerContract):
    seats = 3
    options = {
        "level": 2,
        "profile": [None, 1, 0],
        "gp": GIVEN,
        "strategies": [RandomStrategy(), RandomStrategy(), EXP3()],
        "samples": 8,
    }


class OnCandidates(PlayerContract):
    """Strategies that mix over finitely many actions."""

    def kinds(self):
        return ["Candidates"]


class TestGPMW(OnCandidates):
    options = {"level": 0, "strategies": GPMW(payoff_range=(0.0, 3.0)), "gp": GIVEN.refit(every=3)}


class TestEXP3(OnCandidates):
    options = {"level": 0, "strategies": EXP3(), "gp": GIVEN}


class TestEXP3P(OnCandidates):
    options = {"level": 0, "strategies": EXP3P(horizon=50, payoff_range=(0.0, 3.0)), "gp": GIVEN}


del PlayerContract, OnCandidates, PolicyContract  # bases, not to be collected


@pytest.mark.parametrize(
    "wrong", [{"initial": 1.5}, {"samples": 2.5}, {"samples": 0}, {"common": -1}, {"common": "a"}, {"position": 0.5}]
)
def test_options_that_count_are_whole_numbers(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Player(RIVAL, others=[RIVAL], **wrong)


def test_features_are_a_whole_number():
    with pytest.raises(ValueError, match="features must be a whole number"):
        EXP3(features=2.5)
