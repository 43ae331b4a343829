"""The scikit-learn bridge: scikit-learn's own checks, the same as ``RandomizedSearchCV`` where it should be, epochs."""

from __future__ import annotations

import math
import pickle
import warnings
from functools import partial

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from scipy.stats import beta, loguniform, randint, uniform
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.cluster import MiniBatchKMeans
from sklearn.datasets import load_iris, make_classification, make_regression
from sklearn.decomposition import PCA
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier, SGDRegressor
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    RandomizedSearchCV,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_score,
)
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from surefoot import BOBOS, GPUCB, Choice, ExpectedImprovement, Float, Int, NotSupported, RandomSearch, Space
from surefoot.bridge.sklearn import SurefootSearchCV
from surefoot.bridge.sklearn.space import axes_of

X, y = load_iris(return_X_y=True)
C = {"C": Float(1e-3, 1e3, log=True)}
quick = partial(SurefootSearchCV, policy=RandomSearch, n_iter=3, cv=2, random_state=0)


# -- scikit-learn's own checks ----------------------------------------------------------------------------------------


def excused(search):
    """What scikit-learn excuses ``RandomizedSearchCV`` from too: a regressor takes two columns for two targets."""
    if search.epochs is not None or hasattr(search.estimator, "predict_proba"):
        return {}
    return {"check_supervised_y_2d": "no DataConversionWarning: Ridge takes a column of y as it is"}


@parametrize_with_checks(
    [
        SurefootSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, n_iter=2, cv=2, error_score="raise", random_state=0),
        SurefootSearchCV(LogisticRegression(), C, n_iter=2, cv=2, error_score="raise", random_state=0),
        SurefootSearchCV(
            Pipeline([("pca", PCA()), ("ridge", Ridge())]),
            {"ridge__alpha": [0.1, 1.0]},
            n_iter=2,
            cv=2,
            error_score="raise",
            random_state=0,
        ),
    ],
    expected_failed_checks=excused,
)
def test_estimator_checks(estimator, check):
    check(estimator)


@parametrize_with_checks(
    [
        SurefootSearchCV(
            make_pipeline(StandardScaler(), SGDClassifier(random_state=0)),
            {"sgdclassifier__alpha": Float(1e-4, 1e-1, log=True)},
            epochs=3,
            n_iter=2,
            cv=2,
            error_score="raise",
            random_state=0,
        ),
    ],
)
def test_estimator_checks_with_epochs(estimator, check):
    check(estimator)


# -- like RandomizedSearchCV ------------------------------------------------------------------------------------------


def test_the_results_are_those_of_a_grid_search_on_the_same_candidates():
    """Every entry of ``cv_results_`` but the times, train scores and ranks included."""
    ours = quick(SVC(), C, return_train_score=True, n_iter=4, scoring="f1_macro").fit(X, y)
    grid = GridSearchCV(
        SVC(), {"C": list(ours.cv_results_["param_C"])}, cv=2, scoring="f1_macro", return_train_score=True
    ).fit(X, y)
    assert set(ours.cv_results_) == set(grid.cv_results_)
    for key, value in grid.cv_results_.items():
        if "time" not in key and key != "params":
            assert np.array_equal(ours.cv_results_[key], value), key
    assert ours.cv_results_["params"] == grid.cv_results_["params"]
    for name in ("best_index_", "best_score_", "best_params_", "n_splits_", "multimetric_"):
        assert getattr(ours, name) == getattr(grid, name), name
    assert np.array_equal(ours.predict(X), grid.predict(X))
    assert ours.score(X, y) == grid.score(X, y)
    assert np.array_equal(ours.classes_, [0, 1, 2])
    assert ours.n_features_in_ == 4
    assert ours.refit_time_ > 0.0


