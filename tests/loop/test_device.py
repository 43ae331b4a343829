from __future__ import annotations

import sys

import numpy as np
import pytest

from surefoot.errors import MissingExtra
from surefoot.loop.device import placer, torch_device


def test_numpy_is_where_there_is_no_device():
    X = np.arange(3.0)
    assert placer(None)(X) is X


def test_tensors_are_copies_of_the_same_type():
    torch = pytest.importorskip("torch")
    place = placer("cpu")
    X = np.arange(6.0).reshape(2, 3)[:, ::2]
    X.setflags(write=False)
    made = place(X)
    assert made.dtype == torch.float64
    made += 1.0
    assert X.tolist() == [[0.0, 2.0], [3.0, 5.0]]
    assert place(np.array([1, 2])).dtype == torch.int64


@pytest.mark.parametrize("device", ["nonsense", "cuda:99", "meta:x", 3.5])
def test_a_device_that_is_not_there_is_named(device):
    pytest.importorskip("torch")
    with pytest.raises(ValueError, match=rf"no device {device!r} on this machine: \S") as caught:
        torch_device(device)
    assert "\n" not in str(caught.value)


def test_without_torch_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtra, match=r"surefoot\[torch\]"):
        placer("cpu")
