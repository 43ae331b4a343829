"""Several points at once."""
