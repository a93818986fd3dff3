"""A small app of its own, as a team would write it: ROWCALL_APP=shop."""
