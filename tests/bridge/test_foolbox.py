"""Surefoot's attacks inside Foolbox."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

foolbox = pytest.importorskip("foolbox")

from surefoot.attack import BOS2  # noqa: E402
from surefoot.attack.square_attack import SquareAttack  # noqa: E402
from surefoot.bridge.foolbox import SurefootAttack  # noqa: E402
from surefoot.errors import NotSupported  # noqa: E402

# Smooth weights: what a low resolution sees of them is most of what there is.
WEIGHTS = gaussian_filter(np.random.default_rng(0).standard_normal((3, 10, 10)), (0, 2, 2)).reshape(3, 100) * 20.0


class Model:
    """Three classes, linear; counts what it is asked."""

    def __init__(self, layout="channels_first"):
        self.asked = 0
        self.model = foolbox.models.NumPyModel(self.logits, bounds=(0, 1), data_format=layout)

    def logits(self, x):
        self.asked += len(x)
        return (x.reshape(len(x), -1) - 0.5) @ WEIGHTS.T


def images(n=3, shape=(1, 10, 10)):
    return np.random.default_rng(1).uniform(0.3, 0.7, (n, *shape)).astype(np.float32)


FAST = BOS2(sizes=(3, 5), initial_sizes=(3,), initial_queries=5, groups=3)


def test_untargeted_within_epsilon_and_counted():
    host = Model()
    x = images()
    labels = host.logits(x).argmax(axis=1)
    host.asked = 0
    attack = SurefootAttack(FAST, budget=100)
    _, clipped, success = attack(host.model, x, labels, epsilons=0.15)
    assert success.all()
    assert clipped.dtype == np.float32
    assert np.abs(clipped - x).max() <= 0.15 + 1e-7
    assert (host.logits(clipped).argmax(axis=1) != labels).all()
    # Foolbox itself looks at the images once more, three of them, to judge the success; then the line above.
    assert host.asked == sum(r.queries for r in attack.results) + 2 * len(x)


def test_what_was_found_is_what_was_asked_in_single_precision():
    host = Model()
    x = images()
    labels = host.logits(x).argmax(axis=1)
    attack = SurefootAttack(FAST, budget=100)
    *_, success = attack(host.model, x, labels, epsilons=[0.001, 0.15])
    assert success.shape == (2, 3)
    assert success[1].tolist() == [r.success for r in attack.results]


def test_targeted_and_other_criteria():
    host = Model()
    x = images()
    labels = host.logits(x).argmax(axis=1)
    targets = (labels + 1) % 3
    attack = SurefootAttack(SquareAttack(), budget=200)
    _, clipped, success = attack(host.model, x, foolbox.criteria.TargetedMisclassification(targets), epsilons=0.25)
    assert (host.logits(clipped).argmax(axis=1) == targets).tolist() == success.tolist()
    assert success.any()

    class Odd(foolbox.criteria.Criterion):
        def __call__(self, perturbed, outputs):
            return outputs.argmax(axis=-1) == 0

        def __repr__(self):
            return "Odd()"

    with pytest.raises(NotSupported, match="Odd"):
        attack(host.model, x, Odd(), epsilons=0.25)


def test_l2_and_channels_last():
    host = Model("channels_last")
    x = images(2, (10, 10, 1))
    labels = host.logits(x).argmax(axis=1)
    attack = SurefootAttack(FAST, norm="l2", budget=100)
    _, clipped, success = attack(host.model, x, labels, epsilons=1.5)
    sizes = np.sqrt(((clipped - x) ** 2).sum(axis=(1, 2, 3)))
    assert (sizes <= 1.5 + 1e-6).all()
    assert success.all()


def test_an_epsilon_of_nothing_asks_nothing():
    host, x = Model(), images()
    labels = host.logits(x).argmax(axis=1)
    attack = SurefootAttack(FAST, budget=100)
    _, clipped, success = attack(host.model, x, labels, epsilons=[0.15, 0.0])
    assert success.tolist() == [[True] * 3, [False] * 3]
    assert np.array_equal(clipped[1], x)
    assert attack.results == []


def test_bad_arguments():
    with pytest.raises(ValueError, match="norm"):
        SurefootAttack(norm="l1")
    with pytest.raises(TypeError, match="method must be an Attack"):
        SurefootAttack("BOS2")
    with pytest.raises(TypeError):
        SurefootAttack(FAST)(Model().model, images(), np.zeros(3, dtype=int), epsilons=0.1, steps=4)


def test_the_page_runs(capsys):
    page = (Path(__file__).parents[2] / "docs" / "bridges" / "foolbox.md").read_text(encoding="utf-8")
    for block in re.findall(r"^```py\n(.*?)^```$", page, flags=re.M | re.S):
        exec(block, {})
    assert "True" in capsys.readouterr().out
