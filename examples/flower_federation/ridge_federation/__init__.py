"""Parties tune a regression on their own data and help each other without showing it."""
