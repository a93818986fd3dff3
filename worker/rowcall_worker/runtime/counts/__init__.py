"""What a worker counts for charts."""
