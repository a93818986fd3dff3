"""`make bench-peers`: Rowcall beside other job systems on PostgreSQL, and beside plain SQL."""
