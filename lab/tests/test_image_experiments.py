"""The image experiments of both families, on made-up digits and at a fraction of their budgets."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

from surefoot_lab import Replicate, Trace, find, names
from surefoot_lab.classifiers import EPOCHS
from surefoot_lab.experiments.bos2 import _images as attacked
from surefoot_lab.experiments.r2b2 import _images as played
from surefoot_lab.results import Results

BOS2 = {
    "mnist": {"pixels": "pressed", "budget": 45, "targets": 2, "architecture": "small"},
    "mnist-ablation": {"pixels": "clipped", "budget": 45, "targets": 2, "architecture": "small"},
    "cifar10": {"pixels": "clipped", "budget": 45, "targets": 2, "architecture": "small"},
    "cifar10-ablation": {"pixels": "pressed", "budget": 45, "targets": 2, "architecture": "small"},
}
R2B2 = {
    "mnist": {"horizon": 6, "samples": 20, "architecture": "small"},
    "mnist-many-images": {"horizon": 6, "samples": 20, "architecture": "small"},
    "sample-size": {"horizon": 5, "architecture": "small"},
    "bo-attackers": {"horizon": 5, "architecture": "small"},
    "parsimonious-defence": {"horizon": 60, "architecture": "small"},
    "parsimonious-attacker": {"horizon": 6, "samples": 20, "architecture": "small"},
}


def digits(rng, count, shape):
    """Ten classes: a bright square at one of ten places, on noise."""
    labels = rng.integers(10, size=count)
    images = rng.integers(0, 90, (count, *shape), dtype=np.uint8)
    for image, label in zip(images, labels, strict=True):
        row, column = divmod(int(label), 4)
        image[4 + 7 * row : 9 + 7 * row, 2 + 6 * column : 7 + 6 * column] += 80
    return images, labels.astype(np.int64)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("data"), np.random.default_rng(0)
    for name, shape in (("mnist", (28, 28)), ("cifar10", (32, 32, 3))):
        (folder / name).mkdir()
        X, y = digits(rng, 200, shape)
        Z, t = digits(rng, 40, shape)
        np.savez(folder / name / f"{name}_subset.npz", X_train=X, y_train=y, X_test=Z, y_test=t)
    patch = pytest.MonkeyPatch()
    patch.setenv("SUREFOOT_DATA", str(folder))
    patch.setenv("XDG_CACHE_HOME", str(folder))
    for name in ("mnist", "cifar10"):  # so few images need more passes
        patch.setitem(EPOCHS, name, 25)
    patch.setattr(played, "BRIEF", (25, 50))
    made = (attacked._model, played.networks, played.ordinary)
    for function in made:
        function.cache_clear()
    yield folder
    for function in made:
        function.cache_clear()
    patch.undo()


def one(id, settings, index=0):
    made = find(id)
    return made, dict(made.run(Replicate(index, settings={**made.quick.settings, **settings})))


def judged(made, replicates):
    results = Results.fresh(made, "quick")
    results.replicates = dict(enumerate(replicates))
    return results.judge()


def test_every_one_is_registered():
    assert {f"bos2/{id}" for id in BOS2} | {f"r2b2/{id}" for id in R2B2} <= set(names())


@pytest.mark.parametrize(
    "id", [pytest.param(id, marks=pytest.mark.slow) if id.startswith("cifar10") else id for id in BOS2]
)
def test_attacks(id, data):
    made, traces = one(f"bos2/{id}", BOS2[id])
    for name in set(traces) - {"network"}:
        success, capped = float(traces[name]["success"]), float(traces[name]["capped"])
        assert success in (0.0, 1.0)
        assert capped == (float(traces[name]["queries"]) if success else 45.0)
    assert 0.0 <= float(traces["network"]["accuracy"]) <= 1.0
    for claim in judged(made, [traces]):
        reads = [test for test in claim["tests"] if "queries" not in test["label"]]
        assert all(test["n"] for test in reads), claim["name"]


def test_an_instance_is_an_image_and_another_class(data):
    settings = {"targets": 9, "architecture": "small"}
    network = attacked._model("mnist", "small", None)[0]
    seen = [attacked.instance(Replicate(i, settings=settings), "mnist") for i in range(18)]
    for start in (0, 9):  # each image against all nine other classes
        part = seen[start : start + 9]
        assert len({each.image.tobytes() for each in part}) == 1
        assert sorted(each.target for each in part) == sorted(set(range(10)) - {part[0].label})
    assert seen[0].image.tobytes() != seen[9].image.tobytes()
    for each in seen:
        assert network.logits(each.image[None]).argmax() == each.label
    few = [attacked.instance(Replicate(i, settings={**settings, "targets": 2}), "mnist") for i in range(4)]
    assert few[0].image.tobytes() == few[1].image.tobytes() != few[2].image.tobytes()
    assert few[0].target != few[1].target


@pytest.mark.parametrize("id", R2B2)
def test_contests(id, data):
    made, traces = one(f"r2b2/{id}", R2B2[id])
    # Of the parsimonious attack only what it breaks alone is counted.
    replicates = [traces] if id != "parsimonious-defence" else [one(f"r2b2/{id}", R2B2[id], i)[1] for i in range(4)]
    for claim in judged(made, replicates):
        reads = [test for test in claim["tests"] if "factor" not in test["label"]]
        assert all(test["n"] for test in reads), claim["name"]
    for name, trace in traces.items():
        if "successes" in trace.metrics:
            assert float(trace["successes"]) == trace["wins"][-1] <= R2B2[id]["horizon"], name
            assert ((trace["score"] >= 0.0) & (trace["score"] <= 1.0)).all()


def test_a_contest_is_a_function_of_its_number(data):
    plain = [plainly("r2b2/mnist-many-images", R2B2["mnist-many-images"], index) for index in (2, 2, 3)]
    assert plain[0] == plain[1] != plain[2]


def test_an_attack_is_a_function_of_its_number(data):
    settings = BOS2["mnist"]
    assert plainly("bos2/mnist", settings, 2) == plainly("bos2/mnist", settings, 2)
    instances = [attacked.instance(Replicate(index, settings=settings), "mnist") for index in range(4)]
    assert [np.array_equal(instances[0].image, each.image) for each in instances] == [True, True, False, False]
    assert instances[0].target != instances[1].target


def plainly(id, settings, index):
    return {name: trace.to_json() for name, trace in one(id, settings, index)[1].items()}


def test_over_successes():
    runs = [{"a": Trace(queries=q)} for q in (5.0, float("nan"), 9.0, 30.0)]
    assert attacked.over_successes("a", "max").values(runs).tolist() == [30.0]
    assert attacked.over_successes("a", "median").values(runs).tolist() == [9.0]
    assert np.isnan(attacked.over_successes("a", "max").values(runs[1:2])).all()


def test_pressed_pixels_are_those_of_the_public_code(data):
    network, images, _ = attacked._model("mnist", "small", None)
    box = attacked._model_under_attack(network, 0.3, "pressed")
    around = images[:2] - 0.5  # in the code's units: (x + δ) / (1 + 2r) around zero
    moved = np.clip(around + 0.3 * np.sign(around), -0.8, 0.8)
    np.testing.assert_allclose(box.scores(moved + 0.5), network.logits(moved / 1.6 + 0.5), rtol=0, atol=1e-9)
    assert box.clip == (-0.3, 1.3)
