"""Surefoot's attacks inside the Adversarial Robustness Toolbox."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

pytest.importorskip("art")

from art.estimators.classification import BlackBoxClassifier

from surefoot.attack import BOS2, ModelFault
from surefoot.bridge.art import SurefootEvasion

# Smooth weights: what a low resolution sees of them is most of what there is.
WEIGHTS = gaussian_filter(np.random.default_rng(0).standard_normal((3, 10, 10)), (0, 2, 2)).reshape(3, 100) * 20.0
FAST = BOS2(sizes=(3, 5), initial_sizes=(3,), initial_queries=5, groups=3)


class Predict:
    def __init__(self):
        self.asked = 0

    def __call__(self, x):
        self.asked += len(x)
        z = (x.reshape(len(x), -1) - 0.5) @ WEIGHTS.T
        p = np.exp(z - z.max(axis=1, keepdims=True))
        return p / p.sum(axis=1, keepdims=True)


@pytest.fixture
def setting():
    predict = Predict()
    classifier = BlackBoxClassifier(predict, (10, 10, 1), 3, clip_values=(0.0, 1.0))
    x = np.random.default_rng(1).uniform(0.3, 0.7, (3, 10, 10, 1)).astype(np.float32)
    labels = predict(x).argmax(axis=1)
    predict.asked = 0
    return predict, classifier, x, labels


def test_untargeted(setting):
    predict, classifier, x, labels = setting
    attack = SurefootEvasion(classifier, FAST, eps=0.15, max_queries=100)
    found = attack.generate(x, labels)
    assert predict.asked == sum(r.queries for r in attack.results)
    assert found.dtype == x.dtype
    assert np.abs(found - x).max() <= 0.15 + 1e-7
    assert (predict(found).argmax(axis=1) != labels).tolist() == [r.success for r in attack.results] == [True] * 3


def test_a_column_of_classes_is_no_one_hot_row(setting):
    _, classifier, x, labels = setting
    attack = SurefootEvasion(classifier, FAST, eps=0.15, max_queries=100)
    assert np.array_equal(attack.generate(x, labels[:, None]), attack.generate(x, labels))
    with pytest.raises(ValueError, match="y has shape"):
        attack.generate(x, labels[:, None, None])


def test_targeted_with_one_hot_rows(setting):
    predict, classifier, x, labels = setting
    targets = (labels + 1) % 3
    attack = SurefootEvasion(classifier, FAST, eps=0.2, max_queries=200, targeted=True)
    found = attack.generate(x, np.eye(3)[targets])
    assert (predict(found).argmax(axis=1) == targets).tolist() == [r.success for r in attack.results]
    assert any(r.success for r in attack.results)
    with pytest.raises(ValueError, match="true class"):
        attack.generate(x, labels)
    with pytest.raises(ValueError, match="needs y"):
        attack.generate(x)


def test_l2(setting):
    _, classifier, x, _ = setting
    found = SurefootEvasion(classifier, FAST, eps=1.5, norm=2, max_queries=100).generate(x)
    assert (np.sqrt(((found - x) ** 2).sum(axis=(1, 2, 3))) <= 1.5 + 1e-6).all()


def test_parameters_are_checked_as_the_host_checks_them(setting):
    _, classifier, x, _ = setting
    attack = SurefootEvasion(classifier, FAST, eps=0.1)
    attack.set_params(eps=0.2, targeted=True)
    assert (attack.eps, attack.targeted) == (0.2, True)
    for bad in ({"eps": 0.0}, {"norm": 1}, {"max_queries": 0}, {"steps": 3}):
        with pytest.raises(ValueError):
            SurefootEvasion(classifier, FAST).set_params(**bad)
    with pytest.raises(ValueError, match="method must be an Attack of Surefoot, got 'bos2'"):
        SurefootEvasion(classifier, "bos2")
    with pytest.raises(ValueError, match="clip_values"):
        SurefootEvasion(BlackBoxClassifier(lambda x: x, (10, 10, 1), 3))
    with pytest.raises(TypeError, match="mask"):
        attack.generate(x, mask=None)


def test_a_faulty_model_says_how_much_was_spent(setting):
    *_, x, _ = setting
    broken = BlackBoxClassifier(lambda x: np.full((len(x), 3), np.nan), (10, 10, 1), 3, clip_values=(0.0, 1.0))
    with pytest.raises(ModelFault, match=r"NaN \(3 queries spent\)"):
        SurefootEvasion(broken, FAST, eps=0.1).generate(x)


def test_the_page_runs(capsys):
    page = (Path(__file__).parents[2] / "docs" / "bridges" / "art.md").read_text(encoding="utf-8")
    for block in re.findall(r"^```py\n(.*?)^```$", page, flags=re.M | re.S):
        exec(block, {})
    assert "[1 1]" in capsys.readouterr().out
