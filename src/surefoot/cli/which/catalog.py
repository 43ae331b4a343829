"""When to use which class: one entry for each, and nothing that its class declares itself.

>>> find("surefoot.TVGPUCB").page
'docs/policies/tv-gp-ucb.md'
"""

from __future__ import annotations

from typing import Any

from surefoot.cli.which.combined import COMBINED
from surefoot.cli.which.entry import Entry
from surefoot.cli.which.whole import OTHERS, WHOLE

__all__ = ["entries", "find"]


def _policy(name: str, word: str, when: str, why: str, page: str, **more: Any) -> Entry:
    return Entry(f"surefoot.{name}", word, when, why, f"docs/policies/{page}.md", **more)


# The order is the order in which they are offered: where several fit, the first one is the default.
_POLICIES = (
    _policy(
        "MacroGPO",
        "ahead",
        "planning several moves ahead; the sum of all that is measured counts",
        "It looks several moves ahead, each answering to what the ones before have measured, and bounds what its choice"
        " may lose against the best adaptive plan.",
        "macro-gpo",
        options=("horizon=3", "samples=30"),
        first=("moves",),
        instead=("surefoot.TruVaR: every point can be reached, but the way costs something (special=costs)",),
    ),
    _policy(
        "ExpectedImprovement",
        "default",
        "a good value soon; the default",
        "It measures where the expected improvement is largest, and finds good values fast without any setting.",
        "expected-improvement",
        instead=(OTHERS,),
    ),
    _policy(
        "GPUCB",
        "guarantee",
        "a bound on the regret, also of batches",
        "It measures where the upper confidence bound is highest. Its regret is bounded, and that of its batches too.",
        "gp-ucb",
        first=("few",),
        instead=(OTHERS,),
    ),
    _policy(
        "ThompsonSampling",
        "spread",
        "workers that spread by themselves",
        "Each ask draws a function from the belief and goes where it is highest. Draws differ, so dozens of workers do"
        " not crowd.",
        "thompson-sampling",
        first=("dozens",),
        instead=(OTHERS,),
    ),
    _policy(
        "MaxValueEntropySearch",
        "noise",
        "very noisy measurements",
        "It measures what tells most about the height of the maximum, so that a lucky value does not mislead it.",
        "max-value-entropy-search",
    ),
    _policy(
        "EntropySearch",
        "where",
        "few, dear measurements, and the place of the maximum",
        "It measures what tells most about where the maximum is, with some hundredths of a second of thought for each"
        " ask.",
        "entropy-search",
    ),
    _policy(
        "MinimumRegretSearch",
        "regret",
        "few, dear measurements, and the value of what is used in the end",
        "It measures what saves most of the regret that is expected when the best estimate is used.",
        "minimum-regret-search",
    ),
    _policy(
        "AddGPUCB",
        "coordinates",
        "tens or hundreds of coordinates",
        "It believes in a sum of functions of a few coordinates each, and learns which ones belong together.",
        "add-gp-ucb",
        options=("groups=4", "candidates=500"),
        coordinates=12,
        instead=("surefoot.SobolSearch: hundreds of coordinates and no such structure",),
    ),
    _policy(
        "ProbabilityOfImprovement",
        "gain",
        "a gain of a known size, any larger one being as good",
        "It measures where a value above the best estimate, by a margin that you choose, is most probable.",
        "probability-of-improvement",
        options=("margin=0.01",),
    ),
    _policy(
        "QEI",
        "best-of-batch",
        "a small batch of which only the best point counts",
        "It maximizes the expected improvement of the best point of the whole batch.",
        "batch",
        workers=("few", "moves"),
    ),
    _policy(
        "DBGPUCB",
        "sum",
        "the sum of all values of a batch or a move",
        "It chooses points together: their summed means, and a bonus for what they teach as a whole.",
        "batch",
        first=("moves",),
        workers=("few", "moves"),
    ),
    _policy(
        "GPUCBPE",
        "explore",
        "workers that are nearly free",
        "One point of a batch exploits, the others only explore where the maximum may be.",
        "batch",
        workers=("few", "dozens", "moves"),
    ),
    _policy(
        "LocalPenalization",
        "shadows",
        "large batches, chosen quickly",
        "Points under way cast a shadow on the score around them, so that no belief is updated within a batch.",
        "batch",
        workers=("few", "dozens", "moves"),
    ),
    _policy(
        "GPLSE",
        "guarantee-map",
        "a map with a guarantee",
        "It measures undecided points whose bounds reach farthest across the threshold. If the belief is right, nothing"
        " is misclassified by more than an accuracy of your choice.",
        "level-sets",
        instead=("surefoot.TruVaR: measurements differ in cost or precision (special=costs)",),
    ),
    _policy(
        "Straddle",
        "boundary",
        "a simple rule that walks along the boundary",
        "It measures where the mean is near the threshold and uncertain: simple, fast, and without a guarantee.",
        "level-sets",
    ),
    _policy(
        "TruVaR",
        "careful",
        "costs, precision, or a careful shrinking of what may be the answer",
        "It keeps the points that still matter and takes most of their uncertainty away per unit of cost.",
        "truvar",
        instead=("Ax or BoTorch: many fidelities of one simulation, and no guarantee needed",),
    ),
    _policy(
        "VarianceSampling",
        "everywhere",
        "a map that is good everywhere, as a baseline",
        "It measures where the belief is least certain, whatever the threshold.",
        "level-sets",
    ),
    _policy(
        "RandomLevelSet",
        "random-map",
        "a map from random points, as a baseline",
        "It measures anywhere, and says what these points tell about the threshold.",
        "level-sets",
    ),
    _policy(
        "TVGPUCB",
        "fade",
        "gradual drift, at a known rate or one to be learned",
        "It lets measurements fade with their age and answers for now; its regret is that against the moving maximum.",
        "tv-gp-ucb",
        instead=("surefoot.GPUCB: the drift is negligible over the whole run",),
    ),
    _policy(
        "RGPUCB",
        "reset",
        "sudden breaks: begin anew after so much time",
        "It throws everything away after a block of time, which is simple, and recovers after a break.",
        "tv-gp-ucb",
        options=("block=10.0",),
    ),
    _policy(
        "BOBOS",
        "stop-early",
        "giving up runs that will not beat the best one",
        "It chooses by GP-UCB, follows each run epoch by epoch, and solves an optimal stopping problem to give up the"
        " hopeless ones.",
        "bo-bos",
        instead=(
            "surefoot.bridge.optuna.BosPruner: the same stopping in an Optuna study, with any sampler",
            "surefoot.stopping: the same stopping in a tuner of your own",
            "Optuna or Ray Tune with Hyperband: thousands of short runs on many machines",
        ),
    ),
    _policy(
        "RMBOBOS",
        "stop-early-with-tasks",
        "earlier tasks, and giving up runs",
        "Earlier tasks say where to begin, runs that will not beat the best one are given up, and tasks that mislead"
        " lose their influence.",
        "rm-bo-bos",
        instead=("surefoot tune ... --epochs N --transfer JOURNAL: the same from a terminal",),
    ),
    _policy(
        "RMGPUCB",
        "mislead",
        "values mean the same as before, but some tasks may mislead",
        "It adds the bounds of earlier tasks to its own, learns which of them to trust, and trusts all of them less and"
        " less: misleading ones cost a few queries and nothing in the end.",
        "rm-gp-ucb",
    ),
    _policy(
        "RMGPTS",
        "mislead-spread",
        "the same with dozens of workers that spread by themselves",
        "Thompson sampling that starts from earlier tasks and learns which of them to trust.",
        "rm-gp-ucb",
        first=("dozens",),
    ),
    _policy(
        "RGPE",
        "ranks",
        "tasks with the right shape, but at another level and scale",
        "It averages the models of all tasks, each weighted by how often it ranks the new measurements best.",
        "rgpe",
    ),
    _policy(
        "TAF",
        "hints",
        "the same, as hints that leave the model of the new task alone",
        "It adds the improvements that earlier tasks predict to its own, so that tasks cannot make it overconfident.",
        "taf",
    ),
    _policy(
        "StableOpt",
        "worst-case",
        "the best worst case, with a guarantee",
        "It looks for the choice whose worst case is best and measures what an adversary would make of it; its"
        " certificate bounds how far the answer is from the robust optimum, if the belief is right.",
        "stable-opt",
    ),
    _policy(
        "RobustReport",
        "report",
        "a robust answer from whatever another policy measures",
        "Any policy decides where to measure; the answer is the measured point with the best worst case.",
        "stable-opt",
    ),
    _policy(
        "MaxiMinGPUCB",
        "maximin",
        "measuring the chosen point itself, as a baseline",
        "It chooses like StableOpt, but measures its choice and not what an adversary would make of it.",
        "stable-opt",
    ),
    _policy(
        "RobustBatch",
        "survive",
        "a batch that teaches enough whatever is lost",
        "It chooses batches that take most variance off the possible maxima after the worst loss of tau points.",
        "robust-batch",
        workers=("few", "dozens"),
        instead=("surefoot.GPUCB: losses are rare; cancel(query) forgets what is lost",),
    ),
    _policy(
        "SobolSearch",
        "cheap",
        "runs that cost next to nothing, or hundreds of coordinates",
        "It spreads points evenly and has no model: nothing is faster to ask, and nothing can mislead it.",
        "sobol-search",
        instead=(OTHERS,),
    ),
    _policy(
        "RandomSearch",
        "baseline",
        "a baseline to compare with",
        "Random points: what every other policy has to beat.",
        "random-search",
    ),
)


def entries() -> tuple[Entry, ...]:
    """Return all entries, in the order in which they are offered.

    >>> len({entry.word for entry in entries()}) == len(entries())
    True
    """
    return (*_POLICIES, *WHOLE, *COMBINED)


def find(use: str) -> Entry:
    """Return the entry of a full name.

    >>> find("surefoot.NoSuchThing")
    Traceback (most recent call last):
    ...
    ValueError: there is no entry for 'surefoot.NoSuchThing'
    """
    for found in entries():
        if found.use == use:
            return found
    raise ValueError(f"there is no entry for {use!r}")
