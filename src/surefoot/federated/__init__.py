"""Many parties learn together without showing their data."""
