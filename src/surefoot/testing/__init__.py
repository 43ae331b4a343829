"""The contract suite: the promises every policy makes, as tests that anyone can run on an own policy.

Subclass :class:`PolicyContract` in a test file, name the policy, and run pytest:

>>> from surefoot import RandomSearch
>>> from surefoot.testing import PolicyContract
>>> class TestMine(PolicyContract):
...     policy = RandomSearch

The suite needs pytest, which nothing else here does: it is imported with :class:`PolicyContract`, not before.
"""

import sys
from typing import TYPE_CHECKING

from surefoot import lazy
from surefoot.errors import MissingExtra

__getattr__, __dir__, __all__ = lazy.names(
    __name__,
    {"contract": ["PolicyContract"]},
    missing=lambda why: MissingExtra(f"{why}: pip install pytest"),
)

if (_pytest := sys.modules.get("pytest")) is not None:
    # So that a broken promise shows its values.
    _pytest.register_assert_rewrite(*(f"surefoot.testing.{name}" for name in ("contract", "resuming", "wrapping")))

if TYPE_CHECKING:
    from surefoot.testing.contract import PolicyContract as PolicyContract
