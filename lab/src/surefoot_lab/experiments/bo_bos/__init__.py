"""Bayesian optimization with Bayesian optimal stopping: decision tables, learning curves, real tuning."""
