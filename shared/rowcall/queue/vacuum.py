"""What makes claims slower: dead rows that vacuum has not removed, and what holds vacuum back."""

from __future__ import annotations

from datetime import timedelta

from rowcall.base.database import Connection, Row, fetch_all, fetch_value

OLD = timedelta(hours=1)
# A slot and a standby have no start time; they count as old after this many transactions.
OLD_XIDS = 1_000_000

# A table is bloated if it has more dead rows than live ones, and more than autovacuum leaves behind on a usual day.
BLOATED = """
SELECT relname AS name, n_dead_tup AS dead, n_live_tup AS live FROM pg_stat_user_tables
WHERE schemaname = 'rowcall' AND n_dead_tup > greatest(n_live_tup, 50000) ORDER BY n_dead_tup DESC
"""

# Who holds a snapshot or a transaction id so old that vacuum cannot remove the rows that hundreds of thousands of runs
# have left since.  A transaction that has written and is idle has no snapshot, but still holds its id.  A standby with
# hot_standby_feedback shows as its walsender's backend_xmin or, if it uses a slot, as the slot's xmin; both hold back
# vacuum in all databases, and have no transaction whose age counts.
HOLDING = """
SELECT 'session ' || pid || ' of ' || coalesce(usename, '?') || ' (' || application_name || ')' AS who,
    now() - xact_start AS since, query_start AS query_started_at,
    '`SELECT pg_terminate_backend(' || pid || ')` ends it' AS remedy
FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND coalesce(backend_xmin, backend_xid) IS NOT NULL
    AND xact_start < now() - %(older)s::interval
UNION ALL
SELECT 'standby ' || quote_literal(application_name) || ' of ' || coalesce(usename, '?'), NULL, NULL,
    'end the oldest query on that standby, or set its hot_standby_feedback to off'
FROM pg_stat_replication WHERE age(backend_xmin) > %(xids)s::integer
UNION ALL
SELECT 'prepared transaction ' || quote_literal(gid), now() - prepared, NULL,
    '`ROLLBACK PREPARED ' || quote_literal(gid) || '` ends it'
FROM pg_prepared_xacts WHERE database = current_database() AND prepared < now() - %(older)s::interval
UNION ALL
SELECT 'replication slot ' || quote_literal(slot_name), NULL, NULL,
    CASE WHEN active THEN 'end the oldest query on the server that uses it, or let its consumer catch up'
    ELSE '`SELECT pg_drop_replication_slot(' || quote_literal(slot_name) || ')` ends it' END
FROM pg_replication_slots
WHERE greatest(age(xmin), age(catalog_xmin)) > %(xids)s::integer
ORDER BY 2 DESC NULLS LAST
"""


def bloated(connection: Connection) -> list[Row]:
    """Return Rowcall's tables that vacuum does not keep up with."""
    return fetch_all(connection, BLOATED)


def holding_back(connection: Connection, older: timedelta = OLD, xids: int = OLD_XIDS) -> list[Row]:
    """Return who holds vacuum back, the longest first, with the remedy."""
    return fetch_all(connection, HOLDING, {"older": older, "xids": xids})


# PostgreSQL hides the transactions of other roles' sessions from a role without this one.
SEES_ALL = "SELECT pg_has_role('pg_read_all_stats', 'USAGE')"


def sees_all_sessions(connection: Connection) -> bool:
    """Whether `holding_back` finds the sessions of other roles."""
    return bool(fetch_value(connection, SEES_ALL))
