"""Functions that change with time."""
