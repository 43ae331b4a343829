"""What is known: kernels, Gaussian processes and their posteriors."""
