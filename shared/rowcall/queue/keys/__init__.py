"""Keys: which run a request belongs to, and the statements that insert a run unless a key is taken."""
