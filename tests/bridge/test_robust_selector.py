"""The estimator that chooses columns or rows which may be lost: scikit-learn's checks, pipelines, values, bad input."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification, make_regression
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from surefoot.bridge.sklearn import RobustSelector
from surefoot.select import Coverage, RSquared


@parametrize_with_checks(
    [
        RobustSelector(),
        RobustSelector("coverage"),
        RobustSelector("facility", k=3, tau=1, of="rows"),
        RobustSelector("r2", k=2, tau=1),
        RobustSelector("logistic"),
    ]
)
def test_estimator_checks(estimator, check):
    check(estimator)


def regression(rows=120, columns=10, seed=0):
    return make_regression(rows, columns, n_informative=4, noise=1.0, random_state=seed)


def test_what_it_finds_is_what_it_says():
    X, y = regression()
    made = RobustSelector("r2", k=5, tau=2).fit(X, y)
    f = RSquared(X, y)
    assert made.value_ == pytest.approx(f.value(made.selected_), abs=1e-9)
    left = min(f.value(kept) for kept in combinations(made.selected_.tolist(), 3))
    assert made.worst_case_value_ == pytest.approx(left, abs=1e-9)
    assert f.value(np.setdiff1d(made.selected_, made.lost_)) == pytest.approx(left, abs=1e-9)
    assert made.gains_.sum() == pytest.approx(made.value_)
    assert made.ranking_[made.selected_].tolist() == [1, 2, 3, 4, 5]
    assert (np.delete(made.ranking_, made.selected_) == 6).all()
    assert sorted(made.get_support(indices=True)) == sorted(made.selected_)
    assert made.certificate_.worst.value == made.worst_case_value_
    best = max(min(f.value(kept) for kept in combinations(S, 3)) for S in combinations(range(X.shape[1]), 5))
    assert made.certificate_.optimum >= best - 1e-9
    assert made.worst_case_value_ >= made.certificate_.ratio * best - 1e-9


def test_it_keeps_spares():
    """Greedy selection takes no copy of the one column that explains y; the robust choice does."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 8))
    X[:, 5] = X[:, 0] + 0.05 * rng.normal(size=200)
    y = 5.0 * X[:, 0] + X[:, 1] + X[:, 2]
    robust = RobustSelector("r2", k=3, tau=1).fit(X, y)
    plain = RobustSelector("r2", k=3, tau=1, method="greedy").fit(X, y)
    assert {0, 5} <= set(robust.selected_.tolist())
    assert not {0, 5} <= set(plain.selected_.tolist())
    assert robust.worst_case_value_ > 0.8 > plain.worst_case_value_


def test_in_a_pipeline_and_a_search():
    X, y = make_classification(150, 12, n_informative=5, random_state=0)
    model = make_pipeline(StandardScaler(), RobustSelector("logistic", k=6, tau=1), LogisticRegression())
    assert cross_val_score(model, X, y, cv=3).mean() > 0.7
    assert model.fit(X, y)[:-1].transform(X).shape == (150, 6)
    X, y = regression()
    search = GridSearchCV(
        make_pipeline(RobustSelector("r2"), LinearRegression()),
        {"robustselector__k": [2, 6], "robustselector__tau": [0, 1]},
        cv=3,
    ).fit(X, y)
    assert search.best_params_["robustselector__k"] == 6
    assert search.best_score_ > 0.95


def test_labels_may_be_text():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    made = RobustSelector("logistic", k=2, tau=1).fit(X, names)
    assert made.selected_.size == 2


def test_rows_are_exemplars():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(30, 3)), 8.0 + rng.normal(size=(30, 3))])
    made = RobustSelector("facility", k=4, tau=1, of="rows").fit(X)
    assert {int(row >= 30) for row in np.setdiff1d(made.selected_, made.lost_)} == {0, 1}
    distances = made.transform(X)
    assert distances.shape == (60, 4)
    assert np.diag(distances[made.selected_]) == pytest.approx(0.0, abs=1e-5)
    assert made.get_support().shape == (60,)
    assert made.get_feature_names_out()[0] == f"distance_to_row{made.selected_[0]}"
    with pytest.raises(AttributeError, match="turned back"):
        made.inverse_transform(distances)
    assert RobustSelector("variance", k=5, tau=2, of="rows").fit(X).worst_case_value_ > 0.0


@pytest.mark.parametrize("objective", ["facility", "variance"])
def test_columns_come_back_to_their_places_with_their_names(objective):
    X = regression()[0]
    made = RobustSelector(objective, k=4, tau=1).fit(X)
    back = made.inverse_transform(made.transform(X))
    assert np.array_equal(back, np.where(made.get_support(), X, 0.0))
    assert made.get_feature_names_out().tolist() == [f"x{i}" for i in sorted(made.selected_)]


def test_an_objective_of_your_own():
    X = (np.random.default_rng(3).random((20, 9)) < 0.3).astype(float)
    named = RobustSelector("coverage", k=4, tau=1).fit(X)
    own = RobustSelector(lambda X, y: Coverage(X.T), k=4, tau=1).fit(X)
    assert own.selected_.tolist() == named.selected_.tolist()
    with pytest.raises(TypeError, match="must return a SetFunction, got int"):
        RobustSelector(lambda X, y: 3).fit(X)
    with pytest.raises(ValueError, match="of 20 elements for 9 columns"):
        RobustSelector(lambda X, y: Coverage(X)).fit(X)


def test_shares_and_numbers():
    X, y = regression(columns=10)
    made = RobustSelector("r2", k=0.45, tau=0.4).fit(X, y)
    assert made.selected_.size == 5  # rounded up
    assert made.lost_.size == 2  # rounded down
    assert RobustSelector("r2", k=3, tau=0).fit(X, y).lost_.size == 0


def test_columns_that_do_not_vary_come_last():
    X, y = regression(columns=6)
    X[:, 2] = 7.0
    made = RobustSelector("r2", k=6, tau=1).fit(X, y)
    assert made.selected_[-1] == 2
    assert made.gains_[-1] == 0.0
    with pytest.raises(ValueError, match="nothing to choose by"):
        RobustSelector("facility").fit(np.ones((5, 3)))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"k": 11}, "k = 11 columns cannot be chosen out of n_features = 10"),
        ({"k": 4, "tau": 4}, "tau = 4 deletions leave nothing of k = 4 columns"),
        ({"k": 0}, "'k' parameter"),
        ({"method": "best"}, "'method' parameter"),
        ({"objective": "entropy"}, "'objective' parameter"),
        ({"k": 5, "tau": 4, "method": "osu"}, "robust part"),
        ({"of": "rows"}, "chooses columns, not rows"),
    ],
)
def test_bad_input(options, said):
    X, y = regression()
    with pytest.raises(ValueError, match=said):
        RobustSelector(**{"objective": "r2", **options}).fit(X, y)


@pytest.mark.parametrize("objective", ["r2", "logistic"])
def test_what_explains_a_target_needs_one(objective):
    selector = RobustSelector(objective)
    with pytest.raises(ValueError, match=f"requires y to be passed, .*'{objective}' explains it"):
        selector.fit(regression()[0])
    assert not hasattr(selector, "selected_")


def test_negative_entries_cannot_be_covered():
    with pytest.raises(ValueError, match="Negative values in data passed to RobustSelector"):
        RobustSelector("coverage").fit([[1.0, 0.0], [0.0, -1.0], [1.0, 1.0]])


def test_it_is_cloned_and_shown():
    made = clone(RobustSelector("variance", k=3, tau=1, of="rows"))
    assert repr(made) == "RobustSelector(k=3, objective='variance', of='rows', tau=1)"
