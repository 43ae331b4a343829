"""Choosing in one call: the selection that keeps most under the worst deletion, and what is proved about it.

Which selector is best depends on the objective: greedy selection where the value is evenly spread, PRO and OSU where a
few elements carry it and few are lost, Oblivious-Greedy where many are. :func:`choose` runs those that fit the budget,
lets an adversary attack them, first greedily and the best of them again as strongly as it can, keeps the one that has
most left, and certifies it.

>>> from surefoot.select import Coverage
>>> objective = Coverage([[1, 1, 1, 0], [0, 0, 0, 1], [1, 1, 0, 0]])
>>> best = choose(objective, 2, tau=1)
>>> best.selection.order, best.worst.value, sorted(best.tried)
((0, 2), 2.0, ['greedy', 'oblivious_greedy', 'osu', 'pro'])

Cost: four selections of k elements and as many heuristic attacks, then at most four attacks that try to be exact. A
thorough certificate evaluates all gains at k sets, four times; the quick one of large ground sets at five sets only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from surefoot.arguments import whole
from surefoot.moved import renamed
from surefoot.select.adversary import Deletion, attack, branch_and_bound, greedy_min, local_search
from surefoot.select.certificate import Certificate, certify
from surefoot.select.greedy_family import greedy, lazy_greedy, oblivious
from surefoot.select.objective import SetFunction
from surefoot.select.robust import oblivious_greedy, osu, pro
from surefoot.select.selection import Selection, ground

__all__ = ["METHODS", "Chosen", "choose"]
__getattr__ = renamed(__name__, {"Choice": "Chosen"})

METHODS: dict[str, Callable[[SetFunction, int, int], Selection]] = {
    "greedy": lambda f, k, tau: lazy_greedy(f, k) if f.submodular is True else greedy(f, k),
    "pro": partial(pro, structure="compact"),
    "osu": osu,
    "oblivious_greedy": partial(oblivious_greedy, beta=0.5),
    "oblivious": lambda f, k, tau: oblivious(f, k),
    "pro_exact": pro,
}
"""Selectors by name, with the options that do best in practice; the first four are those that are tried."""

LARGE = 2000  # elements above which a certificate is quick by default


@dataclass(frozen=True)
class Chosen:
    """A selection, its worst deletion, and what is proved.

    Attributes
    ----------
    selection : Selection
        The chosen elements.
    worst : Deletion
        The worst deletion found.
    certificate : Certificate
        Bounds on what the selection, and any selection, keeps.
    tried : mapping of str to float
        What each selector that was tried keeps under the worst deletion found for it.

    >>> from surefoot.select import Coverage
    >>> choose(Coverage([[1, 1, 0], [0, 1, 1]]), 1, tau=0).tried
    {'greedy': 2.0}
    """

    selection: Selection
    worst: Deletion
    certificate: Certificate
    tried: Mapping[str, float]


def choose(
    objective: SetFunction,
    k: int,
    tau: int = 0,
    *,
    method: str = "auto",
    seconds: float = 10.0,
    thorough: bool | None = None,
    notify: Callable[[str], None] | None = None,
) -> Chosen:
    """Return a selection of k elements for the loss of any τ of them, its worst deletion and its certificate.

    Parameters
    ----------
    objective : SetFunction
        What to maximize.
    k, tau : int
        How many elements, and how many of them may be lost; fewer than k.
    method : str
        A name of :data:`METHODS`; or "auto", which tries several and keeps the best. A robust part that needs more
        than k elements is an error where it was asked for by name, and left out by "auto".
    seconds : float
        Time limit of each search for a worst deletion.
    thorough : bool, optional
        Whether the certificate looks at every greedy prefix for its bound and for the theorem that applies; by default
        up to 2000 elements.
    notify : callable, optional
        Called with what begins: the name of a selector, "attack", "certificate".

    >>> from surefoot.select import Coverage
    >>> choose(Coverage([[1, 1, 0], [0, 1, 1], [1, 0, 1]]), 2, tau=2)
    Traceback (most recent call last):
    ...
    ValueError: tau = 2 deletions leave nothing of k = 2 elements; tau must be less than k
    """
    if method != "auto" and method not in METHODS:
        raise ValueError(f"method must be 'auto' or one of {', '.join(METHODS)}, got {method!r}")
    search = branch_and_bound if objective.n > LARGE and objective.submodular is True else attack
    say = notify or (lambda what: None)
    count, deletions = ground(objective, k)[0], whole(tau, "tau", 0)
    if deletions >= count:
        raise ValueError(f"tau = {deletions} deletions leave nothing of k = {count} elements; tau must be less than k")
    names = [method] if method != "auto" else list(METHODS)[:4] if tau else ["greedy"]
    made: dict[str, Selection] = {}
    for name in names:
        say(name)
        try:
            made[name] = METHODS[name](objective, k, tau)
        except ValueError as error:
            if method != "auto" or "robust part" not in str(error):
                raise
    kept = {name: _value_left(objective, selection, deletions) for name, selection in made.items()}
    attacks: dict[str, Deletion] = {}
    while (best := max(kept, key=lambda name: kept[name])) not in attacks:  # the first of equal ones
        # A stronger attack may leave less than the heuristic one: the next best is then attacked as strongly.
        say("attack")
        attacks[best] = search(objective, made[best].order, deletions, seconds=seconds)
        kept[best] = min(kept[best], attacks[best].value)
    worst = attacks[best]
    say("certificate")
    careful = objective.n <= LARGE if thorough is None else thorough
    if careful:
        certificate = certify(objective, made[best], deletions, worst=worst)
    else:
        certificate = _bounded(objective, made[best], deletions, worst)
    return Chosen(made[best], worst, certificate, kept)


def _bounded(objective: SetFunction, selection: Selection, tau: int, worst: Deletion) -> Certificate:
    """A certificate without a theorem, its bound from five prefixes of the selection alone.

    For submodular f and any A, a selection keeps at most f(OPT(k − τ)) ≤ f(A) + the k − τ largest gains f(v | A).
    """
    k, state = len(selection.order), objective.state()
    optimum = objective.value(np.arange(objective.n))
    if objective.submodular is True:
        ends = np.unique(np.linspace(0, k, 5).round().astype(int)).tolist()
        for step in range(k + 1):
            if step in ends:
                gains = np.sort(state.gains())[-(k - tau) :]
                optimum = min(optimum, float(state.value) + float(gains.sum()))
            if step < k:
                state.add(selection.order[step])
    return Certificate(k, tau, selection.value, worst, optimum, 0.0, "not looked for in a ground set this large")


def _value_left(objective: SetFunction, selection: Selection, tau: int) -> float:
    if tau == 0:
        return selection.value
    found = greedy_min(objective, selection.order, tau)
    return local_search(objective, selection.order, found).value
