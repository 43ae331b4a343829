"""Recursive reasoning in games (R2-B2)."""
