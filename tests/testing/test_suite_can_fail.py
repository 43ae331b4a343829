"""The contract suite finds policies that break their promises."""

import itertools

import numpy as np
import pytest

from surefoot import GP, MacroGPO, RandomSearch
from surefoot.loop.policy import Proposal
from surefoot.testing import PolicyContract

counter = itertools.count()


class Moody(RandomSearch):
    """Draws from a generator that lives outside the policy."""

    def _choose(self, step, context):
        return Proposal(self.domain.sample(1, np.random.default_rng(next(counter)))[0])


class Stubborn(RandomSearch):
    """Always asks for the same point, pending or failed as it may be."""

    def _choose(self, step, context):
        return Proposal(self.domain.design(1, self.stream("only"))[0])


class Forgetful(RandomSearch):
    """Keeps a count of its own instead of deriving it from its events."""

    asked = 0

    def _choose(self, step, context):
        self.asked += 1
        return Proposal(self.domain.sample(1, self.stream("sample", self.asked))[0])


class Leaping(MacroGPO):
    """Always makes a move from the start, wherever the vehicle is."""

    def _choose(self, step, context):
        return Proposal(stops=self.domain.moves(self.domain.start)[0])


def test_a_vehicle_that_leaps_is_noticed():
    for policy, broken in ((Leaping, True), (MacroGPO, False)):
        made = suite(policy)
        type(made).options = {"samples": 3, "horizon": 2, "gp": GP(noise=0.1)}
        if broken:
            with pytest.raises(AssertionError):
                made.test_moves_start_where_the_last_one_ended()
        else:
            made.test_moves_start_where_the_last_one_ended()


def suite(policy):
    return type("Suite", (PolicyContract,), {"policy": policy})()


@pytest.mark.parametrize(
    ("policy", "promise", "arguments"),
    [
        (Moody, "test_the_seed_decides_everything", ["Box"]),
        (Moody, "test_resuming_with_pending_queries", ["Space"]),
        (Stubborn, "test_pending_points_are_not_asked_again", ["Box"]),
        (Stubborn, "test_failed_runs_are_remembered_and_not_repeated_at_once", ["Candidates"]),
        (Forgetful, "test_resuming_with_pending_queries", ["Box"]),
    ],
)
def test_a_broken_promise_is_noticed(policy, promise, arguments):
    with pytest.raises(AssertionError):
        getattr(suite(policy), promise)(*arguments)
    getattr(suite(RandomSearch), promise)(*arguments)


def test_a_journal_is_checked_against_an_uninterrupted_run(tmp_path):
    with pytest.raises(AssertionError):
        suite(Forgetful).test_journal_alone_rebuilds_the_policy("Box", tmp_path)
