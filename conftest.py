"""What cannot even be imported without its host is left out where the host is not installed."""

import importlib.util
import os

if importlib.util.find_spec("hypothesis") is not None:
    from hypothesis import settings

    # A busy machine is no failure, and what passed yesterday passes today: new examples are drawn by `make test-all`.
    settings.register_profile("ours", deadline=None, derandomize="SUREFOOT_NEW_EXAMPLES" not in os.environ)
    settings.load_profile("ours")

collect_ignore = ["src/surefoot/serve/migrations"]  # run by Alembic, not imported
for host in ("art", "foolbox", "gymnasium", "pettingzoo"):
    if importlib.util.find_spec(host) is None:
        collect_ignore += [f"src/surefoot/bridge/{host}.py"]
if importlib.util.find_spec("ray") is None:
    collect_ignore += ["src/surefoot/bridge/ray_tune", "tests/bridge/ray_experiment.py"]
for host in ("botorch", "ax"):
    if importlib.util.find_spec(host) is None:
        collect_ignore += [f"src/surefoot/bridge/{host}", f"tests/bridge/{host}_models.py"]
if importlib.util.find_spec("torch") is None:
    collect_ignore += [f"lab/src/surefoot_lab/{name}.py" for name in ("trained", "classifiers", "vae")]
if importlib.util.find_spec("flwr") is None:
    collect_ignore += [
        "src/surefoot/bridge/flower",
        "tests/bridge/flower_deployment.py",
        "tests/bridge/flower_nodes.py",
    ]
if any(importlib.util.find_spec(host) is None for host in ("fastapi", "sqlalchemy", "alembic", "httpx")):
    collect_ignore += ["src/surefoot/serve", "tests/serve"]