def test_several_scorers_and_refit_by_name_or_by_a_function():
    scoring = {"acc": "accuracy", "loss": "neg_log_loss"}
    named = quick(LogisticRegression(), C, scoring=scoring, refit="loss").fit(X, y)
    assert named.multimetric_
    assert named.best_index_ == named.cv_results_["mean_test_loss"].argmax()
    assert named.score(X, y) == pytest.approx(named.scorer_["loss"](named.best_estimator_, X, y))
    assert [o.value for o in named.policy_.history] == named.cv_results_["mean_test_loss"].tolist()
    least = quick(LogisticRegression(), C, scoring=scoring, refit=lambda results: int(results["param_C"].argmin())).fit(
        X, y
    )
    assert least.best_params_["C"] == min(least.cv_results_["param_C"])
    assert not hasattr(least, "best_score_")
    assert [o.value for o in least.policy_.history] == least.cv_results_["mean_test_acc"].tolist()
    unfitted = quick(LogisticRegression(), C, scoring=["accuracy"], refit=False).fit(X, y)
    assert not hasattr(unfitted, "best_estimator_")
    with pytest.raises(ValueError, match="refit must be set to a scorer key"):
        quick(LogisticRegression(), C, scoring=scoring).fit(X, y)

    def both(model, X, y):
        return {"acc": accuracy_score(y, model.predict(X)), "zero": 0.0}

    called = quick(LogisticRegression(), C, scoring=both, refit="acc").fit(X, y)
    assert called.score(X, y) == accuracy_score(y, called.predict(X))


class Fragile(ClassifierMixin, BaseEstimator):
    """Cannot be fitted with a large C."""

    def __init__(self, C=1.0):
        self.C = C

    def fit(self, X, y):
        if self.C > 1.0:
            raise FloatingPointError("too large")
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


def test_fits_that_fail():
    with pytest.warns(FitFailedWarning, match=r"of 24 fits failed, and count as nan\n(.|\n)*too large"):
        search = SurefootSearchCV(Fragile(), C, n_iter=12, cv=2, random_state=0).fit(X, y)
    scores, sizes = search.cv_results_["mean_test_score"], search.cv_results_["param_C"].astype(float)
    assert np.array_equal(np.isnan(scores), sizes > 1.0)
    assert np.isnan(scores).any()
    assert [o.failed for o in search.policy_.history] == np.isnan(scores).tolist()
    assert search.best_params_["C"] <= 1.0
    with pytest.warns(FitFailedWarning, match="count as -1"):
        counted = SurefootSearchCV(Fragile(), C, n_iter=6, cv=2, random_state=0, error_score=-1.0).fit(X, y)
    assert not any(o.failed for o in counted.policy_.history)
    assert counted.cv_results_["mean_test_score"].min() == -1.0
    with pytest.raises(FloatingPointError, match="too large"):
        SurefootSearchCV(Fragile(), {"C": [2.0, 0.5]}, n_iter=2, error_score="raise").fit(X, y)
    with pytest.raises(ValueError, match="all the 10 fits failed"):
        SurefootSearchCV(Fragile(), {"C": [2.0, 4.0]}, n_iter=2).fit(X, y)
    with pytest.warns(FitFailedWarning):
        several = SurefootSearchCV(
            Fragile(), {"C": [2.0, 0.5]}, n_iter=2, scoring=["accuracy", "f1_macro"], refit="accuracy"
        ).fit(X, y)
    assert np.isnan(several.cv_results_["mean_test_f1_macro"]).sum() == 1


def test_splits_are_made_once_also_where_they_are_random():
    model = quick(SVC(), {"gamma": [0.1, 0.1000000001]}, cv=ShuffleSplit(2, test_size=0.3), n_iter=2, batch=1).fit(X, y)
    assert model.cv_results_["split0_test_score"][0] == model.cv_results_["split0_test_score"][1]
    groups = np.arange(len(y)) % 5
    assert quick(SVC(), C, cv=GroupKFold(5)).fit(X, y, groups=groups).n_splits_ == 5
    assert quick(SVC(), C, cv=KFold(3).split(X), n_iter=2).fit(X, y).n_splits_ == 3


def test_data_frames():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame(X, columns=list("abcd"))
    pipe = Pipeline([("scale", StandardScaler()), ("clf", SVC())])
    space = {"scale": [StandardScaler(), MinMaxScaler()], "clf__C": loguniform(0.1, 10.0)}
    search = quick(pipe, space, n_iter=4).fit(frame, pandas.Series(y))
    assert search.feature_names_in_.tolist() == list("abcd")
    assert search.predict(frame).shape == (150,)
    assert len(pandas.DataFrame(search.cv_results_)) == 4


