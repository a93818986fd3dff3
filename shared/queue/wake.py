"""Wake: a notification, sent with the commit that made something due, that lets idle workers look at once."""

CHANNEL = "rowcall_due"

# Joined to the statement that enqueues.  Equal notifications of one transaction are sent as one.  Only for what is due
# now: the clock wakes for the rest.
NOTIFY = f"SELECT pg_notify('{CHANNEL}', '')"
