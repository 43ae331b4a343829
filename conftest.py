"""What cannot even be imported without its host is left out where the host is not installed."""

import importlib.util

collect_ignore = []
if importlib.util.find_spec("ray") is None:
    collect_ignore += ["src/surefoot/bridge/ray_tune", "tests/bridge/ray_experiment.py"]
for host in ("botorch", "ax"):
    if importlib.util.find_spec(host) is None:
        collect_ignore += [f"src/surefoot/bridge/{host}", f"tests/bridge/{host}_models.py"]
