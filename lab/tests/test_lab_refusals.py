"""What baselines and commands of the lab refuse, by the value that was given."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import planted
from surefoot import GP, Box, Candidates, Dives, Paths
from surefoot.attack.bayesopt_attack import BayesOptAttack
from surefoot.attack.genattack import GenAttack
from surefoot.attack.square_attack import SquareAttack
from surefoot.cli.select import Sheet, objective_of
from surefoot.cli.watch import Watched
from surefoot.errors import MissingExtra
from surefoot_lab import landmine
from surefoot_lab.baselines.contextual import ContextualGPUCB
from surefoot_lab.baselines.curve_extrapolation import CurveExtrapolation
from surefoot_lab.baselines.drift import SlidingWindowGPUCB
from surefoot_lab.baselines.median import MedianRule
from surefoot_lab.baselines.parsimonious import ParsimoniousAttack
from surefoot_lab.baselines.recorded import recorded_rule
from surefoot_lab.bench_device import bench_device
from surefoot_lab.bench_rates import Place
from surefoot_lab.curves import synthetic_curves
from surefoot_lab.lcbench import lcbench
from surefoot_lab.networks import digits
from surefoot_lab.problems import Problem
from surefoot_lab.registry import Replicate
from surefoot_lab.vae import autoencoder
from surefoot_lab.worker import attempt

BOX, LINE = Box.unit(1), Candidates([[0.0], [1.0]])


def sheet(weights):
    return Sheet(["a"], [], ["a"], np.array([[0.0], [1.0]]), weights=np.array(weights))


REFUSED = {
    "a process without time": (lambda: ContextualGPUCB(LINE), "gp="),
    "a threshold of 1": (lambda: CurveExtrapolation(BOX, epochs=10, threshold=1.0), r"1\.0"),
    "never": (lambda: CurveExtrapolation(BOX, epochs=10, every=0), "every"),
    "a window of nothing": (lambda: SlidingWindowGPUCB(BOX, window=0), "window"),
    "half a start": (lambda: MedianRule(BOX, epochs=10, startup=0.5), r"0\.5"),
    "a method nobody recorded": (
        lambda: recorded_rule("luck", Paths(np.arange(9.0)[:, None], Dives((9,), 2), start=4), gp=GP(), seed=0),
        "'luck'",
    ),
    "weights that coverage ignores": (
        lambda: objective_of(sheet([1.0, 1.0]), "coverage"),
        "coverage takes no --weights",
    ),
    "an attack by luck": (lambda: BayesOptAttack(rule="luck"), "'luck'"),
    "a population of one": (lambda: GenAttack(population=1), "got 1"),
    "blocks of nothing": (lambda: ParsimoniousAttack(block=0), "got 0 and 16"),
    "more than all pixels": (lambda: SquareAttack(share=1.5), r"1\.5"),
    "a device nobody has": (lambda: Place("tpu"), "'tpu'"),
    "a bench of another size": (lambda: bench_device(size="huge"), "'huge'"),
    "images without pixels": (lambda: autoencoder(np.zeros(4)), r"\(4,\)"),
    "no image": (lambda: autoencoder(np.zeros((0, 3, 3))), r"\(0, 3, 3\)"),
    "an autoencoder that does not learn": (lambda: autoencoder(np.zeros((4, 3, 3)), epochs=0), "2, 512, 0"),
    "weights of nothing": (lambda: objective_of(sheet([0.0, 0.0]), "facility"), "all 0"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_is_refused_by_its_value(what):
    call, words = REFUSED[what]
    with pytest.raises(ValueError, match=words):
        call()


def test_curves_over_a_list_of_points():
    listed = Problem("listed", LINE, lambda X: X[:, 0], 1.0, LINE.points[1:])
    with pytest.raises(TypeError, match="on a Box"):
        synthetic_curves("power", surface=listed)


@pytest.mark.parametrize(
    ("missing", "call", "extra"),
    [
        ("sklearn.svm", lambda: landmine.values(0, [[0.3, 0.7]]), "sklearn"),
        ("onnxruntime", lambda: lcbench("3945").final(np.full((1, 7), 0.5)), "bench"),
        ("sklearn", digits, "demo"),
    ],
)
def test_what_to_install_is_said(missing, call, extra, monkeypatch):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingExtra, match=rf"pip install 'surefoot\[{extra}\]'"):
        call()


def test_an_experiment_that_returns_nothing_is_a_failure():
    assert attempt(planted.run_broken, Replicate(3)) == {
        "replicate": 3,
        "error": "ValueError: the experiment returned no trace",
        "where": [],
    }


def test_a_built_in_function_without_a_signature_is_judged_by_what_it_returns():
    run = Watched(max, "max")
    with pytest.raises(TypeError, match=r"a value must be a number.*; got 'width'"):
        run({"width": 1.0, "depth": 2.0})


def test_where_nobody_knows_the_memory_it_is_unlimited(monkeypatch):
    def absent(*args, **options):
        raise FileNotFoundError(args[0])

    monkeypatch.setattr("builtins.open", absent)
    assert Place().free() == np.inf
