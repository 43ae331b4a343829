"""200 agents with nearly the same function on a grid of 1,000 points: who finds its maximum soonest?

A repetition is one base function (a draw of a Gaussian process, squared exponential, length-scale 0.03, scaled to
[0, 1]); each agent has it ± 0.02 at every point, measures with noise of variance 0.01, starts from 10 points and knows
kernel and noise. The number that counts is simple regret, a mean over all agents. Methods share the function, the
coins, the errors and, where they start in the same sub-regions, the starts.

M = 50, 1 − p_t = 1/√t with p₁ = 0, weights 16 : 1 for five rounds that then fall in five. Unpublished, chosen here: the
features have the true length-scale and noise, and each repetition draws its own. Broadcasts are as published: no
averaging of equal vectors, unless the name of a method says so.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from surefoot.federated import Decay, SharedFeatures, Simulation, Weighting, simulate, synthetic_family
from surefoot.federated.controls import pooled_thompson, random_functions
from surefoot_lab.registry import Replicate, Trace

SOURCE = "Dai 2021 (thesis), chapter 6 and appendix C.2; Dai, Low & Jaillet 2021, "
COUNT = 50
INITIAL = 10
TS, FTS, RANDOM, NOISE, POOLED = "TS", "FTS", "random functions", "noise only", "pooled"
FIXED = Weighting(fall=None)
EQUAL = Weighting(high=0.0, hold=0, fall=0)


def explored(regions: int, **options: Any) -> dict[str, Any]:
    """FTS-DE with so many sub-regions, as options of a simulation."""
    return {"federation": {"regions": regions, "average_uniform": False, **options}}


def private(regions: int = 2, clip: float = 11.0, q: float = 0.25, z: float = 1.0, **options: Any) -> dict[str, Any]:
    """DP-FTS-DE as options of a simulation."""
    return explored(regions, clip=clip, sampling=q, noise_multiplier=z, **options)


def played(replicate: Replicate, methods: Mapping[str, Mapping[str, Any]]) -> dict[str, Trace]:
    """Run each method, given by its options of :func:`simulate`; TS, the pooled oracle and random functions by name."""
    seed, rounds = replicate.integer, replicate["horizon"]
    family = synthetic_family(runs=1, agents=replicate["agents"], size=replicate["size"], seed=seed)
    features = SharedFeatures(1, COUNT, lengthscale=0.03, noise=0.01, seed=seed)
    common: dict[str, Any] = {"rounds": rounds, "initial": INITIAL, "seed": seed, "schedule": Decay(0.5, first=0.0)}
    traces = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # little signal, on purpose
        for name, options in methods.items():
            if name == RANDOM:
                options = {"pool": random_functions(family, features, rounds, seed=seed)}
            run = simulate(family, features, **common, **options)
            traces[name] = trace(pooled_thompson(run, seed=seed) if name == POOLED else run, options)
    return traces


def trace(run: Simulation, options: Mapping[str, Any]) -> Trace:
    """Mean regret over agents after each round, and the share of the vectors that were clipped."""
    federation = options.get("federation") or {}
    limit = federation.get("clip", float("nan")) / federation.get("regions", 1) ** 0.5
    clipped = float("nan") if run.norms is None or limit != limit else float((run.norms > limit).mean())
    return Trace(simple_regret=run.regret[0].mean(axis=0)[1:], clipped=clipped)
