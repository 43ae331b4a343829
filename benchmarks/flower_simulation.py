"""How long does Flower's own simulation engine take for a federation of so many agents and rounds?

    .venv-flower/bin/python benchmarks/flower_simulation.py --agents 20 --rounds 5

It runs the app of examples/flower_federation, with `flwr run`, on a SuperLink of its own with virtual nodes. Every
agent-iteration is one call of a client app: the agent is rebuilt from its journal, fits its belief, chooses, measures,
draws a message, and everything is on disk before it answers. Surefoot's batched simulator, which keeps all agents in
one array, answers another question: what would a method do? This one: does the deployed code do it, and how long does
Flower take?
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

APP = Path(__file__).parents[1] / "examples" / "flower_federation"
BIN = Path(sys.executable).parent


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answer(text: str) -> dict:
    return json.loads(text[text.index("{") :])


def simulate(folder: Path, agents: int, rounds: int, cores: int, noise: float) -> tuple[float, float]:
    """Run the app once; return the seconds until the first agent began, and from there to the last measurement."""
    port = free_port()
    (folder / "home").mkdir()
    (folder / "home" / "config.toml").write_text(
        f'[superlink]\ndefault = "virtual"\n\n[superlink.virtual]\naddress = "127.0.0.1:{port}"\ninsecure = true\n'
    )
    environment = {
        **os.environ,
        "FLWR_HOME": str(folder / "home"),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
    }

    def flwr(*arguments: str) -> dict:
        done = subprocess.run(
            [str(BIN / "flwr"), *arguments, "--format", "json"],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return answer(done.stdout)

    command = ["flower-superlink", "--simulation", "--insecure", "--host", "127.0.0.1", "--port", str(port)]
    with (folder / "superlink.log").open("wb") as log:
        superlink = subprocess.Popen(
            [str(BIN / command[0]), *command[1:], "--disable-runtime-dependency-installation"],
            env=environment,
            cwd=folder,
            stdout=log,
            stderr=log,
        )
    try:
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.2)
        settings = {
            "agents": agents,
            "rounds": rounds,
            "minimum": agents,
            "noise-multiplier": noise,
            "sampling": 1.0,
            "epsilon": 1e6,
            "deadline": 3600.0,
            "state": str(folder / "coordinator"),
            "agent-state": str(folder / "agents"),
        }
        pairs = " ".join(f"{key}={json.dumps(value)}" for key, value in settings.items())
        size = f"num-supernodes={agents} client-resources-num-cpus=1 init-args-num-cpus={cores}"
        start = time.time()
        run = flwr("run", str(APP), "virtual", "--run-config", pairs, "--federation-config", size)["run-id"]
        status, ready = "", None
        while not status.startswith("finished"):
            time.sleep(1.0)
            if ready is None:  # when the first agent began
                ready = min((path.stat().st_mtime for path in (folder / "agents").glob("*.jsonl")), default=None)
            (found,) = flwr("list", "virtual", "--run-id", str(run))["runs"]
            status = found["status"]
        if status != "finished:completed":
            raise SystemExit(f"{status}\n{(folder / 'superlink.log').read_text()[-3000:]}")
        journals = list((folder / "agents").glob("*.jsonl"))
        if len(journals) != agents or ready is None:
            raise SystemExit(f"{len(journals)} of {agents} agents took part")
        end = max(path.stat().st_mtime for path in journals)
        return ready - start, end - ready
    finally:
        superlink.terminate()
        superlink.wait(30)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    parser.add_argument("--noise", type=float, default=1.0, help="noise multiplier of the releases")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        before, seconds = simulate(Path(folder), options.agents, options.rounds, options.cores, options.noise)
    calls = options.agents * (options.rounds + 1)
    print("| agents | rounds | cores | seconds to start | seconds | per agent and round |")
    print("|---|---|---|---|---|---|")
    size = f"{options.agents} | {options.rounds} | {options.cores}"
    print(f"| {size} | {before:.1f} | {seconds:.1f} | {seconds / calls:.3f} |")


if __name__ == "__main__":
    main()
