"""RM-GP-UCB: robust meta-Bayesian optimization, with previous tasks that may help or mislead."""
