"""Random Fourier features."""
