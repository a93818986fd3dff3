"""Decides how many runs a worker claims, from which lanes, and when it sweeps or sleeps."""
