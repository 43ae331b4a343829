"""PO-GP-UCB: the best record of a table that its owner does not show."""
