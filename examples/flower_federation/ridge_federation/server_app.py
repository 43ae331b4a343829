"""The coordinator."""

from __future__ import annotations

import logging

from flwr.serverapp import ServerApp

from ridge_federation.agreement import make_coordinator
from surefoot.bridge.flower import FederationServer

logging.basicConfig(format="%(message)s")
logging.getLogger("surefoot.bridge.flower").setLevel(logging.INFO)  # rounds, nodes and refusals; never a value
app = ServerApp()


@app.main()
def main(grid, context):
    config = context.run_config
    FederationServer(make_coordinator, deadline=config["deadline"], minimum=config["minimum"])(grid, context)
