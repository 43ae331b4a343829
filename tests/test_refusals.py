"""What is refused, in the rooms at the bottom: the error says what was given, and nothing was changed by it."""

from __future__ import annotations

import builtins
import json

import numpy as np
import pytest

import surefoot
from surefoot import (
    BOBOS,
    GP,
    GPUCB,
    RGPE,
    SE,
    AroundEstimate,
    Ball,
    Box,
    Candidates,
    Choice,
    Exhausted,
    Float,
    MacroGPO,
    MaxValueEntropySearch,
    MissingExtra,
    NotSupported,
    Paths,
    RandomSearch,
    RobustReport,
    Space,
    ThompsonSampling,
    TruVaR,
    UnknownParameters,
    WeightedBox,
    widths,
)
from surefoot.belief import GridPosterior
from surefoot.belief.additive import Additive
from surefoot.belief.decomposition import Decompositions, refine
from surefoot.belief.drift import DriftingGrid, DriftingPosterior, simulate_drift
from surefoot.belief.forgetting import drifting, estimate_forgetting
from surefoot.belief.fourier import WeightPosterior
from surefoot.belief.kernels import Kernel
from surefoot.domain import Dives, MoveTable, domain_from_dict
from surefoot.domain.search import maximize
from surefoot.loop.policy import Policy, Proposal
from surefoot.loop.widths import width_from_dict
from surefoot.policy.moves import factors
from surefoot.policy.routes.lipschitz import Constants, Reach, nearest
from surefoot.policy.routes.path_tree import PathTree
from surefoot.select import Coverage, saturate

GAUSS = GP(SE(), noise=0.01)
BOX, LINE = Box.unit(2), Candidates([[0.0], [1.0]])
MIXED = Space(rate=Float(0.0, 1.0), kind=Choice(["a", "b"]))
RNG = np.random.default_rng(0)
ROAD = Paths([[0.0], [1.0], [2.0]], MoveTable({0: [[1]], 1: [[2], [0]]}), start=0)  # it ends at 2


def grown():
    return PathTree.grow(GAUSS.condition(), ROAD, 0, horizon=2)


