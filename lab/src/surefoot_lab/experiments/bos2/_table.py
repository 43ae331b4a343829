"""The claims of the published tables of BOS² and its rivals, from their rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from surefoot_lab.claims import Claim, Number, Order
from surefoot_lab.experiments.bos2._images import AUTO, BAYES, BOS, GEN, ZOO_
from surefoot_lab.experiments.bos2._images import over_successes as over
from surefoot_lab.readings import Metric, Reading

success, queries, capped = Metric("success"), Metric("queries"), Metric("capped")


class Row(NamedTuple):
    """A row of a table: the share of successes, and the most, mean and median queries of successful attacks."""

    success: float
    most: float
    mean: float
    median: float


def beside(
    table: Mapping[str, Row], repetitions: int, *, mean: Order, median_marks: str | tuple[str, ...] = ()
) -> list[Claim]:
    """Return the seven claims of a table over so many attacks.

    What is said about the means differs between the texts, and so does how far the medians can be trusted.
    """
    shares = ", ".join(f"{name} {100 * row.success:g} %" for name, row in table.items())
    return [
        Number(
            f"success rate: {shares}",
            {success[name]: row.success for name, row in table.items()},
            repetitions=repetitions,
        ),
        Number(
            "max, mean and median of the queries of successful attacks",
            _cells(table, BOS, GEN, BAYES),
            repetitions=repetitions,
            marks="doubtful",
            note="over successful attacks only; a maximum and a median have no interval here",
        ),
        Order("BOS² succeeds more often than BayesOpt", success[BOS] > success[BAYES], marks="doubtful"),
        Order(
            "the median of BOS²'s queries is below BayesOpt's, where both succeed and with failures as the whole "
            "budget",
            [queries[BOS] < queries[BAYES], capped[BOS] < capped[BAYES]],
            statistic="median",
            marks=median_marks,
        ),
        mean,
        Order(
            "BOS² succeeds more often than GenAttack, ZOO and AutoZOOM",
            [success[BOS] > success[name] for name in (GEN, ZOO_, AUTO)],
        ),
        Number(
            "max, mean and median of the queries of ZOO and AutoZOOM",
            _cells(table, ZOO_, AUTO),
            repetitions=repetitions,
            marks="contradicted",
            note="one step of ZOO is 256 queries: the printed numbers look like steps",
        ),
    ]


def _cells(table: Mapping[str, Row], *names: str) -> dict[Reading, float]:
    found: dict[Reading, float] = {}
    for name in names:
        row = table[name]
        found |= {over(name, "max"): row.most, queries[name]: row.mean, over(name, "median"): row.median}
    return found
