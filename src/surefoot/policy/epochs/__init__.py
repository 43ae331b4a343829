"""Runs of many epochs."""
