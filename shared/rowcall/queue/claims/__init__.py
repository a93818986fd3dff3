"""Claims: which runs a worker takes, and where it looks for them."""
