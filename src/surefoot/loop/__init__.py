"""How a policy is driven: the contract, its events and journal, keyed randomness, widths, the acquisition maximizer."""
