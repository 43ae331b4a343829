"""Choosing a subset that stays good when some of it is lost.

From n elements choose k so that the value f of what is left is large *after* the loss of any τ of them. Objectives say
what a set is worth, selectors choose, adversaries remove, certificates say how far from the best a choice can be.

>>> from surefoot.select import Coverage
>>> hubs = Coverage([[1, 1, 1, 1], [1, 1, 1, 0], [0, 0, 0, 1]])
>>> state = hubs.state([0, 2])          # what greedy selection takes
>>> float(state.value - state.losses().max())  # and what is left when its best element goes
1.0

Nothing here knows about policies: objectives are built from plain arrays, randomness comes in as a generator.

References: Mirzasoleiman, Karbasi & Krause 2017; Bogunovic, Mitrović, Scarlett & Cevher 2017 (PRO); Bogunovic, Zhao &
Cevher 2018 (Oblivious-Greedy); Orlin, Schulz & Udwani 2016 (OSU).
"""

from __future__ import annotations

from surefoot import lazy

__getattr__, __dir__, __all__ = lazy.names(
    __name__,
    {
        "objective": ["Evaluations", "SetFunction", "State"],
        "custom": ["Custom"],
        "coverage": ["Coverage", "DominatingSet"],
        "facility": ["FacilityLocation"],
        "quadratic": ["RSquared", "VarianceReduction"],
        "logistic": ["LogisticSupport"],
        "information": ["MutualInformation"],
        "ratios": ["Ratio", "Ratios", "bound_ratios", "estimate_ratios", "exact_ratios"],
        "selection": ["Selection", "Selector"],
        "greedy_family": [
            "cover",
            "greedy",
            "iterative_factor",
            "lazy_greedy",
            "matching_pursuit",
            "oblivious",
            "random_greedy",
            "stochastic_greedy",
            "threshold_greedy",
        ],
        "robust": ["buckets", "oblivious_greedy", "osu", "osu_sizes", "pro", "pro_sizes", "saturate"],
        "adversary": [
            "Deletion",
            "attack",
            "branch_and_bound",
            "exhaustive",
            "greedy_max",
            "greedy_min",
            "heuristics",
            "local_search",
            "random_min",
            "stochastic_min",
        ],
        "milp": ["coverage_milp"],
        "guarantees": ["best_beta", "greedy_guarantee", "oblivious_greedy_guarantee", "pro_guarantee"],
        "certificate": ["Certificate", "certify", "optimum_bound", "robust_bound"],
        "choice": ["Chosen", "choose"],
    },
    renamed={"Attack": "Deletion", "Choice": "Chosen"},
)
