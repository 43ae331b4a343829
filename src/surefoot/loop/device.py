"""Where the arrays of a policy lie: in NumPy, or on a torch device that this machine has.

>>> placer(None)([1.0, 2.0])
array([1., 2.])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from surefoot.errors import MissingExtra

__all__ = ["placer", "torch_device"]


def torch_device(device: str) -> tuple[Any, Any]:
    """Return the module torch and its device of a name; a ``ValueError`` if this machine has none of that name.

    >>> torch_device("nonsense")
    Traceback (most recent call last):
    ...
    ValueError: no device 'nonsense' on this machine: ...
    """
    try:
        import torch
    except ImportError:
        raise MissingExtra("device= needs torch: pip install 'surefoot[torch]'") from None
    try:
        return torch, torch.empty(0, device=device).device
    except (AssertionError, RuntimeError, TypeError, NotImplementedError) as error:  # torch has no error of its own
        reason = str(error).strip().split("\n")[0]
        advice = "a stored run goes on elsewhere with surefoot.load(path, device=None)"
        raise ValueError(f"no device {device!r} on this machine: {reason} ({advice})") from None


def placer(device: str | None) -> Callable[[Any], Any]:
    """Return what brings a NumPy array to where the work is done.

    Parameters
    ----------
    device : str, optional
        A torch device such as ``"cuda"``; None is NumPy.

    >>> placer("cpu")(np.arange(3.0)).dtype
    torch.float64
    """
    if device is None:
        return np.asarray
    torch, where = torch_device(device)
    # A copy even on the processor: tensors do not know read-only memory, which NumPy arrays may be.
    return lambda array: torch.asarray(np.ascontiguousarray(array), device=where, copy=True)
