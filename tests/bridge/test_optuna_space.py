"""Distributions as axes and groups: exact round trips, values Optuna accepts, how conditional spaces fall apart."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from surefoot.bridge.optuna.space import Group, OptunaAxis, decompose
from surefoot.domain import Choice, Float, Int

reals = st.floats(-1e6, 1e6, allow_nan=False).map(lambda v: round(v, 6))


@st.composite
def distributions(draw):
    kind = draw(st.sampled_from(["float", "log", "step", "int", "intlog", "intstep", "choice"]))
    if kind == "choice":
        return CategoricalDistribution(draw(st.lists(st.integers() | st.text(max_size=3), min_size=2, unique_by=repr)))
    if kind.startswith("int"):
        low = draw(st.integers(1 if kind == "intlog" else -(10**6), 10**6))
        high = low + draw(st.integers(1, 10**6))
        return IntDistribution(
            low, high, log=kind == "intlog", step=draw(st.integers(1, 50)) if kind == "intstep" else 1
        )
    if kind == "log":
        low = draw(st.floats(1e-9, 1.0))
        return FloatDistribution(low, low * draw(st.floats(1.5, 1e9)), log=True)
    low = draw(reals)
    if kind == "step":
        step = draw(st.sampled_from([0.1, 0.25, 0.5, 1.0, 3.0, 1e-3]))
        low = round(low / 1e4, 6)  # beyond, Optuna's own tolerance for multiples is too narrow for doubles
        return FloatDistribution(low, low + step * draw(st.integers(1, 1000)), step=step)
    return FloatDistribution(low, low + draw(st.floats(1e-3, 1e6)))


@pytest.mark.filterwarnings("ignore:The distribution is specified by")
@settings(max_examples=150, deadline=None)
@given(distributions(), st.integers(0, 2**32 - 1))
def test_what_an_axis_gives_lies_in_the_distribution_and_comes_back(distribution, seed):
    axis = OptunaAxis(distribution)
    for u in np.random.default_rng(seed).random(5):
        number = float(axis.parameter.spread(np.array([u]))[0])
        value = axis.value(number)
        assert distribution._contains(distribution.to_internal_repr(value)), value
        assert not isinstance(value, np.generic)
        again = axis.number(value)
        assert again == number
        assert axis.parameter.contains(np.array([again]))[0]


@pytest.mark.filterwarnings("ignore:The distribution is specified by")
def test_a_step_is_a_lattice_from_end_to_end():
    axis = OptunaAxis(FloatDistribution(-10.2, 10.2, step=0.1))
    assert axis.parameter == Int(0, 204)
    assert [axis.value(k) for k in (0, 1, 102, 204)] == [-10.2, -10.1, 0.0, 10.2]
    assert OptunaAxis(IntDistribution(3, 9, step=2)).parameter == Int(0, 3)
    assert [OptunaAxis(IntDistribution(3, 9, step=2)).value(k) for k in range(4)] == [3, 5, 7, 9]
    assert OptunaAxis(FloatDistribution(0.0, 1.0, step=0.3)).value(3.0) == 0.9  # Optuna has moved the upper end there


def test_all_lattice_values_are_reached_and_accepted():
    for distribution in (FloatDistribution(0.0, 0.7, step=0.1), FloatDistribution(-1.0, 2.0, step=0.3)):
        axis = OptunaAxis(distribution)
        values = [axis.value(k) for k in axis.parameter.numbers()]
        assert values == sorted(set(values))
        assert all(distribution._contains(v) for v in values)
        assert [axis.number(v) for v in values] == list(range(len(values)))


def test_values_off_the_axis_are_refused():
    with pytest.raises(ValueError, match=r"multiple of 0\.5"):
        OptunaAxis(FloatDistribution(0.0, 4.0, step=0.5)).number(0.7)
    for distribution, value in [
        (FloatDistribution(0.0, 1.0), 1.5),
        (IntDistribution(0, 5), 7),
        (IntDistribution(0, 10, step=5), 15),
        (CategoricalDistribution(["a", "b"]), "c"),
    ]:
        with pytest.raises(ValueError):
            OptunaAxis(distribution).number(value)
    with pytest.raises(TypeError, match="no parameter stands for"):
        OptunaAxis("uniform")


def test_choices_may_be_anything():
    with pytest.warns(UserWarning, match="persistent storage"):
        odd = CategoricalDistribution([(1, 2), None, math.nan, "a", 1.5])
    axis = OptunaAxis(odd)
    assert axis.parameter == Choice(range(5))
    assert [axis.number(value) for value in odd.choices] == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert axis.value(0.0) == (1, 2)
    assert math.isnan(axis.value(2.0))
    assert OptunaAxis(CategoricalDistribution([True, False])).parameter == Choice([True, False])
    with pytest.warns(UserWarning, match="persistent storage"):
        group = Group({"x": CategoricalDistribution([[1], [2]])})
    assert group.values(group.find({"x": [2]})) == {"x": [2]}
    assert group.key.startswith("x: ")  # a list cannot be hashed, but it can be named


def test_integers_too_large_to_count_are_rounded():
    axis = OptunaAxis(IntDistribution(0, 2**60))
    assert axis.parameter == Float(0, 2**60)
    assert axis.value(2.0**59) == 2**59
    assert isinstance(axis.value(3.7), int)
    fine = OptunaAxis(FloatDistribution(0.0, 1.0, step=1e-13))
    assert isinstance(fine.parameter, Float)
    assert fine.distribution._contains(fine.value(0.123456789012345678))


def test_a_group_leaves_out_what_it_cannot_place():
    group = Group({"b": FloatDistribution(0.0, 1.0), "a": IntDistribution(0, 5)})
    assert group.names == ["a", "b"]
    assert group.find({"a": 2}) is None
    assert group.find({"a": 2, "b": 3.0}) is None
    np.testing.assert_array_equal(group.find({"a": 2, "b": 0.5, "c": "other"}), [2.0, 0.5])
    assert group.seed(1) != Group({"a": IntDistribution(0, 5)}).seed(1)
    assert group.seed(1) == group.seed(1) != group.seed(2)


names = st.sets(st.sampled_from("abcdef"))


@given(st.lists(names, min_size=1, max_size=8))
def test_groups_are_the_coarsest_partition_of_which_every_trial_is_a_union(trials):
    anything = FloatDistribution(0.0, 1.0)
    groups = decompose(dict.fromkeys(trial, anything) for trial in trials)
    assert sorted(name for group in groups for name in group) == sorted(set().union(*trials))
    for group in groups:  # a union of groups ...
        assert all(set(group) <= trial or not set(group) & trial for trial in trials)
    for i, one in enumerate(groups):  # ... of which no two could be one
        for other in groups[:i]:
            assert any((set(one) <= trial) != (set(other) <= trial) for trial in trials)


def test_the_latest_range_counts_and_single_values_do_not():
    old, new, single = FloatDistribution(0.0, 1.0), FloatDistribution(0.0, 2.0), FloatDistribution(1.0, 1.0)
    assert decompose([{"x": old, "s": single}, {"x": new, "s": single}]) == [{"x": new}]
    assert decompose([]) == []
