"""Surefoot's accountant behind Flower's protocol, beside Flower's own."""

from __future__ import annotations

import json

import pytest

flwr = pytest.importorskip("flwr.serverapp", reason="needs Flower: make test-flower")

from flwr.serverapp import (  # noqa: E402
    GaussianPrivacyEvent,
    NeighboringRelation,
    PrivacyAccountant,
    PrivacyConfig,
    RdpAccountant,
    SamplingMethod,
)

from surefoot.bridge.flower import SurefootAccountant  # noqa: E402
from surefoot.private.accounting import GaussianEvent  # noqa: E402


def config(sampling=SamplingMethod.POISSON, **changes):
    settings = {"target_delta": 1e-3, "population_size": 200, "max_epsilon": 10.0, **changes}
    return PrivacyConfig(
        neighboring_relation=NeighboringRelation.ADD_OR_REMOVE_ONE, sampling_method=sampling, **settings
    )


def test_every_name_of_the_protocol_is_there():
    names = {name for name in vars(PrivacyAccountant) if not name.startswith("_")}
    assert len(names) == 9
    assert names <= set(dir(SurefootAccountant))


@pytest.mark.parametrize("sampling", [SamplingMethod.POISSON, SamplingMethod.NO_AMPLIFICATION])
@pytest.mark.parametrize(("multiplier", "sampled", "count"), [(1.0, 50, 40), (1.5, 20, 10), (3.0, 120, 60)])
def test_agrees_with_flowers_own_accountant(sampling, multiplier, sampled, count):
    event = GaussianPrivacyEvent(multiplier, sampled, 200)
    theirs, ours = RdpAccountant(config(sampling)), SurefootAccountant(config(sampling), method="rdp")
    for accountant in (theirs, ours):
        accountant.compose(event, count)
        accountant.compose(GaussianPrivacyEvent(2.0, 100, 200), 3)
    assert ours.num_releases == theirs.num_releases == count + 3
    # Both minimize over orders, on two grids; neither can be below the truth, which the loss distribution bounds.
    assert ours.get_epsilon(1e-3) == pytest.approx(theirs.get_epsilon(1e-3), rel=0.02)
    for accountant in (theirs, ours):
        assert accountant.get_delta(accountant.get_epsilon(1e-3)) == pytest.approx(1e-3, rel=0.05)
    tight = SurefootAccountant(config(sampling))
    tight.compose(event, count)
    tight.compose(GaussianPrivacyEvent(2.0, 100, 200), 3)
    assert tight.get_epsilon(1e-3) <= min(ours.get_epsilon(1e-3), theirs.get_epsilon(1e-3)) + 1e-6


def test_published_losses_by_moments():
    synthetic = {(0.15, 1.0): 5.93, (0.25, 1.0): 9.91, (0.5, 1.0): 20.12, (0.25, 1.2): 7.39, (0.25, 1.5): 5.22}
    for (sampling, multiplier), published in synthetic.items():
        accountant = SurefootAccountant(config(target_delta=200**-1.1), method="moments")
        accountant.compose(GaussianPrivacyEvent(multiplier, round(200 * sampling), 200), 40)
        assert accountant.get_privacy_spent().epsilon == pytest.approx(published, abs=0.006)
        assert accountant.get_privacy_spent().num_releases == 40


def test_limits_and_state():
    accountant = SurefootAccountant(config(), method="rdp")
    assert accountant.get_epsilon(1e-3) == accountant.get_delta(1.0) == 0.0
    event = GaussianPrivacyEvent(1.0, 50, 200)
    assert not accountant.would_exceed(event)
    assert accountant.would_exceed(event, count=400)
    assert accountant.would_exceed(event, max_epsilon=0.01)
    assert accountant.num_releases == 0
    accountant.compose(event, 7)
    accountant.replay([GaussianEvent(1.0, 0.25), GaussianEvent(1.0, 0.25, 2)])
    assert accountant.num_releases == 10
    assert (accountant.config, accountant.method) == (config(), "rdp")
    restored = SurefootAccountant(config(), method="rdp")
    restored.load_state_dict(json.loads(json.dumps(accountant.state_dict())))
    assert restored.get_privacy_spent() == accountant.get_privacy_spent()
    together = SurefootAccountant(config(), method="rdp")
    together.compose(event, 10)
    assert together.get_epsilon(1e-3) == pytest.approx(accountant.get_epsilon(1e-3), rel=1e-12)


@pytest.mark.parametrize(
    ("change", "value"),
    [
        ("schema_version", 2),
        ("backend", "rdp"),
        ("config", {}),
        ("compositions", [{"event": {}, "count": 0}]),
        ("compositions", None),
        ("compositions", {"event": {}, "count": 1}),
    ],
)
def test_foreign_states_are_refused_and_change_nothing(change, value):
    accountant = SurefootAccountant(config())
    accountant.compose(GaussianPrivacyEvent(1.0, 50, 200), 3)
    state = accountant.state_dict()
    with pytest.raises(ValueError):
        accountant.load_state_dict({**state, change: value})
    assert accountant.state_dict() == state


def test_bad_input():
    with pytest.raises(ValueError, match="'exact'"):
        SurefootAccountant(config(), method="exact")
    replaced = PrivacyConfig(1e-3, 200, NeighboringRelation.REPLACE_ONE, SamplingMethod.WITHOUT_REPLACEMENT)
    with pytest.raises(ValueError, match="replace-one"):
        SurefootAccountant(replaced)
    accountant = SurefootAccountant(config(max_epsilon=None))
    with pytest.raises(ValueError, match="max_epsilon"):
        accountant.would_exceed(GaussianPrivacyEvent(1.0, 50, 200))
    for limit in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(ValueError, match=f"max_epsilon must be positive and finite: {limit}"):
            accountant.would_exceed(GaussianPrivacyEvent(1.0, 50, 200), max_epsilon=limit)
    with pytest.raises(ValueError, match="200, not 100"):
        accountant.compose(GaussianPrivacyEvent(1.0, 50, 100))
    with pytest.raises(ValueError, match="count"):
        accountant.compose(GaussianPrivacyEvent(1.0, 50, 200), 0)
    with pytest.raises(TypeError, match="event"):
        accountant.compose("release")
    with pytest.raises(ValueError, match="delta"):
        accountant.get_epsilon(1.5)
    with pytest.raises(ValueError, match="epsilon"):
        accountant.get_delta(-1.0)
    assert accountant.num_releases == 0