def test_pipelines_and_parameters_that_are_estimators():
    pipe = Pipeline([("scale", StandardScaler()), ("clf", SVC())])
    scalers = [StandardScaler(), MinMaxScaler(), "passthrough"]
    search = quick(pipe, {"scale": scalers, "clf__C": loguniform(0.1, 10.0)}, n_iter=5).fit(X, y)
    assert {type(value) for value in search.cv_results_["param_scale"]} <= {StandardScaler, MinMaxScaler, str}
    assert not hasattr(scalers[0], "mean_")  # the user's own were not fitted
    assert cross_val_score(quick(pipe, {"clf__C": [1.0]}, n_iter=1), X, y, cv=2).min() > 0.9
    weighted = quick(SVC(), C).fit(X, y, sample_weight=np.ones(len(y)))
    assert weighted.best_score_ == quick(SVC(), C).fit(X, y).best_score_


def test_clone_parameters_pickle_and_repeatability():
    space = Space(C=Float(0.1, 10.0), gamma=Float(1e-3, 1.0, log=True))
    search = SurefootSearchCV(SVC(), space, n_iter=6, random_state=3)
    assert search.get_params()["estimator__C"] == 1.0
    assert search.set_params(estimator__kernel="linear", n_iter=5).estimator.kernel == "linear"
    copy = clone(search)
    assert copy.space == search.space
    assert copy.fit(X, y).cv_results_["params"] == search.fit(X, y).cv_results_["params"]
    thawed = pickle.loads(pickle.dumps(search))
    assert np.array_equal(thawed.predict(X), search.predict(X))
    assert thawed.policy_.state() == search.policy_.state()
    other = clone(search).set_params(random_state=np.random.RandomState(4)).fit(X, y)
    assert other.cv_results_["params"] != search.cv_results_["params"]


def test_workers_and_batches():
    alone = quick(SVC(), C, n_iter=5, batch=2).fit(X, y)
    together = quick(SVC(), C, n_iter=5, batch=2, n_jobs=2).fit(X, y)
    assert alone.cv_results_["params"] == together.cv_results_["params"]
    assert np.array_equal(alone.cv_results_["mean_test_score"], together.cv_results_["mean_test_score"])

    def most_pending(search):
        open_, most = 0, 0
        for event in search.policy_.events:
            open_ += {"asked": 1, "told": -1}[event["event"]]
            most = max(most, open_)
        return most

    assert most_pending(alone) == 2
    assert most_pending(quick(SVC(), C).fit(X, y)) == 1


def test_it_learns_where_random_search_does_not():
    """On a narrow optimum, paired seeds: the policy's best beats that of as many random candidates."""

    class Peak(BaseEstimator):
        """Scores how near its parameters are to a point."""

        def __init__(self, a=0.0, b=0.0):
            self.a, self.b = a, b

        def fit(self, X, y=None):
            return self

        def score(self, X, y=None):
            return -((self.a - 0.3) ** 2) - (self.b - 0.7) ** 2

    ours, theirs = [], []
    for seed in range(5):
        space = {"a": Float(0.0, 1.0), "b": Float(0.0, 1.0)}
        ours.append(SurefootSearchCV(Peak(), space, n_iter=16, cv=2, random_state=seed).fit(X).best_score_)
        draws = {"a": uniform(0.0, 1.0), "b": uniform(0.0, 1.0)}
        theirs.append(RandomizedSearchCV(Peak(), draws, n_iter=16, cv=2, random_state=seed).fit(X).best_score_)
    assert all(a > b for a, b in zip(ours, theirs, strict=True))
    assert np.mean(ours) > -1e-3


# -- spaces -----------------------------------------------------------------------------------------------------------


