"""The contract suite: the promises every policy makes, as tests that anyone can run on an own policy.

Subclass :class:`PolicyContract` in a test file, name the policy, and run pytest:

>>> from surefoot import RandomSearch
>>> class TestMine(PolicyContract):
...     policy = RandomSearch
"""

from surefoot.testing.contract import PolicyContract

__all__ = ["PolicyContract"]
