"""What a worker decides before it claims: how many runs, from where, and when it looks further."""
