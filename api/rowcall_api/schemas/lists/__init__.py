"""Schemas of lists that are only read: what failed, and what was written."""
