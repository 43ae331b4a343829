"""How far a set function is from submodular: the ratios that approximation guarantees are made of.

For a normalized monotone f, over all disjoint S and Ω, all i outside, all disjoint A and B:

    submodularity      γ    largest with  Σ_{i∈Ω} f(i | S) ≥ γ f(Ω | S)            1 iff f is submodular
    supermodularity    γ̌    largest with  f(Ω | S) ≥ γ̌ Σ_{i∈Ω} f(i | S)            1 iff f is supermodular
    curvature          α    smallest with f(i | S ∪ Ω) ≥ (1 − α) f(i | S)           0 iff f is supermodular
    inverse_curvature  α̌    smallest with f(i | S) ≥ (1 − α̌) f(i | S ∪ Ω)           0 iff f is submodular
    subadditivity      ν    largest with  Σ_{i∈S} f(i) ≥ ν f(S)
    superadditivity    ν̌    largest with  f(S) ≥ ν̌ Σ_{i∈S} f(i)
    bipartite          θ    largest with  f(A) + f(B) ≥ θ f(A ∪ B)

All lie in [0, 1], and ν ≥ γ ≥ 1 − α̌, ν̌ ≥ γ̌ ≥ 1 − α, θ ≥ ν ν̌ (Proposition 7.2.1, Remark 1). Each comes with
*how* it is known:

- ``"exact"``: by enumeration (:func:`exact_ratios`, n ≤ 12), or by a theorem.
- ``"bound"``: the truth is no worse (:func:`bound_ratios`): what a certificate may use.
- ``"estimate"``: the truth is no better (:func:`estimate_ratios`): the worst of some sets, optimistic in every case.

>>> from surefoot.select import Coverage
>>> print(exact_ratios(Coverage([[1, 1, 0], [0, 1, 1]])))
submodularity 1 (exact), supermodularity 0.75 (exact), curvature 0.5 (exact), inverse_curvature 0 (exact),
subadditivity 1 (exact), superadditivity 0.75 (exact), bipartite 1 (exact)

The bounds for quadratic objectives, with Ã the matrix A of :mod:`surefoot.select.quadratic` scaled to a unit diagonal
and K̃ = N⁻¹ᐟ² K N⁻¹ᐟ² for a covariance K with noise N:

    γ, ν ≥ λ_min(Ã),   ν̌ ≥ 1/λ_max(Ã),   γ̌, θ ≥ max(λ_min(Ã)/λ_max(Ã), 1/(1 + λ_max(K̃))),

and *no* bound on the curvatures. Proof: f(Ω | S) = Σ aB⁻¹aᵀ with B a Schur complement of A, so λ_min(A) ≤ B ≤ λ_max(A),
and f(i | S) = Σ aᵢ²/Bᵢᵢ. The published proposition (7.4.2) that α, α̌ ≤ k_max/(σ² + k_max) for variance reduction is
false: its proof cancels covariances that depend on different sets.

References: Das & Kempe 2011; Bian, Buhmann, Krause & Tschiatschek 2017; Bogunovic, Zhao & Cevher 2018, section 2;
numbers are those of Bogunovic's thesis (2019), chapter 7.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.select.logistic import LogisticSupport
from surefoot.select.objective import Array, SetFunction, as_elements
from surefoot.select.quadratic import Factored, OverCovariance

__all__ = ["Ratio", "Ratios", "bound_ratios", "estimate_ratios", "exact_ratios"]

# 3ⁿ pairs of sets: half a million.
LARGEST = 12
# Values below this fraction of f(V) are rounding errors of 0; a constraint 0 ≥ c · 0 says nothing.
NOTHING = 1e-12
# Eigenvalues of an n x n matrix are taken up to this n.
LARGEST_SPECTRUM = 5000


class Ratio(NamedTuple):
    """A number in [0, 1] and how it is known: ``"exact"``, ``"bound"`` or ``"estimate"``.

    >>> print(Ratio(0.5, "bound"))
    0.5 (bound)
    """

    value: float
    how: str

    def __str__(self) -> str:
        return f"{self.value:.4g} ({self.how})"


@dataclass(frozen=True)
class Ratios:
    """All seven ratios of one set function; see the module for what they mean.

    >>> from surefoot.select import Coverage
    >>> found = bound_ratios(Coverage([[1, 1, 0], [0, 1, 1]]))
    >>> found.submodularity, found.curvature
    (Ratio(value=1.0, how='exact'), Ratio(value=0.5, how='exact'))
    """

    submodularity: Ratio
    supermodularity: Ratio
    curvature: Ratio
    inverse_curvature: Ratio
    subadditivity: Ratio
    superadditivity: Ratio
    bipartite: Ratio

    def as_dict(self) -> dict[str, Ratio]:
        """Return the ratios by name, as :func:`surefoot.select.certify` takes them.

        >>> from surefoot.select import Coverage
        >>> bound_ratios(Coverage([[1, 1, 0], [0, 1, 1]])).as_dict()["bipartite"]
        Ratio(value=1.0, how='exact')
        """
        return {part.name: getattr(self, part.name) for part in fields(self)}

    def __str__(self) -> str:
        return ", ".join(f"{name} {ratio}" for name, ratio in self.as_dict().items())


def exact_ratios(f: SetFunction) -> Ratios:
    """Return all ratios by enumeration of all pairs of disjoint sets; 2ⁿ evaluations, n ≤ 12.

    >>> from surefoot.select import VarianceReduction
    >>> found = exact_ratios(VarianceReduction(np.ones((10, 10)), noise=1.0, targets=[0]))
    >>> round(found.superadditivity.value, 3)   # ten times the same point: (1 + σ²)/(10 + σ²)
    0.182
    """
    n = f.n
    if n > LARGEST:
        raise ValueError(f"enumeration is for n ≤ {LARGEST}, got n = {n}: use bound_ratios or estimate_ratios")
    members = (np.arange(2**n)[:, None] >> np.arange(n)) & 1  # (2ⁿ, n)
    table = np.array([f.value(np.flatnonzero(row)) for row in members])
    bits = 1 << np.arange(n)
    gains = table[np.arange(2**n)[:, None] | bits] - table[:, None]  # f(i | S), 0 for i in S
    # A pair of disjoint sets is a number in base 3: digit 1 for S, 2 for Ω.
    digits = (np.arange(3**n)[:, None] // 3 ** np.arange(n)) % 3
    first, second = (digits == 1) @ bits, (digits == 2) @ bits
    both, nothing = first + second, NOTHING * max(float(table.max()), 0.0)
    apart = (gains[first] * (digits == 2)).sum(axis=1)
    together = table[both] - table[first]
    outside = digits == 0
    alone = members @ gains[0]
    return _ratios(
        _least(apart, together, nothing),
        _least(together, apart, nothing),
        _least(gains[both][outside], gains[first][outside], nothing),
        _least(gains[first][outside], gains[both][outside], nothing),
        _least(alone, table, nothing),
        _least(table, alone, nothing),
        _least(table[first] + table[second], table[both], nothing),
        "exact",
    )


def estimate_ratios(
    f: SetFunction,
    rng: np.random.Generator,
    *,
    chains: int = 20,
    length: int = 20,
    prefixes: ArrayLike | Iterable[int] | None = None,
) -> Ratios:
    """Return the worst ratios seen on random nested sets: **optimistic**, the truth is no better.

    Each chain adds ``length`` random elements one after the other and compares all gains at all pairs of its sets.

    Parameters
    ----------
    f : SetFunction
        What to look at.
    rng : numpy.random.Generator
        Chooses the chains.
    chains, length : int
        How many, and how many elements each.
    prefixes : sequence of int, optional
        An order of selection. Chains then start from a random prefix of it and go on with random elements: what a
        greedy algorithm met on its way. Default: chains start from the empty set.

    >>> from surefoot.select import VarianceReduction
    >>> f = VarianceReduction(np.ones((10, 10)), noise=1.0, targets=[0])
    >>> estimate_ratios(f, np.random.default_rng(0), length=5).superadditivity.value.__round__(3)   # 5 of the 10 points
    0.333
    """
    if chains < 1 or length < 1:
        raise ValueError(f"chains and length must be at least 1, got {chains!r} and {length!r}")
    known = None if prefixes is None else as_elements(prefixes, f.n)
    alone, worst = f.singletons(), np.ones(7)
    for _ in range(chains):
        state = f.state()
        if known is not None:
            state = f.state(known[: rng.integers(len(known) + 1)])
        rest = rng.permutation(np.flatnonzero(~state.chosen))[:length]
        start, values, gains, inside = list(state.selected), [state.value], [state.gains()], [state.chosen.copy()]
        for v in rest.tolist():
            state.add(v)
            values.append(state.value)
            gains.append(state.gains())
            inside.append(state.chosen.copy())
        table, G, chosen = np.array(values), np.array(gains), np.array(inside)
        nothing = NOTHING * float(table[-1])
        low, high = np.triu_indices(len(table), 1)
        # Σ_{i∈Ω} f(i | S) for S the set at `low` and Ω what came until `high`: partial sums along the chain.
        sums = np.concatenate([np.zeros((len(G), 1)), np.cumsum(G[:, rest], axis=1)], axis=1)
        apart, together = sums[low, high] - sums[low, low], table[high] - table[low]
        outside = ~chosen[high]
        singles = alone[start].sum() + np.concatenate([[0.0], np.cumsum(alone[rest])])
        parts = np.array([f.value(rest[:count]) for count in range(1, len(rest) + 1)])
        seen = [
            _least(apart, together, nothing),
            _least(together, apart, nothing),
            _least(G[high][outside], G[low][outside], nothing),
            _least(G[low][outside], G[high][outside], nothing),
            _least(singles, table, nothing),
            _least(table, singles, nothing),
            # Two halves of the chain's last set, and its start beside what was added.
            min(_least(table[0] + parts, table[1:], nothing), _halves(f, rest, parts, nothing)),
        ]
        worst = np.minimum(worst, seen)
    least: list[float] = worst.tolist()
    return _ratios(least[0], least[1], least[2], least[3], least[4], least[5], least[6], "estimate")


def bound_ratios(f: SetFunction) -> Ratios:
    """Return what is proved about the ratios of this instance: the truth is no worse.

    Submodular functions: γ = ν = θ = 1, and the curvature from the n losses of the whole ground set. Quadratic
    objectives: by eigenvalues, see the module. Logistic: by strong concavity over smoothness. Anything else: nothing,
    0 or 1.

    >>> from surefoot.select import VarianceReduction
    >>> found = bound_ratios(VarianceReduction(np.ones((10, 10)), noise=1.0, targets=[0]))
    >>> print(found.submodularity, found.inverse_curvature)
    0.5 (bound) 1 (bound)
    """
    if f.submodular:
        return _submodular(f)
    if isinstance(f, Factored):
        return _quadratic(f)
    if isinstance(f, LogisticSupport):
        largest = float(np.linalg.eigvalsh(_smaller_gram(f.X))[-1])
        # The curvature of a logistic log-likelihood is at most XᵀX/4, of a softmax one XᵀX/2.
        ratio = f.ridge / (f.ridge + largest * (0.25 if f.logits == 1 else 0.5))
        return _ratios(ratio, ratio, 0.0, 0.0, ratio, ratio, ratio, "bound")
    return _ratios(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, "bound")


def _submodular(f: SetFunction) -> Ratios:
    """Gains shrink: the worst pair is the empty set and everything else, for every i."""
    state = f.state(range(f.n))
    alone = f.singletons()
    flat = _least(state.losses(), alone, NOTHING * state.value)
    one, bound = Ratio(1.0, "exact"), Ratio(flat, "bound")
    return Ratios(one, bound, Ratio(1.0 - flat, "exact"), Ratio(0.0, "exact"), one, bound, one)


def _quadratic(f: Factored) -> Ratios:
    if f.n > LARGEST_SPECTRUM:
        raise ValueError(f"the bound needs the eigenvalues of an n x n matrix, n ≤ {LARGEST_SPECTRUM}, got n = {f.n}")
    A = f._block(np.arange(f.n))
    scale = 1.0 / np.sqrt(np.diag(A))
    values = np.linalg.eigvalsh(A * np.outer(scale, scale))
    smallest, largest = max(float(values[0]), 0.0), float(values[-1])
    both = smallest / largest
    if isinstance(f, OverCovariance):
        scale = 1.0 / np.sqrt(f.noise)
        signal = (A - np.diag(f.noise)) * np.outer(scale, scale)
        both = max(both, 1.0 / (1.0 + max(float(np.linalg.eigvalsh(signal)[-1]), 0.0)))
    return _ratios(smallest, both, 0.0, 0.0, smallest, 1.0 / largest, both, "bound")


def _smaller_gram(X: Array) -> Array:
    return X.T @ X if X.shape[1] <= X.shape[0] else X @ X.T


def _halves(f: SetFunction, rest: NDArray[np.int64], parts: Array, nothing: float) -> float:
    """Return the least (f(A) + f(B))/f(A ∪ B) over the cuts of a chain in two."""
    if len(rest) < 2:
        return 1.0
    others = np.array([f.value(rest[count:]) for count in range(1, len(rest))])
    return _least(parts[:-1] + others, np.full(len(others), parts[-1]), nothing)


def _least(above: Array, below: Array, nothing: float) -> float:
    """Return the least above/below where below is not 0, within [0, 1]; 1 if there is none."""
    counts = below > nothing
    if not counts.any():
        return 1.0
    least = float((above[counts] / below[counts]).min())
    return 1.0 if least > 1.0 - NOTHING else max(least, 0.0)


def _ratios(
    gamma: float, gamma_check: float, flat: float, rise: float, nu: float, nu_check: float, theta: float, how: str
) -> Ratios:
    """Put ratios together; ``flat`` and ``rise`` are 1 − α and 1 − α̌. A bound is improved by the relations."""
    if how == "bound":
        gamma, gamma_check = max(gamma, rise), max(gamma_check, flat)
        nu, nu_check = max(nu, gamma), max(nu_check, gamma_check)  # Proposition 7.2.1
        theta = max(theta, nu * nu_check)  # Remark 1
    parts = (gamma, gamma_check, 1.0 - flat, 1.0 - rise, nu, nu_check, theta)
    return Ratios(*(Ratio(min(max(value, 0.0), 1.0), how) for value in parts))
