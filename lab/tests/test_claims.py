"""The six forms, each at the borders of its rule."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.intervals import page, wilson
from surefoot_lab import (
    Equal,
    Exact,
    Metric,
    Number,
    Order,
    Share,
    Trace,
    Trend,
    across,
    falls,
    one_standard_error,
    rises,
)
from surefoot_lab.readings import ascending

V = Metric("value")


def runs(**methods):
    """Repetitions from one list of numbers per method."""
    count = len(next(iter(methods.values())))
    return [{name: Trace(value=values[i]) for name, values in methods.items()} for i in range(count)]


def verdict(claim, replicates):
    return claim.judge(replicates)["verdict"]


class TestExact:
    def test_every_repetition_must_agree(self):
        assert verdict(Exact("", {V["a"]: 1.0}), runs(a=[1.0, 1.0 + 5e-7])) == "holds"
        assert verdict(Exact("", {V["a"]: 1.0}), runs(a=[1.0, 1.0 + 5e-6])) == "fails"
        assert verdict(Exact("", {V["a"]: 1.0}, tolerance=0.1), runs(a=[1.0, 1.05])) == "holds"
        assert verdict(Exact("", {V["a"]: 1.0, V["b"]: 2.0}), runs(a=[1.0], b=[2.1])) == "fails"

    def test_inequalities(self):
        data = runs(a=[1.0, 2.0], b=[1.0, 3.0])
        assert verdict(Exact("", V["a"] <= V["b"]), data) == "holds"
        assert verdict(Exact("", [V["a"] < V["b"]]), data) == "fails"

    def test_without_data_nothing_is_decided(self):
        entry = Exact("", {V["a"]: 1.0}).judge([])
        assert entry["verdict"] == "undecided"
        assert "no data for value[a]" in entry["note"]


class TestNumber:
    data = runs(a=[0.9, 1.0, 1.1, 1.0] * 3)  # mean 1, sd 0.0739, se 0.0213, 95 % half-width 0.0469

    @pytest.mark.parametrize(
        ("published", "expected"),
        [(1.04, "holds"), (1.05, "undecided"), (1.08, "undecided"), (1.13, "fails"), (0.87, "fails")],
    )
    def test_own_standard_error_only(self, published, expected):
        # 1.08 is more than three standard errors away, and less than a tenth of the number.
        assert verdict(Number("", {V["a"]: published}), self.data) == expected

    def test_published_standard_error_is_combined(self):
        # √(0.0213² + 0.1²) = 0.1022
        assert verdict(Number("", {V["a"]: (1.2, 0.1)}), self.data) == "holds"
        assert verdict(Number("", {V["a"]: (1.25, 0.1)}), self.data) == "undecided"
        assert verdict(Number("", {V["a"]: (1.33, 0.1)}), self.data) == "fails"

    def test_published_repetitions_stand_for_a_missing_error(self):
        # sd/√4 = 0.0369 beside our own: 0.0426
        assert verdict(Number("", {V["a"]: 1.08}, repetitions=4), self.data) == "holds"
        assert verdict(Number("", {V["a"]: 1.18}, repetitions=4), self.data) == "fails"

    def test_tolerances(self):
        assert verdict(Number("", {V["a"]: 1.2}, tolerance=0.25), self.data) == "holds"
        assert verdict(Number("", {V["a"]: 1.2}, relative=0.2), self.data) == "holds"

    # Finding 21 of the review of 0.1.0
    def test_a_number_known_too_badly_does_not_hold_because_it_is_noisy(self):
        noisy = runs(a=[0.2, 1.0, 1.8, 1.0] * 3)  # the same mean, eight times the spread: half-width 0.375
        assert verdict(Number("", {V["a"]: 1.0}), self.data) == "holds"
        found = Number("", {V["a"]: 1.0}).judge(noisy)
        assert found["verdict"] == "undecided"
        assert found["tests"][0]["half"] == pytest.approx(0.375, abs=1e-3)
        assert verdict(Number("", {V["a"]: (1.51, 0.3)}), noisy) == "holds"  # a quarter of 1.51 is 0.3775
        assert verdict(Number("", {V["a"]: (1.45, 0.3)}), noisy) == "undecided"
        assert verdict(Number("", {V["a"]: 0.0}), runs(a=[-1.0, 1.0] * 10)) == "undecided"

    def test_within_a_tolerance_that_is_finer_than_the_data_is_undecided(self):
        assert verdict(Number("", {V["a"]: 1.1}, tolerance=0.15), self.data) == "undecided"  # a quarter is 0.0375

    def test_one_repetition_decides_only_if_exact(self):
        one = runs(a=[1.0])
        assert verdict(Number("", {V["a"]: 1.0}), one) == "undecided"
        assert verdict(Number("", {V["a"]: 1.0}, exact=True), one) == "holds"
        assert verdict(Number("", {V["a"]: 5.0}), one) == "undecided"
        assert verdict(Number("", {V["a"]: 5.0}, exact=True), one) == "fails"
        assert verdict(Number("", {V["a"]: 1.01}, relative=0.02, exact=True), one) == "holds"

    def test_stored_numbers_of_0_1_are_judged_again_as_if_they_were_new(self):
        rng = np.random.default_rng(5)
        for published in ({V["a"]: 1.0}, {V["a"]: (1.1, 0.2)}, {V["a"]: 0.4}, {V["a"]: (1.6, 0.1)}):
            for spread in (0.05, 0.5, 2.0):
                for options in ({}, {"repetitions": 7}, {"tolerance": 0.3}):
                    claim = Number("", published, **options)
                    found = claim.judge(runs(a=1.0 + spread * rng.normal(size=15)))
                    old = [{k: v for k, v in test.items() if k != "half"} for test in found["tests"]]
                    assert claim.judge_again(old)["verdict"] == found["verdict"]

    def test_nine_cells_in_ten(self):
        rng = np.random.default_rng(0)
        data = [{str(k): Trace(value=x) for k, x in enumerate(row)} for row in 3 + rng.normal(size=(400, 10))]
        means = np.mean([[t[str(k)]["value"] for k in range(10)] for t in data], axis=0)
        ses = np.std([[t[str(k)]["value"] for k in range(10)] for t in data], axis=0, ddof=1) / 20

        def table(*off):
            return {V[str(k)]: means[k] + (off[k] if k < len(off) else 0) * ses[k] for k in range(10)}

        assert verdict(Number("", table(2.5)), data) == "holds"
        assert verdict(Number("", table(2.5, 2.5)), data) == "undecided"
        assert verdict(Number("", table(12)), data) == "fails"
        few = dict(list(table(2.5).items())[:9])
        assert verdict(Number("", few), data) == "undecided"

    def test_other_statistics(self):
        data = runs(a=[*np.linspace(1, 2, 30), 1e6])
        assert verdict(Number("", {V["a"]: 1.5}, statistic="median"), data) == "holds"
        assert verdict(Number("", {V["a"]: 5.0}, statistic="median"), data) == "fails"


class TestOrder:
    def test_planted_effects(self):
        rng = np.random.default_rng(0)
        base, e = rng.normal(size=30) * 10, rng.normal(size=(2, 30)) * 0.1
        data = runs(a=base, b=base + 0.5 + e[0], c=base + e[1])
        assert verdict(Order("", V["a"] < V["b"]), data) == "holds"
        assert verdict(Order("", V["b"] < V["a"]), data) == "fails"
        assert verdict(Order("", V["a"] < V["c"]), data) == "undecided"
        assert verdict(Order("", [V["a"] < V["b"], V["a"] < V["c"]]), data) == "undecided"
        assert verdict(Order("", [V["b"] < V["a"], V["a"] < V["c"]]), data) == "fails"
        assert verdict(Order("", V["b"] > 0.1 + V["a"]), data) == "holds"

    def test_single_and_several_tests_are_reported(self):
        data = runs(a=[0.0, 0.1], b=[1.0, 1.1], c=[2.0, 2.1])
        one = Order("", V["a"] < V["b"]).judge(data)
        assert one["estimate"] == pytest.approx(1.0)
        assert one["interval"] == pytest.approx([1.0, 1.0])
        two = Order("", ascending(V["a"], V["b"], V["c"])).judge(data)
        assert two["estimate"] == pytest.approx([1.0, 1.0])
        assert [test["label"] for test in two["tests"]] == ["value[a] < value[b]", "value[b] < value[c]"]

    def test_equality_meets_only_the_weak_form(self):
        data = runs(a=[1.0, 2.0] * 5, b=[1.0, 2.0] * 5)
        assert verdict(Order("", V["a"] <= V["b"]), data) == "holds"
        assert verdict(Order("", V["a"] < V["b"]), data) == "undecided"

    def test_one_repetition(self):
        data = runs(a=[1.0], b=[2.0])
        assert verdict(Order("", V["a"] < V["b"]), data) == "undecided"
        assert verdict(Order("", V["a"] < V["b"], exact=True), data) == "holds"

    def test_spread_and_median(self):
        rng = np.random.default_rng(1)
        data = runs(a=rng.normal(size=80), b=rng.normal(scale=3, size=80))
        assert verdict(Order("", V["a"] < V["b"], statistic="std"), data) == "holds"
        assert verdict(Order("", V["a"] < V["b"], statistic="median"), data) == "undecided"
        assert verdict(Order("", V["a"] < V["b"] + 3, statistic="trimmed"), data) == "holds"
        assert verdict(Order("", V["a"] < V["b"], statistic="std"), data[:4]) == "undecided"

    def test_error_rate_without_an_effect(self):
        rng = np.random.default_rng(2)
        decided = sum(
            verdict(Order("", V["a"] < V["b"]), runs(a=rng.normal(size=12), b=rng.normal(size=12))) != "undecided"
            for _ in range(400)
        )
        assert 0.02 < decided / 400 < 0.085  # 5 % nominal, three standard errors


class TestEqual:
    def test_margins(self):
        rng = np.random.default_rng(0)
        base = rng.normal(size=50)
        data = runs(a=base, b=base + 0.05 + 0.01 * rng.normal(size=50), worst=base + 1)
        assert verdict(Equal("", (V["a"], V["b"])), data) == "holds"  # a quarter of the gap: 0.25
        assert verdict(Equal("", (V["a"], V["b"]), margin=0.1), data) == "holds"
        assert verdict(Equal("", (V["a"], V["b"]), margin=0.05), data) == "undecided"
        assert verdict(Equal("", (V["a"], V["b"]), margin=0.01), data) == "fails"
        assert verdict(Equal("", (V["a"], V["b"]), margin=one_standard_error), data) == "holds"
        assert verdict(Equal("", [(V["a"], V["b"]), (V["a"], V["worst"])]), data) == "fails"

    def test_relative_margin_and_numbers(self):
        data = runs(a=[10.0, 10.1, 9.9] * 4, b=[11.0, 11.1, 10.9] * 4)
        assert verdict(Equal("", (V["a"], V["b"]), relative=0.2), data) == "holds"
        assert verdict(Equal("", (V["a"], 10.0), margin=0.5), data) == "holds"

    def test_default_margin_needs_a_plain_reading(self):
        with pytest.raises(ValueError, match="give margin="):
            Equal("", (V["a"] + 1, V["b"])).judge(runs(a=[1.0], b=[2.0]))


class TestTrend:
    rng = np.random.default_rng(3)
    base = rng.normal(size=12) * 5
    e = rng.normal(size=(4, 12))
    data = runs(a=base + e[0], b=base + 2 + e[1], c=base + 4 + e[2], flat=base + e[3])

    def test_directions(self):
        order = (V["a"], V["b"], V["c"])
        assert verdict(Trend("", rises(*order)), self.data) == "holds"
        assert verdict(Trend("", falls(*order)), self.data) == "fails"
        assert verdict(Trend("", rises(V["a"], V["flat"])), self.data) == "undecided"
        assert verdict(Trend("", [rises(*order), falls(*order)]), self.data) == "fails"

    def test_a_minority_cannot_carry_a_trend(self):
        # A third of the repetitions rise steeply, the rest fall slightly: the mean slope rises, the ranks do not.
        rows = [[0.0, 10.0, 20.0]] * 10 + [[0.0, -0.1, -0.2]] * 20
        data = [{name: Trace(value=x) for name, x in zip("abc", row, strict=True)} for row in rows]
        entry = Trend("", rises(*[V[name] for name in "abc"])).judge(data)
        assert entry["interval"][0] > 0
        assert entry["verdict"] == "undecided"
        assert page(np.zeros((5, 4))) == 0.0

    def test_over_time(self):
        data = [{"a": Trace(value=np.exp(-np.arange(20) / 5) * s)} for s in (1.0, 2.0, 3.0, 2.5) * 3]
        assert verdict(Trend("", falls(*[V["a"].part(q / 4) for q in (1, 2, 3, 4)])), data) == "holds"

    def test_spread(self):
        rng = np.random.default_rng(0)
        data = runs(a=rng.normal(size=60), b=2 * rng.normal(size=60), c=4 * rng.normal(size=60))
        assert verdict(Trend("", rises(V["a"], V["b"], V["c"]), statistic="std"), data) == "holds"
        assert verdict(Trend("", rises(V["a"], V["b"], V["c"])), data) == "undecided"

    def test_page_agrees_with_scipy(self):
        from scipy import stats

        table = np.random.default_rng(5).normal(size=(30, 5)) + 0.2 * np.arange(5)
        p = stats.page_trend_test(table, method="asymptotic").pvalue
        assert stats.norm.sf(page(table)) == pytest.approx(p, abs=1e-12)


class TestShare:
    def test_sides(self):
        data = runs(a=[1.0] * 95 + [0.0] * 5)  # Wilson: 0.888..0.978
        assert verdict(Share("", V["a"] >= 0.85), data) == "holds"
        assert verdict(Share("", V["a"] >= 0.95), data) == "undecided"
        assert verdict(Share("", V["a"] >= 0.99), data) == "fails"
        assert verdict(Share("", V["a"] <= 0.99), data) == "holds"
        assert verdict(Share("", V["a"] <= 0.5), data) == "fails"
        assert verdict(Share("", [V["a"] >= 0.85, V["a"] <= 0.99]), data) == "holds"

    def test_only_from_zero_to_one(self):
        with pytest.raises(ValueError, match="from 0 to 1"):
            Share("", V["a"] >= 0.5).judge(runs(a=[1.3, 1.0]))

    def test_a_share_within_a_repetition_is_one_trial(self):
        entry = Share("", V["a"] >= 0.2).judge(runs(a=[0.5] * 20))
        assert (entry["estimate"], entry["tests"][0]["n"]) == (0.5, 20)
        assert entry["interval"] == pytest.approx(wilson(10, 20))

    def test_wilson_never_leaves_the_unit_interval(self):
        assert wilson(0, 10)[0] == 0.0
        assert wilson(10, 10)[1] == 1.0
        assert wilson(24, 24)[0] == pytest.approx(0.862, abs=1e-3)
        with pytest.raises(ValueError, match="11 of 10"):
            wilson(11, 10)


class TestUnits:
    """Finding 22 of the review of 0.1.0."""

    rng = np.random.default_rng(7)
    days = np.repeat(np.arange(12), 40)  # 12 days, 40 repetitions on each

    def test_repetitions_on_the_same_two_days_decide_nothing(self):
        data = runs(a=self.rng.normal(size=100), b=1 + self.rng.normal(size=100))
        assert verdict(Order("", V["a"] < V["b"]), data) == "holds"
        entry = Order("", V["a"] < V["b"]).judge(data, units=[k % 2 for k in range(100)])
        assert (entry["verdict"], entry["tests"][0]["n"]) == ("undecided", 2)
        assert "fewer than 10 independent units" in entry["note"]

    def test_the_interval_is_over_the_means_of_the_units(self):
        effect = self.rng.normal(size=12)
        gap = effect[self.days] + 0.1 * self.rng.normal(size=480)
        data = runs(a=np.zeros(480), b=gap)
        many, few = (Order("", V["a"] < V["b"]).judge(data, units=u) for u in (None, self.days.tolist()))
        means = np.array([gap[self.days == day].mean() for day in range(12)])
        assert few["estimate"] == pytest.approx(means.mean())
        assert np.diff(few["interval"]) > 4 * np.diff(many["interval"])

    @pytest.mark.parametrize(
        "claim",
        [
            Order("", V["a"] < V["b"]),
            Order("", V["a"] < V["b"], statistic="median"),
            Equal("", (V["a"], V["b"]), margin=1.0),
            Trend("", rises(V["a"], V["b"])),
            Number("", {V["b"]: 1.0}, tolerance=3.0),
            Share("", V["c"] >= 0.5),
        ],
    )
    def test_no_claim_counts_a_unit_twice(self, claim):
        rows = self.rng.normal(size=(3, 12))
        data = runs(a=rows[0], b=1 + rows[1], c=(rows[2] > 0).astype(float))
        doubled = [traces for traces in data for _ in range(30)]
        once, again = claim.judge(data), claim.judge(doubled, units=np.repeat(np.arange(12), 30).tolist())
        assert again["tests"][0]["n"] == 12
        assert (again["verdict"], again["estimate"]) == (once["verdict"], pytest.approx(once["estimate"]))
        assert again["interval"] == pytest.approx(once["interval"])

    @pytest.mark.parametrize("count", [9, 10])
    def test_ten_units_are_needed(self, count):
        data = runs(a=np.zeros(count), b=1 + 0.01 * self.rng.normal(size=count))
        expected = "holds" if count == 10 else "undecided"
        assert verdict(Order("", V["a"] < V["b"]), data) == expected
        assert verdict(Order("", V["a"] < V["b"], exact=True), data) == "holds"
        assert verdict(Exact("", V["a"] < V["b"]), data) == "holds"

    def test_a_reading_with_units_of_its_own_is_left_as_it_is(self):
        data = runs(a=self.rng.normal(size=40), b=self.rng.normal(size=40))
        own = across(lambda replicates: np.arange(7.0), "per event")
        entry = Order("", own > -1).judge(data, units=[0] * 40)
        assert (entry["tests"][0]["n"], entry["verdict"]) == (7, "undecided")


def test_marks():
    data = runs(a=[1.0, 1.1])
    original = Number("", {V["a"]: 7.0}, marks=("needs-original",)).judge(data)
    assert original["verdict"] is None
    assert original["estimate"] == pytest.approx(1.05)
    contradicted = Exact("", {V["a"]: 7.0}, marks=("contradicted", "card")).judge(data)
    assert (contradicted["verdict"], contradicted["expected"]) == ("fails", "fails")
    with pytest.raises(ValueError, match="unknown mark"):
        Exact("", {}, marks=("wrong",))
    with pytest.raises(ValueError, match="unknown statistic"):
        Order("", V["a"] < V["b"], statistic="mode")


def test_a_claim_is_strict_json():
    import json

    claims = [Exact("", {V["x"]: 1}), Number("", {V["x"]: 1}), Order("", V["x"] < V["a"]), Equal("", (V["x"], V["a"]))]
    claims += [Trend("", rises(V["x"], V["a"])), Share("", V["x"] > 0.5), Order("", V["a"] < V["a"] + 1)]
    for replicates in ([], runs(a=[1.0])):
        entries = [claim.judge(replicates) for claim in claims]
        assert json.loads(json.dumps(entries, allow_nan=False)) == entries
