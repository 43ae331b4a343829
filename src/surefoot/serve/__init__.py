"""Optimization as a service: studies of any policy over HTTP, kept in a database, and the client that talks to them.

The service is :func:`create_app` (``surefoot serve`` runs it), its database a :class:`Store`; a worker anywhere uses
:class:`Client`, which needs nothing of the service but its address and a token:

>>> from surefoot.serve import Client
>>> Client("http://127.0.0.1:8000", token="sf_...").url
'http://127.0.0.1:8000'
"""

from surefoot import lazy
from surefoot.errors import MissingExtra

__getattr__, __dir__, __all__ = lazy.names(
    __name__,
    {
        "app": ["create_app"],
        "client": ["Client", "RemoteStudy"],
        "failures": ["Conflict", "NotFound", "ServiceError", "Unauthorized", "Unavailable"],
        "settings": ["Settings"],
        "store": ["Store"],
    },
    missing=lambda why: MissingExtra(f"{why}: pip install 'surefoot[serve]'"),
)
