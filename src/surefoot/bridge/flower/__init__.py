"""Surefoot on Flower: a federation of real parties, and accounting behind Flower's own protocol.

The server app drives a :class:`~surefoot.federated.Coordinator` (:func:`server_app`), a client app owns one party's
:class:`~surefoot.federated.Agent` (:func:`client_app`). What a party measured stays on its node.

>>> from flwr.serverapp import NeighboringRelation, PrivacyConfig, SamplingMethod
>>> from surefoot.private.accounting import GaussianEvent
>>> config = PrivacyConfig(200**-1.1, 200, NeighboringRelation.ADD_OR_REMOVE_ONE, SamplingMethod.POISSON)
>>> accountant = SurefootAccountant(config, method="moments")
>>> accountant.compose(GaussianEvent(1.0, 0.25), count=40)
>>> round(accountant.get_privacy_spent().epsilon, 2)
9.91
"""

from __future__ import annotations

import importlib.util

if importlib.util.find_spec("flwr") is None:
    from surefoot.errors import MissingExtra

    raise MissingExtra("the Flower bridge needs Flower: pip install 'surefoot[flower]'")

from surefoot.bridge.flower.accountant import SurefootAccountant
from surefoot.bridge.flower.client import FederationClient, client_app
from surefoot.bridge.flower.secure import SecureClient, SecureServer, secure_client_app, secure_server_app
from surefoot.bridge.flower.server import FederationServer, server_app

__all__ = [
    "FederationClient",
    "FederationServer",
    "SecureClient",
    "SecureServer",
    "SurefootAccountant",
    "client_app",
    "secure_client_app",
    "secure_server_app",
    "server_app",
]
