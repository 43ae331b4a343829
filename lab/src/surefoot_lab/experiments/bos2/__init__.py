"""Experiments of BOS², the black-box attack."""
