"""Oblivious-Greedy: k elements that stay good when many are lost, for objectives that are not submodular."""