def test_spaces_that_people_write():
    axes = axes_of(
        {
            "a": uniform(2.0, 3.0),
            "b": loguniform(1e-3, 10.0),
            "c": randint(2, 7),
            "d": Int(1, 3),
            "e": ["x", None, True, 1],
            "f": np.logspace(-3, 0, 4),
            "g": [3, 2, 1],
            "h": [1, 3, 2],
            "i": [1, 2],
            "j": [(5,), (5, 5), SVC()],
        }
    )
    assert axes.domain.parameters == {
        "a": Float(2.0, 5.0),
        "b": Float(1e-3, 10.0, log=True),
        "c": Int(2, 6),
        "d": Int(1, 3),
        "e": Choice(["x", None, True, 1]),
        "f": Int(0, 3),
        "g": Int(0, 2),
        "h": Choice([1, 3, 2]),
        "i": Choice([1, 2]),
        "j": Choice([0, 1, 2]),
    }
    values = axes.values([2.5, 0.1, 3.0, 1.0, 2.0, 3.0, 0.0, 1.0, 0.0, 1.0])
    assert values == dict(a=2.5, b=0.1, c=3, d=1, e=True, f=1.0, g=3, h=3, i=1, j=(5, 5))  # noqa: C408
    assert axes.point(values).tolist() == [2.5, 0.1, 3.0, 1.0, 2.0, 3.0, 0.0, 1.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("space", "message"),
    [
        ({"C": beta(1, 2)}, "C: a search needs bounds, which the distribution beta lacks"),
        ({"C": loguniform(1.0, 2.0, loc=3.0)}, "C: a shifted loguniform"),
        ({"C": "rbf"}, "C: must be a parameter, a distribution or a list of values, got 'rbf'"),
        ({"C": 3.0}, "C: must be a parameter"),
        ({"C": []}, "C: has no values"),
        ({}, "at least one parameter"),
    ],
)
def test_spaces_that_make_no_sense(space, message):
    with pytest.raises(ValueError, match=message):
        quick(SVC(), space).fit(X, y)


def test_bad_arguments():
    for name in ("n_iter", "epochs", "batch"):
        with pytest.raises(ValueError, match=f"{name} must be a positive whole number, got 0"):
            quick(SVC(), C, **{"n_iter": 3, name: 0}).fit(X, y)
    with pytest.raises(ValueError, match="'space' parameter of SurefootSearchCV"):
        quick(SVC(), [C]).fit(X, y)
    with pytest.raises(ValueError, match="'policy' parameter of SurefootSearchCV"):
        quick(SVC(), C, policy="gp").fit(X, y)
    with pytest.raises(TypeError, match="epochs=3 needs an estimator with partial_fit"):
        quick(SVC(), C, epochs=3).fit(X, y)
    with pytest.raises(TypeError, match="policy must return a policy"):
        quick(SVC(), C, policy=lambda domain, seed: 3).fit(X, y)
    with pytest.raises(ValueError, match="BOBOS follows runs: give the search epochs"):
        quick(SVC(), C, policy=BOBOS).fit(X, y)
    with pytest.raises(ValueError, match="for runs of 4 epochs, not 3"):
        quick(SGDClassifier(), {"alpha": [1.0]}, policy=partial(BOBOS, epochs=4), epochs=3).fit(X, y)
    with pytest.raises(ValueError, match="Invalid parameter 'D'"):
        quick(SVC(), {"D": [1]}).fit(X, y)
    with pytest.raises(ValueError, match="no fits were performed: the splitter yields no folds"):
        quick(SVC(), C, cv=[]).fit(X, y)
    with pytest.raises(ValueError, match="scoring must return a number, got 'high'"):
        quick(SVC(), C, scoring=lambda model, X, y: "high").fit(X, y)
    with pytest.raises(TypeError, match=r"a space is a surefoot.Space or a dict, got \['C'\]"):
        axes_of(["C"])

    class Choosy(RandomSearch):
        """Chooses how long to run."""

        fidelities = True

    with pytest.raises(NotSupported, match="Choosy chooses fidelities"):
        quick(SVC(), C, policy=Choosy).fit(X, y)
    with pytest.warns(UserWarning, match="only 2 candidates that the policy would try, fewer than n_iter=3"):
        few = quick(SVC(), {"kernel": ["rbf", "linear"]}, batch=3).fit(X, y)
    assert len(few.cv_results_["params"]) == 2
    again = quick(SVC(), {"kernel": ["rbf", "linear"]}, policy=partial(RandomSearch, repeats=True)).fit(X, y)
    assert len(again.cv_results_["params"]) == 3


