"""How much a tenant may have: studies, bytes, asks at the same time.

>>> from surefoot.serve.store import Store
>>> store = Store("sqlite://")
>>> store.migrate()
>>> Quotas(store, Settings()).begin("physics")
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Iterator

from surefoot.serve.failures import TooLarge, TooMany
from surefoot.serve.settings import Settings
from surefoot.serve.store import Store

__all__ = ["Quotas"]

_FRESH = 10.0  # seconds that a sum over all studies of a tenant is good for


class Quotas:
    """What each tenant has, compared with what they may have.

    >>> from surefoot.serve.store import Store
    >>> quotas = Quotas(Store("sqlite://"), Settings(asks=1))
    >>> with quotas.asking("physics"), quotas.asking("physics"):
    ...     pass
    Traceback (most recent call last):
    ...
    surefoot.serve.failures.TooMany: 1 asks of this tenant are at work or waiting already: ...
    """

    def __init__(self, store: Store, settings: Settings) -> None:
        self.store, self.settings = store, settings
        self._asking: Counter[str] = Counter()
        self._sizes: dict[str, tuple[float, int]] = {}

    def begin(self, tenant: str) -> None:
        """Refuse another study of a tenant who has too many, or no room."""
        count, size = self.store.taken(tenant)
        if count >= self.settings.studies:
            raise TooLarge(
                f"this tenant has {count} studies, and may have {self.settings.studies}: delete some, "
                "or ask the operator for more (limit 'studies')"
            )
        self._fits(size)

    def room(self, tenant: str) -> None:
        """Refuse to store more for a tenant who has no room; what was stored in the last seconds may not count yet."""
        moment = time.monotonic()
        looked, size = self._sizes.get(tenant, (-_FRESH, 0))
        if moment - looked >= _FRESH:
            if len(self._sizes) > 10_000:
                self._sizes.clear()
            size = self.store.taken(tenant)[1]
            self._sizes[tenant] = moment, size
        self._fits(size)

    def _fits(self, size: int) -> None:
        if size >= self.settings.bytes:
            raise TooLarge(
                f"this tenant has stored {size} bytes, and may store {self.settings.bytes}: delete studies, "
                "or ask the operator for more (limit 'bytes')"
            )

    @contextlib.contextmanager
    def asking(self, tenant: str) -> Iterator[None]:
        """Count an ask while it is waiting or at work."""
        if self._asking[tenant] >= self.settings.asks:
            raise TooMany(
                f"{self._asking[tenant]} asks of this tenant are at work or waiting already: try again when some are "
                "done, or ask the operator for more (limit 'asks')"
            )
        self._asking[tenant] += 1
        try:
            yield
        finally:
            self._asking[tenant] -= 1
            if not self._asking[tenant]:
                del self._asking[tenant]
