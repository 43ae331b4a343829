"""Optimization as a service: start a server, let three workers share a study, and ask for the answer.

python examples/serve_and_client.py
"""

import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from surefoot import Client, Float, Int, Space
from surefoot.serve.run import create_token

folder = Path(tempfile.mkdtemp())
database = f"sqlite:///{folder / 'studies.db'}"
with socket.socket() as probe:  # any free port
    probe.bind(("127.0.0.1", 0))
    port = probe.getsockname()[1]
token = create_token(database=database, tenant="workshop", name="example", scope="write")["token"]
command = [sys.executable, "-c", "from surefoot.cli import main; main()", "serve"]
command += ["--port", str(port), "--database", database, "--log-level", "warning"]


def loss(params: dict) -> float:
    return (params["temperature"] - 64.0) ** 2 / 100.0 + abs(params["passes"] - 3)


def worker(id: str, budget: int) -> None:
    """Any process on any machine: all it needs is the address, a token and the study's id."""
    with Client(f"http://127.0.0.1:{port}", token=token) as mine:
        study = mine.study(id)
        for _ in range(budget):
            query = study.ask()
            study.tell(query, loss(query.params))


server = subprocess.Popen(command)
try:
    client = Client(f"http://127.0.0.1:{port}", token=token, retries=20)  # waits until the server is there
    space = Space(temperature=Float(20.0, 90.0), passes=Int(1, 8))
    study = client.create("oven", space, policy="GPUCB", direction="minimize", seed=0)
    workers = [threading.Thread(target=worker, args=(study.id, 6)) for _ in range(3)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    info, best = study.info(), study.recommend()
    print(f"{info['told']} runs by 3 workers, best {info['best']:.3f}")
    print(f"use {best.params}: {best.mean:.3f} ({best.lower:.3f} to {best.upper:.3f})")
finally:
    server.terminate()
    server.wait()
