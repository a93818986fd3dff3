"""Wake: a notification, sent with the commit that made something due, that lets idle workers claim at once."""

CHANNEL = "rowcall_due"

# Part of the statement that makes a run due.  PostgreSQL sends equal notifications of one transaction once.  Only for
# runs that are due now: workers wake by the clock for later ones.  Written out, because callers enqueue under
# search_paths of their own.
WAKE = f"pg_catalog.pg_notify('{CHANNEL}', '')"

# The same as a statement of its own, behind one that made something due.
WAKE_WORKERS = f"SELECT {WAKE}"