# -- epochs -----------------------------------------------------------------------------------------------------------

SGD = SGDClassifier(learning_rate="constant", random_state=0)
ETA = {"eta0": Float(1e-7, 1.0, log=True)}


def test_an_epoch_is_a_pass_of_partial_fit_over_the_fold():
    search = SurefootSearchCV(SGD, {"eta0": [0.01, 0.1]}, policy=RandomSearch, epochs=4, n_iter=2, cv=3).fit(X, y)
    for i, params in enumerate(search.cv_results_["params"]):
        for k, (at, test) in enumerate(StratifiedKFold(3).split(X, y)):
            model = clone(SGD).set_params(**params)
            for _ in range(4):
                model.partial_fit(X[at], y[at], classes=[0, 1, 2])
            assert search.cv_results_[f"split{k}_test_score"][i] == model.score(X[test], y[test])
    assert search.cv_results_["epochs"].tolist() == [4, 4]
    assert not search.cv_results_["stopped"].any()
    whole = clone(SGD).set_params(**search.best_params_)
    for _ in range(4):
        whole.partial_fit(X, y, classes=[0, 1, 2])
    assert np.array_equal(whole.coef_, search.best_estimator_.coef_)


def test_candidates_that_will_not_win_are_given_up():
    search = SurefootSearchCV(
        SGD, ETA, policy=partial(BOBOS, initial=3, bounds=(0.0, 1.0)), epochs=15, n_iter=12, cv=2, random_state=1
    )
    search.fit(X - X.mean(axis=0), y)
    epochs, stopped = search.cv_results_["epochs"], search.cv_results_["stopped"]
    assert stopped.any()
    assert (epochs[stopped] < 15).all()
    assert (epochs[~stopped] == 15).all()
    assert (epochs[:3] == 15).all()  # the first ones are completed
    assert not stopped[search.best_index_]
    assert search.best_score_ > 0.9
    policy = search.policy_
    assert list(np.flatnonzero(stopped)) == list(policy.stopped)
    assert policy.epochs_used == epochs.sum()
    last = [reports[max(reports)] for reports in policy.reports().values()]
    assert last == search.cv_results_["mean_test_score"].tolist()


