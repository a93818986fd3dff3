"""A small app as a team would write it: ROWCALL_APP=shop."""
