"""A vehicle's moves."""
