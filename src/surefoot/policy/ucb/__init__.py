"""Upper confidence bounds."""
