"""`make bench-peers`: Rowcall beside other job systems on PostgreSQL, and beside the plain SQL that it cannot beat."""
