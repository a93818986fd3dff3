"""The place of the team's own migrations."""
