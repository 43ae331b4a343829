"""Two tables of records, in place of the published ones, and what is believed about them.

Loans: amount, interest rate and annual income; the value is the logarithm of the return so far, (paid + balance −
amount)/amount, where it is positive: 94 % of these loans are still running. Houses: longitude and latitude of 2,004
sales; the value is minus the logarithm of the price per living area, the cheapest being sought. Equal rows are kept
once.

Hyper-parameters are fitted to a random part of the records, as the authors' are (to which part, they do not say).
Likelihood alone takes amount and income of a loan for irrelevant: their length-scales grow without bound, the rows
become a line, and no threshold can be reached. A prior around two standard deviations of each feature, where the
published length-scales of loans lie, keeps three dimensions.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from surefoot.belief.gp import GP
from surefoot.belief.kernels import SE
from surefoot.belief.priors import Fixed, LogNormal, Prior
from surefoot_lab import datasets
from surefoot_lab.experiments.po_gp_ucb._outsourced import Owned, to_norm

Array = NDArray[np.float64]

FITTED = 800  # records that hyper-parameters are fitted to
SALES = 2004


def owned(rows: Array, values: Array, gp: GP, *, unit: float = 1.0) -> Owned:
    """Return records as their owner scales them: values in units of the signal, rows of norm at most 25.

    ``unit`` is that of the values, in units of the output.
    """
    kernel = gp.kernel
    if not isinstance(kernel, SE):
        raise TypeError(f"records are believed in with a squared exponential, got {kernel!r}")
    scaled, factor = to_norm(rows / kernel.lengthscale)  # one length-scale of 1 for all features, times the factor
    spread = float(np.sqrt(kernel.variance))
    belief = GP(SE(factor), noise=gp.noise / kernel.variance)
    return Owned(scaled, (values - gp.mean) / spread, belief, unit=unit * spread)


def _fitted(rows: Array, values: Array, lengthscale: Array, priors: dict[str, Prior]) -> GP:
    part = np.random.default_rng(0).permutation(len(rows))[:FITTED]
    start = GP(
        SE(lengthscale, variance=float(values.var())),
        noise=float(values.var()),
        mean=float(values.mean()),
        priors={"mean": Fixed(), **priors},
    )
    return start.fit(rows[part], values[part])


def _distinct(rows: Array, values: Array) -> tuple[Array, Array]:
    first = np.sort(np.unique(rows, axis=0, return_index=True)[1])
    return rows[first], values[first]


@cache
def loans() -> Owned:
    """Return the loans with a positive return."""
    table = datasets.load("loans")
    earned = (table["paid_total"] + table["balance"] - table["loan_amount"]) / table["loan_amount"]
    rows = np.column_stack([table["loan_amount"], table["interest_rate"], table["annual_income"]])
    good = (earned > 0) & np.isfinite(rows).all(axis=1)
    rows, values = _distinct(rows[good], np.log(earned[good]))
    usual = 2.0 * rows.std(axis=0)
    priors: dict[str, Prior] = {
        f"lengthscale[{i}]": LogNormal.around(float(length), 0.5) for i, length in enumerate(usual)
    }
    return owned(rows, values, _fitted(rows, values, usual, priors))


@cache
def houses() -> Owned:
    """Return 2,004 sales."""
    table = datasets.load("king_county_houses")
    rows = np.column_stack([table["long"], table["lat"]])
    rows, values = _distinct(rows, -np.log(table["price"] / table["sqft_living"]))
    chosen = np.sort(np.random.default_rng(0).permutation(len(rows))[:SALES])
    rows, values = rows[chosen], values[chosen]
    return owned(rows, values, _fitted(rows, values, np.array(rows.std()), {}))
