"""Black-box attacks on classifiers one is entitled to test."""