def test_epochs_side_by_side_are_the_same_as_one_after_the_other():
    """Workers in other processes hand their models back; a search does not depend on where they ran."""
    options = {"policy": RandomSearch, "epochs": 3, "n_iter": 5, "cv": 2, "random_state": 0}
    one = SurefootSearchCV(SGD, ETA, **options).fit(X, y)
    two = SurefootSearchCV(SGD, ETA, n_jobs=2, batch=2, **options).fit(X, y)
    assert one.cv_results_["params"] == two.cv_results_["params"]
    assert np.array_equal(one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"])


def test_epochs_of_pipelines_regressors_networks_and_clusters(tmp_path):
    pipe = Pipeline([("scale", StandardScaler()), ("clf", SGD)], memory=str(tmp_path))
    search = quick(pipe, {"clf__eta0": [0.1, 0.01]}, epochs=3, n_iter=2).fit(X, y, clf__sample_weight=np.ones(len(y)))
    scaler = StandardScaler().fit(X)
    model = clone(SGD).set_params(eta0=search.best_params_["clf__eta0"])
    for _ in range(3):
        model.partial_fit(scaler.transform(X), y, classes=[0, 1, 2])
    assert np.allclose(model.coef_, search.best_estimator_[-1].coef_)
    assert np.array_equal(search.predict(X), model.predict(scaler.transform(X)))
    Xr, yr = make_regression(60, 3, noise=0.1, random_state=0)
    line = quick(SGDRegressor(random_state=0), {"alpha": [1e-5, 1e-3]}, epochs=20, n_iter=2).fit(Xr, yr)
    assert line.best_score_ > 0.9
    several = (np.arange(len(y))[:, None] % [2, 3, 5]) == 0
    network = quick(MLPClassifier((4,), random_state=0), {"alpha": [1e-5, 1e-3]}, epochs=2, n_iter=2).fit(X, several)
    assert network.predict(X).shape == (150, 3)
    clusters = quick(MiniBatchKMeans(random_state=0, n_init=1), {"n_clusters": Int(2, 5)}, epochs=2, n_iter=2).fit(X)
    assert clusters.best_params_["n_clusters"] in (2, 3, 4, 5)
    assert quick(Pipeline([("clf", SGD)]), {"clf__eta0": [0.1]}, epochs=2, n_iter=1).fit(X, y).best_score_ > 0.3


class Diverging(SGDClassifier):
    """Raises in its third epoch when it is too fast."""

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        self.seen_ = getattr(self, "seen_", 0) + 1
        if self.eta0 > 0.01 and self.seen_ == 3:
            raise FloatingPointError("overflow")
        return super().partial_fit(X, y, classes=classes, sample_weight=sample_weight)


@pytest.mark.parametrize("policy", [BOBOS, GPUCB])
def test_epochs_that_fail(policy):
    model = Diverging(learning_rate="constant", random_state=0)
    with pytest.warns(FitFailedWarning, match="overflow"):
        search = SurefootSearchCV(model, ETA, policy=policy, epochs=5, n_iter=8, cv=2, random_state=0).fit(X, y)
    too_fast = search.cv_results_["param_eta0"].astype(float) > 0.01
    assert too_fast.any()
    assert np.array_equal(np.isnan(search.cv_results_["mean_test_score"]), too_fast)
    assert (search.cv_results_["epochs"][too_fast] == 3).all()
    assert [o.failed for o in search.policy_.history] == too_fast.tolist()


def test_a_score_that_is_no_number_ends_a_run():
    def scorer(model, X, y):
        return math.nan if model.eta0 > 0.01 else 0.5

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # scikit-learn's, about scores that are not finite
        search = SurefootSearchCV(SGD, ETA, epochs=4, n_iter=6, cv=2, scoring=scorer, random_state=0).fit(X, y)
    bad = search.cv_results_["param_eta0"].astype(float) > 0.01
    assert bad.any()
    assert (search.cv_results_["epochs"][bad] == 1).all()
    assert [o.failed for o in search.policy_.history] == bad.tolist()


@pytest.mark.parametrize("scorers", [1, 2])
def test_a_scorer_that_raises_fails_the_candidate(scorers):
    def scorer(model, X, y):
        if model.C > 1.0:
            raise RuntimeError("no score for so large a C")
        return 0.5

    search = SurefootSearchCV(
        SVC(),
        C,
        n_iter=6,
        cv=2,
        scoring=scorer if scorers == 1 else {"mine": scorer, "theirs": "accuracy"},
        refit=True if scorers == 1 else "mine",
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # scikit-learn's, about scores that are not finite
        search.fit(X, y)
    too_large = search.cv_results_["param_C"].astype(float) > 1.0
    assert 0 < too_large.sum() < 6
    assert [o.failed for o in search.policy_.history] == too_large.tolist()
    with pytest.raises(RuntimeError, match="so large a C"):
        clone(search).set_params(error_score="raise").fit(X, y)


def test_verbose_says_what_was_tried(capsys):
    quick(SVC(), {"C": [1.0]}, n_iter=1, verbose=1).fit(X, y)
    assert capsys.readouterr().out.startswith("[1/1] score=0.9")


def test_defaults():
    Xs, ys = make_classification(40, random_state=0)
    search = SurefootSearchCV(LogisticRegression(), C, n_iter=2, scoring=make_scorer(accuracy_score)).fit(Xs, ys)
    assert isinstance(search.policy_, ExpectedImprovement)
    assert search.n_splits_ == 5
    assert isinstance(SurefootSearchCV(SGD, ETA, n_iter=1, cv=2, epochs=3).fit(Xs, ys).policy_, BOBOS)


def test_a_score_that_no_model_can_use_is_a_failed_candidate():
    X, y = load_iris(return_X_y=True)

    def scoring(model, X, y):
        return -1e200 if model.C > 1.0 else model.score(X, y)

    space = {"C": Float(0.1, 2.0)}
    search = SurefootSearchCV(SVC(), space, n_iter=6, cv=2, scoring=scoring, random_state=0).fit(X, y)
    assert {o.failed for o in search.policy_.history} == {True, False}
    assert search.best_params_["C"] <= 1.0
