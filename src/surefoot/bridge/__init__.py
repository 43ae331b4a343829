"""Other people's software: one module per host, each with its own extra."""
