"""29 landmine fields tune their detectors together, all at once, with a coordinator.

Authors' settings: M = 100 shared features (length-scale 0.01, noise 1e-6, raw values), four sub-regions, S = 22,
1 − p_t = 1/t with p₁ = 0, 10 initial points, 60 rounds; weights 16 : 1 for ten rounds that then fall in thirty. Own
beliefs are Gaussian processes fitted after every fifth measurement, and repeats are not asked for. The number that
counts is 1 − AUC of the best point so far, a mean over all fields.

Unpublished, or different: the own belief is our automatic one; a box is searched as :mod:`surefoot.federated.argmax`
does. Broadcasts are as published (no averaging of equal vectors).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.federated import Decay, FixedProbability, SharedFeatures, Weighting
from surefoot.federated.in_process import Federation, federate
from surefoot.private.noise import ResearchNoise
from surefoot_lab import landmine
from surefoot_lab.registry import Replicate, Trace

SOURCE = "Dai 2021 (thesis), chapter 6 and appendix C.2; Dai, Low & Jaillet 2021, "
COUNT, REGIONS, CLIP = 100, 4, 22.0
WEIGHTING = Weighting(hold=10, fall=30)
INITIAL = 10
TS, FTS, EXPLORED, RANDOM, NOISE = "TS", "FTS", "FTS-DE", "random queries", "noise only"
LOCAL = "TS, regional starts"
AT_Q = tuple((0.35, z) for z in (1.0, 1.6, 2.0, 3.0, 4.0))
AT_Z = tuple((q, 1.0) for q in (0.1, 0.15, 0.2, 0.25))


def named(q: float, z: float) -> str:
    """What DP-FTS-DE at a privacy loss is called."""
    return f"q = {q:g}, z = {z:g}"


class FixedSize(ResearchNoise):
    """Samples of exactly ⌊qN⌋ agents, without replacement: what the Rényi accountant of the published variant assumes.

    For this comparison only. Its losses are for another notion of neighbors, and the library does not offer it.
    """

    def bernoulli(self, probability: float, size: int | tuple[int, ...]) -> NDArray[np.bool_]:
        ranks = np.argsort(np.argsort(self._rng.random(size), axis=-1), axis=-1)
        return np.asarray(ranks < int(probability * ranks.shape[-1]))


def options(name: str) -> dict[str, Any]:
    """Options of :func:`federate` by the name of a method; a private one is given by its q and z."""
    known: dict[str, dict[str, Any]] = {
        TS: {},
        LOCAL: {"federation": explored(), "schedule": FixedProbability(1.0)},  # nobody follows what is broadcast
        RANDOM: {"wander": True},
        FTS: {"federation": {"regions": 1}},
        EXPLORED: {"federation": explored()},
    }
    return known[name]


def explored() -> dict[str, Any]:
    """Options of the coordinator of FTS-DE."""
    return {"regions": REGIONS, "weighting": WEIGHTING, "average_uniform": False}


def private(q: float, z: float) -> dict[str, Any]:
    """Options of :func:`federate` for DP-FTS-DE."""
    return {"federation": {**explored(), "clip": CLIP, "sampling": q, "noise_multiplier": z}}


def tuned(replicate: Replicate, **given: Any) -> Federation:
    """Run all fields together."""

    def objective(field: int) -> Any:
        return lambda x: float(landmine.values(field, x[None])[0])

    seed = replicate.integer
    features = SharedFeatures(2, COUNT, lengthscale=0.01, noise=1e-6, seed=seed)
    fields = range(replicate.settings.get("fields", landmine.FIELDS))
    return federate(
        [objective(field) for field in fields],
        landmine.domain(),
        features,
        rounds=replicate["horizon"],
        initial=INITIAL,
        seed=seed,
        **{"schedule": Decay(1.0, first=0.0), **given},
    )


def trace(run: Federation, *, clips: bool = True) -> Trace:
    """Mean 1 − AUC over fields after each round, and the share of the vectors that were clipped."""
    sent = run.norms[np.isfinite(run.norms)] if clips else np.empty(0)
    clipped = float((sent > CLIP / REGIONS**0.5).mean()) if sent.size else float("nan")
    return Trace(simple_regret=1.0 - run.best.mean(axis=0)[1:], clipped=clipped)


def played(replicate: Replicate, methods: Mapping[str, Mapping[str, Any]]) -> dict[str, Trace]:
    """Run each method, given by its options of :func:`federate`."""
    return {
        name: trace(tuned(replicate, **given), clips="clip" in (given.get("federation") or {}))
        for name, given in methods.items()
    }
