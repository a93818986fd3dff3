"""Wake: a notification, sent with the commit that made something due, that lets idle workers look at once."""

CHANNEL = "rowcall_due"

# Part of the statement that makes a run due.  Equal notifications of one transaction are sent as one.  Only for what is
# due now: the clock wakes for the rest.  Written out, because callers enqueue under search_paths of their own.
WAKE = f"pg_catalog.pg_notify('{CHANNEL}', '')"

# The same as a statement of its own, behind one that made something due.
WAKE_WORKERS = f"SELECT {WAKE}"
