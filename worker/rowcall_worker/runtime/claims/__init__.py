"""Decisions before a claim: how many runs, from which lanes, and when to look further."""
