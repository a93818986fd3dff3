"""An application's connections: close them, and count what they have read."""

from __future__ import annotations

import flask
import sqlalchemy

from rowcall.base.database import Connection, fetch_value
from tests.support.processes import wait_until

# Of Rowcall's tables and their indexes; those of the catalogs are not counted.
READ = """
SELECT sum(coalesce(heap_blks_read, 0) + coalesce(heap_blks_hit, 0) + coalesce(idx_blks_read, 0)
    + coalesce(idx_blks_hit, 0) + coalesce(toast_blks_read, 0) + coalesce(toast_blks_hit, 0))::bigint AS blocks
FROM pg_statio_all_tables WHERE schemaname = 'rowcall'
"""

# The statistics of a session are complete when it has ended.
OTHERS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


def disconnect(app: flask.Flask) -> None:
    """Close the connections of all of the application's pools; it opens new ones when it needs them."""
    for extension in app.extensions.values():
        if isinstance(extension, sqlalchemy.Engine):
            extension.dispose()


def blocks_read(app: flask.Flask, connection: Connection) -> int:
    """Return how many blocks have been read in this database so far, on a connection in autocommit.

    All sessions but this one must be the application's; within a transaction, the statistics would not change.
    """
    disconnect(app)
    wait_until(lambda: fetch_value(connection, OTHERS) == 0, "the sessions of the application have ended")
    blocks: int = fetch_value(connection, READ)
    return blocks
