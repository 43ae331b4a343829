"""``surefoot which``: from what is special about a problem to the class that answers it.

What a policy can do is read off its class: its declared domains, whether it may be asked again before it is told, the
context its asks take, whether it follows runs step by step, whether it buys precision, and what its constructor takes.
A policy that is added to the library is offered wherever its abilities fit, once ``table.toml`` says when to use it.

>>> from surefoot.cli.which import advise
>>> advise({"special": "drift"}).use
'surefoot.TVGPUCB'
"""

from surefoot.cli.which.advice import Suggestion, advise
from surefoot.cli.which.dialogue import command, which

__all__ = ["Suggestion", "advise", "command", "which"]
