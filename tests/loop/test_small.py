"""Widths, streams, stored configuration."""

import math

import numpy as np
import pytest

from surefoot import GP, SE, Box, Candidates, Choice, Float, Int, Matern, Space, widths
from surefoot.loop.state import pack, unpack
from surefoot.loop.streams import stream


def test_finite_width_is_the_lemma():
    # β_t = 2 log(|D| t² π² / 6δ)
    assert widths.Finite(0.9)(3, size=50) == pytest.approx(math.sqrt(2 * math.log(50 * 9 * math.pi**2 / 0.6)))
    with pytest.raises(ValueError, match="finite domain"):
        widths.Finite(0.9)(3)


def test_rkhs_width_uses_the_realized_gain():
    width = widths.RKHS(bound=2.0, confidence=0.9)
    assert width(1, gain=0.0) == pytest.approx(2.0 + math.sqrt(2 * math.log(10)))
    assert width(1, gain=3.0) == pytest.approx(2.0 + math.sqrt(2 * (3.0 + math.log(10))))


def test_rkhs_width_covers_and_the_printed_one_does_not():
    """σ = 0.1, λ = σ², f = 0, B = 0.05, δ = 0.1, T = 30: the printed factor σ in front fails nearly always."""
    rng, sigma, trouble = np.random.default_rng(0), 0.1, {"general": 0, "printed": 0}
    grid = np.linspace(0, 1, 60)[:, None]
    for _ in range(40):
        X = rng.random((30, 1))
        posterior = GP(SE(lengthscale=0.1), noise=sigma**2).condition(X, sigma * rng.standard_normal(30))
        mean, std = posterior.predict(grid)
        gain = posterior.information_gain
        reach = np.max(np.abs(mean) / std)
        trouble["general"] += reach > widths.RKHS(0.05, 0.9)(30, gain=gain)
        trouble["printed"] += reach > 0.05 + sigma * math.sqrt(2 * (gain + math.log(10)))
    assert trouble["general"] <= 4
    assert trouble["printed"] >= 36


@pytest.mark.parametrize(
    "make", [lambda: widths.Finite(1.0), lambda: widths.Constant(-1.0), lambda: widths.Continuous(0.9, scale=0.0)]
)
def test_widths_refuse_nonsense(make):
    with pytest.raises(ValueError):
        make()


def test_streams_are_independent_of_each_other():
    draws = {(p, s): stream(5, p, s).integers(2**62) for p in ("fit", "ties", "initial") for s in range(50)}
    assert len(set(draws.values())) == 150
    assert stream(6, "fit", 0).integers(2**62) not in draws.values()


@pytest.mark.parametrize(
    "value",
    [
        Box([(0.0, 1.0), (2.0, 2.0)]),
        Candidates([[0.0, 1.0], [2.0, 3.0]]),
        Space(rate=Float(1e-3, 1.0, log=True), depth=Int(1, 5), kind=Choice(["a", None, 3])),
        SE(lengthscale=[0.1, 2.0]) + Matern(1.5).on([1]),
        GP(SE(), noise=0.1).refit(every=5),
        widths.Constant(3.0),
        widths.RKHS(1.0, 0.9),
        {"a": [1, 2.5, None, True, "x"], "b": float("inf")},
    ],
)
def test_configuration_round_trips(value):
    import json

    assert unpack(json.loads(json.dumps(pack(value), allow_nan=False))) == value


@pytest.mark.parametrize(
    ("value", "other"),
    [
        (0.9, 0.5),
        (None, 3),
        ("a", "b"),
        (float("inf"), 1.0),
        (np.arange(3.0), np.arange(1.0, 4.0)),
        ([1, [2, 3]], [1, [2, 4]]),
        ({"a": 1}, {"a": 2}),
        ({"a": 1}, {"b": 1}),
    ],
)
def test_what_is_passed_again_agrees_with_what_is_stored(value, other):
    np.testing.assert_equal(unpack(pack(value), value), value)
    with pytest.raises(ValueError, match=r"cannot become|not a mapping"):
        unpack(pack(value), other)


def test_code_in_a_mapping_can_be_passed_again():
    assert unpack(pack({"cost": abs, "rate": 2}), {"cost": abs, "rate": 2}) == {"cost": abs, "rate": 2}


def test_unknown_objects_are_refused():
    with pytest.raises(TypeError, match="storable"):
        pack(object())
    with pytest.raises(ValueError, match="unknown type"):
        unpack({"$type": "Exec", "value": 1})
