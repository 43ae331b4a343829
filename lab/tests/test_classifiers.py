"""Networks and autoencoders that the lab trains: they learn, they are kept, and they are what their names say."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from surefoot.errors import MissingData
from surefoot_lab import trained
from surefoot_lab.classifiers import _moved, _network, image_classifier, train
from surefoot_lab.vae import autoencoder


@pytest.fixture(scope="module")
def stripes():
    """Two classes: horizontal and vertical stripes, with noise."""
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=120)
    wave = 0.5 + 0.4 * np.sin(np.arange(16))
    images = np.where(labels[:, None, None] == 0, wave[:, None], wave[None, :]) + rng.normal(0.0, 0.05, (120, 16, 16))
    return np.clip(images, 0.0, 1.0), labels


def test_it_learns_and_is_kept(stripes, tmp_path):
    X, y = stripes
    made = train(X[:80], y[:80], classes=2, unseen=(X[80:], y[80:]), epochs=40, seed=1, cache=tmp_path)
    assert made.notes["accuracy"] == made.accuracy(X[80:], y[80:]) > 0.95
    (file,) = tmp_path.iterdir()
    before = file.stat().st_mtime_ns
    state = torch.get_rng_state()
    again = train(X[:80], y[:80], classes=2, unseen=(X[80:], y[80:]), epochs=40, seed=1, cache=tmp_path)
    assert torch.equal(state, torch.get_rng_state())  # the caller's generator stays where it was
    assert file.stat().st_mtime_ns == before
    assert again.notes == made.notes
    np.testing.assert_array_equal(made.logits(X), again.logits(X))
    with np.load(file, allow_pickle=False) as kept:  # plain arrays
        assert "@accuracy" in kept.files


@pytest.mark.slow
def test_the_plain_way_learns_too(stripes, tmp_path):
    X, y = stripes
    made = train(X[:80], y[:80], classes=2, epochs=400, plain=True, seed=1, cache=tmp_path)
    assert made.accuracy(X[80:], y[80:]) > 0.95


def test_the_name_in_the_cache_is_everything_it_depends_on(stripes, tmp_path):
    X, y = stripes[0][:20], stripes[1][:20]
    base = {"classes": 2, "epochs": 1, "seed": 0, "cache": tmp_path}
    train(X, y, **base)
    for change in ({"seed": 1}, {"epochs": 2}, {"architecture": "published"}, {"mirror": True}, {"plain": True}):
        train(X, y, **{**base, **change})
    train(X + 1e-3 * (X < 0.5), y, **base)
    train(X, 1 - y, **base)
    assert len(list(tmp_path.iterdir())) == 8


def test_a_seed_gives_the_same_network(stripes, tmp_path):
    X, y = stripes[0][:40], stripes[1][:40]
    one, two, other = (
        train(X, y, classes=2, epochs=1, seed=seed, cache=tmp_path / str(i)).logits(X)
        for i, seed in enumerate((3, 3, 4))
    )
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, other)


def test_the_published_layers():
    """Carlini & Wagner: 32-32-pool-64-64-pool, 200-200-10 on gray, 64-64-128-128, 256-256-10 on colored images."""
    gray = _network("published", (28, 28), 10, torch)
    assert [tuple(p.shape) for p in gray.parameters() if p.ndim > 1] == [
        (32, 1, 3, 3), (32, 32, 3, 3), (64, 32, 3, 3), (64, 64, 3, 3), (200, 1024), (200, 200), (10, 200),
    ]  # fmt: skip
    colored = _network("published", (32, 32, 3), 10, torch)
    assert [tuple(p.shape) for p in colored.parameters() if p.ndim > 1] == [
        (64, 3, 3, 3), (64, 64, 3, 3), (128, 64, 3, 3), (128, 128, 3, 3), (256, 3200), (256, 256), (10, 256),
    ]  # fmt: skip
    assert colored(torch.zeros(2, 3, 32, 32)).shape == (2, 10)


def test_images_are_moved_whole():
    X = np.zeros((200, 16, 16), dtype=np.float32)
    X[:, 8, 8] = 1.0
    moved = _moved(X, False, np.random.default_rng(0))
    np.testing.assert_array_equal(moved.sum(axis=(1, 2)), 1.0)
    rows = moved.sum(axis=2).argmax(axis=1)
    assert set(rows) == {6, 7, 8, 9, 10}
    half = np.zeros((50, 16, 16, 3), dtype=np.float32)
    half[:, :, :6] = 1.0
    mirrored = _moved(half, True, np.random.default_rng(0))
    assert 5 < (mirrored[:, 8, 0, 0] == 0.0).sum() < 45


def test_probabilities(stripes, tmp_path):
    X, y = stripes
    net = train(X[:40], y[:40], classes=2, epochs=1, cache=tmp_path)
    p = net.probabilities(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.log(p[:, 1] / p[:, 0]), np.diff(net.logits(X))[:, 0], atol=1e-9)
    np.testing.assert_allclose(
        net.logits(X), np.concatenate([net.logits(X[i : i + 1]) for i in range(len(X))]), atol=1e-5
    )


def test_bad_input(tmp_path):
    with pytest.raises(ValueError, match="architecture must be one of"):
        train(np.zeros((2, 16, 16)), [0, 1], architecture="huge")
    with pytest.raises(ValueError, match="labels must lie in"):
        train(np.zeros((2, 16, 16)), [0, 12])
    with pytest.raises(ValueError, match="need n labels"):
        train(np.zeros((2, 16, 16)), [0])
    with pytest.raises(ValueError, match="epochs must be"):
        train(np.zeros((2, 16, 16)), [0, 1], epochs=0)


def test_images_of_another_shape_are_not_encoded(tmp_path):
    made = autoencoder(np.zeros((4, 3, 3)), hidden=4, epochs=1, cache=tmp_path)
    with pytest.raises(ValueError, match=r"of shape \(3, 3\), got an array of shape \(2, 5, 5\)"):
        made.encode(np.zeros((2, 5, 5)))


def test_missing_data_are_named(monkeypatch, tmp_path):
    monkeypatch.setenv("SUREFOOT_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(MissingData, match=r"mnist_subset\.npz"):
        image_classifier("mnist")


def test_without_torch_it_says_what_to_install():
    code = (
        "import sys\n"
        "class Missing:\n"
        "    def find_spec(self, name, *rest):\n"
        "        if name == 'torch': raise ImportError(name)\n"
        "sys.meta_path.insert(0, Missing())\n"
        "from surefoot_lab.registry import Replicate, find\n"
        "from surefoot.errors import MissingExtra\n"
        "for id in ('bos2/mnist', 'r2b2/mnist'):\n"
        "    try: find(id).run(Replicate(0, settings=dict(find(id).quick.settings)))\n"
        "    except MissingExtra as error: print(error)\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ, check=True)
    assert said.stdout.count("pip install 'surefoot[torch]'") == 2


def test_the_cache_is_the_users(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    train(np.zeros((2, 16, 16)), [0, 1], epochs=1)
    assert list((tmp_path / "surefoot" / "models").glob("images-small-*.npz"))
    assert trained._folder() == tmp_path / "surefoot" / "models"


def test_an_autoencoder_tells_kinds_of_images_apart(tmp_path):
    rng = np.random.default_rng(0)
    kinds = rng.integers(2, size=200)
    images = np.clip(np.where(kinds[:, None, None] == 0, 0.1, 0.9) + rng.normal(0, 0.03, (200, 6, 6)), 0, 1)
    vae = autoencoder(images, hidden=32, epochs=150, seed=0, cache=tmp_path)
    Z = vae.encode(images)
    gap = np.linalg.norm(Z[kinds == 0].mean(axis=0) - Z[kinds == 1].mean(axis=0))
    assert gap > 3.0 * Z[kinds == 0].std()
    again = vae.decode(Z)
    assert again.min() >= 0.0
    assert again.max() <= 1.0
    assert np.abs(again - images).mean() < 0.15
    assert autoencoder(images, hidden=32, epochs=150, seed=0, cache=tmp_path).notes == vae.notes
