"""Guarantees: the factors that theorems give, as functions of the budget and of the set function's ratios.

A factor c says: what the selection keeps after the worst loss of τ elements is at least c times what the best selection
of k elements keeps. Factors depend on numbers only; :mod:`surefoot.select.certificate` finds which one applies to a
selection, and what is known beyond it.

>>> round(pro_guarantee(10**6, 50, eta=84), 3)
0.348

Corrections. The factors are those the proofs give, where the printed statements differ: for PRO the recursion
1 + α_j = (1 + 2β/η)^j replaces a step that loses a factor β (the printed bound fails for β > 1 and small η); for
Oblivious-Greedy the exponent carries γ, and the denominator of the corollary is 1 + (β − 1)ν̌ν. ``printed=True`` gives
the published form of PRO's.

References: Bogunovic, Mitrović, Scarlett & Cevher 2017, Theorem 4.5 (PRO); Bogunovic, Zhao & Cevher 2018, Theorem 1 and
Corollary 1 (Oblivious-Greedy); Das & Kempe 2011 (greedy selection with a submodularity ratio). In Bogunovic's thesis
(2019), whose numbers stand beside the code, these are Theorem 6.2.1, Theorem 7.3.1 and Corollary 7.3.1.
"""

from __future__ import annotations

import math

from scipy.optimize import minimize_scalar

from surefoot.arguments import open_unit, whole
from surefoot.select.robust import pro_sizes

__all__ = ["best_beta", "greedy_guarantee", "oblivious_greedy_guarantee", "pro_guarantee"]


def greedy_guarantee(k: int, steps: int | None = None, *, gamma: float = 1.0, beta: float = 1.0) -> float:
    """Return 1 − exp(−γ·steps/(β·k)): the share of the best k elements that ``steps`` greedy ones reach.

    Parameters
    ----------
    k : int
        Size of the optimum compared with.
    steps : int, optional
        Elements chosen; by default k.
    gamma : float
        Submodularity ratio; 1 for submodular objectives.
    beta : float
        :func:`~surefoot.select.iterative_factor` of the order.

    >>> round(greedy_guarantee(10), 6)
    0.632121
    """
    _unit(gamma=gamma)
    _at_least_one(beta=beta)
    taken = whole(k, "k", 1) if steps is None else whole(steps, "steps", 0)
    return -math.expm1(-gamma * taken / (beta * whole(k, "k", 1)))  # Lemma 6.2.1 for β, Lemma 7.2.1 for γ


def pro_guarantee(k: int, tau: int, *, eta: int = 1, beta: float = 1.0, printed: bool = False) -> float:
    """Return PRO's factor for a submodular objective, valid for every η ≥ 1 and |S₀| ≤ k.

    With L = ⌈log₂ τ⌉, α = (1 + 2β/η)^L − 1, c = βτ(1 + α)/(2^L η) + α, q = 1 − exp(−(k − |S₀|)/(β(k − τ))) and
    a = q/(1 + c), the factor is a/(1 + a).

    Parameters
    ----------
    k, tau : int
        Budget and deletions.
    eta : int
        Size of the smallest buckets.
    beta : float
        :func:`~surefoot.select.iterative_factor` of the subroutine: 1 for greedy selection.
    printed : bool
        The published form, a = qη/(5β³⌈log₂ τ⌉ + η); only under its conditions, τ ≥ 2, η ≥ 4(log₂ k + 1) and
        τ ≤ k/(3η(log₂ k + 2)).

    >>> round(pro_guarantee(10_000, 2, eta=58), 3), round(pro_guarantee(10_000, 2, eta=58, printed=True), 3)
    (0.372, 0.365)
    """
    _at_least_one(beta=beta)
    count, deletions, unit = whole(k, "k", 1), whole(tau, "tau", 0), whole(eta, "eta", 1)
    if deletions >= count:
        raise ValueError(f"tau = {deletions} deletions leave nothing of k = {count} elements")
    if deletions == 0:
        return greedy_guarantee(count, beta=beta)
    size = sum(pro_sizes(deletions, unit))  # |S₀| of Proposition 6.2.1
    if size > count:
        raise ValueError(f"PRO needs {size} elements for its robust part, more than k = {count}")
    q = -math.expm1(-(count - size) / (beta * (count - deletions)))
    last = (deletions - 1).bit_length()
    if printed:
        least, most = 4.0 * (math.log2(count) + 1.0), count / (3.0 * unit * (math.log2(count) + 2.0))
        if deletions < 2 or unit < least or deletions > most:
            raise ValueError(
                f"the printed theorem needs tau ≥ 2, eta ≥ {least:.1f} and tau ≤ {most:.2f}; "
                f"got tau = {deletions}, eta = {unit}"
            )
        a = q * unit / (5.0 * beta**3 * last + unit)  # (6.7)
    else:
        alpha = (1.0 + 2.0 * beta / unit) ** last - 1.0  # of the last bucket, by Lemma 6.A.4, recursion corrected
        a = q / (1.0 + beta * deletions / (2**last * unit) * (1.0 + alpha) + alpha)
    return a / (1.0 + a)


