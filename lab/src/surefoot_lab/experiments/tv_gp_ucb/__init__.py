"""TV-GP-UCB and R-GP-UCB: functions that drift, simulated and measured."""
