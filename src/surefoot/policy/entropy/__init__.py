"""What a measurement tells about the maximum."""
