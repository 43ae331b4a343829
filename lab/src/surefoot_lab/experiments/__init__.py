"""Registered experiments, one module each; ``gp_ucb/regret_bound.py`` is the id ``gp-ucb/regret-bound``."""
