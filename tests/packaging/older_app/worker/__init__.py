"""The team's jobs; ROWCALL_APP names this package."""
