"""Which point next: one file per algorithm."""

__all__: list[str] = []  # names are those of the modules; the common ones stand at the top level