def oblivious_greedy_guarantee(
    k: int,
    tau: int,
    beta: float,
    *,
    gamma: float,
    theta: float,
    superadditivity: float,
    inverse_curvature: float | None = None,
    subadditivity: float | None = None,
) -> float:
    """Return Oblivious-Greedy's factor for any monotone objective; the better of two where both apply.

    With q = 1 − exp(−γ(k − ⌈βτ⌉)/(k − τ)):

    * P = (β − 1)ν̌(1 − α̌), p = P/(1 + P): θpq/(1 + pq) (eq. 7.31);
    * P = (β − 1)ν̌ν, p = P/(1 + P): θ²pq/(1 + θpq) (eq. 7.39).

    Parameters
    ----------
    k, tau, beta
        As in :func:`~surefoot.select.oblivious_greedy`; for β ≤ 1 there is no guarantee and the factor is 0.
    gamma, theta : float
        Submodularity ratio γ and bipartite subadditivity ratio θ: lower bounds on them will do.
    superadditivity : float
        ν̌, or a lower bound on it.
    inverse_curvature : float, optional
        α̌, or an upper bound on it.
    subadditivity : float, optional
        ν, or a lower bound on it; γ is one.

    >>> factor = oblivious_greedy_guarantee(
    ...     10**6, 50, 20.0, gamma=1.0, theta=1.0, superadditivity=1.0, inverse_curvature=0.0
    ... )
    >>> round(factor, 2)  # towards 0.387
    0.38
    """
    count, deletions = whole(k, "k", 1), whole(tau, "tau", 0)
    size = math.ceil(beta * deletions - 1e-9)
    if deletions >= count or size > count:
        raise ValueError(f"k = {count} elements are too few for tau = {deletions} and beta = {beta!r}")
    nu = gamma if subadditivity is None else subadditivity
    alpha = 1.0 if inverse_curvature is None else inverse_curvature
    _unit(gamma=gamma, theta=theta, superadditivity=superadditivity, subadditivity=nu, inverse_curvature=alpha)
    if deletions == 0:
        return greedy_guarantee(count, gamma=gamma)
    q = -math.expm1(-gamma * (count - size) / (count - deletions))
    return _og_factor(max(beta - 1.0, 0.0) * superadditivity, q, theta, alpha, nu)


def _og_factor(strength: float, q: float, theta: float, alpha: float, nu: float) -> float:
    theorem, corollary = (weight / (1.0 + weight) * q for weight in (strength * (1.0 - alpha), strength * nu))  # p q
    return max(theta * theorem / (1.0 + theorem), theta**2 * corollary / (1.0 + theta * corollary))  # (7.31), (7.39)


def best_beta(
    share: float,
    *,
    gamma: float,
    superadditivity: float,
    theta: float = 1.0,
    inverse_curvature: float | None = None,
    subadditivity: float | None = None,
) -> tuple[float, float]:
    """Return the β in (1, 1/share) of the largest asymptotic factor when τ = share·k, and that factor.

    The exponent of :func:`oblivious_greedy_guarantee` tends to γ(1 − β·share)/(1 − share).

    >>> beta, factor = best_beta(0.01, gamma=1.0, superadditivity=1.0, inverse_curvature=0.0)
    >>> 5 < beta < 20 and 0.3 < factor < 0.387
    True
    """
    open_unit(share, "share")
    nu = gamma if subadditivity is None else subadditivity
    alpha = 1.0 if inverse_curvature is None else inverse_curvature
    _unit(gamma=gamma, theta=theta, superadditivity=superadditivity, subadditivity=nu, inverse_curvature=alpha)

    def factor(beta: float) -> float:
        q = -math.expm1(-gamma * (1.0 - beta * share) / (1.0 - share))  # Theorem 7.3.1
        return _og_factor((beta - 1.0) * superadditivity, q, theta, alpha, nu)

    found = minimize_scalar(lambda beta: -factor(beta), bounds=(1.0, 1.0 / share), method="bounded")
    return float(found.x), factor(float(found.x))


def _unit(**values: float) -> None:
    for name, value in values.items():
        if not 0.0 <= value <= 1.0:
            raise ValueError(f"{name} must lie between 0 and 1, got {value!r}")


def _at_least_one(**values: float) -> None:
    for name, value in values.items():
        if not (math.isfinite(value) and value >= 1.0):
            raise ValueError(f"{name} must be at least 1, got {value!r}")
