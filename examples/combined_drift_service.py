"""A drifting optimum behind the service: TV-GP-UCB, asked with the hour, by clients that come and go.

python examples/combined_drift_service.py        (needs: pip install 'surefoot[serve]')
"""

import math
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from surefoot import GP, SE, Box, Client
from surefoot.serve.run import create_token

folder = Path(tempfile.mkdtemp())
database = f"sqlite:///{folder / 'studies.db'}"
with socket.socket() as probe:  # any free port
    probe.bind(("127.0.0.1", 0))
    port = probe.getsockname()[1]
token = create_token(database=database, tenant="plant", name="example", scope="write")["token"]
command = [sys.executable, "-c", "from surefoot.cli import main; main()", "serve"]
command += ["--port", str(port), "--database", database, "--log-level", "warning"]


def best(hour: float) -> float:
    """The valve setting that wastes least: it moves as the day warms up."""
    return 0.5 + 0.3 * math.sin(hour / 12.0)


def waste(setting: float, hour: float) -> float:
    return 4.0 * (setting - best(hour)) ** 2


server = subprocess.Popen(command)
try:
    with Client(f"http://127.0.0.1:{port}", token=token, retries=20) as office:  # waits until the server is there
        made = office.create(
            "valve",
            Box([(0.0, 1.0)]),
            policy="TVGPUCB",
            direction="minimize",
            seed=0,
            forgetting=0.03,
            gp=GP(SE(0.3), noise=1e-3),
        )
    hour = 0.0
    for _ in range(3):  # every shift has a client of its own; what was measured, and when, is with the service
        with Client(f"http://127.0.0.1:{port}", token=token) as client:
            study = client.study(made.id)
            for _ in range(8):
                hour += 1.0
                query = study.ask(time=hour)
                study.tell(query, waste(query.x[0], hour))
            print(f"hour {hour:4.1f}: use {study.recommend().x[0]:.2f}; best would be {best(hour):.2f}")
finally:
    server.terminate()
    server.wait()
