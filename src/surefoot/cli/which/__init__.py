"""``surefoot which``: from what is special about a problem to the class that answers it.

What a policy can do is read off its class (:mod:`surefoot.cli.which.abilities`): its declared domains, whether it may
be asked again before it is told, the context its asks take, whether it follows runs step by step, whether it buys
precision, and what its constructor takes. A policy that is added to the library is offered wherever its abilities fit,
once :mod:`surefoot.cli.which.catalog` says when to use it.

>>> from surefoot.cli.which import advise
>>> advise({"special": "drift"}).use
'surefoot.TVGPUCB'
"""

from surefoot import lazy

__getattr__, __dir__, __all__ = lazy.names(
    __name__,
    {
        "abilities": ["Abilities", "abilities"],
        "entry": ["Entry"],
        "catalog": ["entries", "find"],
        "questions": ["QUESTIONS", "Question"],
        "answer": ["Answer", "advise", "candidates", "checked", "default", "read_answers"],
        "snippets": ["compose"],
        "dialogue": ["command", "which"],
    },
)
