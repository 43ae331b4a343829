"""PRO and OSU: a choice of k elements that stays good when any τ of them are lost, for submodular objectives."""
