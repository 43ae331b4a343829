"""Several self-interested players."""
