"""The types of the newest errors, which a list of runs suggests as filters."""

from __future__ import annotations

from rowcall.base.database import Connection, fetch_all
from rowcall.queue.fragments import IN_ORDER
from rowcall.status import FAILURES, sql_list

READ_MOST = 500

# Uses the index job_attempts_failed, from the newest attempt on.
RECENT_ERROR_TYPES = f"""
SELECT DISTINCT error_type FROM (
    SELECT error_type FROM rowcall.job_attempts
    WHERE outcome IN {sql_list(FAILURES)} ORDER BY ended_at DESC LIMIT %(most)s
) AS newest
WHERE error_type IS NOT NULL ORDER BY error_type
"""


def recent_error_types(connection: Connection, most: int = READ_MOST) -> list[str]:
    """Return the error types of the newest failed attempts, sorted by name."""
    return [row["error_type"] for row in fetch_all(connection, IN_ORDER + RECENT_ERROR_TYPES, {"most": most})]
