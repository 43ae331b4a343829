"""Counts and times of requests, in the text form that Prometheus reads. No value of a study is among them.

>>> metrics = Metrics()
>>> metrics.request("GET", "/health", 200, 0.003)
>>> print(metrics.text().splitlines()[2])
surefoot_requests_total{method="GET",route="/health",status="200"} 1
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence

__all__ = ["Metrics"]

_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_HISTOGRAMS: dict[str, tuple[str, tuple[float, ...]]] = {
    "batch_requests": ("Requests that were written together.", _SIZES),
    "commit_seconds": ("Time until a batch was on disk.", _BOUNDS),
    "wait_seconds": ("Time that requests waited for their study.", _BOUNDS),
}


class Metrics:
    """What the service counts, for each tenant apart.

    >>> "surefoot_policies_cached 3" in Metrics().text({"policies_cached": 3})
    True
    """

    def __init__(self) -> None:
        self._requests: Counter[tuple[str | None, str, str, str]] = Counter()
        self._times: dict[tuple[str | None, str, str], list[float]] = {}
        self._observed: dict[str, list[float]] = {}
        self._guard = threading.Lock()
        self.running = 0

    def request(self, method: str, route: str, status: int, seconds: float, tenant: str | None = None) -> None:
        """Count one request that was answered; that of a stranger has no tenant."""
        with self._guard:
            self._requests[tenant, method, route, str(status)] += 1
            times = self._times.setdefault((tenant, method, route), [0.0] * (len(_BOUNDS) + 2))
            times[bisect_left(_BOUNDS, seconds)] += 1  # the one before the last counts what is above all bounds
            times[-1] += seconds

    def observe(self, name: str, value: float) -> None:
        """Count one value of a histogram of the whole service.

        >>> metrics = Metrics()
        >>> metrics.observe("commit_seconds", 0.002)
        >>> 'surefoot_commit_seconds_bucket{le="0.0025"} 1' in metrics.text()
        True
        """
        bounds = _HISTOGRAMS[name][1]
        with self._guard:
            counts = self._observed.setdefault(name, [0.0] * (len(bounds) + 2))
            counts[bisect_left(bounds, value)] += 1
            counts[-1] += value

    def text(self, gauges: Mapping[str, float] | None = None, *, tenant: str | None = None) -> str:
        """Return everything, and the given values of this moment; or what concerns one tenant.

        >>> metrics = Metrics()
        >>> metrics.request("GET", "/studies", 200, 0.003, "physics")
        >>> "/studies" in metrics.text(), "/studies" in metrics.text(tenant="biology")
        (True, False)
        """
        requests: Counter[tuple[str, str, str]] = Counter()
        times: dict[tuple[str, str], list[float]] = {}
        with self._guard:
            observed = {} if tenant is not None else {name: list(counts) for name, counts in self._observed.items()}
            for (who, method, route, status), count in self._requests.items():
                if tenant in (None, who):
                    requests[method, route, status] += count
            for (who, method, route), values in self._times.items():
                if tenant in (None, who):
                    known = times.setdefault((method, route), [0.0] * len(values))
                    times[method, route] = [one + other for one, other in zip(known, values, strict=True)]
        lines = ["# HELP surefoot_requests_total Requests answered.", "# TYPE surefoot_requests_total counter"]
        for (method, route, status), count in sorted(requests.items()):
            lines.append(f'surefoot_requests_total{{method="{method}",route="{route}",status="{status}"}} {count}')
        lines.append("# HELP surefoot_request_seconds Time until the answer.")
        lines.append("# TYPE surefoot_request_seconds histogram")
        for (method, route), values in sorted(times.items()):
            lines += _histogram("request_seconds", f'method="{method}",route="{route}"', _BOUNDS, values)
        for name, counts in sorted(observed.items()):
            said, bounds = _HISTOGRAMS[name]
            lines += [f"# HELP surefoot_{name} {said}", f"# TYPE surefoot_{name} histogram"]
            lines += _histogram(name, "", bounds, counts)
        now = {"requests_running": float(self.running)} if tenant is None else {}
        for name, level in {**now, **(gauges or {})}.items():
            lines += [f"# TYPE surefoot_{name} gauge", f"surefoot_{name} {level:g}"]
        return "\n".join(lines) + "\n"


def _histogram(name: str, labels: str, bounds: Sequence[float], counts: Sequence[float]) -> list[str]:
    """The lines of one histogram; the last of the counts is the sum of all values."""
    lines, total, comma = [], 0, "," if labels else ""
    for bound, hits in zip((*bounds, "+Inf"), counts, strict=False):
        total += int(hits)
        lines.append(f'surefoot_{name}_bucket{{{labels}{comma}le="{bound}"}} {total}')
    within = f"{{{labels}}}" if labels else ""
    return [*lines, f"surefoot_{name}_sum{within} {counts[-1]:.6f}", f"surefoot_{name}_count{within} {total}"]
