"""Surefoot's accounting behind Flower's own accountant protocol.

Flower's accountant knows Rényi orders. This one also knows the privacy loss distribution, which never needs more, and
the moments of integer order that papers report. What the protocol calls an event has a whole number of sampled clients;
a Surefoot event has any sampling probability and is taken as well, so that a coordinator's ledger can be replayed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict
from enum import Enum

from flwr.serverapp import GaussianPrivacyEvent, NeighboringRelation, PrivacyConfig, PrivacySpent, SamplingMethod

from surefoot.private import accounting
from surefoot.private.accounting import GaussianEvent

__all__ = ["SurefootAccountant"]

_SCHEMA = 1


class SurefootAccountant:
    """Counts what releases cost, as Flower's ``PrivacyAccountant`` and in its terms.

    Parameters
    ----------
    config : flwr.serverapp.PrivacyConfig
        The population, delta and limit. Clients are added or removed, and sampled by independent coins or not at all:
        the relation under which Surefoot's releases are proven. Others are refused.
    method : {"pld", "rdp", "moments"}
        How releases compose: the privacy loss distribution, Rényi orders, or moments of integer order.

    Examples
    --------
    >>> from flwr.serverapp import NeighboringRelation, PrivacyConfig, SamplingMethod
    >>> config = PrivacyConfig(29**-1.1, 29, NeighboringRelation.ADD_OR_REMOVE_ONE, SamplingMethod.POISSON, 9.0)
    >>> accountant = SurefootAccountant(config, method="moments")
    >>> accountant.compose(GaussianEvent(1.0, 0.25), count=50)
    >>> accountant.num_releases, accountant.would_exceed(GaussianEvent(1.0, 0.25), count=10)
    (50, True)
    >>> accountant.compose(GaussianEvent(1.0, 0.25), count=10)
    >>> round(accountant.get_privacy_spent().epsilon, 2)  # as published for 60 rounds
    9.82
    """

    def __init__(self, config: PrivacyConfig, *, method: str = "pld") -> None:
        if method not in accounting.METHODS:
            raise ValueError(f"method must be one of {', '.join(accounting.METHODS)}: {method!r}")
        if config.neighboring_relation is not NeighboringRelation.ADD_OR_REMOVE_ONE:
            raise ValueError(
                f"releases are proven for clients added or removed, not for {config.neighboring_relation.value}"
            )
        self._config = config
        self._method = method
        self._compositions: list[tuple[GaussianEvent, int]] = []

    @property
    def config(self) -> PrivacyConfig:
        """The configuration given."""
        return self._config

    @property
    def method(self) -> str:
        """How releases compose."""
        return self._method

    @property
    def num_releases(self) -> int:
        """How many releases were composed."""
        return sum(count for _, count in self._compositions)

    def compose(self, event: GaussianPrivacyEvent | GaussianEvent, count: int = 1) -> None:
        """Count one or more releases of one kind."""
        self._compositions.append(self._checked(event, count))

    def replay(self, events: Iterable[GaussianEvent]) -> None:
        """Count all releases of a coordinator's ledger, ``[entry.event for entry in ledger.entries]``."""
        self._compositions += [self._checked(event, 1) for event in events]

    def get_epsilon(self, delta: float) -> float:
        """Return what was spent, as epsilon at this delta."""
        _probability("delta", delta)
        return self._epsilon(self._compositions, delta)

    def get_delta(self, epsilon: float) -> float:
        """Return what was spent, as delta at this epsilon."""
        if not (math.isfinite(epsilon) and epsilon >= 0):
            raise ValueError(f"epsilon must be finite and not negative: {epsilon}")
        return float(accounting.delta(_events(self._compositions), epsilon, method=self._method))

    def get_privacy_spent(self, delta: float | None = None) -> PrivacySpent:
        """Return what was spent, in Flower's form."""
        target = self._config.target_delta if delta is None else delta
        return PrivacySpent(self.get_epsilon(target), target, self.num_releases, f"surefoot-{self._method}")

    def would_exceed(
        self, event: GaussianPrivacyEvent | GaussianEvent, max_epsilon: float | None = None, count: int = 1
    ) -> bool:
        """Return whether these releases would exceed the limit; nothing is counted."""
        limit = self._config.max_epsilon if max_epsilon is None else max_epsilon
        if limit is None:
            raise ValueError("max_epsilon is needed, here or in the PrivacyConfig")
        if not (math.isfinite(limit) and limit > 0):
            raise ValueError(f"max_epsilon must be positive and finite: {limit}")
        return self._epsilon([*self._compositions, self._checked(event, count)], self._config.target_delta) > limit

    def state_dict(self) -> dict[str, object]:
        """Return the state as JSON can hold it."""
        return {
            "schema_version": _SCHEMA,
            "backend": f"surefoot-{self._method}",
            "config": _plain(self._config),
            "compositions": [
                {"event": {"noise_multiplier": event.noise_multiplier, "sampling": event.sampling}, "count": count}
                for event, count in self._compositions
            ],
        }

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Replace what was counted by an earlier state of an accountant with the same configuration and method."""
        if state.get("schema_version") != _SCHEMA:
            raise ValueError(f"unknown schema of an accountant's state: {state.get('schema_version')!r}")
        if state.get("backend") != f"surefoot-{self._method}":
            raise ValueError(f"the state is of another accountant: {state.get('backend')!r}")
        if state.get("config") != _plain(self._config):
            raise ValueError(f"the state is of another configuration: {state.get('config')!r}")
        compositions = state.get("compositions")
        if not isinstance(compositions, list):
            raise ValueError(f"the state has no list of compositions: {compositions!r}")
        try:
            read = [(GaussianEvent(**entry["event"]), entry["count"]) for entry in compositions]
        except (KeyError, TypeError) as error:
            raise ValueError(f"a composition of the state cannot be read: {error}") from None
        self._compositions = [self._checked(event, count) for event, count in read]

    def _checked(self, event: GaussianPrivacyEvent | GaussianEvent, count: int) -> tuple[GaussianEvent, int]:
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise ValueError(f"count must be a positive whole number: {count!r}")
        amplified = self._config.sampling_method is SamplingMethod.POISSON
        if isinstance(event, GaussianEvent):
            sampling, count = event.sampling, count * event.count
        elif isinstance(event, GaussianPrivacyEvent):
            if event.population_size != self._config.population_size:
                raise ValueError(f"the population is {self._config.population_size}, not {event.population_size}")
            sampling = event.sample_size / event.population_size
        else:
            raise TypeError(f"no event of a Gaussian release: {event!r}")
        return GaussianEvent(event.noise_multiplier, sampling if amplified else 1.0), count

    def _epsilon(self, compositions: list[tuple[GaussianEvent, int]], delta: float) -> float:
        return float(accounting.epsilon(_events(compositions), delta, method=self._method))


def _events(compositions: list[tuple[GaussianEvent, int]]) -> list[GaussianEvent]:
    return [GaussianEvent(event.noise_multiplier, event.sampling, count) for event, count in compositions]


def _plain(config: PrivacyConfig) -> dict[str, object]:
    return {name: value.value if isinstance(value, Enum) else value for name, value in asdict(config).items()}


def _probability(name: str, value: float) -> None:
    if not 0.0 < value < 1.0:
        raise ValueError(f"{name} must lie strictly between 0 and 1: {value}")
