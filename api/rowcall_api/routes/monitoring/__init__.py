"""Routes for what has happened, over time."""
