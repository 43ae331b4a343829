"""Gaussian process upper confidence bounds: the guarantee and plain comparisons."""
