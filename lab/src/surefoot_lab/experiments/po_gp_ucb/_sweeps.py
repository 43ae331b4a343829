"""Tables of regret by the number of columns r: three values of ε, six r each, of which three or four are not lifted.

>>> [sweep.lifted for sweep in sweeps(["ε = e^1.1"] * 3, [(0.0,) * 6] * 3)]
[15, 20, 30]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from surefoot.private.projection import largest_dimension
from surefoot_lab.claims import Number
from surefoot_lab.experiments.po_gp_ucb._outsourced import Race
from surefoot_lab.readings import Comparison, Metric, Reading, lowest
from surefoot_lab.registry import Trace

CODE = "code, "  # prefix of methods that follow the released code
_COLUMNS = {10: (3, 6, 8, 10, 15, 20), 15: (3, 9, 12, 15, 20, 30), 20: (5, 10, 15, 20, 30, 50)}
S = Metric("simple_regret")


@dataclass(frozen=True)
class Sweep:
    """One published table: what ε is called, the largest tested r without lift, all r, and what was printed."""

    label: str
    last: int
    columns: tuple[int, ...]
    published: tuple[float, ...]

    def method(self, dimension: int) -> str:
        """Name of the projection with r columns."""
        return f"{self.label}, r = {dimension}"

    @property
    def sound(self) -> str:
        """Name of the Gaussian release at the same ε."""
        return f"Gaussian, {self.label}"

    @property
    def lifted(self) -> int:
        """The first r with lift."""
        return self.columns[self.columns.index(self.last) + 1]

    def largest(self, smallest: float, epsilon: float, delta: float) -> Trace:
        """The largest r without lift, of all and of those tested, at this σ_min."""
        most = largest_dimension(smallest, epsilon, delta)
        return Trace(largest=most, largest_tested=max((r for r in self.columns if r <= most), default=0))

    def number(self, name: str, *, metric: Metric = S, marks: tuple[str, ...] = (), note: str = "") -> Number:
        """The claim that the printed numbers are right."""
        cells: dict[Reading, float | tuple[float, float]] = {
            metric[self.method(r)]: value for r, value in zip(self.columns, self.published, strict=True)
        }
        return Number(name, cells, repetitions=50, marks=marks, note=note)

    def worse(self, dimension: int) -> Comparison:
        """The statement that r columns are worse than the last r without lift."""
        return S[self.method(dimension)] > S[self.method(self.last)]

    def best(self) -> list[Comparison]:
        """The statements that the last r without lift is better than every other r."""
        return lowest(S[self.method(self.last)], [S[self.method(r)] for r in self.columns if r != self.last])


def sweeps(labels: Sequence[str], published: Sequence[tuple[float, ...]]) -> tuple[Sweep, ...]:
    """Return the three tables of a data set."""
    return tuple(
        Sweep(label, last, columns, numbers)
        for label, (last, columns), numbers in zip(labels, _COLUMNS.items(), published, strict=True)
    )


def last(trace: Trace) -> Trace:
    """Return only where a run ended: what is listed beside the tables and not drawn.

    >>> last(Trace(simple_regret=[2.0, 1.0])).to_json()
    {'simple_regret': 1.0}
    """
    return Trace(simple_regret=trace["simple_regret"][-1])


def tables(race: Race, epsilons: Mapping[Sweep, float], *, code: bool = False) -> dict[str, Trace]:
    """Run every cell, the Gaussian release at each ε, and the baselines."""
    traces = race.baselines()
    for sweep, epsilon in epsilons.items():
        traces[sweep.sound] = race.gaussian(epsilon)
        for r in sweep.columns:
            traces[sweep.method(r)] = race.projection(r, epsilon)
            if code:
                traces[CODE + sweep.method(r)] = last(race.projection(r, epsilon, code=True))
    return traces
