"""Schemas for what has happened, over time."""
