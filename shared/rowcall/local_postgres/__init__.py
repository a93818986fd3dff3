"""The local PostgreSQL server: its data is in ROWCALL_HOME, and it runs as long as a process uses it."""
