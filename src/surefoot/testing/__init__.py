"""The contract suite: the promises every policy makes, as tests that anyone can run on an own policy.

Subclass :class:`PolicyContract` in a test file, name the policy, and run pytest:

>>> from surefoot import RandomSearch
>>> class TestMine(PolicyContract):
...     policy = RandomSearch
"""

import pytest

# So that a broken promise shows its values.
pytest.register_assert_rewrite("surefoot.testing.contract", "surefoot.testing.resuming")

from surefoot.testing.contract import PolicyContract  # noqa: E402

__all__ = ["PolicyContract"]
