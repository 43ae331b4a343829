"""A picture of a federation: how fast its agents improve, and how much of a broadcast is signal."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from surefoot.report.theme import canvas, color

__all__ = ["draw"]

Array = NDArray[np.float64]

LOOKS = (("muted", "-"), ("belief", "-"), ("accent", "-"), ("muted", ":"), ("ink", "--"))


def draw(curves: Mapping[str, Array], signal: Array | None, path: Path, *, measure: str) -> Path:
    """Draw into a file and return its path.

    Parameters
    ----------
    curves : mapping of method to array of shape (runs, rounds + 1)
        What is to become small, after the initial points and after each round.
    signal : array of shape (rounds,), optional
        Signal over noise of each broadcast.
    path : path
        Where to; the ending says the format.
    measure : str
        What the curves show.

    >>> import tempfile
    >>> curves = {"TS": np.array([[0.5, 0.2, 0.1]]), "DP-FTS-DE": np.array([[0.5, 0.1, 0.05]])}
    >>> file = Path(tempfile.mkdtemp()) / "federation.png"
    >>> draw(curves, np.array([0.4, 0.9]), file, measure="simple regret").stat().st_size > 10_000
    True
    """
    with canvas(8.6 if signal is not None else 5.6, 3.4) as figure:
        axes = figure.subplots(
            1, 1 if signal is None else 2, width_ratios=None if signal is None else [3, 2], squeeze=False
        )[0]
        for (name, runs), (role, line) in zip(curves.items(), LOOKS * len(curves), strict=False):
            mean, rounds = runs.mean(axis=0), np.arange(runs.shape[1])
            axes[0].plot(rounds, mean, color=color(role), linestyle=line, linewidth=1.6, label=name)
            if len(runs) > 1:
                error = runs.std(axis=0, ddof=1) / len(runs) ** 0.5
                axes[0].fill_between(rounds, mean - error, mean + error, color=color(role), alpha=0.15, linewidth=0)
        lowest = min(float(runs.mean(axis=0).min()) for runs in curves.values())
        axes[0].set(xlabel="round", ylabel=f"{measure}, mean over agents")
        if lowest > 0.0:
            axes[0].set_yscale("log")
            highest = max(float(runs.mean(axis=0).max()) for runs in curves.values())
            ticks = [m * 10.0**k for k in range(-9, 3) for m in (1, 2, 5)]
            axes[0].set_yticks([tick for tick in ticks if 0.8 * lowest <= tick <= 1.2 * highest])
            axes[0].yaxis.set_major_formatter(lambda value, _: f"{value:g}")  # no powers: texts are drawn as they are
            axes[0].yaxis.set_minor_formatter(lambda value, _: "")
        axes[0].legend(loc="upper right")
        if signal is not None:
            axes[1].plot(np.arange(1, signal.size + 1), signal, color=color("accent"), linewidth=1.6)
            axes[1].axhline(0.5, color=color("bad"), linewidth=1.0, linestyle="--")
            axes[1].annotate("below: close to random", (0.98, 0.5), (0, -3), xycoords=("axes fraction", "data"),
                             textcoords="offset points", ha="right", va="top", fontsize=7)  # fmt: skip
            axes[1].set(xlabel="round", ylabel="signal over noise of the broadcast")
            axes[1].set_ylim(0.0, max(0.6, 1.1 * float(signal.max())))
        figure.savefig(path, facecolor=color("paper"))
    return path
