"""StableOpt: answers that stay good when they are perturbed."""
