"""Optimization as a service."""
