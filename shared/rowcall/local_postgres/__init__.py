"""A PostgreSQL of Rowcall's own, below ROWCALL_HOME, for as long as any process uses it."""
