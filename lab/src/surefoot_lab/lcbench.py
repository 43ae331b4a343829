"""LCBench: learning curves of neural networks on 34 data sets, as a fitted model predicts them.

Seven hyper-parameters, 52 epochs, validation accuracy after each of them. The curves are the predictions of a network
that was fitted to real training runs (Zimmer, Lindauer & Hutter 2021; the model is that of YAHPO Gym, Pfisterer et al.
2022): smooth, without noise, and fast enough to evaluate thousands of configurations at once. Every report on them
says that they are a substitute for training.

>>> space()
Space(batch_size=Int(16, 512, log=True), learning_rate=Float(0.0001, 0.1, log=True), ...)

The data set ``lcbench`` (see :mod:`surefoot_lab.datasets`) and the package ``onnxruntime`` are needed for the curves.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.domain import Float, Int, Space
from surefoot.errors import MissingExtra
from surefoot_lab.datasets import load
from surefoot_lab.problems import Problem

__all__ = ["EPOCHS", "TASKS", "LCBench", "lcbench", "space"]

Array = NDArray[np.float64]

EPOCHS = 52
_NUMBERS = (
    (3945, 7593, 34539, 126025, 126026, 126029, 146212, 167104, 167149, 167152, 167161, 167168, 167181, 167184),
    (167185, 167190, 167200, 167201, 168329, 168330, 168331, 168335, 168868, 168908, 168910, 189354, 189862),
    (189865, 189866, 189873, 189905, 189906, 189908, 189909),
)
TASKS = tuple(str(number) for row in _NUMBERS for number in row)  # OpenML task ids
_ACCURACY = 1  # column of the model's output, in percent
_SEARCH = 2**14  # Sobol points over which the best value is searched


def space() -> Space:
    """Return the seven hyper-parameters, in the model's order of columns.

    >>> space().dimension
    7
    """
    return Space(
        batch_size=Int(16, 512, log=True),
        learning_rate=Float(1e-4, 0.1, log=True),
        momentum=Float(0.1, 0.99),
        weight_decay=Float(1e-5, 0.1),
        num_layers=Int(1, 5),
        max_units=Int(64, 1024, log=True),
        max_dropout=Float(0.0, 1.0),
    )


@cache
def _model() -> tuple[Any, dict[str, int]]:
    """The session, and the integer code of each data set."""
    try:
        import onnxruntime
    except ImportError:
        raise MissingExtra("LCBench curves need onnxruntime: pip install 'surefoot[bench]'") from None
    files = load("lcbench")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        str(files["model.onnx"]), sess_options=options, providers=["CPUExecutionProvider"]
    )
    return session, files["encoding"]["OpenML_task_id"]


class LCBench:
    """One data set: a space, a number of epochs, and the learning curve of every point. Made by :func:`lcbench`.

    Attributes
    ----------
    domain : Space
        The hyper-parameters.
    epochs : int
        Length of a curve.

    >>> LCBench("3945").epochs
    52
    """

    epochs = EPOCHS

    def __init__(self, task: str) -> None:
        self.task, self.name, self.domain = str(task), f"LCBench {task}", space()

    def __repr__(self) -> str:
        return f"LCBench({self.task!r})"

    def curves(self, X: ArrayLike) -> Array:
        """Return the validation accuracies, as fractions, after epochs 1..52 of raw points (n, 7), shape (n, 52)."""
        points = np.atleast_2d(np.asarray(X, dtype=np.float64))
        epochs = np.tile(np.arange(1, EPOCHS + 1), len(points))
        return self._accuracy(np.repeat(points, EPOCHS, axis=0), epochs).reshape(len(points), EPOCHS)

    def curve(self, x: ArrayLike, rng: np.random.Generator | None = None) -> Array:
        """Return the learning curve of one point, shape (52,); there is no noise for ``rng`` to draw."""
        return self.curves(x)[0]

    def final(self, X: ArrayLike) -> Array:
        """Return the accuracies after the last epoch of raw points (n, 7), shape (n,)."""
        points = np.atleast_2d(np.asarray(X, dtype=np.float64))
        return self._accuracy(points, np.full(len(points), EPOCHS))

    @property
    def best(self) -> float:
        """The highest final accuracy of 16,384 Sobol points and what grows around the best of them."""
        return _best(self.task)[1]

    def problem(self) -> Problem:
        """Return the final accuracy as a problem to maximize, without curves."""
        x, best = _best(self.task)
        return Problem(self.name, self.domain, self.final, best, x[None])

    def _accuracy(self, X: Array, epochs: NDArray[Any]) -> Array:
        session, codes = _model()
        code = np.full((len(X), 1), codes[self.task], dtype=np.int32)
        inputs = np.column_stack([epochs, X]).astype(np.float32)
        names = [entry.name for entry in session.get_inputs()]
        (output,) = session.run(None, dict(zip(names, (code, inputs), strict=True)))
        return np.asarray(output[:, _ACCURACY], dtype=np.float64) / 100.0


@cache
def _best(task: str) -> tuple[Array, float]:
    curves, rng = LCBench(task), np.random.default_rng(0)
    domain = curves.domain
    points = domain.design(_SEARCH, rng)
    values = curves.final(points)
    for width in (0.1, 0.03, 0.01):  # random steps around the best so far, ever shorter
        top = points[np.argsort(-values)[:16]]
        moved = np.repeat(domain.encode(top), 128, axis=0)
        moved = np.clip(moved + width * rng.standard_normal(moved.shape), 0.0, 1.0)
        points = np.vstack([top, domain.decode(moved)])
        values = curves.final(points)
    return points[values.argmax()], float(values.max())


def lcbench(task: str | int) -> LCBench:
    """Return the learning curves on one data set, by its OpenML task id.

    Its curves raise ``MissingData`` or ``MissingExtra`` where the model or onnxruntime is not on this machine.

    >>> lcbench(3945)
    LCBench('3945')
    >>> lcbench(1)
    Traceback (most recent call last):
    ...
    ValueError: unknown LCBench task 1; known are 3945, 7593, ...
    """
    if str(task) not in TASKS:
        raise ValueError(f"unknown LCBench task {task!r}; known are {', '.join(TASKS)}")
    return LCBench(str(task))
