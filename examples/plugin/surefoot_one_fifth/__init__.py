"""A policy and a command for Surefoot, found through the entry points in ``pyproject.toml``."""
