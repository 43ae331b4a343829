"""How often a token may call: a bucket of permissions that fills up steadily.

>>> bucket = Buckets(rate=10.0, burst=2.0)
>>> [bucket.take("token", at=0.0) for _ in range(3)]
[0.0, 0.0, 0.1]
"""

from __future__ import annotations

import threading
import time

__all__ = ["Buckets"]


class Buckets:
    """One bucket for each token: ``burst`` requests at once, ``rate`` per second in the long run.

    >>> Buckets(rate=0.0, burst=1.0).take("anybody")  # no limit
    0.0
    """

    def __init__(self, *, rate: float, burst: float) -> None:
        self.rate, self.burst = rate, burst
        self._levels: dict[str, tuple[float, float]] = {}
        self._guard = threading.Lock()

    def take(self, who: str, at: float | None = None) -> float:
        """Take one permission and return 0, or return the seconds until there is one."""
        if not self.rate:
            return 0.0
        moment = time.monotonic() if at is None else at
        with self._guard:
            if len(self._levels) > 10_000:  # full buckets need not be remembered
                horizon = moment - self.burst / self.rate
                self._levels = {key: level for key, level in self._levels.items() if level[1] > horizon}
            level, last = self._levels.get(who, (self.burst, moment))
            level = min(level + self.rate * (moment - last), self.burst)
            allowed = level >= 1.0
            self._levels[who] = (level - 1.0 if allowed else level, moment)
        return 0.0 if allowed else (1.0 - level) / self.rate
