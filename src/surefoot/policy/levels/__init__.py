"""Level sets, and points until they are decided."""
