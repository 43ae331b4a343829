"""TruVaR: truncated variance reduction, for maxima and for level sets."""
