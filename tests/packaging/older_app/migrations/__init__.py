"""The team's own migrations would stand here."""
