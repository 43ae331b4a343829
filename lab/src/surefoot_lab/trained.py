"""Models that the lab trains itself: seeded, trained once, and kept in the user's cache.

A model is named by everything that it depends on (its layers, the data, the seed, the recipe, the version of PyTorch),
so that a changed one is trained again and an unchanged one never. Weights are kept as plain arrays; nothing is pickled.

>>> import tempfile
>>> def make():
...     return torch().nn.Linear(2, 1)
>>> def fit(model):
...     return {"epochs": 0.0}
>>> folder = tempfile.mkdtemp()
>>> model, notes = trained("line", make, fit, identity={"rows": 3}, seed=1, cache=folder)
>>> again, _ = trained("line", make, fit, identity={"rows": 3}, seed=1, cache=folder)
>>> notes, bool((model.weight == again.weight).all())
({'epochs': 0.0}, True)
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.arguments import whole
from surefoot.errors import MissingExtra
from surefoot.loop.durable import write_atomically

__all__ = ["batches", "torch", "trained"]

Array = NDArray[Any]


def torch() -> Any:
    """Import PyTorch, or say how to install it.

    >>> torch().__name__
    'torch'
    """
    try:
        import torch as module
    except ImportError:
        raise MissingExtra("the lab's classifiers need PyTorch: pip install 'surefoot[torch]'") from None
    return module


def batches(count: int, size: int, rng: np.random.Generator) -> Iterator[NDArray[np.intp]]:
    """Yield the numbers 0, ..., count − 1 in random order, some at a time.

    >>> [len(batch) for batch in batches(10, 4, np.random.default_rng(0))]
    [4, 4, 2]
    """
    order = rng.permutation(count)
    for start in range(0, count, size):
        yield order[start : start + size]


def trained(
    name: str,
    make: Callable[[], Any],
    fit: Callable[[Any], Mapping[str, float]],
    *,
    identity: Mapping[str, Any],
    seed: int,
    cache: str | os.PathLike[str] | None = None,
) -> tuple[Any, dict[str, float]]:
    """Return a trained PyTorch module, from the cache if it is there, and what was noted about it.

    Parameters
    ----------
    name : str
        Beginning of the file's name.
    make : callable
        Returns the untrained module; its first weights are drawn from ``seed``.
    fit : callable
        Trains the module in place and returns numbers worth keeping, such as its accuracy.
    identity : mapping
        Everything else that the result depends on, as JSON.
    seed : int
        Of the first weights, and of whatever PyTorch draws in training.
    cache : path, optional
        Folder; by default ``models`` in the user's cache (``$XDG_CACHE_HOME/surefoot`` or ``~/.cache/surefoot``).

    >>> trained("line", lambda: None, lambda model: {}, identity={}, seed=-1)
    Traceback (most recent call last):
    ...
    ValueError: seed must be a whole number from 0 on, got -1
    """
    whole(seed, "seed")
    pytorch = torch()
    key = json.dumps([name, int(seed), pytorch.__version__, dict(identity)], sort_keys=True)
    folder = Path(cache) if cache is not None else _folder()
    file = folder / f"{name}-{hashlib.sha256(key.encode()).hexdigest()[:24]}.npz"
    with pytorch.random.fork_rng(devices=[]):  # the caller's generator stays where it is
        pytorch.manual_seed(int(seed))
        model = make()
        if file.is_file():
            notes = _read(file, model, pytorch)
        else:
            model.train()
            notes = {key: float(value) for key, value in fit(model).items()}
            _write(file, model, notes)
    model.eval()
    return model, notes


def _folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "surefoot" / "models"


def _read(file: Path, model: Any, pytorch: Any) -> dict[str, float]:
    with np.load(file, allow_pickle=False) as kept:
        notes = {key[1:]: float(kept[key]) for key in kept.files if key.startswith("@")}
        model.load_state_dict({key: pytorch.from_numpy(kept[key]) for key in kept.files if not key.startswith("@")})
    return notes


def _write(file: Path, model: Any, notes: Mapping[str, float]) -> None:
    """Write so that a file with this name is always whole, also when two processes train at once."""
    file.parent.mkdir(parents=True, exist_ok=True)
    weights = {key: value.numpy() for key, value in model.state_dict().items()}
    made = io.BytesIO()
    np.savez(made, allow_pickle=False, **weights, **{f"@{key}": np.asarray(value) for key, value in notes.items()})
    write_atomically(file, made.getvalue())
