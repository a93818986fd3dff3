"""Reads that a hot standby answers in place of the leader (ROWCALL_READ_URL)."""
