"""How a policy is driven: the contract, its events and journal, keyed randomness, widths, the acquisition maximizer."""

__all__: list[str] = []  # names are those of the modules; the common ones stand at the top level
