"""The rule and its tables: lookup, guard, options, storing, watching a run, bad input."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from surefoot.stopping import (
    CONTINUE,
    STOP,
    Decision,
    ExponentialDecay,
    OptimalStopping,
    Plateau,
    count,
    induce,
    model_from_dict,
)

N = np.arange(1, 51)
SLOW = 1 - (0.25 + 0.4 * np.exp(-0.04 * N))  # scores: ends at 0.7
HOPELESS = 1 - (0.6 + 0.1 * np.exp(-0.02 * N))
LEVELS = 1 - (0.35 + 0.3 * np.exp(-0.2 * N))  # levels off at 0.65
RULE = OptimalStopping(epochs=50, paths=8_000)


def rng(seed=0):
    return np.random.default_rng(seed)


def table_of(curve=SLOW, threshold=0.9, **options):
    return replace(RULE, **options).fit(curve[:8], threshold, rng())


class TestTable:
    def test_shapes_and_edges(self):
        table = table_of()
        for array in (table.decisions, table.probability, table.value, table.saved, table.visits):
            assert array.shape == (42, 100)
        np.testing.assert_allclose(table.edges, np.tile(np.linspace(0, 1, 101), (42, 1)))
        assert (table.start, table.initial, table.epochs) == (8, 8, 50)

    def test_a_lookup_finds_the_cell(self):
        table = table_of()
        for epoch in (9, 20, 50):
            j = epoch - 9
            for m in np.flatnonzero(table.visits[j])[::3]:
                found = table.decide(epoch, 0.5 * (table.edges[j, m] + table.edges[j, m + 1]))
                assert found.action == ("continue", "stop", "accept")[table.decisions[j, m]]
                assert found.probability == table.probability[j, m]
                assert found.saved == table.saved[j, m]

    def test_the_ends_of_the_range_have_cells(self):
        table = table_of()
        assert table.locate(9, [0.0, 1.0, -0.1, 1.1]).tolist() == [0, 99, 0, 99]

    def test_unvisited_cells_continue_without_an_opinion(self):
        assert table_of().decide(30, 0.99) == Decision("continue", None, None)

    def test_the_statistic(self):
        curve = np.append(SLOW[:8], [0.5, 0.6, 0.7])
        assert table_of().statistic(curve) == pytest.approx(0.4)
        assert table_of(statistic="all").statistic(curve) == pytest.approx(np.mean(1 - curve))

    def test_follow_is_the_lookup_of_the_statistic(self):
        table = table_of(threshold=0.95)
        curve = SLOW[:20]
        assert table.follow(curve) == table.decide(20, table.statistic(curve))

    def test_the_initial_epochs_are_always_run(self):
        table = table_of(HOPELESS, 0.95)
        assert table.solution.root.decision == STOP
        for n in range(9):
            found = table.follow(HOPELESS[:n])
            assert found.action == "continue"
            assert found.probability == table.forecast
        assert table.follow(HOPELESS[:9]).stop

    def test_a_run_above_the_threshold_is_never_stopped(self):
        table = table_of(HOPELESS, 0.5)

        def peak(height):  # four epochs with the average of the plain run
            rest = (HOPELESS[8:12].sum() - height) / 3
            return np.append(HOPELESS[:8], [height, rest, rest, rest])

        assert table.decide(12, table.statistic(peak(0.51))).stop
        assert not table.follow(peak(0.51)).stop
        assert table.follow(peak(0.5)).stop  # equal is not above

    def test_play_is_follow_on_every_curve(self):
        table = table_of(threshold=0.85)
        curves = ExponentialDecay().sample(1 - SLOW[:8], 50, 60, rng(3)).astype(float)
        epoch, stopped = table.play(curves)
        for curve, last, early in zip(curves, epoch, stopped, strict=True):
            scores = np.concatenate([SLOW[:8], 1 - curve])
            stops = [n for n in range(9, 50) if table.follow(scores[:n]).stop]
            assert last == (stops[0] if stops else 50)
            assert early == bool(stops)
        assert 0 < stopped.sum() < len(curves)

    def test_saved_epochs(self):
        table = table_of(HOPELESS, 0.95)
        assert table.follow(HOPELESS[:10]) == Decision("stop", 0.0, 40.0)
        assert table.follow(HOPELESS[:8]).saved == 42.0

    def test_another_loss_on_the_same_curves(self):
        table = table_of()
        again = table.solved(induce(table.counts, k1=1000.0, k2=99.0, cost=1.0))
        direct = RULE.fit(SLOW[:8], 0.9, rng(), k1=1000.0)
        np.testing.assert_array_equal(again.decisions, direct.decisions)

    @pytest.mark.parametrize("epoch", [8, 51, 0])
    def test_epochs_outside(self, epoch):
        with pytest.raises(ValueError, match=f"epochs 9 to 50, not {epoch}"):
            table_of().decide(epoch, 0.5)

    def test_bad_curves(self):
        table = table_of()
        with pytest.raises(ValueError, match="finite"):
            table.decide(9, math.nan)
        with pytest.raises(ValueError, match="finite"):
            table.follow([0.5, math.nan])
        with pytest.raises(ValueError, match=r"\[0, 1\], got 1.5"):
            table.follow([0.5, 1.5])
        with pytest.raises(ValueError, match="after epoch 8"):
            table.statistic(SLOW[:8])
        with pytest.raises(ValueError, match=r"shape \(S, 42\)"):
            table.play(np.zeros((3, 50)))


class TestOptions:
    def test_k1_of_the_call_is_k1_of_the_rule(self):
        one = RULE.fit(SLOW[:8], 0.9, rng(), k1=500.0)
        two = replace(RULE, k1=500.0).fit(SLOW[:8], 0.9, rng())
        np.testing.assert_array_equal(one.decisions, two.decisions)

    @pytest.mark.parametrize("unvisited", ["continue", "monotone", "resimulate"])
    def test_infinite_k1_never_stops(self, unvisited):
        rule = replace(RULE, unvisited=unvisited, paths=2000)
        assert not (rule.fit(HOPELESS[:8], 0.95, rng(), k1=math.inf).decisions == STOP).any()
        watch = rule.watch(0.95, rng, k1=math.inf)
        assert not any(watch.report(HOPELESS[:n]).stop for n in range(1, 51))

    def test_both_statistics_stop_a_hopeless_run(self):
        for statistic in ("after", "all"):
            assert table_of(HOPELESS, 0.95, statistic=statistic).follow(HOPELESS[:9]).stop

    def test_statistics_differ_by_an_affine_map(self):
        """Both see the same paths, binned differently."""
        one, two = table_of(), table_of(statistic="all")
        assert one.forecast == two.forecast
        assert np.count_nonzero(one.visits) > 1.3 * np.count_nonzero(two.visits)

    def test_monotone_stops_a_plateau_that_left_the_simulated_cells(self):
        """The published model expects LEVELS to go on falling; only cells that no curve visited are changed."""
        plain, filled = (table_of(LEVELS, 0.999, unvisited=u) for u in ("continue", "monotone"))
        left = [n for n in range(9, 50) if plain.visits[n - 9, plain.locate(n, plain.statistic(LEVELS[:n]))] == 0]
        assert left
        assert not any(plain.follow(LEVELS[:n]).stop for n in left)
        assert all(filled.follow(LEVELS[:n]).stop for n in left)

    def test_adaptive_cells_separate_more(self):
        plain, fitted = table_of(), table_of(adaptive=True)
        assert np.count_nonzero(fitted.visits > 30) > 1.5 * np.count_nonzero(plain.visits > 30)
        far = fitted.decide(30, 1.0)
        assert far == Decision("continue", None, None)

    def test_smoothed_probabilities_are_never_sure(self):
        table = table_of(HOPELESS, 0.95, smoothing=True)
        p = table.probability[table.visits > 0]
        assert p.min() > 0
        assert p.max() < 1

    def test_few_paths_mean_no_decision(self):
        assert (table_of(HOPELESS, 0.95, paths=30).decisions == CONTINUE).all()


class TestStoring:
    @pytest.mark.parametrize(
        "rule",
        [
            OptimalStopping(epochs=20),
            OptimalStopping(epochs=20, k1=math.inf, model=Plateau(noise=(1e-3, 0.2)), every=3, unvisited="resimulate"),
            OptimalStopping(epochs=20, k2=math.inf, model=ExponentialDecay(hyper="grid"), adaptive=True),
        ],
    )
    def test_round_trip(self, rule):
        stored = json.loads(json.dumps(rule.to_dict(), allow_nan=False))
        assert OptimalStopping.from_dict(stored) == rule

    def test_models(self):
        assert model_from_dict({"model": "Plateau"}) == Plateau()


class TestWatch:
    def test_without_refits_it_is_the_first_table(self):
        watch = RULE.watch(0.95, rng)
        table = RULE.fit(SLOW[:8], 0.95, rng(8))
        for n in range(1, 51):
            found = watch.report(SLOW[:n])
            assert found == (Decision("continue") if n < 8 else table.follow(SLOW[:n]))

    def test_leaving_the_simulated_cells_asks_for_a_new_table(self):
        rule = replace(RULE, unvisited="resimulate", paths=4000)
        table = rule.fit(LEVELS[:8], 0.9, rng())
        first = next(n for n in range(9, 50) if table.needs_refit(LEVELS[:n]))
        assert table.visits[first - 9, table.locate(first, table.statistic(LEVELS[:first]))] <= rule.minimum
        assert not any(RULE.fit(LEVELS[:8], 0.9, rng()).needs_refit(LEVELS[:n]) for n in range(1, 51))
        new = rule.fit(LEVELS[:first], 0.9, rng())
        assert new.start == first
        assert not new.needs_refit(LEVELS[:first])

    def test_resimulation_stops_what_the_first_table_cannot(self):
        """Card 7.9: the published model leaves the envelope on a plateau and would run to the end."""
        plain, again = RULE, replace(RULE, unvisited="resimulate", every=5)
        ends = []
        for rule in (plain, again):
            watch = rule.watch(0.85, rng)
            ends.append(next((n for n in range(1, 51) if watch.report(LEVELS[:n]).stop), 50))
        assert ends[0] == 50
        assert ends[1] < 40

    def test_a_new_table_decides_at_once(self):
        rule = replace(RULE, unvisited="resimulate", every=1)
        watch = rule.watch(0.95, rng)
        assert [watch.report(HOPELESS[:n]).stop for n in (8, 9)] == [False, True]
        assert watch.table is not None
        assert watch.table.start == 9

    def test_what_it_says_depends_on_the_scores_alone(self):
        """A watch that is begun again, or was asked less often, says the same."""
        rule = replace(RULE, unvisited="resimulate", every=4, paths=2000)
        patient, curve = rule.watch(0.7, rng), SLOW
        said = [patient.report(curve[:n]) for n in range(1, 41)]
        for n in (8, 13, 30, 40):
            assert rule.watch(0.7, rng).report(curve[:n]) == said[n - 1]

    def test_the_last_epoch(self):
        rule = OptimalStopping(epochs=10, initial=9, paths=2000)
        watch = rule.watch(0.9, rng)
        assert not watch.report(HOPELESS[:9]).stop
        assert watch.report(HOPELESS[:10]).saved == 0.0


class TestBadInput:
    @pytest.mark.parametrize(
        ("options", "error", "message"),
        [
            ({"epochs": 0}, ValueError, "epochs must be at least 1, got 0"),
            ({"epochs": 5.5}, TypeError, "epochs must be a whole number, got 5.5"),
            ({"epochs": True}, TypeError, "whole number"),
            ({"epochs": 9, "initial": 0}, ValueError, "initial"),
            ({"epochs": 9, "cells": 2}, ValueError, "cells"),
            ({"epochs": 9, "every": 0}, ValueError, "every"),
            ({"epochs": 9, "k1": 0.0}, ValueError, "k1 must be positive"),
            ({"epochs": 9, "k2": math.nan}, ValueError, "k2 must be positive"),
            ({"epochs": 9, "k1": "much"}, ValueError, "k1 must be positive"),
            ({"epochs": 9, "model": ExponentialDecay}, TypeError, "sample or simulate"),
            ({"epochs": 9, "cost": -1.0}, ValueError, "cost"),
            ({"epochs": 9, "cost": math.inf}, ValueError, "cost"),
            ({"epochs": 9, "statistic": "mean"}, ValueError, "got 'mean'"),
            ({"epochs": 9, "unvisited": "guess"}, ValueError, "got 'guess'"),
        ],
    )
    def test_rules(self, options, error, message):
        with pytest.raises(error, match=message):
            OptimalStopping(**options)

    @pytest.mark.parametrize("n", [0, 7, 50])
    def test_prefixes(self, n):
        with pytest.raises(ValueError, match=f"8 to 49 epochs of a run of 50, got {n}"):
            RULE.fit(SLOW[:n], 0.9, rng())

    def test_fits(self):
        with pytest.raises(ValueError, match="nan"):
            RULE.fit(SLOW[:8], math.nan, rng())
        with pytest.raises(ValueError, match="k1"):
            RULE.fit(SLOW[:8], 0.9, rng(), k1=-1.0)
        with pytest.raises(ValueError, match=r"\[0, 1\]"):
            RULE.fit(SLOW[:8] + 1.0, 0.9, rng())

    @pytest.mark.parametrize("threshold", [-0.5, 1.5, -math.inf, math.inf])
    def test_thresholds_outside_are_allowed(self, threshold):
        """An incumbent less its noise offset may be negative: then every run wins."""
        table = RULE.fit(SLOW[:8], threshold, rng())
        assert table.forecast == float(threshold < 0)


def test_single_precision_changes_no_decision_that_matters():
    """Decisions on single- and double-precision copies of the same curves agree."""
    curves = ExponentialDecay().sample(1 - SLOW[:8], 50, 20_000, rng())
    wins = curves[:, -1] < 0.1
    assert curves.dtype == np.float32
    one, two = (induce(count(c, wins), k1=100.0, k2=99.0, cost=1.0) for c in (curves, curves.astype(np.float64)))
    np.testing.assert_array_equal(one.decisions, two.decisions)