REFUSED = {
    "a candidate of another shape": (lambda: LINE.index_of([0.0, 1.0]), ValueError, r"\(2,\)"),
    "a grid without an axis": (lambda: Dives((), 2), ValueError, r"\(\)"),
    "radii in a matrix": (lambda: WeightedBox(np.ones((2, 2))), ValueError, "radii"),
    "radii for other coordinates": (lambda: WeightedBox([0.1]).on(BOX), ValueError, "1 radii"),
    "a negative radius": (lambda: Ball(-0.5), ValueError, "-0.5"),
    "a norm below 1": (lambda: Ball(0.5, norm=0.5), ValueError, "0.5"),
    "parameters beside a list of designs": (
        lambda: UnknownParameters(box=Box.unit(1)).join(LINE),
        ValueError,
        "values=",
    ),
    "parameters beside a space": (
        lambda: UnknownParameters(values=[[0.0]]).join(MIXED),
        ValueError,
        "Space",
    ),
    "a radius on paths": (lambda: Ball(0.5).on(ROAD), ValueError, "not a Paths"),
    "parameters beside paths": (lambda: UnknownParameters(values=[[0.0]]).join(ROAD), ValueError, "Paths"),
    "parameters in a box among candidates": (
        lambda: UnknownParameters(box=Box.unit(1)).on(Candidates([[0.0, 1.0]])),
        ValueError,
        "values=",
    ),
    "two radii of one parameter": (lambda: AroundEstimate(1.0, [0.1, 0.2], [0.5, 1.0]), ValueError, r"\[0.1, 0.2\]"),
    "a unit too many": (lambda: Additive([(0,), (1,)], units=[1.0] * 3).split([[0.0, 1.0]]), ValueError, "3 units"),
    "refining what is no sum": (lambda: refine(GAUSS, [[0.0], [1.0]], [0.0, 1.0]), TypeError, "Additive"),
    "drift without a step": (lambda: simulate_drift(np.eye(2), 0, 0.1, RNG), ValueError, "got 0"),
    "drift of a vector": (lambda: simulate_drift(np.ones(2), 1, 0.1, RNG), ValueError, r"\(2,\)"),
    "a drifting grid of nowhere": (lambda: DriftingGrid(GAUSS, [[np.nan]], 0.1), ValueError, "finite"),
    "a point of too many coordinates in time": (
        lambda: DriftingPosterior(drifting(GAUSS, 0.1, 1), [[0.0, 5.0]], [1.0]).mean(np.zeros((1, 3))),
        ValueError,
        r"\(1, 3\)",
    ),
    "an estimate at confidence 1": (lambda: estimate_forgetting(lambda rate: -rate, confidence=1.0), ValueError, "1.0"),
    "features in a vector": (lambda: WeightPosterior(np.ones(3), np.ones(3), 1.0), ValueError, r"\(3,\)"),
    "a grid posterior without room": (lambda: GridPosterior(GAUSS, np.zeros((2, 1)), capacity=0), ValueError, "0"),
    "an unknown width": (lambda: width_from_dict({"width": "Narrow"}), ValueError, "'Narrow'"),
    "a width that misses the dimension": (lambda: widths.Continuous()(1), ValueError, "dimension"),
    "another that does": (lambda: widths.Logarithmic()(1), ValueError, "dimension"),
    "a width that misses the size": (lambda: widths.Finite()(1), ValueError, "finite domain"),
    "a scale of 0": (lambda: widths.Logarithmic(0.0), ValueError, "0.0"),
    "a rate below 0": (lambda: widths.LogTime(1.0, -2.0), ValueError, "-2.0"),
    "a norm bound below 0": (lambda: widths.RKHS(bound=-1.0), ValueError, "-1.0"),
    "no draws": (lambda: MaxValueEntropySearch(BOX, samples=0), ValueError, "samples"),
    "an odd number of features": (lambda: ThompsonSampling(BOX, features=3), ValueError, "3"),
    "a width that is a number": (lambda: GPUCB(BOX, width=2.0), TypeError, "2.0"),
    "another one": (lambda: RGPE(BOX, tasks=[], width=2.0), (TypeError, ValueError), "2.0|task"),
    "a loss of 0": (lambda: Constants(2, 4, 0.0, 1.0, np.ones(4)).required_samples(0.0), ValueError, "0.0"),
    "a covariance that is none": (lambda: factors([[[1.0, 99.0], [99.0, 1.0]]], 1e-6), ValueError, "semi-definite"),
    "covariances in a matrix": (lambda: factors(np.eye(2), 1.0), ValueError, r"\(2, 2\)"),
    "a tree from a dead end": (lambda: PathTree.grow(GAUSS.condition(), ROAD, 2, horizon=1), ValueError, "place 2"),
    "bounds of an unknown kind": (lambda: Reach.of(grown(), "loose"), ValueError, "'loose'"),
    "the nearest sample of a last move": (lambda: nearest(grown(), 2, np.zeros((1, 1))), ValueError, "of 2 moves"),
    "an excess below 1": (
        lambda: saturate(Coverage(np.eye(3)), 2, 1, excess=0.5),
        ValueError,
        "0.5",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_is_refused_by_its_value(what):
    call, error, words = REFUSED[what]
    with pytest.raises(error, match=words):
        call()


class Indefinite(SE):
    """No kernel: its matrix has a negative eigenvalue that no jitter mends."""

    def __call__(self, X, Z=None):
        K = super().__call__(X, Z)
        return K - 5.0 if Z is None else K

    def over(self, X):
        evaluate = super().over(X)

        def lowered(theta):
            K, pull = evaluate(theta)
            return K - 5.0, pull

        return lowered


def test_a_matrix_that_is_no_covariance():
    with pytest.raises(ValueError, match="positive semi-definite"):
        GP(Indefinite(), noise=1e-6).condition(np.linspace(0.0, 1.0, 6)[:, None], np.zeros(6))
    with pytest.raises(np.linalg.LinAlgError):
        GridPosterior(GP(Indefinite(), noise=1e-6), np.linspace(0.0, 1.0, 6)[:, None]).sample(1, RNG)
    assert GP(Indefinite(), noise=1e-6).log_likelihood(np.linspace(0.0, 1.0, 6)[:, None], np.zeros(6)) == -np.inf
    assert issubclass(Indefinite, Kernel)


def test_one_point_measured_often_without_noise():
    """Their covariance is singular to rounding."""
    evidence = Decompositions(np.zeros((3, 2)), np.zeros(3), [((0,), (1,))])
    with pytest.raises(ValueError, match="not positive definite"):
        evidence(np.array([[60.0, 60.0, 0.0, 0.0, -60.0]]))


def test_more_paths_than_a_tree_can_hold(monkeypatch):
    """Two places, each with a hundred ways to the other, and a tree for at most 5000 paths."""
    monkeypatch.setattr("surefoot.policy.routes.path_tree.MANY", 5000)
    ways = Paths([[0.0], [1.0]], MoveTable({0: [[1]] * 100, 1: [[0]] * 100}), start=0)
    with pytest.raises(ValueError, match="10000 paths of 2 moves from place 0: look less far ahead"):
        PathTree.grow(GAUSS.condition(), ways, 0, 2)
    with pytest.raises(ValueError, match=r"1.0e\+04 paths of 2 moves from place 0: lower horizon"):
        MacroGPO(ways, gp=GAUSS, horizon=2, seed=0)


def test_moves_of_an_unknown_kind():
    stored = Paths([[0.0], [1.0], [2.0]], MoveTable({0: [[1]], 1: [[2]], 2: [[0]]}), start=0).to_dict()
    stored = json.loads(json.dumps(stored).replace("MoveTable", "Teleport"))
    with pytest.raises(ValueError, match="'Teleport'"):
        domain_from_dict(stored)


class Flat:
    """The same score everywhere."""

    def __call__(self, E):
        return np.zeros(len(E))

    def gradient(self, E):
        return np.zeros(len(E)), np.zeros_like(E)


def test_a_search_that_has_nowhere_to_go():
    """Between its two ends this box has no number, and both are excluded."""
    ends = [0.5, float(np.nextafter(0.5, 1.0))]
    with pytest.raises(Exhausted, match="2 excluded"):
        maximize(Flat(), Box([ends]), rng=np.random.default_rng(0), exclude=np.c_[ends])


class Nowhere(Policy):
    """A faulty policy: it proposes nothing."""

    def _choose(self, step, context):
        return Proposal(None)

    def _recommend(self):
        return self._best_measured()


def test_a_policy_that_proposes_nothing():
    policy = Nowhere(BOX, seed=0)
    with pytest.raises(TypeError, match="needs a point"):
        policy.ask()
    assert not policy.events


def test_a_value_is_needed_where_none_was_reported():
    policy = BOBOS(BOX, epochs=5, seed=0)
    query = policy.ask()
    before = policy.state()
    with pytest.raises(ValueError, match=f"query {query.id} needs a value"):
        policy.tell(query)
    assert policy.state() == before
    assert [pending.id for pending in policy.pending] == [query.id]


def test_an_event_of_another_world():
    state = RandomSearch(BOX, seed=0).state()
    state["events"] = [{"event": "dreamt", "id": 0}]
    with pytest.raises(ValueError, match="dreamt"):
        Policy.from_state(state)


def test_a_journal_of_another_run(tmp_path):
    """The journal is closed again, so that its owner can go on."""
    path = tmp_path / "run.jsonl"
    first = RandomSearch(BOX, seed=0, journal=path)
    first.tell(first.ask(), 1.0)
    first.close()
    other = RandomSearch(BOX, seed=0)
    other.tell(other.ask(), 2.0)
    with pytest.raises(ValueError, match="holds other events"):
        Policy.from_state(other.state(), journal=path)
    again = surefoot.load(path)
    assert [run.value for run in again.history] == [1.0]
    again.close()


def test_a_report_owns_the_journal(tmp_path):
    inner = GPUCB(BOX, seed=0, journal=tmp_path / "inner.jsonl")
    with pytest.raises(ValueError, match="journal"):
        RobustReport(inner, Ball(0.1))
    inner.close()
    with pytest.raises(TypeError, match=r"2\.0"):
        RobustReport(GPUCB(BOX, seed=0), Ball(0.1), width=2.0)


def test_a_device_without_torch(monkeypatch):
    real = builtins.__import__

    def without(name, *rest):
        if name.split(".")[0] == "torch":
            raise ImportError(name)
        return real(name, *rest)

    policy = TruVaR(LINE, gp=GAUSS, device="cpu", seed=0)
    policy.tell([0.0], 0.0)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtra, match=r"surefoot\[torch\]"):
        policy.ask()


def test_a_device_for_a_box():
    with pytest.raises(NotSupported, match="Box"):
        TruVaR(BOX, gp=GAUSS, device="cpu")
