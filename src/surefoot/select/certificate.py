"""Certificates: how far from the best a selection can be, for this very instance.

Two kinds of statement, kept apart:

* A **factor** from a theorem: the value left after the worst deletion is at least so many times the best possible one.
  It needs the set function's ratios (:mod:`surefoot.select.ratios`); for submodular f most of them are known.
* A **ratio** computed after the fact: a proved lower bound on what this selection keeps, over a proved upper bound on
  what any selection could keep. It is usually far better than the factor, and it needs no theorem about the selector.

>>> from surefoot.select import Coverage, pro
>>> objective = Coverage([[1, 1, 1, 0], [0, 0, 0, 1], [1, 1, 0, 0]])
>>> found = certify(objective, pro(objective, 2, tau=1), tau=1)
>>> found.worst.value, found.optimum, round(found.ratio, 3)
(2.0, 2.0, 1.0)

Upper bound. For any set X of at most τ elements the best robust selection keeps at most f(OPT(k − τ, V \\ X)): the
adversary may take what the selection shares with X (Lemma 6.A.8 of Bogunovic's thesis, 2019). And for any set A, with
the submodularity ratio γ,

    f(OPT(k, V)) ≤ f(A) + (1/γ) · the sum of the k largest gains f(v | A),

of which the smallest over all greedy prefixes A is taken.

References: Bogunovic, Mitrović, Scarlett & Cevher 2017; Bogunovic, Zhao & Cevher 2018. The bounds on the optimum are
those of Nemhauser, Wolsey & Fisher 1978, with a submodularity ratio.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

import numpy as np
from numpy.typing import ArrayLike

from surefoot.arguments import whole
from surefoot.select.adversary import Deletion, attack
from surefoot.select.greedy_family import greedy, iterative_factor, oblivious
from surefoot.select.guarantees import greedy_guarantee, oblivious_greedy_guarantee, pro_guarantee
from surefoot.select.objective import SetFunction
from surefoot.select.ratios import LARGEST_SPECTRUM, Ratio, Ratios, bound_ratios
from surefoot.select.robust import osu_sizes, pro_sizes
from surefoot.select.selection import Selection, gains_of, ground

__all__ = ["Certificate", "certify", "optimum_bound", "robust_bound"]


def optimum_bound(
    objective: SetFunction, k: int, *, gamma: float | None = None, among: ArrayLike | None = None
) -> float:
    """Return an upper bound on the value of any k elements.

    Parameters
    ----------
    objective : SetFunction
        Any monotone objective.
    k : int
        Size of the sets.
    gamma : float, optional
        A proved lower bound on the submodularity ratio; by default 1 for submodular objectives. Without one, the value
        of all elements together is the only bound.
    among : array of int, optional
        The elements to choose from.

    >>> from surefoot.select import Coverage
    >>> optimum_bound(Coverage([[1, 1, 0, 0], [0, 1, 1, 0], [0, 1, 0, 0]]), 2)
    3.0
    """
    count, elements = ground(objective, k, among)
    if gamma is not None and not 0.0 <= gamma <= 1.0:
        raise ValueError(f"gamma must lie between 0 and 1, got {gamma!r}")
    ratio = (1.0 if objective.submodular is True else 0.0) if gamma is None else gamma
    bound = objective.value(elements)
    if ratio <= 0.0 or count == elements.size:
        return bound
    state, order = objective.state(), greedy(objective, count, among=elements).order
    for step in range(count + 1):
        gains = gains_of(state, elements, objective.n)
        largest = np.partition(gains, gains.size - count)[gains.size - count :] if count else gains[:0]
        bound = min(bound, float(state.value) + float(largest.sum()) / ratio)  # f(A) + (1/γ) Σ of k gains f(v | A)
        if step < count:
            state.add(order[step])
    return bound


def robust_bound(
    objective: SetFunction, k: int, tau: int, *, gamma: float | None = None, removed: ArrayLike | None = None
) -> float:
    """Return an upper bound on what any k elements keep after the worst loss of τ of them.

    It is the least :func:`optimum_bound` of k − τ elements outside a set X of τ elements, over some X: none, the first
    greedy ones, the largest singletons, and ``removed``, if given.

    >>> from surefoot.select import Coverage
    >>> robust_bound(Coverage([[1, 1, 1, 0], [0, 0, 0, 1], [1, 1, 0, 0]]), 2, 1)
    2.0
    """
    count, deletions = ground(objective, k)[0], whole(tau, "tau", 0)
    if deletions >= count:
        raise ValueError(f"tau = {deletions} deletions leave nothing of k = {count} elements")
    if deletions == 0:
        return optimum_bound(objective, count, gamma=gamma)
    tries = {
        (),
        tuple(sorted(greedy(objective, deletions).order)),
        tuple(sorted(oblivious(objective, deletions).order)),
    }
    if removed is not None and np.size(removed) <= deletions:
        tries.add(tuple(sorted(int(element) for element in np.ravel(np.asarray(removed)))))
    bounds = []
    for X in sorted(tries):
        outside = np.setdiff1d(np.arange(objective.n), np.array(X, dtype=np.int64))
        # f(OPT(k − τ, V∖X)): Lemma 6.A.8
        bounds.append(optimum_bound(objective, min(count - deletions, outside.size), gamma=gamma, among=outside))
    return min(bounds)


@dataclass(frozen=True)
class Certificate:
    """What is proved about a selection.

    Attributes
    ----------
    k, tau : int
        Budget and deletions.
    value : float
        Before any deletion.
    worst : Deletion
        The worst deletion found; ``worst.bound`` is proved.
    optimum : float
        No selection of k elements keeps more than this.
    factor : float
        What a theorem guarantees before looking; 0 where none applies.
    reason : str
        Which theorem, or why there is none.
    ratios : mapping of str to Ratio
        The set function's ratios that the theorem used, and how each is known: ``"exact"`` or ``"bound"`` for a proof;
        with an ``"estimate"`` the factor is an estimate too.

    >>> from surefoot.select import Coverage, greedy
    >>> objective = Coverage([[1, 1, 1, 0], [0, 0, 0, 1], [1, 1, 0, 0]])
    >>> print(certify(objective, greedy(objective, 2), tau=1))
    2 elements, worth 4; after the worst loss of 1: 1 (optimal)
    no selection keeps more than 2: at least 50.0% of the best possible
    no theorem: greedy knows no deletions
    """

    k: int
    tau: int
    value: float
    worst: Deletion
    optimum: float
    factor: float
    reason: str
    ratios: Mapping[str, Ratio] = field(default_factory=dict)

    @property
    def proved(self) -> bool:
        """Whether the factor rests on no estimate."""
        return all(ratio.how != "estimate" for ratio in self.ratios.values())

    @property
    def ratio(self) -> float:
        """A proved lower bound on what this selection keeps, over the most that any selection keeps."""
        if self.optimum <= 0.0:
            return 1.0
        return min(max(self.worst.bound / self.optimum, self.factor if self.proved else 0.0), 1.0)

    def __str__(self) -> str:
        how = "theorem" if self.proved else "theorem, with estimated ratios"
        theorem = f"{how}: at least {self.factor:.4f}, {self.reason}" if self.factor else f"no theorem: {self.reason}"
        return (
            f"{self.k} elements, worth {self.value:g}; after the worst loss of {self.tau}: {self.worst.value:g} "
            f"({self.worst.status})\n"
            f"no selection keeps more than {self.optimum:g}: at least {100.0 * self.ratio:.1f}% of the best possible\n"
            f"{theorem}"
        )


def certify(
    objective: SetFunction,
    selection: Selection,
    tau: int,
    *,
    ratios: Ratios | None = None,
    worst: Deletion | None = None,
    seconds: float = 60.0,
) -> Certificate:
    """Return what can be proved about a selection.

    Parameters
    ----------
    objective : SetFunction
        What was maximized.
    selection : Selection
        From one of the selectors, whose structure decides which theorem applies.
    tau : int
        How many elements may be lost.
    ratios : Ratios, optional
        Of the set function; by default what :func:`~surefoot.select.bound_ratios` proves. With estimated ones the
        factor is an estimate, and is no part of :attr:`Certificate.ratio`.
    worst : Deletion, optional
        A deletion already found; by default :func:`~surefoot.select.attack` looks for one.
    seconds : float
        Time limit of that search.

    >>> from surefoot.select import Coverage, oblivious_greedy
    >>> objective = Coverage(np.eye(12))
    >>> found = certify(objective, oblivious_greedy(objective, 8, tau=2, beta=2.0), tau=2)
    >>> round(found.factor, 3), found.ratio  # a modular objective: nothing better exists
    (0.196, 1.0)
    """
    deletions = whole(tau, "tau", 0)
    k = len(selection.order)
    if deletions >= max(k, 1):
        raise ValueError(f"tau = {deletions} deletions leave nothing of {k} elements")
    worst = attack(objective, selection.order, deletions, seconds=seconds) if worst is None else worst
    if len(worst.removed) != deletions:
        raise ValueError(f"the attack given removes {len(worst.removed)} elements, not tau = {deletions}")
    known = _known(objective, ratios)
    gamma = known["submodularity"]
    proved = gamma.value if gamma.how != "estimate" else None
    factor, reason, used = _theorem(objective, selection, deletions, known)
    optimum = robust_bound(objective, k, deletions, gamma=proved, removed=worst.removed)
    return Certificate(k, deletions, selection.value, worst, optimum, factor, reason, used)


def _known(objective: SetFunction, ratios: Ratios | None) -> dict[str, Ratio]:
    """The ratios by name. What submodularity says is free; losses of the whole ground set would not be."""
    if ratios is not None:
        return {part.name: getattr(ratios, part.name) for part in fields(ratios)}
    if objective.submodular is True:
        one, zero = Ratio(1.0, "exact"), Ratio(0.0, "exact")
        free = {"superadditivity": Ratio(0.0, "bound"), "inverse_curvature": zero}
        return {"submodularity": one, "subadditivity": one, "bipartite": one, **free}
    if objective.n > LARGEST_SPECTRUM:
        nothing = Ratio(0.0, "bound")
        names = ("submodularity", "subadditivity", "superadditivity", "bipartite")
        return {**dict.fromkeys(names, nothing), "inverse_curvature": Ratio(1.0, "bound")}
    return _known(objective, bound_ratios(objective))


Known = dict[str, Ratio]


def _theorem(objective: SetFunction, made: Selection, tau: int, known: Known) -> tuple[float, str, Known]:
    """The factor that applies to a selection, the reason, and the ratios it rests on."""
    k, sizes = len(made.order), [len(bucket) for bucket in made.buckets]
    gamma = known["submodularity"]
    if gamma.value <= 0.0:
        return 0.0, "nothing is proved about the submodularity ratio", {}
    if tau == 0:
        if sizes:
            return 0.0, "the selection keeps a part for deletions that do not happen", {}
        beta = iterative_factor(objective, made.order)
        if math.isinf(beta):
            return 0.0, "an element without gain was chosen although another had one", {}
        return greedy_guarantee(k, gamma=gamma.value, beta=beta), "greedy selection", {"submodularity": gamma}
    if made.method == "pro":
        if objective.submodular is not True:
            return 0.0, "PRO's needs a submodular objective", {}
        if sizes != pro_sizes(tau, sizes[0] if sizes else 1):
            return 0.0, f"the buckets are not those that PRO needs for tau = {tau}", {}
        beta = _iterative(objective, made)
        if math.isinf(beta):
            return 0.0, "the subroutine took an element without gain", {}
        return pro_guarantee(k, tau, eta=sizes[0], beta=beta), "PRO", {"submodularity": gamma}
    if made.method == "oblivious_greedy":
        return _oblivious_greedy(objective, made, tau, known)
    if made.method == "osu" and sizes == osu_sizes(k, tau, "tau_log_k"):
        return 0.0, "OSU's, 0.387, holds in the limit of large k only", {}
    return 0.0, f"{made.method or 'this selector'} knows no deletions" if not sizes else f"{made.method} has none", {}


def _oblivious_greedy(objective: SetFunction, made: Selection, tau: int, known: Known) -> tuple[float, str, Known]:
    size = len(made.robust)
    if size <= tau:
        return 0.0, "Oblivious-Greedy's needs beta > 1", {}
    outside = np.setdiff1d(np.arange(objective.n), np.array(made.robust, dtype=np.int64))
    if iterative_factor(objective, made.rest, among=outside) > 1.0 + 1e-6:
        return 0.0, "the subroutine was not greedy selection", {}
    names = ("submodularity", "subadditivity", "superadditivity", "inverse_curvature", "bipartite")
    used = {name: known[name] for name in names}
    here = _superadditivity(objective, made.robust)
    if here.value > used["superadditivity"].value or used["superadditivity"].how == "estimate":
        used["superadditivity"] = here
    factor = oblivious_greedy_guarantee(
        len(made.order),
        tau,
        size / tau,
        gamma=used["submodularity"].value,
        theta=used["bipartite"].value,
        superadditivity=used["superadditivity"].value,
        inverse_curvature=used["inverse_curvature"].value,
        subadditivity=used["subadditivity"].value,
    )
    return factor, "Oblivious-Greedy", used


def _superadditivity(objective: SetFunction, robust: tuple[int, ...]) -> Ratio:
    """f(A) ≥ ν̌ Σ f({i}) for A ⊆ S₀, all that the proof uses: from all subsets, or from f(A) ≥ max f({i})."""
    if len(robust) > 10:
        return Ratio(1.0 / len(robust), "bound")
    singles = objective.singletons()[list(robust)]
    lowest = 1.0
    for mask in range(1, 2 ** len(robust)):
        inside = [place for place in range(len(robust)) if mask >> place & 1]
        total = float(singles[inside].sum())
        if total > 0.0:
            lowest = min(lowest, objective.value([robust[place] for place in inside]) / total)
    return Ratio(lowest, "exact")


def _iterative(objective: SetFunction, made: Selection) -> float:
    """The largest factor of the runs that made the buckets and the rest."""
    left, factor = np.arange(objective.n), 1.0
    for run in (*made.buckets, made.rest):
        factor = max(factor, iterative_factor(objective, run, among=left))
        left = np.setdiff1d(left, np.array(run, dtype=np.int64))
    return factor
